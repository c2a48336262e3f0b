package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
)

// priced gives the playbook a price at which every token shows in the cost.
func (w *world) priced() {
	w.t.Helper()
	_, err := w.engine.ChangeSettings(w.t.Context(), w.me, func(s *domain.Settings) error {
		s.ModelPrices = map[string]domain.SettingPrice{"playbook": {InputMicrosPerToken: 0.003, OutputMicrosPerToken: 0.007}}
		return nil
	})
	w.must(err)
}

// ledger gathers what the commits from now on note, each together with what it paid
// for.
func (w *world) ledger() *[]domain.UsageEntry {
	var lines []domain.UsageEntry
	w.store.before = func(_ int, c domain.Commit) error {
		if len(c.Usage) > 0 && len(c.Rows) == 0 {
			w.t.Errorf("noted apart from what it paid for: %+v", c.Usage)
		}
		lines = append(lines, c.Usage...)
		return nil
	}
	return &lines
}

// used sums the usage of the caller.
func (w *world) used(group domain.UsageGroup) []domain.UsageSum {
	w.t.Helper()
	to := w.clock.now().Add(time.Second)
	sums, err := w.engine.Usage(w.t.Context(), w.me, engine.UsageQuery{Group: group, To: &to})
	w.must(err)
	return sums
}

func TestTheLedgerAgreesWithTheTurns(t *testing.T) {
	w := newWorld(t)
	w.priced()
	want := map[domain.ChatID]domain.UsageSum{}
	for range 3 {
		chat := w.newChat()
		for range 2 {
			turn := w.say(chat, roundScript)
			w.run()
			w.mustAnswer(w.onlyPending(), domain.DecisionAllow, "")
			w.run()
			v := w.wantStatus(turn, domain.TurnCompleted).Turn
			s := want[chat]
			want[chat] = domain.UsageSum{Key: string(chat), Steps: s.Steps + int64(v.Steps), InputTokens: s.InputTokens + v.InputTokens,
				OutputTokens: s.OutputTokens + v.OutputTokens, CostNanos: s.CostNanos + v.CostNanos}
		}
	}
	sums := w.used(domain.UsageByChat)
	if len(sums) != len(want) {
		t.Fatalf("the ledger has %d Chats: %+v", len(sums), sums)
	}
	for _, got := range sums {
		if got != want[domain.ChatID(got.Key)] || got.CostNanos == 0 || got.Steps != 4 {
			t.Errorf("the ledger says %+v, the Turns %+v", got, want[domain.ChatID(got.Key)])
		}
	}
	model := w.used(domain.UsageByModel)
	if len(model) != 1 || model[0].Key != "playbook" || model[0].Steps != 12 {
		t.Errorf("by model it is %+v", model)
	}
}

// Whoever is asked is paid for: each with its purpose, its Bot and its Chat, in the
// commit of what it paid for.
func TestEveryModelCallIsNoted(t *testing.T) {
	t.Run("the judge", func(t *testing.T) {
		w := newWorld(t)
		w.priced()
		w.rule("Allow send.", domain.DecisionAllow, "")
		chat := w.newChat()
		lines := w.ledger()
		w.say(chat, sendScript)
		w.run()
		var judge []domain.UsageEntry
		for _, l := range *lines {
			if l.Purpose == domain.PurposeJudge {
				judge = append(judge, l)
			}
		}
		if len(*lines) != 3 || len(judge) != 1 {
			t.Fatalf("the ledger is %+v", *lines)
		}
		l := judge[0]
		if l.Steps != 0 || l.CostNanos == 0 || l.InputTokens == 0 || l.OutputTokens == 0 || l.Chat != chat || l.Bot != w.main() ||
			l.Member != w.me.Member.ID || l.Organization != w.me.Organization || l.Model != "playbook" || l.Delegation != "" {
			t.Errorf("the judge is noted as %+v", l)
		}
	})
	t.Run("a review, and the judge for the Bot that decides", func(t *testing.T) {
		w := newWorld(t)
		w.priced()
		worker, above := w.chain(silent, yes)
		w.rule("Allow send.", domain.DecisionAllow, above[0])
		chat := w.chatWith(worker)
		lines := w.ledger()
		turn := w.say(chat, sendScript)
		w.run()
		if call := w.view(turn).Calls[0]; call.Decided == nil || call.Decided.By != domain.ByBot(above[0]) {
			t.Fatalf("the call is %s", call.Status)
		}
		count := map[domain.Purpose]int{}
		for _, l := range *lines {
			count[l.Purpose]++
			if own := l.Purpose == domain.PurposeTurn; own != (l.Chat == chat) || own != (l.Bot == worker) || !own && l.Bot != above[0] {
				t.Errorf("%s is noted for %s in %s", l.Purpose, l.Bot, l.Chat)
			}
			if (l.Purpose == domain.PurposeJudge) != (l.Steps == 0) || l.CostNanos == 0 {
				t.Errorf("%s counts %d steps and costs %d", l.Purpose, l.Steps, l.CostNanos)
			}
		}
		if count[domain.PurposeTurn] != 2 || count[domain.PurposeReview] != 1 || count[domain.PurposeJudge] != 1 {
			t.Errorf("the ledger is %v", count)
		}
	})
	t.Run("a preview", func(t *testing.T) {
		w := newWorld(t)
		w.priced()
		for range 2 {
			w.say(w.newChat(), sendScript)
			w.run()
			w.mustAnswer(w.onlyPending(), domain.DecisionDeny, "")
			w.run()
		}
		now := w.clock.now()
		p := domain.Preview{ID: "prv_00000000000000000000000000000001", Organization: w.me.Organization, Member: w.me.Member.ID, Text: "Never send.",
			Effect: domain.DecisionDeny, Number: 5, DueAt: &now, CreatedAt: now}
		w.must(w.store.Commit(t.Context(), domain.Commit{Rows: []domain.Row{&p}}))
		lines := w.ledger()
		w.sweep()
		if len(*lines) != 1 || (*lines)[0].Purpose != domain.PurposeJudge || (*lines)[0].Chat != "" || (*lines)[0].Steps != 0 ||
			(*lines)[0].CostNanos == 0 || (*lines)[0].Member != w.me.Member.ID {
			t.Errorf("the ledger is %+v", *lines)
		}
	})
}

