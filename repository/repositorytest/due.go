package repositorytest

import (
	"time"

	"openbot/domain"
)

var dues = []promise{
	{"of each kind the rows whose time has come are due, oldest first, and none else", func(w *world) {
		w.settle()
		chat := w.newChat()
		w.commit(chat)
		at := func(after time.Duration) *time.Time { return ptr(w.now.Add(after)) }
		late, now, soon := at(-time.Hour), at(0), at(time.Microsecond)
		due := func(kind domain.TaskKind, limit int) []domain.DueRow {
			w.Helper()
			return must[[]domain.DueRow](w)(w.store.Due(w.ctx, kind, w.now, limit))
		}
		want := map[domain.TaskKind][]domain.DueRow{}
		expect := func(kind domain.TaskKind, id string, version int64, at *time.Time, urgency domain.Urgency) {
			want[kind] = append(want[kind], domain.DueRow{Kind: kind, ID: id, Version: version, DueAt: *at, Urgency: urgency})
		}

		// Turns: the newer row is the older in time, so that the order is seen.
		turn := func(status domain.TurnStatus, steps, open int, dueAt *time.Time) *domain.Turn {
			t := w.newTurn(chat)
			t.Status, t.Steps, t.OpenCalls, t.DueAt = status, steps, open, dueAt
			w.commit(t)
			return t
		}
		fresh := turn(domain.TurnQueued, 0, 0, now)
		resumed := turn(domain.TurnRunning, 2, 0, late)
		w.commit(resumed)
		turn(domain.TurnQueued, 0, 0, soon)
		turn(domain.TurnRunning, 1, 1, late)
		turn(domain.TurnRunning, 1, 0, nil)
		turn(domain.TurnWaiting, 1, 1, nil)
		turn(domain.TurnCompleted, 1, 0, nil)
		expect(domain.TaskTurnStep, string(resumed.ID), 2, late, domain.UrgencyAnswer)
		expect(domain.TaskTurnStep, string(fresh.ID), 1, now, domain.UrgencyTurn)

		position := 0
		call := func(status domain.CallStatus, dueAt *time.Time) *domain.Call {
			c := w.newCall(fresh, 1, position)
			position++
			c.Status, c.DueAt = status, dueAt
			w.commit(c)
			return c
		}
		for _, status := range domain.CallStatuses() {
			call(status, soon)
			call(status, nil)
		}
		allowed, sending := call(domain.CallAllowed, now), call(domain.CallSending, now)
		allowedLate, sendingLate := call(domain.CallAllowed, late), call(domain.CallSending, late)
		judged := call(domain.CallChecking, late)
		program := w.newCall(fresh, 1, position)
		position++
		program.Kind, program.Status, program.DueAt = domain.CallProgram, domain.CallAllowed, late
		w.commit(program)
		expect(domain.TaskProgramRun, string(program.ID), 1, late, domain.UrgencyProgram)
		expect(domain.TaskCallJudge, string(judged.ID), 1, late, domain.UrgencyJudge)
		expect(domain.TaskCallSend, string(allowedLate.ID), 1, late, domain.UrgencyAnswer)
		expect(domain.TaskCallSend, string(allowed.ID), 1, now, domain.UrgencyAnswer)
		expect(domain.TaskCallLapse, string(sendingLate.ID), 1, late, domain.UrgencyAnswer)
		expect(domain.TaskCallLapse, string(sending.ID), 1, now, domain.UrgencyAnswer)

		request := func(status domain.RequestStatus, expires *time.Time) *domain.Request {
			r := w.newRequest(allowed)
			r.Status, r.ExpiresAt = status, *expires
			w.commit(r)
			return r
		}
		pending, pendingLate := request(domain.RequestPending, now), request(domain.RequestPending, late)
		request(domain.RequestPending, soon)
		for _, status := range []domain.RequestStatus{domain.RequestAllowed, domain.RequestDenied, domain.RequestCancelled} {
			request(status, late)
		}
		expect(domain.TaskRequestElapse, string(pendingLate.ID), late.UnixMilli(), late, domain.UrgencyTurn)
		expect(domain.TaskRequestElapse, string(pending.ID), now.UnixMilli(), now, domain.UrgencyTurn)
		found := map[domain.RequestID]domain.CallID{}
		for share := range domain.ExpiryShares {
			for _, r := range must[[]domain.DueRequest](w)(w.store.DueRequests(w.ctx, *now, share, 10)) {
				if _, twice := found[r.ID]; twice {
					w.Errorf("%s is in two shares", r.ID)
				}
				found[r.ID] = r.Call
			}
		}
		w.same("the Requests whose time is up", found, map[domain.RequestID]domain.CallID{pending.ID: allowed.ID, pendingLate.ID: allowed.ID})

		for _, dueAt := range []*time.Time{soon, nil, late} {
			r := w.newRequest(allowed)
			r.ExpiresAt, r.ReviewDueAt, r.VerdictDueAt = w.now.Add(time.Hour), dueAt, dueAt
			b := &domain.Bot{ID: newID[domain.BotID](domain.PrefixBot), Organization: w.org.ID, Kind: domain.BotLasting, ClosingDueAt: dueAt}
			p := &domain.Preview{ID: newID[domain.PreviewID](domain.PrefixPreview), DueAt: dueAt, CreatedAt: w.now}
			w.commit(r, b, p)
			v := w.newDelivery(w.newWebhook(w.member), domain.DeliveryPending, dueAt, nil)
			w.commit(v)
			if dueAt == late {
				expect(domain.TaskWebhookDeliver, string(v.ID), 1, late, domain.UrgencyDelivery)
				expect(domain.TaskRequestReview, string(r.ID), 1, late, domain.UrgencyReview)
				expect(domain.TaskRequestVerdict, string(r.ID), late.UnixMilli(), late, domain.UrgencyJudge)
				expect(domain.TaskBotClose, string(b.ID), 1, late, domain.UrgencyRest)
				expect(domain.TaskRulePreview, string(p.ID), 1, late, domain.UrgencyJudge)
			}
		}
		for _, dueAt := range []*time.Time{late, soon, nil} {
			reminded, escalated := w.newRequest(allowed), w.newRequest(allowed)
			reminded.ExpiresAt, escalated.ExpiresAt = w.now.Add(time.Hour), w.now.Add(time.Hour)
			reminded.RemindAt, escalated.EscalateAt = dueAt, dueAt
			w.commit(reminded, escalated)
			if dueAt == late {
				expect(domain.TaskRequestFollowUp, string(reminded.ID), late.UnixMilli(), late, domain.UrgencyRest)
				expect(domain.TaskRequestFollowUp, string(escalated.ID), late.UnixMilli(), late, domain.UrgencyRest)
			}
		}
		for _, dueAt := range []*time.Time{late, soon, now} {
			r := w.newReminder(chat)
			r.DueAt = *dueAt
			w.commit(r)
			if dueAt != soon {
				expect(domain.TaskReminderFire, string(r.ID), dueAt.UnixMilli(), dueAt, domain.UrgencyTurn)
			}
		}
		for _, dueAt := range []*time.Time{late, soon, nil, now} {
			r := &domain.Trigger{ID: newID[domain.TriggerID](domain.PrefixTrigger), Organization: w.org.ID, Member: w.member.ID, NextAt: dueAt,
				CreatedAt: w.now, UpdatedAt: w.now}
			w.commit(r)
			if dueAt == late || dueAt == now {
				expect(domain.TaskTriggerFire, string(r.ID), dueAt.UnixMilli(), dueAt, domain.UrgencyTurn)
			}
		}
		for _, dueAt := range []*time.Time{now, late, soon, nil} {
			g, c := w.newGrant(), w.newConnection()
			g.SettleDueAt, c.LookDueAt = dueAt, dueAt
			t, m := w.newToken(w.member), w.newMember(w.org.ID)
			t.ClosingDueAt = dueAt
			if dueAt == late {
				m.ClosingDueAt = at(-time.Minute)
			}
			w.commit(g, c, t, m)
			if dueAt != now && dueAt != late {
				continue
			}
			expect(domain.TaskGrantSettle, string(g.ID), 1, dueAt, domain.UrgencyAnswer)
			expect(domain.TaskConnectionLook, string(c.ID), 1, dueAt, domain.UrgencyReview)
			expect(domain.TaskTokenClose, string(t.ID), 1, dueAt, domain.UrgencyRest)
			if dueAt == late {
				expect(domain.TaskTokenClose, string(m.ID), 1, m.ClosingDueAt, domain.UrgencyRest)
			}
		}
		for _, dueAt := range []*time.Time{now, late, soon, nil} {
			g := w.newWork(chat, "")
			g.DueAt, g.NoticeDueAt, g.ClosingDueAt, g.ResumeDueAt = dueAt, dueAt, dueAt, dueAt
			w.commit(g)
			if dueAt != now && dueAt != late {
				continue
			}
			expect(domain.TaskWorkElapse, string(g.ID), dueAt.UnixMilli(), dueAt, domain.UrgencyTurn)
			expect(domain.TaskWorkNotify, string(g.ID), 1, dueAt, domain.UrgencyAnswer)
			expect(domain.TaskWorkClose, string(g.ID), 1, dueAt, domain.UrgencyTurn)
			expect(domain.TaskWorkResume, string(g.ID), 1, dueAt, domain.UrgencyAnswer)
		}
		for _, kind := range []domain.TaskKind{domain.TaskGrantSettle, domain.TaskConnectionLook, domain.TaskTokenClose,
			domain.TaskWorkElapse, domain.TaskWorkNotify, domain.TaskWorkClose, domain.TaskWorkResume} {
			want[kind] = append(want[kind][1:], want[kind][0])
		}

		for _, kind := range domain.TaskKinds() {
			w.same(string(kind), due(kind, 99), want[kind])
			w.same(string(kind)+", one", due(kind, 1), want[kind][:1])
		}
	}},
	{"an unknown kind is an error", func(w *world) {
		_, err := w.store.Due(w.ctx, "no.such", w.now, 1)
		w.code(err, domain.CodeInternal)
	}},
}

