package engine

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"openbot/domain"
)

// DueTasks gives the tasks of open rows of one kind whose time has come, oldest
// first. The sweep rings them: whoever holds one of them may be dead.
func (e *Engine) DueTasks(ctx context.Context, kind domain.TaskKind, ahead time.Duration, limit int) ([]domain.Task, error) {
	rows, err := e.Store.Due(ctx, kind, e.now().Add(ahead), limit)
	if err != nil {
		return nil, err
	}
	now := e.now()
	tasks := make([]domain.Task, len(rows))
	for i, r := range rows {
		tasks[i] = domain.Task{Kind: kind, Subject: r.ID, Revision: r.Version, Urgency: r.Urgency, Overdue: !domain.Before(now, r.DueAt)}
		if !tasks[i].Overdue {
			tasks[i].At = r.DueAt
		}
	}
	return tasks, nil
}

// observeEvery is how often a reader looks at the saved rows without being told.
const observeEvery = 5 * time.Second

// observeBatch is how many events are read at a time.
const observeBatch = 500

// ObserveChat gives a Chat's events after a sequence to send, first the saved
// ones, then those that come, until ctx ends or send fails. quiet is called once
// before the first, when nothing can be refused any more, and whenever nothing
// came for a while, to keep the connection alive.
func (e *Engine) ObserveChat(ctx context.Context, p domain.Principal, id domain.ChatID, after int64, send func([]domain.Event) error, quiet func() error) error {
	chat, err := e.Chat(ctx, p, id)
	if err != nil {
		return err
	}
	if after > chat.LastEvent {
		return invalidf("afterSequence", "is in the future: the newest event is %d", chat.LastEvent)
	}
	return e.observe(ctx, domain.ChatStream(id), after, func(ctx context.Context, after int64) ([]domain.Event, error) {
		return e.Store.ChatEvents(ctx, id, after, observeBatch)
	}, func(ev domain.Event) int64 { return ev.Sequence }, once(send), quiet)
}

// once leaves out what the events of a Chat hold twice: the end of a Request that a second
// Member could answer, of which the second one is for that Member's own stream.
func once(send func([]domain.Event) error) func([]domain.Event) error {
	return func(events []domain.Event) error {
		events = slices.DeleteFunc(slices.Clone(events), func(ev domain.Event) bool {
			var data struct {
				Second domain.MemberID `json:"secondMember"`
			}
			return ev.Kind == domain.EventRequestDecided && json.Unmarshal(ev.Data, &data) == nil && data.Second != "" && data.Second == ev.Member
		})
		if len(events) == 0 {
			return nil
		}
		return send(events)
	}
}

// ObserveMember gives everything that concerns the caller after a position. A
// negative position starts at what comes next.
func (e *Engine) ObserveMember(ctx context.Context, p domain.Principal, after int64, send func([]domain.Event) error, quiet func() error) error {
	newest, err := e.Store.LastPosition(ctx, p.Member.ID)
	if err != nil {
		return err
	}
	if after < 0 {
		after = newest
	}
	if after > newest {
		return invalidf("afterSequence", "is in the future: the newest event is %d", newest)
	}
	return e.observe(ctx, domain.MemberStream(p.Member.ID), after, func(ctx context.Context, after int64) ([]domain.Event, error) {
		return e.Store.MemberEvents(ctx, p.Member.ID, after, observeBatch)
	}, func(ev domain.Event) int64 { return ev.Position }, send, quiet)
}

func (e *Engine) observe(ctx context.Context, stream string, after int64, read func(context.Context, int64) ([]domain.Event, error),
	place func(domain.Event) int64, send func([]domain.Event) error, quiet func() error) error {
	told, stop := e.Live.Subscribe(stream)
	defer stop()
	again := time.NewTicker(observeEvery)
	defer again.Stop()
	if err := quiet(); err != nil {
		return err
	}
	for {
		events, err := read(ctx, after)
		if err != nil {
			return err
		}
		if len(events) > 0 {
			if err := send(events); err != nil {
				return err
			}
			after = place(events[len(events)-1])
		}
		if len(events) == observeBatch {
			continue
		}
		select {
		case <-told:
		case <-again.C:
			if err := quiet(); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}