// A reply that cannot be taken is paid for, and so is one that nobody wants any more; a
// call that gave none costs nothing.
func TestWhatIsPaidForInVainIsNoted(t *testing.T) {
	t.Run("a step that cannot be taken", func(t *testing.T) {
		w := newWorld(t)
		w.priced()
		turn := w.say(w.newChat(), strings.Split(strings.Repeat("/call mail__send {}\n", domain.MaxStepCalls+1), "\n")...)
		w.run()
		v := w.wantStatus(turn, domain.TurnFailed).Turn
		sums := w.used(domain.UsageByModel)
		if len(sums) != 1 || sums[0].Steps != 1 || sums[0].CostNanos != v.CostNanos || v.CostNanos == 0 {
			t.Errorf("the ledger says %+v, the Turn cost %d", sums, v.CostNanos)
		}
	})
	t.Run("a step that two workers took", func(t *testing.T) {
		w := newWorld(t)
		w.priced()
		turn := w.say(w.newChat(), "hello")
		task, _ := w.rings.next(w.clock.now())
		ctx := context.WithoutCancel(t.Context())
		first, err := w.engine.PrepareStep(ctx, turn, task.Revision)
		w.must(err)
		second, err := w.engine.PrepareStep(ctx, turn, task.Revision)
		w.must(err)
		w.finish(first)
		w.finish(second)
		v := w.wantStatus(turn, domain.TurnCompleted).Turn
		sums := w.used(domain.UsageByModel)
		if v.Steps != 1 || len(sums) != 1 || sums[0].Steps != 1 || sums[0].CostNanos != 2*v.CostNanos {
			t.Errorf("the ledger says %+v, the Turn cost %d", sums, v.CostNanos)
		}
	})
	t.Run("a verdict that comes late", func(t *testing.T) {
		w := newWorld(t)
		w.priced()
		w.rule("Allow send.", domain.DecisionAllow, "")
		w.say(w.newChat(), sendScript)
		step, _ := w.rings.next(w.clock.now())
		w.work(step)
		task, _ := w.rings.next(w.clock.now())
		late, err := w.engine.PrepareJudge(t.Context(), domain.CallID(task.Subject), task.Revision)
		w.must(err)
		w.sweepFor(30 * time.Second)
		before := w.used(domain.UsageByModel)[0]
		w.must(w.engine.CommitVerdict(t.Context(), late, domain.RulesVerdict{Usage: domain.ModelUsage{InputTokens: 1000}}))
		before.InputTokens, before.CostNanos = before.InputTokens+1000, before.CostNanos+3000
		if after := w.used(domain.UsageByModel); len(after) != 1 || after[0] != before {
			t.Errorf("the ledger says %+v, want %+v", after, before)
		}
	})
	t.Run("a call that gave no reply", func(t *testing.T) {
		w := newWorld(t)
		w.priced()
		turn := w.say(w.newChat(), "/fail no")
		w.run()
		w.wantStatus(turn, domain.TurnFailed)
		if sums := w.used(domain.UsageByModel); len(sums) != 0 {
			t.Errorf("the ledger says %+v", sums)
		}
	})
}

