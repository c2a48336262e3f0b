package domain_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"openbot/domain"
)

// way is one step that a state machine took.
type way struct{ from, event, to string }

// machine lets one test range over a table: rows in every state, and every event in
// all its variants.
type machine[R any] struct {
	table    []domain.Transition
	statuses []string
	rows     func(status string) []R // variants of a row in a state
	status   func(R) string
	end      func(R) bool
	events   map[string][]func(R) (R, int, error) // by name; the number of effects beside the row
}

// run tries every event in every state. What the table does not list is refused and
// changes nothing; what it lists is reached; nothing else is ever reached.
func (m machine[R]) run(t *testing.T) {
	t.Helper()
	for _, row := range m.table {
		if !slices.Contains(m.statuses, row.From) {
			t.Errorf("the table leaves from %q, which is no state", row.From)
		}
		if _, ok := m.events[row.Event]; !ok {
			t.Errorf("the table lists the event %q, which no variant here carries", row.Event)
		}
		for _, to := range row.To {
			if !slices.Contains(m.statuses, to) {
				t.Errorf("the table leads to %q, which is no state", to)
			}
		}
	}
	reached := map[way]bool{}
	refused := 0
	for _, from := range m.statuses {
		for event, variants := range m.events {
			listed := listedEnds(m.table, from, event)
			for _, row := range m.rows(from) {
				for _, decide := range variants {
					before := deepCopy(row)
					next, effects, err := decide(row)
					untouched(t, before, row)
					if err != nil {
						refused++
						untouched(t, before, next)
						if effects != 0 {
							t.Errorf("%s in %s was refused and left %d effects", event, from, effects)
						}
						continue
					}
					if m.end(row) {
						if !reflect.DeepEqual(before, next) || effects != 0 {
							t.Errorf("the end state %s did not absorb %s", from, event)
						}
						continue
					}
					to := m.status(next)
					if !slices.Contains(listed, to) {
						t.Errorf("%s leads from %s to %s, which the table does not list", event, from, to)
					}
					reached[way{from, event, to}] = true
				}
			}
		}
	}
	for _, row := range m.table {
		for _, to := range row.To {
			if !reached[way{row.From, row.Event, to}] {
				t.Errorf("the table lists %s --%s--> %s, which no variant reached", row.From, row.Event, to)
			}
		}
	}
	if refused == 0 {
		t.Error("nothing was refused: the test does not reach the refusals")
	}
}

func listedEnds(table []domain.Transition, from, event string) []string {
	var to []string
	for _, row := range table {
		if row.From == from && row.Event == event {
			to = append(to, row.To...)
		}
	}
	return to
}

func words[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}

func TestEveryTurnStateTakesOnlyTheEventsOfTheTable(t *testing.T) {
	decide := func(ev domain.TurnEvent) func(domain.Turn) (domain.Turn, int, error) {
		return func(turn domain.Turn) (domain.Turn, int, error) {
			next, err := domain.DecideTurn(turn, ev)
			return next, 0, err
		}
	}
	later := noon.Add(time.Second)
	machine[domain.Turn]{
		table:    domain.TurnTransitions,
		statuses: words(domain.TurnStatuses()),
		rows: func(status string) []domain.Turn {
			base := domain.Turn{ID: "turn_1", Status: domain.TurnStatus(status), Authority: []domain.Authority{{Member: "mem_1", Token: "tok_1"}},
				Steps: 3, CreatedAt: noon, UpdatedAt: noon, Version: 4}
			tired, long, open, held, parked := base, base, base, base, base
			tired.Tries = domain.MaxModelTries - 1
			long.Steps = domain.MaxTurnSteps - 1
			open.OpenCalls = 2
			held.Held = &domain.HeldReply{Model: "m", Text: "kept"}
			parked.ParkedBy = "dlg_1"
			return []domain.Turn{base, tired, long, open, held, parked}
		},
		status: func(turn domain.Turn) string { return string(turn.Status) },
		end:    func(turn domain.Turn) bool { return turn.Status.Ended() },
		events: map[string][]func(domain.Turn) (domain.Turn, int, error){
			domain.TurnStepWithCalls: {
				decide(domain.StepWithCalls{At: later, Calls: 2, Runnable: 1}),
				decide(domain.StepWithCalls{At: later, Calls: 2}),
				decide(domain.StepWithCalls{At: later, Calls: 2, Settled: 2})},
			domain.TurnStepWithText: {decide(domain.StepWithText{At: later, Text: "done"}), decide(domain.StepWithText{At: later, MoreInput: true})},
			domain.TurnModelFailed:  {decide(domain.ModelFailed{At: later, Temporary: true}), decide(domain.ModelFailed{At: later, Message: "no"})},
			domain.TurnCallsMoved: {decide(domain.CallsMoved{At: later}), decide(domain.CallsMoved{At: later, Open: 2, Runnable: 1}),
				decide(domain.CallsMoved{At: later, Open: 1})},
			domain.TurnStopped:   {decide(domain.Stopped{At: later})},
			domain.TurnConcluded: {decide(domain.Concluded{At: later, Answer: "done"})},
			domain.TurnParked:    {decide(domain.Parked{At: later, By: "dlg_1"}), decide(domain.Parked{At: later})},
			domain.TurnHeld: {decide(domain.ReplyHeld{At: later, By: "dlg_1", Reply: domain.HeldReply{Model: "m", Text: "kept"}}),
				decide(domain.ReplyHeld{At: later})},
		},
	}.run(t)
}

