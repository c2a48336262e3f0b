package engine

import (
	"time"

	"openbot/domain"
)

// inside names another Chat for what a function adds, and comes back.
func (d *draft) inside(chat *domain.Chat, add func() error) error {
	was := d.chat
	defer func() { d.chat = was }()
	d.in(chat)
	return add()
}

// guard says that the decision rests on this work as it was seen. Rows of it that the
// commit writes are fenced by their versions.
func (d *draft) guard(path []domain.Delegation) { d.path = append(d.path, path...) }

// sealGates puts what guard was told into the commit.
func (d *draft) sealGates() {
	written := map[domain.DelegationID]bool{}
	for _, row := range d.commit.Rows {
		if g, ok := row.(*domain.Delegation); ok {
			written[g.ID] = true
		}
	}
	d.commit.Gates = nil
	for _, g := range d.path {
		if !written[g.ID] {
			written[g.ID] = true
			d.commit.Gates = append(d.commit.Gates, domain.WorkGate{ID: g.ID, Gate: g.Gate})
		}
	}
}

// work writes a piece of work and tells readers of its task Chat, which must be the
// draft's.
func (d *draft) work(g *domain.Delegation, more map[string]any) {
	d.put(g)
	d.tellWork(g, more)
}

// tellWork tells readers of the draft's Chat how a piece of work stands. That it has
// ended is the last event of its run.
func (d *draft) tellWork(g *domain.Delegation, more map[string]any) {
	data := map[string]any{"delegation": g.ID, "status": g.Status, "executionId": g.Execution, "executionStatus": g.ExecutionStatus(false)}
	if g.Pause != nil {
		data["limit"] = g.Pause.Limit
	}
	for key, value := range more {
		data[key] = value
	}
	d.event(domain.EventDelegation, string(g.ID), data)
	if !g.Open() {
		g.LastEvent = d.chat.LastEvent // the last of the run
	}
}

// workRings gives the tasks that a piece of work asks for.
func workRings(g *domain.Delegation, at time.Time, trace string) []domain.Task {
	var tasks []domain.Task
	ring := func(kind domain.TaskKind, due *time.Time, urgency domain.Urgency) {
		if due == nil || due.Sub(at) > domain.RunnableGrace {
			return
		}
		tasks = append(tasks, domain.Task{Kind: kind, Subject: string(g.ID), Revision: g.Version, Urgency: urgency, Trace: trace})
	}
	ring(domain.TaskWorkNotify, g.NoticeDueAt, domain.UrgencyAnswer)
	ring(domain.TaskWorkClose, g.ClosingDueAt, domain.UrgencyTurn)
	ring(domain.TaskWorkResume, g.ResumeDueAt, domain.UrgencyAnswer)
	if g.DueAt != nil && g.DueAt.Sub(at) <= nearTimer {
		tasks = append(tasks, domain.Task{Kind: domain.TaskWorkElapse, Subject: string(g.ID), Revision: g.DueAt.UnixMilli(),
			Urgency: domain.UrgencyTurn, At: *g.DueAt, Trace: trace})
	}
	return tasks
}

// enqueueFirst puts input before all that waits in the inbox of the draft's Chat.
func (d *draft) enqueueFirst(in domain.Input, waiting []domain.Input) {
	if len(waiting) == 0 {
		d.enqueue(in)
		return
	}
	in.Chat, in.Sequence, in.CreatedAt = d.chat.ID, waiting[0].Sequence-1, d.at
	d.commit.Inputs = append(d.commit.Inputs, in)
}
