package domain_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"openbot/domain"
)

// history is a Turn with its calls, their Requests and the Grants that answers leave,
// driven by random events. Every move goes through the Decide functions alone.
type history struct {
	t        *rapid.T
	now      time.Time
	turn     domain.Turn
	calls    []domain.Call
	requests map[domain.RequestID]domain.Request
	grants   map[domain.GrantID]domain.Grant
	takes    map[domain.CallID]int
	rights   domain.Rights
	ids      int
	reached  map[string]int
	last     struct {
		id     domain.RequestID
		answer domain.Answered
	}
}

func newTurn(at time.Time) domain.Turn {
	return domain.Turn{ID: "turn_1", Status: domain.TurnQueued, DueAt: ptr(at), Authority: []domain.Authority{{Member: "mem_1", Token: "tok_1"}}}
}

func (h *history) id(prefix string) string { h.ids++; return fmt.Sprintf("%s%d", prefix, h.ids) }

func (h *history) decideTurn(ev domain.TurnEvent) bool {
	before := deepCopy(h.turn)
	next, err := domain.DecideTurn(h.turn, ev)
	untouched(h.t, before, h.turn)
	if err != nil {
		untouched(h.t, before, next)
		h.reached["turn refused"]++
		return false
	}
	if before.Status.Ended() {
		h.t.Fatalf("an ended Turn took %T", ev)
	}
	h.turn = next
	return true
}

func (h *history) decideCall(i int, ev domain.CallEvent) bool {
	before := deepCopy(h.calls[i])
	next, err := domain.DecideCall(h.calls[i], ev)
	untouched(h.t, before, h.calls[i])
	if err != nil {
		untouched(h.t, before, next)
		h.reached["call refused"]++
		return false
	}
	if before.EndedAt != nil {
		h.t.Fatalf("an ended call took %T", ev)
	}
	switch ev := ev.(type) {
	case domain.Taken:
		h.takes[next.ID]++
	case domain.Returned:
		if ev.Lease != before.Lease {
			h.t.Fatalf("an answer under the lease %q of a call with %q was taken", ev.Lease, before.Lease)
		}
	case domain.Lost:
		if ev.Lease != before.Lease && before.LeaseUntil != nil && ev.At.Before(*before.LeaseUntil) {
			h.t.Fatal("a call was taken from a live lease")
		}
	}
	if next.Status == domain.CallSending && before.Status == domain.CallSending {
		h.t.Fatal("a call went from sending to sending")
	}
	h.calls[i] = next
	return true
}

func (h *history) attempt() domain.Attempt {
	a := domain.Attempt{At: h.now, Bot: "bot_1", Member: "mem_1", Chat: "chat_1", Capability: mail, Rights: []domain.Rights{h.rights}, Visible: true, Revision: 3}
	for _, id := range slices.Sorted(maps.Keys(h.grants)) {
		a.Grants = append(a.Grants, h.grants[id])
	}
	return a
}

// step is a model step that asks for a few calls, each checked.
func (h *history) step() {
	if h.turn.StepDue() {
		h.calls = nil
	}
	n := rapid.IntRange(1, 3).Draw(h.t, "calls")
	var calls []domain.Call
	made := map[domain.RequestID]domain.Request{}
	runnable, settled := 0, 0
	for range n {
		a := h.attempt()
		if rapid.IntRange(0, 4).Draw(h.t, "exempt") == 0 {
			a.Exempt = "con_7/*"
		}
		before := deepCopy(a)
		v := domain.Check(a)
		untouched(h.t, before, a)
		c := domain.Call{ID: domain.CallID(h.id("call_")), Status: domain.CallPlanned, Capability: mail, Revision: 3,
			Repeatable: rapid.IntRange(0, 3).Draw(h.t, "repeatable") == 0}
		checked := domain.Checked{At: h.now, Verdict: v, Result: "no"}
		if v.Outcome == domain.OutcomeAsk {
			r := pendingRequest()
			r.ID, r.Call, r.Approver = domain.RequestID(h.id("req_")), c.ID, v.Approver
			r.CreatedAt, r.UpdatedAt, r.ExpiresAt = h.now, h.now, h.now.Add(time.Duration(rapid.IntRange(1, 60).Draw(h.t, "timeout"))*2*time.Second)
			checked.Request, made[r.ID] = r.ID, r
		}
		next, err := domain.DecideCall(c, checked)
		if err != nil {
			h.t.Fatalf("the check of a planned call: %v", err)
		}
		if !next.Open() {
			settled++
		} else if next.Runnable() {
			runnable++
		}
		calls = append(calls, next)
	}
	if h.decideTurn(domain.StepWithCalls{At: h.now, Calls: n, Runnable: runnable, Settled: settled}) {
		h.calls = calls
		for id, r := range made {
			h.requests[id] = r
		}
	}
}