func TestEveryCallStateTakesOnlyTheEventsOfTheTable(t *testing.T) {
	decide := func(ev domain.CallEvent) func(domain.Call) (domain.Call, int, error) {
		return func(c domain.Call) (domain.Call, int, error) {
			next, err := domain.DecideCall(c, ev)
			return next, 0, err
		}
	}
	later := noon.Add(time.Second)
	lapsed := noon.Add(domain.LeaseTime)
	checked := func(outcome domain.Outcome) func(domain.Call) (domain.Call, int, error) {
		return decide(domain.Checked{At: later, Verdict: domain.Verdict{Outcome: outcome}, Request: "req_2", Result: "no"})
	}
	machine[domain.Call]{
		table:    domain.CallTransitions,
		statuses: words(domain.CallStatuses()),
		rows: func(status string) []domain.Call {
			c := domain.Call{ID: "call_1", Status: domain.CallStatus(status), Arguments: json.RawMessage(`{}`), CreatedAt: noon, UpdatedAt: noon}
			switch c.Status {
			case domain.CallSucceeded, domain.CallFailed, domain.CallDenied, domain.CallCancelled:
				c.EndedAt = ptr(noon)
				return []domain.Call{c}
			case domain.CallUnknown:
				c.SentAt, c.Request, c.Sends = ptr(noon), "req_1", 1
				ended := c
				ended.EndedAt = ptr(noon)
				return []domain.Call{c, ended}
			case domain.CallSending:
				c.Lease, c.LeaseUntil, c.SentAt, c.Sends = "mine", ptr(lapsed), ptr(noon), 1
				again, spent := c, c
				again.Repeatable = true
				spent.Repeatable, spent.Sends = true, domain.MaxSends
				return []domain.Call{c, again, spent}
			case domain.CallAllowed, domain.CallChecking:
				own, judged := c, c
				own.Kind, judged.Judgings = domain.CallOwn, domain.MaxJudgings
				parked := c
				parked.ParkedBy = "dlg_1"
				program, stuck := c, c
				program.Kind, program.Program = domain.CallProgram, &domain.ProgramState{Seed: 7, Tries: 1}
				stuck.Kind, stuck.Program = domain.CallProgram, &domain.ProgramState{Seed: 7, Tries: domain.MaxProgramTries}
				return []domain.Call{c, own, judged, program, stuck, parked}
			case domain.CallWaiting:
				program := c
				program.Kind, program.Program = domain.CallProgram, &domain.ProgramState{Seed: 7}
				return []domain.Call{c, program}
			}
			return []domain.Call{c}
		},
		status: func(c domain.Call) string { return string(c.Status) },
		end:    func(c domain.Call) bool { return c.EndedAt != nil },
		events: map[string][]func(domain.Call) (domain.Call, int, error){
			domain.CallEventChecked:  {checked(domain.OutcomeAllow), checked(domain.OutcomeAsk), checked(domain.OutcomeDeny), checked(domain.OutcomeJudge), checked("")},
			domain.CallEventRan:      {decide(domain.Ran{At: later}), decide(domain.Ran{At: later, Failed: true})},
			domain.CallEventAnswered: {decide(domain.CallAnswered{At: later, Allow: true}), decide(domain.CallAnswered{At: later})},
			domain.CallEventRefused:  {decide(domain.Refused{At: later, Denied: true}), decide(domain.Refused{At: later})},
			domain.CallEventTaken:    {decide(domain.Taken{At: later, Lease: "mine"}), decide(domain.Taken{At: later})},
			domain.CallEventReturned: {decide(domain.Returned{At: later, Lease: "mine"}), decide(domain.Returned{At: later, Lease: "mine", Failed: true}),
				decide(domain.Returned{At: later, Lease: "theirs"})},
			domain.CallEventLost: {decide(domain.Lost{At: later, Request: "req_2"}), decide(domain.Lost{At: lapsed, Request: "req_2"}),
				decide(domain.Lost{At: later, Lease: "mine", Request: "req_2"}), decide(domain.Lost{At: later, Lease: "theirs", Request: "req_2"})},
			domain.CallEventStopped: {decide(domain.CallStopped{At: later})},
			domain.CallEventJudging: {decide(domain.Judging{At: later})},
			domain.CallEventStarted: {decide(domain.ProgramStarted{At: later})},
			domain.CallEventPaused:  {decide(domain.ProgramPaused{At: later}), decide(domain.ProgramPaused{At: later, Again: true})},
			domain.CallEventWoken:   {decide(domain.ProgramWoken{At: later})},
			domain.CallEventParked:  {decide(domain.CallParked{At: later, By: "dlg_1"}), decide(domain.CallParked{At: later})},
			domain.CallEventDoubted: {decide(domain.Doubted{At: later})},
			domain.CallEventHeldBack: {decide(domain.HeldBack{At: later, Lease: "mine"}), decide(domain.HeldBack{At: later, Lease: "mine", By: "dlg_1"}),
				decide(domain.HeldBack{At: later, Lease: "theirs"})},
			domain.CallEventCarried: {decide(domain.Carried{At: later}), decide(domain.Carried{At: later, Failed: true})},
		},
	}.run(t)
}

