package repositorytest

import (
	"time"

	"openbot/domain"
)

var deciding = []promise{
	{"the Rules in force are those of the Bot for the Member and those of the organization, by ID", func(w *world) {
		w.settle()
		own, everywhere, off, deleted := w.newRule(w.bot.ID), w.newRule(""), w.newRule(""), w.newRule(w.bot.ID)
		otherBot, otherMember, otherOrg := w.newRule("bot_other"), w.newRule(w.bot.ID), w.newRule("")
		off.Enabled, deleted.DeletedAt, otherMember.Member, otherOrg.Organization = false, ptr(w.now), "mem_other", "org_other"
		w.commit(own, everywhere, off, deleted, otherBot, otherMember, otherOrg)
		w.same("in force", ids(must[[]domain.Rule](w)(w.store.RulesFor(w.ctx, w.org.ID, w.bot.ID, w.member.ID))), []string{string(own.ID), string(everywhere.ID)})
		page := domain.Page{Limit: 9}
		w.same("listed", ids(must[[]domain.Rule](w)(w.store.Rules(w.ctx, w.org.ID, w.member.ID, "", page))),
			[]string{string(otherBot.ID), string(off.ID), string(everywhere.ID), string(own.ID)})
		w.same("of a Bot", ids(must[[]domain.Rule](w)(w.store.Rules(w.ctx, w.org.ID, w.member.ID, w.bot.ID, page))), []string{string(own.ID)})
		w.same("next page", ids(must[[]domain.Rule](w)(w.store.Rules(w.ctx, w.org.ID, w.member.ID, "", domain.Page{Limit: 1, Before: string(off.ID)}))),
			[]string{string(everywhere.ID)})
	}},
	{"Grants are listed by whether they stand, and for one capability by Bot and Member", func(w *world) {
		w.settle()
		a, b, revoked, otherMember := w.newGrant(), w.newGrant(), w.newGrant(), w.newGrant()
		b.Bot, b.Capability.Target = "bot_other", "con_1/other"
		revoked.RevokedAt, otherMember.Member = ptr(w.now), "mem_other"
		w.commit(a, b, revoked, otherMember)
		read := func(f domain.GrantFilter) []string {
			w.Helper()
			f.Member = w.member.ID
			return ids(must[[]domain.Grant](w)(w.store.Grants(w.ctx, w.org.ID, f, domain.Page{Limit: 9})))
		}
		w.same("in force", read(domain.GrantFilter{}), []string{string(b.ID), string(a.ID)})
		w.same("of a Bot", read(domain.GrantFilter{Bot: w.bot.ID}), []string{string(a.ID)})
		w.same("revoked", read(domain.GrantFilter{Revoked: true}), []string{string(revoked.ID)})
		w.same("for one capability", ids(must[[]domain.Grant](w)(w.store.GrantsOf(w.ctx, w.bot.ID, w.member.ID, a.Capability))), []string{string(a.ID)})
	}},
	{"the Grants below one are all that rest on it, however far down, and a ring ends", func(w *world) {
		w.settle()
		top, child, grandchild, beside, revoked, ringA, ringB := w.newGrant(), w.newGrant(), w.newGrant(), w.newGrant(), w.newGrant(), w.newGrant(), w.newGrant()
		child.Parent, grandchild.Parent, revoked.Parent = top.ID, child.ID, top.ID
		revoked.RevokedAt = ptr(w.now)
		ringA.Parent, ringB.Parent = ringB.ID, ringA.ID
		w.commit(top, child, grandchild, beside, revoked, ringA, ringB)
		w.same("below", ids(must[[]domain.Grant](w)(w.store.GrantsBelow(w.ctx, top.ID))), []string{string(child.ID), string(grandchild.ID)})
		w.same("below none", ids(must[[]domain.Grant](w)(w.store.GrantsBelow(w.ctx, beside.ID))), []string{})
		w.same("below the empty ID", ids(must[[]domain.Grant](w)(w.store.GrantsBelow(w.ctx, ""))), []string{})
		w.same("in a ring", ids(must[[]domain.Grant](w)(w.store.GrantsBelow(w.ctx, ringA.ID))), []string{string(ringA.ID), string(ringB.ID)})
	}},
	{"time without a server goes back to plans that run when nobody answers, once", func(w *world) {
		w.settle()
		chat := w.newChat()
		turn := w.newTurn(chat)
		call := w.newCall(turn, 1, 0)
		gap := 30 * time.Second
		request := func(onExpire string, status domain.RequestStatus, created time.Time) *domain.Request {
			r := w.newRequest(call)
			r.OnExpire, r.Status, r.CreatedAt = onExpire, status, created
			return r
		}
		before := w.now.Add(-time.Hour)
		plan, deny, closed := request("allow", domain.RequestPending, before), request("deny", domain.RequestPending, before), request("allow", domain.RequestAllowed, before)
		later := request("allow", domain.RequestPending, w.now.Add(4*time.Minute))
		w.commit(chat, turn, call, plan, deny, closed, later)
		beat := func(at time.Time) {
			w.Helper()
			w.ok(w.store.Beat(w.ctx, at, gap))
		}
		ends := func(r *domain.Request) time.Duration {
			w.Helper()
			now := must[domain.Request](w)(w.store.Request(w.ctx, r.ID))
			if moved := !now.ExpiresAt.Equal(r.ExpiresAt); moved != (now.Version != r.Version) {
				w.Fatalf("the end moved: %v, and the version is %d", moved, now.Version)
			}
			return now.ExpiresAt.Sub(r.ExpiresAt)
		}
		beat(w.now) // the first there ever was
		beat(w.now.Add(gap))
		w.same("without a gap", ends(plan), time.Duration(0))
		beat(w.now.Add(10 * time.Minute))
		beat(w.now.Add(10 * time.Minute))
		beat(w.now.Add(5 * time.Minute)) // a clock that is behind
		w.same("with a gap", ends(plan), 10*time.Minute-gap)
		w.same("made in the gap", ends(later), 6*time.Minute)
		w.same("denied at its end", ends(deny), time.Duration(0))
		w.same("closed", ends(closed), time.Duration(0))
	}},
	{"the Chats in which a Bot has a Turn under way are given, and a judged call is pushed while its version stands", func(w *world) {
		w.settle()
		for _, status := range domain.TurnStatuses() {
			chat := w.newChat()
			turn := w.newTurn(chat)
			turn.Status = status
			call := w.newCall(turn, 1, 0)
			call.Status = domain.CallChecking
			w.commit(chat, turn, call)
			open := must[[]domain.ChatID](w)(w.store.OpenTurns(w.ctx, w.bot.ID, 99))
			w.same("open with "+string(status), len(open) > 0 && open[len(open)-1] == chat.ID, !status.Ended())
			w.same("push", must[bool](w)(w.store.PushCall(w.ctx, call.ID, 1, w.now.Add(time.Minute))), true)
			w.same("push of another version", must[bool](w)(w.store.PushCall(w.ctx, call.ID, 2, w.now)), false)
			call.DueAt = ptr(w.now.Add(time.Minute))
			w.same("pushed call", must[[]domain.Call](w)(w.store.TurnCalls(w.ctx, turn.ID))[0], *call)
			call.Status = domain.CallWaiting
			w.commit(call)
			w.same("push of a call that waits", must[bool](w)(w.store.PushCall(w.ctx, call.ID, call.Version, w.now)), false)
		}
	}},
	{"archived Chats are read and not listed", func(w *world) {
		w.settle()
		chat := w.newChat()
		chat.Kind, chat.ArchivedAt, chat.Request = domain.ChatReview, ptr(w.now), "req_1"
		w.commit(chat)
		w.same("chat", must[domain.Chat](w)(w.store.Chat(w.ctx, chat.ID)), *chat)
		w.same("list", ids(must[[]domain.Chat](w)(w.store.Chats(w.ctx, w.member.ID, domain.Page{Limit: 9}))), []string{})
	}},
	{"previews are forgotten by the time they were made", func(w *world) {
		w.settle()
		preview := func(at time.Time) *domain.Preview {
			p := &domain.Preview{ID: newID[domain.PreviewID](domain.PrefixPreview), CreatedAt: at}
			w.commit(p)
			return p
		}
		old, edge, fresh := preview(w.now.Add(-time.Hour)), preview(w.now), preview(w.now.Add(time.Hour))
		w.same("forgotten", must[int](w)(w.store.ForgetPreviews(w.ctx, w.now, 9)), 1)
		_, err := w.store.Preview(w.ctx, old.ID)
		w.code(err, domain.CodeNotFound)
		for _, p := range []*domain.Preview{edge, fresh} {
			w.same("preview", must[domain.Preview](w)(w.store.Preview(w.ctx, p.ID)), *p)
		}
	}},
	{"decided Requests of a Member's work are those that were allowed or denied", func(w *world) {
		w.settle()
		chat := w.newChat()
		turn := w.newTurn(chat)
		call := w.newCall(turn, 1, 0)
		w.commit(chat, turn, call)
		var want []string
		for _, status := range domain.RequestStatuses() {
			r, other := w.newRequest(call), w.newRequest(call)
			r.Status, other.Status, other.Member = status, status, "mem_other"
			r.Approver = domain.ByBot("bot_above")
			w.commit(r, other)
			if status == domain.RequestAllowed || status == domain.RequestDenied {
				want = append([]string{string(r.ID)}, want...)
			}
		}
		w.same("decided", ids(must[[]domain.Request](w)(w.store.Requests(w.ctx, w.org.ID,
			domain.RequestFilter{Member: w.member.ID, Decided: true}, domain.Page{Limit: 9}))), want)
	}},
}