var leases = []promise{
	{"a lease is renewed by its holder alone, while the call is out, also when its Turn was stopped", func(w *world) {
		w.settle()
		chat := w.newChat()
		turn := w.newTurn(chat)
		turn.Status = domain.TurnRunning
		call := w.newCall(turn, 1, 0)
		call.Status, call.Lease, call.LeaseUntil, call.DueAt = domain.CallSending, "mine", ptr(w.now), ptr(w.now)
		w.commit(chat, turn, call)
		read := func() domain.Call {
			return must[[]domain.Call](w)(w.store.TurnCalls(w.ctx, turn.ID))[0]
		}
		renew := func(lease string, until time.Time) bool {
			w.Helper()
			return must[bool](w)(w.store.RenewLease(w.ctx, call.ID, lease, until))
		}
		until := w.now.Add(domain.LeaseTime)
		for _, lease := range []string{"", "another", "MINE", "mine "} {
			w.same("renewal by "+lease, renew(lease, until), false)
		}
		w.same("untouched call", read(), *call)
		w.same("renewal by the holder", renew("mine", until), true)
		call.LeaseUntil, call.DueAt = ptr(until), ptr(until)
		w.same("renewed call", read(), *call)
		w.same("renewal of another call", must[bool](w)(w.store.RenewLease(w.ctx, "call_other", "mine", until)), false)

		for _, status := range domain.TurnStatuses() {
			turn.Status, turn.DueAt = status, nil
			w.commit(turn)
			w.same("renewal in a Turn that is "+string(status), renew("mine", until), true)
		}
		turn.Status = domain.TurnRunning
		w.commit(turn)
		for _, status := range domain.CallStatuses() {
			call.Status = status
			w.commit(call)
			w.same("renewal of a call that is "+string(status), renew("mine", until), status == domain.CallSending)
		}
	}},
	{"a renewal does not move the version, so the result can still be saved", func(w *world) {
		w.settle()
		chat := w.newChat()
		turn := w.newTurn(chat)
		call := w.newCall(turn, 1, 0)
		call.Status, call.Lease, call.LeaseUntil = domain.CallSending, "mine", ptr(w.now)
		w.commit(chat, turn, call)
		w.same("renewal", must[bool](w)(w.store.RenewLease(w.ctx, call.ID, "mine", w.now.Add(time.Second))), true)
		call.Status, call.Lease, call.LeaseUntil, call.EndedAt = domain.CallSucceeded, "", nil, ptr(w.now)
		w.commit(call)
	}},
	{"a Turn under way is pushed and shown as running while its version stands", func(w *world) {
		w.settle()
		chat := w.newChat()
		turn := w.newTurn(chat)
		w.commit(chat, turn)
		due := w.now.Add(time.Minute)
		push := func(version int64) bool {
			w.Helper()
			return must[bool](w)(w.store.PushTurn(w.ctx, turn.ID, version, due))
		}
		for _, version := range []int64{0, 2} {
			w.same("push of another version", push(version), false)
		}
		w.same("untouched Turn", must[domain.Turn](w)(w.store.Turn(w.ctx, turn.ID)), *turn)
		w.same("push", push(1), true)
		pushed := *turn
		pushed.Status, pushed.DueAt = domain.TurnRunning, ptr(due)
		w.same("pushed Turn", must[domain.Turn](w)(w.store.Turn(w.ctx, turn.ID)), pushed)
		w.same("push of a running Turn", push(1), true)
		for _, status := range domain.TurnStatuses() {
			turn.Status, turn.DueAt = status, nil
			w.commit(turn)
			runnable := status == domain.TurnQueued || status == domain.TurnRunning
			w.same("push of a Turn that is "+string(status), push(turn.Version), runnable)
		}
	}},
}