// decideRequest moves a Request and lets its call follow, as one commit does.
func (h *history) decideRequest(id domain.RequestID, ev domain.RequestEvent) {
	r := h.requests[id]
	before := deepCopy(r)
	next, effects, err := domain.DecideRequest(r, ev)
	untouched(h.t, before, r)
	if err != nil {
		untouched(h.t, before, next)
		if len(effects) != 0 {
			h.t.Fatal("a refusal left effects")
		}
		h.reached["request refused"]++
		return
	}
	if before.Status != domain.RequestPending {
		untouched(h.t, before, next)
		if len(effects) != 0 {
			h.t.Fatal("an end state left effects")
		}
		h.reached["same answer again"]++
		return
	}
	if next.Revision != before.Revision+1 {
		h.t.Fatalf("the revision went from %d to %d", before.Revision, next.Revision)
	}
	if next.Status == domain.RequestAllowed {
		h.mayAllow(before, ev)
	}
	for _, effect := range effects {
		if kept, ok := effect.(domain.KeepGrant); ok {
			h.keep(before, ev.(domain.Answered), kept.Grant)
		}
	}
	h.requests[id] = next
	h.reached["request "+string(next.Status)]++
	for i := range h.calls {
		if h.calls[i].Request != id || !h.calls[i].Open() {
			continue
		}
		decided := domain.DecidedBy{Step: domain.StepDecider, Request: id}
		if next.Decision != nil {
			decided.By, decided.Grant = next.Decision.By, next.Decision.By.Grant
		}
		if !h.decideCall(i, domain.CallAnswered{At: h.now, Allow: next.Status == domain.RequestAllowed, Decided: decided, Result: "no"}) {
			h.t.Fatalf("the call %s did not follow its Request", h.calls[i].Status)
		}
		h.follow()
	}
}

// mayAllow is the law of an allow, said once more and otherwise.
func (h *history) mayAllow(r domain.Request, ev domain.RequestEvent) {
	switch ev := ev.(type) {
	case domain.Answered:
		if r.Approver.Tag != domain.TagPerson || ev.Member != "mem_1" || ev.Expected != r.Revision || !ev.At.Before(r.ExpiresAt) || ev.Decision != domain.DecisionAllow {
			h.t.Fatalf("%+v allowed %+v", ev, r)
		}
	case domain.Settled:
		g := ev.Grant
		if g.Decision != domain.DecisionAllow || g.RevokedAt != nil || r.Unknown != nil || g.Capability != r.Capability || g.Revision != r.App.Revision || !ev.At.Before(r.ExpiresAt) {
			h.t.Fatalf("the Grant %+v allowed %+v", g, r)
		}
	default:
		h.t.Fatalf("%T allowed a Request", ev)
	}
}

// keep looks at a Grant that an answer leaves: it is never wider than the answer.
func (h *history) keep(r domain.Request, a domain.Answered, g domain.Grant) {
	if a.Scope == domain.ScopeOnce || g.Scope != a.Scope || g.Decision != a.Decision || r.Unknown != nil || g.Capability != r.Capability ||
		g.Bot != r.Bot || g.Member != r.Member || g.Revision != r.App.Revision || (g.Scope == domain.ScopeChat) != (g.Chat == r.Chat) {
		h.t.Fatalf("the answer %+v left the Grant %+v", a, g)
	}
	h.grants[g.ID] = g
	h.reached["grant kept"]++
}

func (h *history) follow() {
	if h.turn.Status.Ended() {
		return
	}
	open, runnable := h.counts()
	if !h.decideTurn(domain.CallsMoved{At: h.now, Open: open, Runnable: runnable}) {
		h.t.Fatalf("the Turn %s did not follow its calls", h.turn.Status)
	}
}

