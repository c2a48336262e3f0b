package engine

import (
	"encoding/json"
	"time"

	"openbot/domain"
)

// draft collects what one decision changes.
type draft struct {
	at       time.Time
	commit   domain.Commit
	chat     *domain.Chat        // the Chat whose items and events are numbered now
	path     []domain.Delegation // work that must be as it was seen
	ring     []domain.Task       // beside those that follow from the rows
	onward   *Sending            // whose worker takes the step that becomes due
	calm     bool                // nobody waits for the Turns that go on after it
	trace    string
	before   map[string]domain.Row     // see was
	signed   map[domain.RequestID]bool // Requests that this decision gave a receipt: it decides them
	reminded bool                      // the person is told once more of the Request that is written
	result   any                       // what the command returns, for a kept answer
	keptIn   domain.ChatID             // the Chat that a commandKey lives with, where the command finds it
}

func (d *draft) empty() bool {
	c := d.commit
	return len(c.Rows) == 0 && len(c.Items) == 0 && len(c.Inputs) == 0 && len(c.Taken) == 0 && len(c.Events) == 0 &&
		c.StopWork == nil && len(c.Reminded) == 0 && len(c.Usage) == 0 && len(c.CloseReminders) == 0
}

// put adds rows to write.
func (d *draft) put(rows ...domain.Row) { d.commit.Rows = append(d.commit.Rows, rows...) }

// in names the Chat that items and events belong to. It is written with them, so
// that its counters are fenced by its version.
func (d *draft) in(chat *domain.Chat) {
	d.chat = chat
	chat.UpdatedAt = d.at
	d.put(chat)
}

func (d *draft) item(i domain.Item) {
	d.chat.LastItem++
	i.Chat, i.Sequence, i.CreatedAt = d.chat.ID, d.chat.LastItem, d.at
	d.commit.Items = append(d.commit.Items, i)
}

func (d *draft) event(kind, subject string, data map[string]any) {
	raw, err := json.Marshal(data)
	if err != nil {
		raw = []byte("{}") // maps of strings and numbers always marshal
	}
	d.chat.LastEvent++
	d.commit.Events = append(d.commit.Events, domain.Event{
		Organization: d.chat.Organization, Member: d.chat.Member, Chat: d.chat.ID, Sequence: d.chat.LastEvent,
		Kind: kind, Subject: subject, Data: raw, At: d.at,
	})
}

// turn writes a Turn, lets its Chat follow it, and tells readers when its status
// changed.
func (d *draft) turn(before domain.TurnStatus, t *domain.Turn) {
	d.put(t)
	d.chat.LastTurn = t.ID
	d.chat.Status = t.Status.ChatStatus()
	if t.Status.Ended() {
		d.chat.Turn = ""
	} else {
		d.chat.Turn = t.ID
	}
	if before == t.Status {
		return
	}
	data := map[string]any{"turn": t.ID, "status": t.Status, "response": t.Status.ResponseStatus()}
	if t.Answer != "" && t.Status == domain.TurnCompleted {
		data["answer"] = t.Answer
	}
	if t.Error != "" {
		data["error"] = t.Error
	}
	d.event(domain.EventTurnStatus, string(t.ID), data)
}

// call writes a call and tells readers; one that has just ended also leaves its
// result in the history.
func (d *draft) call(c *domain.Call) {
	d.put(c)
	if c.ForWork() {
		return // readers hear of its Request and of its work
	}
	data := map[string]any{"turn": c.Turn, "call": c.ID, "name": c.Name, "status": c.Status}
	if c.Status == domain.CallWaiting && c.Kind != domain.CallProgram || c.Status == domain.CallUnknown && c.Open() {
		data["request"] = c.Request
	}
	d.event(domain.EventCallStatus, string(c.ID), data)
	if !c.Open() {
		d.item(domain.Item{Turn: c.Turn, Step: c.Step, Kind: domain.ItemToolResult, From: domain.FromServer, Text: c.Result, Call: c.ID})
	}
}

