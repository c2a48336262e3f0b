package repositorytest

import (
	"context"
	"errors"
	"sync"

	"openbot/domain"
)

var commits = []promise{
	{"an insert gives version 1, an update adds one, and the caller's row is told", func(w *world) {
		w.settle()
		for _, k := range kinds {
			row := k.fresh(w, 1)
			w.commit(row)
			w.same(k.name+" after its insert", versionOf(row), int64(1))
			row = k.changed(row, 2)
			w.commit(row)
			w.same(k.name+" after its update", versionOf(row), int64(2))
		}
	}},
	{"a stale, a future and a missing version are conflicts that change nothing", func(w *world) {
		w.settle()
		for _, k := range kinds {
			row := k.fresh(w, 1)
			w.commit(row)
			row = k.changed(row, 2)
			w.commit(row)
			before := w.readAll(k, row)
			for _, version := range []int64{1, 3, 99} {
				other := k.changed(row, 3)
				setVersion(other, version)
				w.code(w.store.Commit(w.ctx, domain.Commit{Rows: []domain.Row{other}}), domain.CodeConflict)
				w.same(k.name+" version of a refused row", versionOf(other), version)
			}
			absent := k.fresh(w, 4)
			setVersion(absent, 1)
			w.code(w.store.Commit(w.ctx, domain.Commit{Rows: []domain.Row{absent}}), domain.CodeConflict)
			w.same(k.name+" after refused commits", w.readAll(k, row), before)
		}
	}},
	{"an ID that is taken is a conflict", func(w *world) {
		w.settle()
		for _, k := range kinds {
			row := k.fresh(w, 1)
			w.commit(row)
			before := w.readAll(k, row)
			again := copyOf(row)
			setVersion(again, 0)
			w.code(w.store.Commit(w.ctx, domain.Commit{Rows: []domain.Row{again}}), domain.CodeConflict)
			w.same(k.name, w.readAll(k, row), before)
		}
	}},
	{"a conflict in one row leaves nothing of any other", func(w *world) {
		w.settle()
		for _, failing := range kinds {
			w.allOrNothing(failing.name, func(c *domain.Commit) {
				absent := failing.fresh(w, 7)
				setVersion(absent, 5)
				c.Rows = append(c.Rows, absent)
			})
		}
	}},
	{"a conflict in an input, an item, an event, a reminder, a line of the ledger or a key leaves nothing of any row", func(w *world) {
		w.settle()
		chat := w.newChat()
		input, event := w.newInput(chat), w.newEvent(chat)
		item := domain.Item{Chat: chat.ID, Sequence: 1, Kind: domain.ItemMessage, CreatedAt: w.now}
		kept := domain.KeptAnswer{Member: w.member.ID, Key: "taken", CreatedAt: w.now}
		w.ok(w.store.Commit(w.ctx, domain.Commit{Rows: []domain.Row{chat}, Inputs: []domain.Input{input}, Items: []domain.Item{item},
			Events: []domain.Event{event}, Kept: &kept}))

		w.allOrNothing("usage", func(c *domain.Commit) { c.Usage = append(c.Usage, c.Usage[0]) })
		w.allOrNothing("reminder", func(c *domain.Commit) { c.Reminded = []domain.ReminderID{"ntc_absent"} })
		w.allOrNothing("taken input", func(c *domain.Commit) { c.Taken = []domain.InputID{"ntc_absent"} })
		w.allOrNothing("input", func(c *domain.Commit) { c.Inputs = append(c.Inputs, input) })
		w.allOrNothing("item", func(c *domain.Commit) { c.Items = append(c.Items, item) })
		w.allOrNothing("event", func(c *domain.Commit) { c.Events = append(c.Events, event) })
		w.allOrNothing("key", func(c *domain.Commit) { c.Kept = &kept })
	}},
	{"of 20 racing writers one wins", func(w *world) {
		w.settle()
		chat := w.newChat()
		w.commit(chat)
		won := w.race(20, func(i int) error {
			mine := *chat
			mine.LastItem++
			return w.store.Commit(w.ctx, domain.Commit{Rows: []domain.Row{&mine},
				Items: []domain.Item{{Chat: chat.ID, Sequence: mine.LastItem, Step: i, CreatedAt: w.now}}})
		})
		w.same("writers that won", won, 1)
		w.same("version", must[domain.Chat](w)(w.store.Chat(w.ctx, chat.ID)).Version, int64(2))
		w.same("items", len(must[[]domain.Item](w)(w.store.Items(w.ctx, chat.ID, 0, 100))), 1)
	}},
	{"writers of the same rows in another order do not block each other for ever", func(w *world) {
		w.settle()
		a, b := w.newChat(), w.newChat()
		w.commit(a, b)
		won := w.race(10, func(i int) error {
			x, y := *a, *b
			rows := []domain.Row{&x, &y}
			if i%2 == 0 {
				rows = []domain.Row{&y, &x}
			}
			return w.store.Commit(w.ctx, domain.Commit{Rows: rows})
		})
		w.same("writers that won", won, 1)
	}},
	{"a row without an ID and a row that is there twice are refused", func(w *world) {
		w.settle()
		chat := w.newChat()
		same := *chat
		w.code(w.store.Commit(w.ctx, domain.Commit{Rows: []domain.Row{chat, &same}}), domain.CodeInternal)
		w.code(w.store.Commit(w.ctx, domain.Commit{Rows: []domain.Row{&domain.Chat{Version: 1}}}), domain.CodeInternal)
		w.same("chats", len(must[[]domain.Chat](w)(w.store.Chats(w.ctx, w.member.ID, domain.Page{Limit: 9}))), 0)
	}},
	{"a call has its place in a step to itself", func(w *world) {
		w.settle()
		chat := w.newChat()
		turn := w.newTurn(chat)
		w.commit(chat, turn, w.newCall(turn, 1, 0), w.newCall(turn, 1, 1), w.newCall(turn, 2, 0))
		w.code(w.store.Commit(w.ctx, domain.Commit{Rows: []domain.Row{w.newCall(turn, 1, 1)}}), domain.CodeConflict)
	}},
	{"a Member has one Main Bot", func(w *world) {
		w.settle()
		second := *w.bot
		second.ID, second.Version = newID[domain.BotID](domain.PrefixBot), 0
		w.code(w.store.Commit(w.ctx, domain.Commit{Rows: []domain.Row{&second}}), domain.CodeConflict)
	}},
	{"the name of a host tool is taken until the tool is deleted", func(w *world) {
		w.settle()
		first, second := w.newHostTool(), w.newHostTool()
		second.Name = first.Name
		w.commit(first)
		err := w.store.Commit(w.ctx, domain.Commit{Rows: []domain.Row{second}})
		w.code(err, domain.CodeConflict)
		var ours *domain.Error
		if !errors.As(err, &ours) || ours.Tag != "NameConflict" {
			w.Fatalf("got %+v, want the tag NameConflict", ours)
		}
		first.DeletedAt = ptr(w.now)
		w.commit(first)
		w.commit(second)
	}},
	{"a cancelled context commits nothing and is still seen as cancelled", func(w *world) {
		w.settle()
		ctx, cancel := context.WithCancel(w.ctx)
		cancel()
		chat := w.newChat()
		err := w.store.Commit(ctx, domain.Commit{Rows: []domain.Row{chat}})
		w.code(err, domain.CodeUnavailable)
		if !errors.Is(err, context.Canceled) {
			w.Fatalf("got %v, want context.Canceled inside", err)
		}
		w.same("version", chat.Version, int64(0))
		_, err = w.store.Chat(w.ctx, chat.ID)
		w.code(err, domain.CodeNotFound)
	}},
	{"one commit holds many rows", func(w *world) {
		w.settle()
		const many = 1200
		chat := w.newChat()
		turn := w.newTurn(chat)
		c := domain.Commit{Rows: []domain.Row{chat, turn}}
		for i := range many {
			c.Rows = append(c.Rows, w.newCall(turn, 1, i))
			c.Items = append(c.Items, domain.Item{Chat: chat.ID, Sequence: int64(i + 1), CreatedAt: w.now})
			c.Inputs = append(c.Inputs, w.newInput(chat))
			c.Events = append(c.Events, w.newEvent(chat))
		}
		w.ok(w.store.Commit(w.ctx, c))
		w.same("calls", len(must[[]domain.Call](w)(w.store.TurnCalls(w.ctx, turn.ID))), many)
		w.same("items", len(must[[]domain.Item](w)(w.store.Items(w.ctx, chat.ID, 0, many+1))), many)
		w.same("inputs", len(must[[]domain.Input](w)(w.store.Inbox(w.ctx, chat.ID))), many)
		w.same("events", len(w.heard(many)), many)
		taken := make([]domain.InputID, many)
		for i, input := range c.Inputs {
			taken[i] = input.ID
		}
		w.ok(w.store.Commit(w.ctx, domain.Commit{Rows: []domain.Row{chat}, Taken: taken}))
		w.same("inputs", len(must[[]domain.Input](w)(w.store.Inbox(w.ctx, chat.ID))), 0)
	}},
	{"of 10 first starts one writes", func(w *world) {
		var wrote []bool
		var mu sync.Mutex
		done := w.race(10, func(int) error {
			other := newWorld(w.T, w.store)
			ok, err := w.store.FirstStart(w.ctx, domain.Commit{Rows: []domain.Row{other.org, other.member, other.token, other.bot}})
			if err == nil && ok != (other.token.Version == 1) {
				return errors.New("the answer and the rows disagree")
			}
			mu.Lock()
			defer mu.Unlock()
			if ok {
				wrote = append(wrote, ok)
			}
			return err
		})
		w.same("first starts without an error", done, 10)
		w.same("first starts that wrote", len(wrote), 1)
		again, err := w.store.FirstStart(w.ctx, domain.Commit{Rows: []domain.Row{w.org, w.member, w.token, w.bot}})
		w.ok(err)
		w.same("a later first start", again, false)
	}},
}