func (h *history) counts() (open, runnable int) {
	for _, c := range h.calls {
		if c.Open() {
			open++
		}
		if c.Runnable() {
			runnable++
		}
	}
	return open, runnable
}

// move sends an event to one call and lets the Turn follow.
func (h *history) move(i int, ev domain.CallEvent) {
	if lost, ok := ev.(domain.Lost); ok {
		h.ids++
		r := pendingRequest()
		r.ID, r.Call, r.Unknown, r.ExpiresAt = lost.Request, h.calls[i].ID, &domain.Unknown{}, h.now.Add(time.Minute)
		if !h.decideCall(i, ev) {
			return
		}
		if h.calls[i].Status == domain.CallUnknown {
			h.requests[r.ID] = r
		}
		h.follow()
		return
	}
	if h.decideCall(i, ev) {
		h.follow()
	}
}

// stop interrupts the Turn as one commit does.
func (h *history) stop() {
	if !h.decideTurn(domain.Stopped{At: h.now}) {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(h.requests)) {
		if r := h.requests[id]; r.Status == domain.RequestPending && r.Unknown == nil {
			next, _, err := domain.DecideRequest(r, domain.RequestCancelledEvent{At: h.now})
			if err != nil || next.Status != domain.RequestCancelled {
				h.t.Fatalf("a pending Request was not cancelled: %v", err)
			}
			h.requests[id] = next
		}
	}
	for i, c := range h.calls {
		if c.Open() && c.Status != domain.CallSending && c.Status != domain.CallUnknown && !h.decideCall(i, domain.CallStopped{At: h.now}) {
			h.t.Fatalf("a call that is %s was not stopped", c.Status)
		}
	}
}

// check holds after every move.
func (h *history) check() {
	t := h.turn
	open, runnable := h.counts()
	switch {
	case t.Status.Ended():
		if t.DueAt != nil || t.OpenCalls != 0 {
			h.t.Fatalf("an ended Turn is due or has open calls: %+v", t)
		}
	case t.DueAt == nil:
		if open == 0 || t.OpenCalls != open {
			h.t.Fatalf("nothing moves a Turn that is %s with %d open calls", t.Status, open)
		}
		if (t.Status == domain.TurnWaiting) != (runnable == 0) {
			h.t.Fatalf("the Turn is %s with %d runnable calls", t.Status, runnable)
		}
	case open != 0:
		h.t.Fatalf("a Turn is due while %d calls are open", open)
	}
	h.reached["turn "+string(t.Status)]++
	for _, c := range h.calls {
		h.checkCall(c)
	}
	for _, r := range h.requests {
		if r.Status == domain.RequestPending && r.ExpiresAt.IsZero() {
			h.t.Fatal("a pending Request has no end")
		}
		if (r.Decision != nil) != (r.Status == domain.RequestAllowed || r.Status == domain.RequestDenied) {
			h.t.Fatalf("a %s Request has the decision %v", r.Status, r.Decision)
		}
	}
}

func (h *history) checkCall(c domain.Call) {
	h.reached["call "+string(c.Status)]++
	if c.Sends != h.takes[c.ID] || c.Sends > domain.MaxSends && c.Repeatable {
		h.t.Fatalf("the call counts %d sends after %d takes", c.Sends, h.takes[c.ID])
	}
	if (c.Lease != "") != (c.Status == domain.CallSending) || (c.LeaseUntil != nil) != (c.Status == domain.CallSending) {
		h.t.Fatalf("a %s call has the lease %q", c.Status, c.Lease)
	}
	if !c.Open() {
		if c.DueAt != nil {
			h.t.Fatal("an ended call is due")
		}
		return
	}
	switch c.Status {
	case domain.CallAllowed, domain.CallChecking:
		if c.DueAt == nil {
			h.t.Fatalf("nothing moves a call that is %s", c.Status)
		}
	case domain.CallSending:
		if c.DueAt == nil || !c.DueAt.Equal(*c.LeaseUntil) {
			h.t.Fatal("nobody looks when the lease ends")
		}
	case domain.CallWaiting, domain.CallUnknown:
		if r, ok := h.requests[c.Request]; !ok || r.Status != domain.RequestPending || r.Call != c.ID {
			h.t.Fatalf("a %s call waits for the Request %q, which is %s", c.Status, c.Request, r.Status)
		}
	default:
		h.t.Fatalf("an open call rests as %s", c.Status)
	}
	if c.Status == domain.CallAllowed && (c.Decided == nil || c.Decided.By.Tag == "") {
		h.t.Fatalf("a call is allowed on the evidence %+v", c.Decided)
	}
}

