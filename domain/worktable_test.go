package domain_test

import (
	"testing"
	"time"

	"openbot/domain"
)

func TestEveryDelegationStateTakesOnlyTheEventsOfTheTable(t *testing.T) {
	later := noon.Add(time.Second)
	// alone decides with a path of the work alone, below with one paused piece above it.
	alone := func(ev func(path []domain.Delegation) domain.DelegationEvent) func(domain.Delegation) (domain.Delegation, int, error) {
		return func(g domain.Delegation) (domain.Delegation, int, error) {
			next, err := domain.DecideDelegation(g, ev([]domain.Delegation{g}))
			return next, 0, err
		}
	}
	below := func(ev func(path []domain.Delegation) domain.DelegationEvent) func(domain.Delegation) (domain.Delegation, int, error) {
		return func(g domain.Delegation) (domain.Delegation, int, error) {
			above := domain.Delegation{ID: "dlg_0", Status: domain.DelegationPaused, StartedAt: ptr(noon), Pause: &domain.WorkPause{Limit: domain.LimitSteps, Clock: noon.UnixMicro()}}
			next, err := domain.DecideDelegation(g, ev([]domain.Delegation{g, above}))
			return next, 0, err
		}
	}
	just := func(ev domain.DelegationEvent) func(domain.Delegation) (domain.Delegation, int, error) {
		return alone(func([]domain.Delegation) domain.DelegationEvent { return ev })
	}
	finished := func(status domain.DelegationStatus) func(domain.Delegation) (domain.Delegation, int, error) {
		return alone(func(path []domain.Delegation) domain.DelegationEvent {
			return domain.Finished{At: later, Status: status, Result: "so", Path: path}
		})
	}
	machine[domain.Delegation]{
		table:    domain.DelegationTransitions,
		statuses: words(domain.DelegationStatuses()),
		rows: func(status string) []domain.Delegation {
			g := domain.Delegation{ID: "dlg_1", Status: domain.DelegationStatus(status), Limits: domain.Limits{TimeMs: 60_000, Steps: 2},
				Authority: []domain.Authority{{Member: "mem_1", Token: "tok_1"}}, Steps: 2, CreatedAt: noon, UpdatedAt: noon, Version: 3, Gate: 1}
			switch g.Status {
			case domain.DelegationAuthorizing:
				g.Call = "call_1"
			case domain.DelegationPaused:
				g.StartedAt, g.Call = ptr(noon), "call_1"
				g.Pause = &domain.WorkPause{Limit: domain.LimitSteps, Clock: noon.UnixMicro(), AtMs: noon.UnixMilli()}
			case domain.DelegationQueued, domain.DelegationRunning:
				g.StartedAt, g.DueAt = ptr(noon), ptr(noon.Add(time.Minute))
			default:
				g.EndedAt, g.LastEvent = ptr(noon), 5
			}
			stopping := g
			if g.EndedAt == nil {
				stopping.StoppingAt, stopping.ClosingDueAt = ptr(noon), ptr(noon)
			}
			return []domain.Delegation{g, stopping}
		},
		status: func(g domain.Delegation) string { return string(g.Status) },
		end:    func(g domain.Delegation) bool { return !g.Open() },
		events: map[string][]func(domain.Delegation) (domain.Delegation, int, error){
			domain.DelegationEventBegun:   {alone(func(path []domain.Delegation) domain.DelegationEvent { return domain.Begun{At: later, Path: path} })},
			domain.DelegationEventRefused: {just(domain.WorkRefused{At: later, Why: "no"})},
			domain.DelegationEventStepped: {just(domain.Stepped{At: later, Authority: []domain.Authority{{Member: "mem_2", Token: "tok_2"}}})},
			domain.DelegationEventReached: {
				alone(func(path []domain.Delegation) domain.DelegationEvent {
					return domain.Reached{At: later, Limit: domain.LimitSteps, Call: "call_2", Path: path}
				}),
				just(domain.Reached{At: later, Limit: domain.LimitSteps})},
			domain.DelegationEventPostponed: {
				alone(func(path []domain.Delegation) domain.DelegationEvent { return domain.Postponed{At: later, Path: path} }),
				below(func(path []domain.Delegation) domain.DelegationEvent { return domain.Postponed{At: later, Path: path} })},
			domain.DelegationEventContinued: {alone(func(path []domain.Delegation) domain.DelegationEvent { return domain.Continued{At: later, Path: path} })},
			domain.DelegationEventStopping:  {just(domain.WorkStopping{At: later, Why: "enough"})},
			domain.DelegationEventFinished: {finished(domain.DelegationCompleted), finished(domain.DelegationFailed), finished(domain.DelegationCancelled),
				finished(domain.DelegationRunning)},
		},
	}.run(t)
}

// What was stopped goes on with nothing and ends as cancelled, whatever its Turn said.
func TestStoppedWorkOnlyEndsAsCancelled(t *testing.T) {
	g := domain.Delegation{ID: "dlg_1", Status: domain.DelegationRunning, StartedAt: ptr(noon), Limits: domain.Limits{TimeMs: 1000}}
	path := []domain.Delegation{g}
	stopped, err := domain.DecideDelegation(g, domain.WorkStopping{At: noon, Why: "enough"})
	if err != nil {
		t.Fatal(err)
	}
	for _, ev := range []domain.DelegationEvent{domain.WorkStopping{At: noon}, domain.Continued{At: noon, Path: path}, domain.Stepped{At: noon},
		domain.Reached{At: noon, Limit: domain.LimitTime, Call: "call_1", Path: path}} {
		next, err := domain.DecideDelegation(stopped, ev)
		wantCode(t, err, domain.CodeConflict)
		untouched(t, stopped, next)
	}
	ended, err := domain.DecideDelegation(stopped, domain.Finished{At: noon, Status: domain.DelegationCompleted, Path: []domain.Delegation{stopped}})
	if err != nil || ended.Status != domain.DelegationCancelled || ended.NoticeDueAt == nil || ended.ClosingDueAt != nil {
		t.Errorf("stopped work ended as %s: %v", ended.Status, err)
	}
}