// A commit that is made again after a conflict notes its model call once.
func TestAConflictNotesNothingTwice(t *testing.T) {
	w := newWorld(t)
	failed := 0
	w.store.before = func(_ int, c domain.Commit) error {
		if len(c.Usage) > 0 && failed < 3 {
			failed++
			return domain.Errorf(domain.CodeConflict, "Conflict", "Another was faster.")
		}
		return nil
	}
	turn := w.say(w.newChat(), "hello")
	w.run()
	w.wantStatus(turn, domain.TurnCompleted)
	if sums := w.used(domain.UsageByModel); failed != 3 || len(sums) != 1 || sums[0].Steps != 1 {
		t.Errorf("after %d conflicts the ledger says %+v", failed, sums)
	}
}

// A Member sees its own work. By Member an admin sees everybody's; a token without that
// role does not.
func TestWhoSeesWhichUsage(t *testing.T) {
	w := newWorld(t)
	ann, err := w.engine.CreateMember(t.Context(), w.me, engine.MemberFields{Name: ptr("Ann"), Permissions: domain.Permissions{"write", "*"}})
	w.must(err)
	token, _, err := w.engine.CreateToken(t.Context(), w.me, engine.NewToken{Name: "hers", Member: ann.ID, Scopes: domain.Permissions{"write", "*"}})
	w.must(err)
	hers := domain.Principal{Organization: w.me.Organization, Member: ann, Token: token}
	chat, err := w.engine.CreateChat(t.Context(), hers, engine.NewChat{})
	w.must(err)
	if _, err = w.engine.PostMessage(t.Context(), hers, chat.ID, "hello"); err != nil {
		t.Fatal(err)
	}
	w.say(w.newChat(), "hello")
	w.run()
	narrow := w.me
	narrow.Token.Scopes = domain.Permissions{"read"}
	for _, c := range []struct {
		name  string
		who   domain.Principal
		group domain.UsageGroup
		want  []string
	}{
		{"an admin by Member", w.me, domain.UsageByMember, []string{string(w.me.Member.ID), string(ann.ID)}},
		{"an admin by Bot", w.me, domain.UsageByBot, []string{string(w.main())}},
		{"an admin's token that only reads", narrow, domain.UsageByMember, []string{string(w.me.Member.ID)}},
		{"a Member by Member", hers, domain.UsageByMember, []string{string(ann.ID)}},
		{"a Member by Chat", hers, domain.UsageByChat, []string{string(chat.ID)}},
	} {
		to := w.clock.now().Add(time.Second)
		sums, err := w.engine.Usage(t.Context(), c.who, engine.UsageQuery{Group: c.group, To: &to})
		w.must(err)
		keys := []string{}
		for _, s := range sums {
			keys = append(keys, s.Key)
		}
		slices.Sort(keys)
		slices.Sort(c.want)
		if !slices.Equal(keys, c.want) {
			t.Errorf("%s: %v, want %v", c.name, keys, c.want)
		}
	}
}

func TestThePeriodOfUsage(t *testing.T) {
	w := newWorld(t)
	began := w.clock.now()
	w.say(w.newChat(), "hello")
	w.run()
	const month = 30 * 24 * time.Hour
	for name, c := range map[string]struct {
		now      time.Duration
		from, to *time.Duration
		seen     bool
	}{
		"left out, at the same moment":     {seen: false},
		"left out, a moment later":         {now: time.Microsecond, seen: true},
		"left out, 30 days later":          {now: month, seen: true},
		"left out, more than 30 days":      {now: month + time.Microsecond, seen: false},
		"from then on":                     {now: 100 * month, from: ptr(time.Duration(0)), seen: true},
		"from later on":                    {now: 100 * month, from: ptr(time.Microsecond), seen: false},
		"up to it":                         {now: 100 * month, to: ptr(time.Duration(0)), seen: false},
		"30 days up to right after it":     {now: 100 * month, to: ptr(time.Microsecond), seen: true},
		"30 days that begin right with it": {now: 100 * month, to: ptr(month), seen: true},
		"30 days that begin after it":      {now: 100 * month, to: ptr(month + 1000), seen: false},
	} {
		w.clock.mu.Lock()
		w.clock.at = began.Add(c.now)
		w.clock.mu.Unlock()
		q := engine.UsageQuery{Group: domain.UsageByBot}
		if c.from != nil {
			q.From = ptr(began.Add(*c.from))
		}
		if c.to != nil {
			q.To = ptr(began.Add(*c.to))
		}
		sums, err := w.engine.Usage(t.Context(), w.me, q)
		w.must(err)
		if (len(sums) == 1) != c.seen {
			t.Errorf("%s: %+v", name, sums)
		}
	}
	for _, from := range []time.Duration{0, time.Second} {
		_, err := w.engine.Usage(t.Context(), w.me, engine.UsageQuery{Group: domain.UsageByBot, From: ptr(began.Add(from)), To: &began})
		w.wantCode(err, domain.CodeInvalid)
	}
}
