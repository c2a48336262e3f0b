package repositorytest

import (
	"math"
	"time"

	"openbot/domain"
)

// newUsage is a model step that cost something.
func (w *world) newUsage() domain.UsageEntry {
	return domain.UsageEntry{ID: newID[domain.UsageID](domain.PrefixUsage), Organization: w.org.ID, Member: w.member.ID, Bot: w.bot.ID,
		Chat: "chat_1", Model: "playbook", Purpose: domain.PurposeTurn, Steps: 1, InputTokens: 10, OutputTokens: 3, CostNanos: 7, At: w.now}
}

// spend saves lines of the ledger.
func (w *world) spend(lines ...domain.UsageEntry) {
	w.Helper()
	w.ok(w.store.Commit(w.ctx, domain.Commit{Usage: lines}))
}

// sums gives the usage of the world's Member in the hour that begins now.
func (w *world) sums(group domain.UsageGroup) []domain.UsageSum {
	w.Helper()
	return must[[]domain.UsageSum](w)(w.store.Usage(w.ctx, domain.UsageFilter{Organization: w.org.ID, Member: w.member.ID, Group: group,
		From: w.now, To: w.now.Add(time.Hour), Limit: 9}))
}

var usage = []promise{
	{"usage is summed by each group, the most expensive first", func(w *world) {
		w.settle()
		cheap, dear, judge := w.newUsage(), w.newUsage(), w.newUsage()
		dear.Bot, dear.Chat, dear.Model, dear.Delegation, dear.CostNanos = "bot_2", "chat_2", "openai:x", "dlg_1", 1000
		judge.Steps, judge.InputTokens, judge.OutputTokens, judge.CostNanos, judge.Purpose = 0, 5, 1, 2, domain.PurposeJudge
		judge.Chat, judge.Bot = "", ""
		w.spend(cheap, judge)
		w.spend(dear)
		sum := func(key string, of ...domain.UsageEntry) domain.UsageSum {
			s := domain.UsageSum{Key: key}
			for _, u := range of {
				s.Steps, s.InputTokens, s.OutputTokens, s.CostNanos = s.Steps+u.Steps, s.InputTokens+u.InputTokens, s.OutputTokens+u.OutputTokens, s.CostNanos+u.CostNanos
			}
			return s
		}
		for group, want := range map[domain.UsageGroup][]domain.UsageSum{
			domain.UsageByBot:        {sum("bot_2", dear), sum(string(w.bot.ID), cheap), sum("", judge)},
			domain.UsageByChat:       {sum("chat_2", dear), sum("chat_1", cheap), sum("", judge)},
			domain.UsageByModel:      {sum("openai:x", dear), sum("playbook", cheap, judge)},
			domain.UsageByMember:     {sum(string(w.member.ID), cheap, judge, dear)},
			domain.UsageByDelegation: {sum("dlg_1", dear), sum("", cheap, judge)},
		} {
			w.same(string(group), w.sums(group), want)
		}
		_, err := w.store.Usage(w.ctx, domain.UsageFilter{Member: w.member.ID, Group: "purpose", To: w.now})
		w.code(err, domain.CodeInternal)
	}},
	{"a period holds its beginning and not its end", func(w *world) {
		w.settle()
		for _, at := range []time.Duration{-time.Microsecond, 0, time.Hour - time.Microsecond, time.Hour} {
			u := w.newUsage()
			u.At = w.now.Add(at)
			w.spend(u)
		}
		w.same("sums", w.sums(domain.UsageByBot), []domain.UsageSum{{Key: string(w.bot.ID), Steps: 2, InputTokens: 20, OutputTokens: 6, CostNanos: 14}})
	}},
	{"a Member gets its own, an organization that of all its Members, and neither that of others", func(w *world) {
		w.settle()
		other := w.newMember(w.org.ID)
		foreign := &domain.Organization{ID: newID[domain.OrganizationID](domain.PrefixOrganization)}
		w.commit(foreign, other)
		stranger := w.newMember(foreign.ID)
		w.commit(stranger)
		mine, theirs, strange, elsewhere := w.newUsage(), w.newUsage(), w.newUsage(), w.newUsage()
		theirs.Member, theirs.CostNanos = other.ID, 100
		strange.Organization, strange.Member = foreign.ID, stranger.ID
		elsewhere.Organization = foreign.ID // of a Member of ours: no such line is ever written
		w.spend(mine, theirs, strange, elsewhere)
		own := domain.UsageSum{Key: string(w.member.ID), Steps: 1, InputTokens: 10, OutputTokens: 3, CostNanos: 7}
		w.same("own", w.sums(domain.UsageByMember), []domain.UsageSum{own})
		all := must[[]domain.UsageSum](w)(w.store.Usage(w.ctx, domain.UsageFilter{Organization: w.org.ID, Group: domain.UsageByMember,
			From: w.now, To: w.now.Add(time.Hour), Limit: 9}))
		w.same("of the organization", all, []domain.UsageSum{{Key: string(other.ID), Steps: 1, InputTokens: 10, OutputTokens: 3, CostNanos: 100}, own})
	}},
	{"sums are exact to the last digit and stop at the largest number", func(w *world) {
		w.settle()
		const large = math.MaxInt64/4 + 1
		exact, over := w.newUsage(), w.newUsage()
		exact.CostNanos, exact.InputTokens, exact.Chat = large, large, "chat_exact"
		over.CostNanos, over.InputTokens, over.OutputTokens, over.Chat = math.MaxInt64, math.MaxInt64, math.MaxInt64, "chat_over"
		var lines []domain.UsageEntry
		for range 3 {
			for _, u := range []domain.UsageEntry{exact, over} {
				u.ID = newID[domain.UsageID](domain.PrefixUsage)
				lines = append(lines, u)
			}
		}
		w.spend(lines...)
		w.same("sums", w.sums(domain.UsageByChat), []domain.UsageSum{
			{Key: "chat_over", Steps: 3, InputTokens: math.MaxInt64, OutputTokens: math.MaxInt64, CostNanos: math.MaxInt64},
			{Key: "chat_exact", Steps: 3, InputTokens: 3 * large, OutputTokens: 9, CostNanos: 3 * large}})
	}},
	{"no more sums are given than asked for, in one order", func(w *world) {
		w.settle()
		for _, chat := range []domain.ChatID{"chat_c", "chat_a", "chat_b"} {
			u := w.newUsage()
			u.Chat = chat
			w.spend(u)
		}
		busy := w.newUsage()
		busy.Chat, busy.Steps = "chat_z", 2
		w.spend(busy)
		got := must[[]domain.UsageSum](w)(w.store.Usage(w.ctx, domain.UsageFilter{Organization: w.org.ID, Member: w.member.ID,
			Group: domain.UsageByChat, To: w.now.Add(time.Hour), Limit: 3}))
		var keys []string
		for _, s := range got {
			keys = append(keys, s.Key)
		}
		w.same("keys", keys, []string{"chat_z", "chat_a", "chat_b"})
	}},
}
