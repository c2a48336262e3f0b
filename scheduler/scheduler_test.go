package scheduler

import (
	"fmt"
	"testing"

	"openbot/domain"
)

// When more is due than one sweep takes, Requests are ended share by share, and Turns wait
// where no person's answer waits behind them. Everything else is rung for as it is.
func TestWhatACrowdIsRungFor(t *testing.T) {
	rows := func(kind domain.TaskKind) []domain.Task {
		tasks := make([]domain.Task, sweepBatch)
		for i := range tasks {
			tasks[i] = domain.Task{Kind: kind, Subject: fmt.Sprint(i), Urgency: domain.UrgencyAnswer, Overdue: true}
		}
		return tasks
	}
	shares := map[string]bool{}
	for _, task := range crowd(domain.TaskRequestElapse, rows(domain.TaskRequestElapse)) {
		if task.Kind != domain.TaskRequestsElapse || !task.Overdue {
			t.Errorf("%+v is rung for", task)
		}
		shares[task.Subject] = true
	}
	if len(shares) != domain.ExpiryShares {
		t.Errorf("the shares %v are rung for", shares)
	}
	for _, task := range crowd(domain.TaskTurnStep, rows(domain.TaskTurnStep)) {
		if task.Kind != domain.TaskTurnStep || task.Urgency != domain.UrgencyRest {
			t.Fatalf("%+v is rung for", task)
		}
	}
	for i, task := range crowd(domain.TaskCallSend, rows(domain.TaskCallSend)) {
		if task.Subject != fmt.Sprint(i) || task.Urgency != domain.UrgencyAnswer {
			t.Fatalf("%+v is rung for", task)
		}
	}
}