// act draws one event. Its target is steered to what can move, and off it now and
// then.
func (h *history) act() {
	h.now = h.now.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 0, 1, 1, 3, 9, 40}).Draw(h.t, "seconds")) * time.Second)
	kind := rapid.SampledFrom([]string{"step", "step", "answer", "answer", "answer", "take", "take", "return", "lose", "lapse", "renew",
		"elapse", "settle", "text", "fail", "stop", "refuse", "revoke", "revoke"}).Draw(h.t, "event")
	switch kind {
	case "step":
		if open, _ := h.counts(); h.turn.Status.Ended() && open == 0 {
			h.calls, h.turn = nil, newTurn(h.now)
			h.reached["next turn"]++
		}
		h.step()
		return
	case "text":
		if rapid.IntRange(0, 1).Draw(h.t, "text") == 0 {
			h.decideTurn(domain.StepWithText{At: h.now, Text: "done", MoreInput: rapid.Bool().Draw(h.t, "more")})
		}
		return
	case "fail":
		h.decideTurn(domain.ModelFailed{At: h.now, Temporary: rapid.IntRange(0, 4).Draw(h.t, "for good") > 0, Message: "no"})
		return
	case "stop":
		if rapid.IntRange(0, 9).Draw(h.t, "stop") == 0 {
			h.stop()
		}
		return
	case "revoke":
		h.revoke()
		return
	case "answer", "elapse", "settle":
		h.actOnRequest(kind)
		return
	}
	if len(h.calls) == 0 {
		return
	}
	i := rapid.IntRange(0, len(h.calls)-1).Draw(h.t, "call")
	lease := h.calls[i].Lease
	if rapid.IntRange(0, 4).Draw(h.t, "another lease") == 0 {
		lease = "theirs"
	}
	switch kind {
	case "take":
		h.move(i, domain.Taken{At: h.now, Lease: h.id("lease_")})
	case "return":
		h.move(i, domain.Returned{At: h.now, Lease: lease, Failed: rapid.Bool().Draw(h.t, "failed"), Result: "done"})
	case "lose":
		h.move(i, domain.Lost{At: h.now, Lease: lease, Request: domain.RequestID(h.id("req_"))})
	case "lapse":
		h.move(i, domain.Lost{At: h.now, Request: domain.RequestID(h.id("req_"))})
	case "renew":
		if c := &h.calls[i]; c.Status == domain.CallSending {
			c.LeaseUntil = ptr(h.now.Add(domain.LeaseTime))
			c.DueAt = c.LeaseUntil
		}
	case "refuse":
		c := h.calls[i]
		if v := domain.Recheck(h.attempt(), c.Decided, domain.Strength{}); c.Status == domain.CallAllowed && v.Outcome != domain.OutcomeAllow {
			h.move(i, domain.Refused{At: h.now, Denied: true, Decided: &v.Decided, Result: "no"})
			h.reached["refused at the last look"]++
		}
	}
}

// revoke takes a Grant back, rather one that a call was allowed by, and looks at
// the calls once more.
func (h *history) revoke() {
	ids := slices.Sorted(maps.Keys(h.grants))
	for _, c := range h.calls {
		if c.Status == domain.CallAllowed && c.Decided.By.Grant != "" {
			ids = []domain.GrantID{c.Decided.By.Grant}
		}
	}
	if len(ids) == 0 {
		return
	}
	id := rapid.SampledFrom(ids).Draw(h.t, "revoked")
	g := h.grants[id]
	g.RevokedAt = ptr(h.now)
	h.grants[id] = g
	for i, c := range h.calls {
		if c.Status != domain.CallAllowed {
			continue
		}
		v := domain.Recheck(h.attempt(), c.Decided, domain.Strength{})
		if c.Decided.By.Grant == id && v.Outcome == domain.OutcomeAllow {
			h.t.Fatal("a call may still go out on a revoked Grant")
		}
		if v.Outcome != domain.OutcomeAllow {
			h.move(i, domain.Refused{At: h.now, Denied: true, Decided: &v.Decided, Result: "no"})
			h.reached["refused at the last look"]++
		}
	}
}