// request writes a Request and tells readers.
func (d *draft) request(r *domain.Request) {
	d.put(r)
	kind := domain.EventRequestDecided
	if r.Status == domain.RequestPending {
		kind = domain.EventRequestPending
	}
	data := map[string]any{"request": r.ID, "turn": r.Turn, "toolCallId": r.Call, "status": r.Status, "revision": r.Revision,
		"capability": r.Capability, "approver": r.Approver}
	if r.Decision != nil {
		data["decision"] = r.Decision
	}
	if r.Second != "" {
		data["secondMember"] = r.Second
	}
	d.event(kind, string(r.ID), data)
	// In a Channel the Request is the author's, and its Chat another's.
	d.commit.Events[len(d.commit.Events)-1].Member = r.Member
	if r.Second == "" || r.Status == domain.RequestPending {
		return
	}
	// It leaves two inboxes, and a Member hears of its own events alone.
	d.event(kind, string(r.ID), data)
	d.commit.Events[len(d.commit.Events)-1].Member = r.Second
}

// nearTimer is how far ahead a deadline is rung by the commit that makes it; later
// ones are found by the scheduler.
const nearTimer = 3 * time.Minute

// rings gives the tasks that follow from the rows that were written: the rows say
// who must look at them and when. The sweep rings for the same rows with the same
// urgency, so that both are one task.
func (d *draft) rings() []domain.Task {
	tasks := d.ring
	for _, row := range d.commit.Rows {
		var t domain.Task
		switch r := row.(type) {
		case *domain.Turn:
			if !r.StepDue() || r.DueAt == nil {
				continue
			}
			t = domain.Task{Kind: domain.TaskTurnStep, Subject: string(r.ID), Revision: r.Version, Urgency: domain.UrgencyTurn}
			if r.Steps > 0 {
				t.Urgency = domain.UrgencyAnswer
			}
			if d.calm {
				t.Urgency = domain.UrgencyRest
			}
			if at := r.NotBefore(); at != nil {
				t.At = *at
			}
		case *domain.Call:
			if r.Status == domain.CallChecking && r.DueAt != nil && r.DueAt.Sub(d.at) <= domain.RunnableGrace {
				tasks = append(tasks, domain.Task{Kind: domain.TaskCallJudge, Subject: string(r.ID), Revision: r.Version,
					Urgency: domain.UrgencyJudge, Trace: d.trace})
			}
			if r.Status != domain.CallAllowed || r.DueAt == nil {
				continue // a call of paused work is set free with its work
			}
			if r.Kind == domain.CallProgram {
				if r.DueAt != nil && r.DueAt.Sub(d.at) <= domain.RunnableGrace { // else it runs already
					tasks = append(tasks, domain.Task{Kind: domain.TaskProgramRun, Subject: string(r.ID), Revision: r.Version,
						Urgency: domain.UrgencyProgram, Trace: d.trace})
				}
				continue
			}
			t = domain.Task{Kind: domain.TaskCallSend, Subject: string(r.ID), Revision: r.Version, Urgency: r.Urgency()}
		case *domain.Request:
			if due := r.ReviewDueAt; r.Status == domain.RequestPending && due != nil && due.Sub(d.at) <= nearTimer {
				review := domain.Task{Kind: domain.TaskRequestReview, Subject: string(r.ID), Revision: r.Version, Urgency: domain.UrgencyReview, Trace: d.trace}
				if r.Review != "" && d.at.Before(*due) {
					review.At = *due
				}
				tasks = append(tasks, review)
			}
			if due := r.VerdictDueAt; due != nil && r.VerdictTries == 0 && due.Sub(d.at) <= nearTimer {
				tasks = append(tasks, domain.Task{Kind: domain.TaskRequestVerdict, Subject: string(r.ID), Revision: due.UnixMilli(),
					Urgency: domain.UrgencyJudge, Trace: d.trace})
			}
			for _, due := range r.FollowUps() {
				if due.Sub(d.at) <= nearTimer {
					tasks = append(tasks, domain.Task{Kind: domain.TaskRequestFollowUp, Subject: string(r.ID), Revision: due.UnixMilli(),
						Urgency: domain.UrgencyRest, At: due, Trace: d.trace})
				}
			}
			if r.Status != domain.RequestPending || r.ExpiresAt.Sub(d.at) > nearTimer {
				continue
			}
			t = domain.Task{Kind: domain.TaskRequestElapse, Subject: string(r.ID), Revision: r.ExpiresAt.UnixMilli(),
				Urgency: domain.UrgencyTurn, At: r.ExpiresAt}
		case *domain.Grant:
			if r.SettleDueAt == nil {
				continue
			}
			t = domain.Task{Kind: domain.TaskGrantSettle, Subject: string(r.ID), Revision: r.Version, Urgency: domain.UrgencyAnswer}
		case *domain.Connection:
			if r.LookDueAt == nil {
				continue
			}
			t = domain.Task{Kind: domain.TaskConnectionLook, Subject: string(r.ID), Revision: r.Version, Urgency: domain.UrgencyReview}
		case *domain.Bot:
			if r.ClosingDueAt == nil {
				continue
			}
			t = domain.Task{Kind: domain.TaskBotClose, Subject: string(r.ID), Revision: r.Version, Urgency: domain.UrgencyRest}
		case *domain.Preview:
			if r.DueAt == nil || r.Tries > 0 {
				continue // the sweep rings for one whose worker died
			}
			t = domain.Task{Kind: domain.TaskRulePreview, Subject: string(r.ID), Revision: r.Version, Urgency: domain.UrgencyJudge}
		case *domain.Reminder:
			if r.DueAt.Sub(d.at) > nearTimer {
				continue
			}
			t = domain.Task{Kind: domain.TaskReminderFire, Subject: string(r.ID), Revision: r.DueAt.UnixMilli(), Urgency: domain.UrgencyTurn}
			if domain.Before(d.at, r.DueAt) {
				t.At = r.DueAt
			}
		case *domain.Token:
			if r.ClosingDueAt == nil {
				continue
			}
			t = domain.Task{Kind: domain.TaskTokenClose, Subject: string(r.ID), Revision: r.Version, Urgency: domain.UrgencyRest}
		case *domain.Member:
			if r.ClosingDueAt == nil {
				continue
			}
			t = domain.Task{Kind: domain.TaskTokenClose, Subject: string(r.ID), Revision: r.Version, Urgency: domain.UrgencyRest}
		case *domain.Trigger:
			if r.NextAt == nil || r.NextAt.Sub(d.at) > nearTimer {
				continue
			}
			t = domain.Task{Kind: domain.TaskTriggerFire, Subject: string(r.ID), Revision: r.NextAt.UnixMilli(), Urgency: domain.UrgencyTurn, At: *r.NextAt}
		case *domain.Delegation:
			tasks = append(tasks, workRings(r, d.at, d.trace)...)
			continue
		case *domain.Delivery:
			if r.Status != domain.DeliveryPending || r.DueAt == nil || r.DueAt.Sub(d.at) > nearTimer {
				continue // the sweep looks at one that is out
			}
			t = domain.Task{Kind: domain.TaskWebhookDeliver, Subject: string(r.ID), Revision: r.Version, Urgency: domain.UrgencyDelivery}
			if r.Tries > 0 {
				t.At = *r.DueAt
			}
		default:
			continue
		}
		t.Trace = d.trace
		tasks = append(tasks, t)
	}
	return append(tasks, d.deliveryRings()...)
}

// streams gives the readers that must hear of the commit.
func (d *draft) streams() []string {
	var streams []string
	told := map[string]bool{}
	for _, ev := range d.commit.Events {
		for _, stream := range []string{domain.ChatStream(ev.Chat), domain.MemberStream(ev.Member)} {
			if !told[stream] {
				told[stream] = true
				streams = append(streams, stream)
			}
		}
	}
	for _, row := range d.commit.Rows {
		if c, ok := row.(*domain.Connection); ok && c.LookDueAt == nil {
			streams = append(streams, domain.ConnectionStream(c.ID))
		}
		if p, ok := row.(*domain.Preview); ok && p.DueAt == nil {
			streams = append(streams, domain.PreviewStream(p.ID))
		}
	}
	return streams
}
