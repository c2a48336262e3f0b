package domain_test

import (
	"testing"
	"time"

	"openbot/domain"
)

func sendingCall() domain.Call {
	c, err := domain.DecideCall(domain.Call{ID: "call_1", Status: domain.CallAllowed}, domain.Taken{At: noon, Lease: "mine"})
	if err != nil {
		panic(err)
	}
	return c
}

func TestALeaseIsHalfOpen(t *testing.T) {
	c := sendingCall()
	end := noon.Add(domain.LeaseTime)
	if c.LeaseRanOut(end.Add(-1)) || !c.LeaseRanOut(end) {
		t.Error("a lease holds while the time is before its end, and not at it")
	}
	if _, err := domain.DecideCall(c, domain.Lost{At: end.Add(-1), Request: "req_1"}); !domain.IsCode(err, domain.CodePrecondition) {
		t.Errorf("a lapse that comes early is refused, got %v", err)
	}
	if lost, err := domain.DecideCall(c, domain.Lost{At: end, Request: "req_1"}); err != nil || lost.Status != domain.CallUnknown || !lost.Open() {
		t.Errorf("at its end the outcome is unknown: %v %s", err, lost.Status)
	}
	if domain.Before(end, end) || !domain.Before(end.Add(-1), end) {
		t.Error("Before is half-open")
	}
}

func TestTheLeaseOutlivesItsWorker(t *testing.T) {
	if domain.LeaseMargin <= 0 || domain.LeaseMargin >= domain.LeaseTime || 2*domain.LeaseRenewal > domain.LeaseTime-domain.LeaseMargin {
		t.Error("the worker's end comes before that of the lease, and one lost renewal does not end it")
	}
	if domain.LeaseTime+domain.RunnableGrace > 15*time.Second {
		t.Error("a dead worker must be noticed within 15 s")
	}
}

func TestALateAnswerOfTheHolderCountsUntilTheCallIsDeclaredLost(t *testing.T) {
	c := sendingCall()
	if done, err := domain.DecideCall(c, domain.Returned{At: noon.Add(time.Hour), Lease: "mine", Result: "sent"}); err != nil || done.Status != domain.CallSucceeded {
		t.Errorf("nobody took the lease, so the answer counts: %v", err)
	}
	lost, _ := domain.DecideCall(c, domain.Lost{At: noon.Add(domain.LeaseTime), Request: "req_1"})
	if _, err := domain.DecideCall(lost, domain.Returned{At: noon.Add(time.Hour), Lease: "mine"}); !domain.IsCode(err, domain.CodePrecondition) {
		t.Errorf("an answer to a call that was declared lost is refused, got %v", err)
	}
}

// An open call that nothing will ever move would hold its Turn for ever.
func TestNoCallWaitsWithoutARequest(t *testing.T) {
	planned := domain.Call{ID: "call_1", Status: domain.CallPlanned}
	for _, outcome := range []domain.Outcome{domain.OutcomeAsk, "", "garbage"} {
		next, err := domain.DecideCall(planned, domain.Checked{At: noon, Verdict: domain.Verdict{Outcome: outcome}})
		if err == nil {
			t.Errorf("the outcome %q left a call %s without a Request", outcome, next.Status)
		}
		untouched(t, planned, next)
	}
	c := sendingCall()
	if next, err := domain.DecideCall(c, domain.Lost{At: noon, Lease: "mine"}); err == nil {
		t.Errorf("a lost call is %s without a Request", next.Status)
	}
}

func TestACallThatIsSafeToRepeatGoesOutAFewTimes(t *testing.T) {
	c := domain.Call{ID: "call_1", Status: domain.CallAllowed, Repeatable: true}
	for send := 1; ; send++ {
		taken, err := domain.DecideCall(c, domain.Taken{At: noon, Lease: "mine"})
		if err != nil || taken.Sends != send {
			t.Fatalf("send %d: %v, counted %d", send, err, taken.Sends)
		}
		if c, err = domain.DecideCall(taken, domain.Lost{At: noon, Lease: "mine", Result: domain.TextNoAnswer(send)}); err != nil {
			t.Fatal(err)
		}
		if !c.Open() {
			if send != domain.MaxSends || c.Status != domain.CallFailed {
				t.Fatalf("after %d sends the call is %s", send, c.Status)
			}
			return
		}
	}
}

func TestADenyOfAnUnknownOutcomeStaysUnknown(t *testing.T) {
	lost, _ := domain.DecideCall(sendingCall(), domain.Lost{At: noon, Lease: "mine", Request: "req_1"})
	evidence := domain.DecidedBy{Step: domain.StepDecider, By: domain.Person("mem_1")}
	denied, err := domain.DecideCall(lost, domain.CallAnswered{At: noon, Decided: evidence, Result: domain.TextUnknown()})
	if err != nil || denied.Status != domain.CallUnknown || denied.Open() || denied.Result != domain.TextUnknown() {
		t.Errorf("a deny ends it as unknown: %v %s %q", err, denied.Status, denied.Result)
	}
	if denied.Decided != nil {
		t.Error("what once allowed the call stays its evidence; the deny is on the Request")
	}
	again, err := domain.DecideCall(lost, domain.CallAnswered{At: noon, Allow: true, Decided: evidence})
	if err != nil || again.Status != domain.CallAllowed || again.DueAt == nil {
		t.Errorf("an allow sends it again: %v %s", err, again.Status)
	}
}