func (h *history) actOnRequest(kind string) {
	var all, pending []domain.RequestID
	for n := range h.ids + 1 { // in the order of their making, so that a history repeats
		id := domain.RequestID(fmt.Sprintf("req_%d", n))
		if r, ok := h.requests[id]; ok {
			all = append(all, id)
			if r.Status == domain.RequestPending {
				pending = append(pending, id)
			}
		}
	}
	if len(pending) > 0 && rapid.IntRange(0, 5).Draw(h.t, "a closed one") > 0 {
		all = pending
	}
	if len(all) == 0 {
		return
	}
	id := rapid.SampledFrom(all).Draw(h.t, "request")
	switch kind {
	case "elapse":
		h.decideRequest(id, domain.Elapsed{At: h.now})
	case "settle":
		if ids := slices.Sorted(maps.Keys(h.grants)); len(ids) > 0 {
			h.decideRequest(id, domain.Settled{At: h.now, Grant: h.grants[rapid.SampledFrom(ids).Draw(h.t, "grant")]})
		}
	case "answer":
		if rapid.IntRange(0, 4).Draw(h.t, "once more") == 0 && h.last.id != "" {
			h.decideRequest(h.last.id, h.last.answer)
			return
		}
		a := domain.Answered{At: h.now, Expected: h.requests[id].Revision, Member: "mem_1",
			Decision: rapid.SampledFrom([]string{domain.DecisionAllow, domain.DecisionAllow, domain.DecisionDeny}).Draw(h.t, "decision"),
			Scope:    rapid.SampledFrom([]string{domain.ScopeOnce, domain.ScopeOnce, domain.ScopeChat, domain.ScopeLifetime}).Draw(h.t, "scope"),
			GrantID:  domain.GrantID(h.id("grt_")), RuleID: "rul_1"}
		switch rapid.IntRange(0, 9).Draw(h.t, "what is wrong") {
		case 0:
			a.Expected += int64(rapid.SampledFrom([]int{-1, 1}).Draw(h.t, "expected"))
		case 1:
			a.Member = rapid.SampledFrom([]domain.MemberID{"mem_2", "", "bot_1", "bot_0"}).Draw(h.t, "answers")
		case 2:
			a.Decision = rapid.SampledFrom([]string{"", "ALLOW", domain.DecisionAsk}).Draw(h.t, "no decision")
		case 3:
			a.Scope = rapid.SampledFrom([]string{"", "forever"}).Draw(h.t, "no scope")
		}
		h.last.id, h.last.answer = id, a
		h.decideRequest(id, a)
	}
}

func TestRandomHistoriesKeepTheLaw(t *testing.T) {
	reached := map[string]int{}
	checks := 0
	rapid.Check(t, func(t *rapid.T) {
		checks++
		h := &history{t: t, now: noon, turn: newTurn(noon),
			requests: map[domain.RequestID]domain.Request{}, grants: map[domain.GrantID]domain.Grant{},
			takes: map[domain.CallID]int{}, rights: fullRights(), reached: reached}
		h.check()
		for range rapid.IntRange(20, 120).Draw(t, "events") {
			h.act()
			h.check()
		}
	})
	whats := []string{"request allowed", "request denied", "turn refused", "call refused", "request refused", "same answer again", "grant kept", "next turn"}
	for _, s := range domain.TurnStatuses() {
		whats = append(whats, "turn "+string(s))
	}
	for _, s := range domain.CallStatuses() {
		// planned never rests, and the judge that checking waits for is not asked here.
		if s != domain.CallPlanned && s != domain.CallChecking {
			whats = append(whats, "call "+string(s))
		}
	}
	reachedAll(t, reached, checks, whats...)
	t.Logf("reached: %v", reached)
}