func TestEveryRequestStateTakesOnlyTheEventsOfTheTable(t *testing.T) {
	decide := func(ev domain.RequestEvent) func(domain.Request) (domain.Request, int, error) {
		return func(r domain.Request) (domain.Request, int, error) {
			next, effects, err := domain.DecideRequest(r, ev)
			return next, len(effects), err
		}
	}
	answer := func(decision, scope string) func(domain.Request) (domain.Request, int, error) {
		return decide(domain.Answered{At: noon.Add(time.Second), Expected: 1, Member: "mem_1", Decision: decision, Scope: scope, GrantID: "grt_1"})
	}
	settled := func(decision string, at time.Time) func(domain.Request) (domain.Request, int, error) {
		return decide(domain.Settled{At: at, Grant: domain.Grant{ID: "grt_2", Member: "mem_1", Bot: "bot_1", Capability: mail, Decision: decision, Scope: domain.ScopeLifetime, Revision: 3}})
	}
	reviewed := func(decision string, holds domain.Verdict) func(domain.Request) (domain.Request, int, error) {
		return decide(domain.Reviewed{At: noon, Chat: "chat_9", Bot: "bot_0", Decision: decision, Scope: domain.ScopeOnce, Holds: holds, Next: domain.Person("mem_1")})
	}
	machine[domain.Request]{
		table:    domain.RequestTransitions,
		statuses: words(domain.RequestStatuses()),
		rows: func(status string) []domain.Request {
			r := pendingRequest()
			r.Status = domain.RequestStatus(status)
			switch r.Status {
			case domain.RequestAllowed, domain.RequestDenied:
				r.Revision = 2
				r.Decision = &domain.Decision{Decision: domain.DecisionAllow, Scope: domain.ScopeOnce, By: domain.Person("mem_1"), AtMs: noon.UnixMilli()}
				if r.Status == domain.RequestDenied {
					r.Decision.Decision = domain.DecisionDeny
				}
			case domain.RequestCancelled:
				r.Revision = 2
			}
			plan, review, open := r, r, r
			plan.Capability.Action, plan.OnExpire = domain.ActionPlansRun, domain.DecisionAllow
			open.Approver = domain.ByBot("bot_0")
			review.Approver, review.Review = domain.ByBot("bot_0"), "chat_9"
			unread, read := r, r
			unread.VerdictDueAt = ptr(noon)
			read.VerdictDueAt, read.VerdictTries = ptr(noon), domain.MaxReadings
			followed := r
			followed.RemindAt, followed.EscalateAt, followed.Escalation = ptr(noon), ptr(noon), &domain.Escalation{AfterMs: 1000, Member: "mem_2"}
			return []domain.Request{r, plan, open, review, unread, read, followed}
		},
		status: func(r domain.Request) string { return string(r.Status) },
		end:    func(r domain.Request) bool { return r.Status != domain.RequestPending },
		events: map[string][]func(domain.Request) (domain.Request, int, error){
			domain.RequestEventAnswered: {answer(domain.DecisionAllow, domain.ScopeOnce), answer(domain.DecisionDeny, domain.ScopeLifetime),
				answer("", domain.ScopeOnce), answer(domain.DecisionAllow, ""), answer(domain.DecisionAsk, domain.ScopeOnce)},
			domain.RequestEventSettled: {settled(domain.DecisionAllow, noon.Add(time.Second)), settled(domain.DecisionDeny, noon.Add(time.Second)),
				settled(domain.DecisionAllow, noon.Add(time.Hour))},
			domain.RequestEventElapsed:   {decide(domain.Elapsed{At: noon}), decide(domain.Elapsed{At: noon.Add(time.Hour)})},
			domain.RequestEventCancelled: {decide(domain.RequestCancelledEvent{At: noon})},
			domain.RequestEventReviewing: {decide(domain.Reviewing{At: noon, Chat: "chat_9", Until: noon.Add(time.Minute)}),
				decide(domain.Reviewing{At: noon.Add(time.Hour), Chat: "chat_9"}), decide(domain.Reviewing{At: noon})},
			domain.RequestEventPassed: {decide(domain.Passed{At: noon, Bot: "bot_0", Next: domain.Person("mem_1")}),
				decide(domain.Passed{At: noon, Bot: "bot_0", Next: domain.Person("mem_2")}), decide(domain.Passed{At: noon, Bot: "bot_0"}),
				decide(domain.Passed{At: noon, Bot: "bot_0", Next: domain.ByBot("bot_1")}), decide(domain.Passed{At: noon, Bot: "bot_9", Next: domain.Person("mem_1")})},
			domain.RequestEventAsked:   {decide(domain.ReviewerAsked{At: noon, Until: noon.Add(time.Minute)})},
			domain.RequestEventVerdict: {decide(domain.VerdictLeft{At: noon, Verdict: &domain.ReviewVerdict{Verdict: domain.VerdictAllow}}), decide(domain.VerdictLeft{At: noon})},
			domain.RequestEventReminded: {decide(domain.RequestReminded{At: noon}), decide(domain.RequestReminded{At: noon.Add(-1)}),
				decide(domain.RequestReminded{At: noon.Add(time.Hour)})},
			domain.RequestEventEscalated: {decide(domain.RequestEscalated{At: noon, Able: true}), decide(domain.RequestEscalated{At: noon}),
				decide(domain.RequestEscalated{At: noon.Add(-1), Able: true}), decide(domain.RequestEscalated{At: noon.Add(time.Hour), Able: true})},
			domain.RequestEventReviewed: {reviewed(domain.DecisionDeny, domain.Verdict{}), reviewed(domain.DecisionAllow, domain.Verdict{}),
				reviewed(domain.DecisionAllow, domain.Verdict{Outcome: domain.OutcomeAllow}), reviewed("", domain.Verdict{Outcome: domain.OutcomeAllow})},
		},
	}.run(t)
}

// mail is the capability that most cases are about.
var mail = domain.Capability{Action: domain.ActionAppsCall, Target: "con_7/send_email"}

// pendingRequest waits for mem_1 from noon for an hour.
func pendingRequest() domain.Request {
	return domain.Request{ID: "req_1", Organization: "org_1", Member: "mem_1", Bot: "bot_1", Capability: mail, Reason: "because",
		Approver: domain.Person("mem_1"), Chain: []domain.BotID{"bot_0", "bot_1"}, Chat: "chat_1", Turn: "turn_1", Call: "call_1",
		Arguments: json.RawMessage(`{"to":"a@b.example"}`), App: &domain.SavedCall{Connection: "con_7", Revision: 3, Tool: "send_email", SHA256: "00"},
		Endorsements: []domain.Endorsement{}, Tags: []string{}, Status: domain.RequestPending, Revision: 1,
		CreatedAt: noon, UpdatedAt: noon, ExpiresAt: noon.Add(time.Hour), Version: 1}
}