// race runs act n times at once and counts those without an error. Every other
// error must be a conflict.
func (w *world) race(n int, act func(i int) error) int {
	w.Helper()
	gate := make(chan struct{})
	results := make(chan error, n)
	for i := range n {
		go func() {
			<-gate
			results <- act(i)
		}()
	}
	close(gate)
	won := 0
	for range n {
		if err := <-results; err == nil {
			won++
		} else if !domain.IsCode(err, domain.CodeConflict) {
			w.Errorf("a racer got %v, want conflict", err)
		}
	}
	return won
}

// allOrNothing commits a new row of every kind, an item, an input, an event, a line of
// the ledger and a key together with what spoil adds, and sees that nothing is left of them.
func (w *world) allOrNothing(what string, spoil func(*domain.Commit)) {
	w.Helper()
	chat := w.newChat()
	c := domain.Commit{Items: []domain.Item{{Chat: chat.ID, Sequence: 1, CreatedAt: w.now}}, Inputs: []domain.Input{w.newInput(chat)},
		Events: []domain.Event{w.newEvent(chat)}, Kept: &domain.KeptAnswer{Member: w.member.ID, Key: what, CreatedAt: w.now},
		Usage: []domain.UsageEntry{w.newUsage()}}
	for _, k := range kinds {
		c.Rows = append(c.Rows, k.fresh(w, 6))
	}
	fresh := c.Rows
	spoil(&c)
	w.code(w.store.Commit(w.ctx, c), domain.CodeConflict)
	for i, k := range kinds {
		w.same("version of a "+k.name+" of a refused commit", versionOf(fresh[i]), int64(0))
		if k.read == nil {
			continue
		}
		if _, err := k.read(w.ctx, w.store, domain.RowID(fresh[i])); !domain.IsCode(err, domain.CodeNotFound) {
			w.Fatalf("conflict in %s: the %s of the same commit is there (%v)", what, k.name, err)
		}
	}
	w.same("items", len(must[[]domain.Item](w)(w.store.Items(w.ctx, chat.ID, 0, 9))), 0)
	w.same("inputs", len(must[[]domain.Input](w)(w.store.Inbox(w.ctx, chat.ID))), 0)
	w.same("usage", len(w.sums(domain.UsageByMember)), 0)
	w.same("events", len(must[[]domain.Event](w)(w.store.ChatEvents(w.ctx, chat.ID, 0, 9))), 0)
	_, err := w.store.KeptAnswer(w.ctx, w.member.ID, what)
	w.code(err, domain.CodeNotFound)
}

// readAll gives a row as the store has it; nil where the port cannot read it.
func (w *world) readAll(k kind, row domain.Row) domain.Row {
	w.Helper()
	if k.read == nil {
		return nil
	}
	got, err := k.read(w.ctx, w.store, domain.RowID(row))
	w.ok(err)
	return got
}
