package engine_test

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
)

// laws holds the database against what must be so at any time.
func (f *forest) laws() {
	f.t.Helper()
	f.load()
	for _, id := range f.order {
		g := f.work[id]
		f.lawEnd(g)
		f.lawClock(g)
		if above := f.work[g.Above]; g.Open() && g.Above != "" && !above.Open() {
			f.t.Fatalf("%s is %s, and the work above it, %s, is %s", id, g.Status, above.ID, above.Status)
		}
	}
	f.lawPaused()
	f.lawHeld()
	f.lawParked()
	f.lawOpen()
}

// lawOpen: work that is open has a Turn, or waits for something that its Chat gave or
// asked, or is paused or being stopped.
func (f *forest) lawOpen() {
	f.t.Helper()
	rows, err := f.beside.Query(`SELECT d.id FROM delegations d JOIN chats c ON c.delegation_id = d.id
		WHERE d.ended_at IS NULL AND d.started_at IS NOT NULL AND d.pause = '' AND c.turn_id = ''
		AND NOT EXISTS (SELECT 1 FROM delegations x WHERE (x.parent_chat_id = c.id OR x.above_id = d.id) AND (x.ended_at IS NULL OR x.notice_due_at IS NOT NULL))
		AND NOT EXISTS (SELECT 1 FROM requests x WHERE x.chat_id = c.id AND x.status = 'pending')
		AND NOT EXISTS (SELECT 1 FROM calls x WHERE x.chat_id = c.id AND x.ended_at IS NULL)
		AND NOT EXISTS (SELECT 1 FROM inputs x WHERE x.chat_id = c.id)
		AND NOT EXISTS (SELECT 1 FROM reminders x WHERE x.chat_id = c.id)`)
	f.must(err)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id domain.DelegationID
		f.must(rows.Scan(&id))
		if domain.HeldBy(f.path(id)).Stopping == "" {
			f.t.Fatalf("%s is %s and waits for nothing", id, f.work[id].Status)
		}
	}
	f.must(rows.Err())
}

// lawEnd: a piece of work ends once, and nothing of its end changes any more.
func (f *forest) lawEnd(g domain.Delegation) {
	f.t.Helper()
	if g.Open() {
		return
	}
	g.NoticeDueAt, g.Version = nil, 0
	if before, ended := f.ended[g.ID]; ended {
		if !reflect.DeepEqual(before, g) {
			f.t.Fatalf("%s ended again:\n%+v\n%+v", g.ID, before, g)
		}
		return
	}
	f.ended[g.ID] = g
	for _, above := range f.path(g.ID)[1:] {
		f.covered[g.ID] = f.covered[g.ID] || above.StoppingAt != nil
	}
	if g.StoppingAt == nil && !f.covered[g.ID] && g.StartedAt != nil {
		for _, id := range f.order {
			below := f.work[id]
			if below.Parent.Chat == g.Chat && below.CreatedAt.Before(*g.EndedAt) && (below.Open() || below.NoticeDueAt != nil) {
				f.t.Fatalf("%s ended as %s before it was told of %s, which is %s", g.ID, g.Status, id, below.Status)
			}
		}
	}
	f.reached["ended: "+string(g.Status)]++
	if g.EndedAt == nil || g.LastEvent <= g.FirstEvent || g.DueAt != nil || g.ParkedBy != "" || g.Call != "" || g.ClosingDueAt != nil || g.ResumeDueAt != nil {
		f.t.Fatalf("%s ended as %+v", g.ID, g)
	}
}

// lawClock: used time is running time without pauses of the work and above it.
func (f *forest) lawClock(g domain.Delegation) {
	f.t.Helper()
	if got := domain.UsedTime(f.path(g.ID), f.clock.now()); got != f.used[g.ID] {
		f.t.Fatalf("%s (%s) used %s, by the count %s", g.ID, g.Status, got, f.used[g.ID])
	}
}

// lawPaused: what is paused waits for a call, and that for a Request that is pending, or
// for its worker. Below work that is being stopped the call is closed first, and the work
// itself when nothing of it is out: then whoever closes the work above is due again.
func (f *forest) lawPaused() {
	f.t.Helper()
	for _, id := range f.order {
		if g := f.work[id]; (g.Pause != nil) != (g.Status == domain.DelegationPaused) {
			f.t.Fatalf("%s is %s with the pause %+v", g.ID, g.Status, g.Pause)
		}
	}
	lost := f.list(`SELECT d.id, d.status, d.call_id, c.status, c.ended_at, c.due_at, c.parked_by, r.status FROM delegations d
		LEFT JOIN calls c ON c.id = d.call_id AND c.delegation_id = d.id LEFT JOIN requests r ON r.id = c.request_id AND r.delegation_id = d.id
		WHERE d.status IN ('paused', 'authorizing') AND d.stopping_at IS NULL AND (c.ended_at IS NOT NULL
			OR NOT coalesce(c.status = 'waiting' AND r.status = 'pending' OR c.status = 'allowed' AND (c.due_at IS NOT NULL OR c.parked_by <> ''), 1 = 0))`)
	lost = slices.DeleteFunc(lost, func(row string) bool {
		id, _, _ := strings.Cut(row, " ")
		by := domain.HeldBy(f.path(domain.DelegationID(id))).Stopping
		return by != "" && f.work[by].ClosingDueAt != nil
	})
	if len(lost) > 0 {
		f.t.Fatalf("work is held and nothing decides about it: %q", lost)
	}
}

// lawHeld: while work is paused or being stopped, no step is taken in its Chat, no call
// saved and none sent.
func (f *forest) lawHeld() {
	f.t.Helper()
	starts := map[domain.ChatID]started{}
	rows, err := f.beside.Query(`SELECT d.chat_id, (SELECT coalesce(sum(steps), 0) FROM turns t WHERE t.chat_id = d.chat_id),
		(SELECT count(*) FROM calls c WHERE c.chat_id = d.chat_id AND c.step >= 0), (SELECT coalesce(sum(sends), 0) FROM calls c WHERE c.chat_id = d.chat_id)
		FROM (SELECT DISTINCT chat_id FROM delegations) d`)
	f.must(err)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var chat domain.ChatID
		var s started
		f.must(rows.Scan(&chat, &s.steps, &s.calls, &s.sends))
		starts[chat] = s
	}
	f.must(rows.Err())
	newest := f.newest()
	holds := map[domain.ChatID]string{}
	for chat, s := range starts {
		path := f.path(newest[chat].ID)
		if domain.HeldBy(path).Free() || !path[0].Open() {
			continue
		}
		// The gates say whether it was held all the time since the last look.
		hold := ""
		for _, g := range path {
			hold += fmt.Sprint(g.ID, g.Gate, " ")
		}
		holds[chat] = hold
		if f.holds[chat] == hold && f.starts[chat] != s {
			f.t.Fatalf("work that is held began something: %+v, then %+v", f.starts[chat], s)
		}
	}
	f.starts, f.holds = starts, holds
}

// lawParked: whatever is parked is held by work that is paused, or that is about to set
// it free, or is below work that is being stopped.
func (f *forest) lawParked() {
	f.t.Helper()
	rows, err := f.beside.Query(`SELECT 'turn', chat_id, parked_by, coalesce(due_at, 0) FROM turns WHERE parked_by <> ''
		UNION ALL SELECT 'call', chat_id, parked_by, coalesce(due_at, 0) FROM calls WHERE parked_by <> ''
		UNION ALL SELECT 'work', chat_id, parked_by, coalesce(due_at, 0) FROM delegations WHERE parked_by <> ''`)
	f.must(err)
	defer func() { _ = rows.Close() }()
	newest := f.newest()
	for rows.Next() {
		var kind string
		var chat domain.ChatID
		var by domain.DelegationID
		var due int64
		f.must(rows.Scan(&kind, &chat, &by, &due))
		f.reached["parked "+kind]++
		p := f.work[by]
		stopping := domain.HeldBy(f.path(newest[chat].ID)).Stopping != ""
		if due != 0 || !stopping && (p.Pause == nil || !p.Open()) && p.ResumeDueAt == nil {
			f.t.Fatalf("a %s of %s is parked by %s, which is %s, due at %d", kind, chat, by, p.Status, due)
		}
	}
	f.must(rows.Err())
}

// lawStep: no model is asked for work that is held, or that has no step or budget left.
func (f *forest) lawStep(step *engine.Step) {
	f.t.Helper()
	f.load()
	g, ok := f.newest()[step.Chat()]
	if !ok {
		return
	}
	path := f.path(g.ID)
	if h := domain.HeldBy(path); !h.Free() || !g.Open() {
		f.t.Fatalf("a step of work that is %s, held by %+v", g.Status, h)
	}
	if step.Reply != nil {
		return // it was paid for before
	}
	if l := g.Limits.Steps; l > 0 && g.Steps-g.Clock.WindowSteps >= l {
		f.t.Fatalf("step %d of %s, its limit is %d", g.Steps, g.ID, l)
	}
	for _, p := range path {
		if l := p.Limits.BudgetMicros * 1000; l > 0 && p.Open() && p.CostNanos-p.Clock.WindowCost >= l {
			f.t.Fatalf("a step of %s, and %s has spent %d of %d", g.ID, p.ID, p.CostNanos-p.Clock.WindowCost, l)
		}
	}
}

// lawSend: no call of work that is held goes out.
func (f *forest) lawSend(out *engine.Sending) {
	f.t.Helper()
	f.load()
	if g, ok := f.newest()[out.Call.Chat]; ok {
		if h := domain.HeldBy(f.path(g.ID)); !h.Free() || !g.Open() {
			f.t.Fatalf("a call of work that is %s, held by %+v, goes out", g.Status, h)
		}
	}
}

// finish lets the sweep alone drive everything to its end. Each piece must end, or wait
// for somebody; once they have answered, nothing may be left.
func (f *forest) finish() {
	f.t.Helper()
	f.closing = true
	f.crash()
	for round := 0; ; round++ {
		f.settle()
		list := f.pending()
		reminders := f.count("SELECT count(*) FROM reminders")
		if len(list)+reminders == 0 {
			break
		}
		if reminders > 0 {
			f.forward(time.Hour)
		}
		if round == 40 {
			f.t.Fatalf("the work does not end; %d Requests wait", len(list))
		}
		if f.chance("nobody answers", 6) {
			f.forward(25 * time.Hour)
			f.reached["nobody answers"]++
			continue
		}
		for _, r := range list {
			if now := f.request(r.ID); now.Status == domain.RequestPending {
				f.decideOne(now)
			}
		}
	}
	f.lawOver()
}

// settle sweeps until nothing moves any more but by a person, and looks that everything
// that is open waits for one.
func (f *forest) settle() {
	f.t.Helper()
	for quiet, rounds := 0, 0; quiet < 3; rounds++ {
		if rounds == 300 {
			f.t.Fatalf("it never rests: %v\n%s", f.last, f.dump())
		}
		f.rings.lose()
		moved := f.sweepOnce()
		for len(f.steps) > 0 || len(f.sends) > 0 {
			moved = true
			for _, step := range f.steps {
				f.answerStep(step)
			}
			f.steps = nil
			for _, out := range f.sends {
				f.must(f.engine.SettleCall(f.ctx(), out, false, "so"))
			}
			f.sends = nil
		}
		f.laws()
		if moved {
			quiet = 0
		} else {
			quiet++
		}
		f.forward(11 * time.Second)
	}
	f.rings.lose()
	for _, id := range f.order {
		if g := f.work[id]; g.Open() && !f.waits(g) {
			f.t.Fatalf("nothing moves %s: it is %s, due at %v, held by %+v; Turns %v, calls %v", g.ID, g.Status, g.DueAt, domain.HeldBy(f.path(id)),
				f.list("SELECT id, status, due_at, parked_by FROM turns WHERE chat_id = ?", g.Chat), f.list("SELECT id, kind, status, due_at, parked_by FROM calls WHERE chat_id = ?", g.Chat))
		}
	}
}

// dump tells what is open, for a failure.
func (f *forest) dump() string {
	var b strings.Builder
	for what, query := range map[string]string{
		"work":     "SELECT id, above_id, status, bot_id, chat_id, stopping_at, pause, due_at, closing_due_at, parked_by, call_id, parent_chat_id FROM delegations WHERE ended_at IS NULL",
		"Turns":    "SELECT id, chat_id, status, open_calls, due_at, parked_by FROM turns WHERE status IN ('Queued', 'Running', 'Waiting')",
		"calls":    "SELECT id, chat_id, turn_id, kind, status, due_at, parked_by, request_id FROM calls WHERE ended_at IS NULL",
		"Requests": "SELECT id, chat_id, action, delegation_id, approver_tag, unknown, review_id FROM requests WHERE status = 'pending'",
		"inputs":   "SELECT id, chat_id, text FROM inputs",
	} {
		for _, row := range f.list(query) {
			fmt.Fprintln(&b, what, row)
		}
	}
	return b.String()
}

// waits says whether a piece of work waits for somebody: itself, work above that holds
// it, or work that it gave away.
func (f *forest) waits(g domain.Delegation) bool {
	asked := func(g domain.Delegation) bool {
		return f.count("SELECT (SELECT count(*) FROM requests WHERE status = 'pending' AND (chat_id = ? OR delegation_id = ?)) + (SELECT count(*) FROM reminders WHERE chat_id = ?)", g.Chat, g.ID, g.Chat) > 0
	}
	if slices.ContainsFunc(f.path(g.ID), asked) || g.DueAt != nil && f.count("SELECT count(*) FROM turns WHERE chat_id = ? AND status IN ('Queued', 'Running')", g.Chat) > 0 {
		return true
	}
	for _, id := range f.order {
		if below := f.work[id]; below.Open() && below.Parent.Chat == g.Chat && f.waits(below) {
			return true
		}
	}
	return false
}

// lawOver: nothing is left, every Chat was told what it must be told, and costs add up.
func (f *forest) lawOver() {
	f.t.Helper()
	for what, query := range map[string]string{
		"open work":         "SELECT id, status, chat_id FROM delegations WHERE ended_at IS NULL",
		"a Turn under way":  "SELECT id, chat_id, status, parked_by FROM turns WHERE status IN ('Queued', 'Running', 'Waiting')",
		"an open call":      "SELECT id, kind, chat_id, status, parked_by FROM calls WHERE ended_at IS NULL",
		"a pending Request": "SELECT id, action, chat_id FROM requests WHERE status = 'pending'",
		"a reminder":        "SELECT id, chat_id FROM reminders",
		"input":             "SELECT id, chat_id, text FROM inputs",
		"what is parked":    "SELECT id FROM turns WHERE parked_by <> '' UNION ALL SELECT id FROM calls WHERE parked_by <> '' UNION ALL SELECT id FROM delegations WHERE parked_by <> ''",
		"a busy Chat":       "SELECT id, kind, status, turn_id FROM chats WHERE turn_id <> '' OR status <> 'idle'",
		"an end untold":     "SELECT id FROM delegations WHERE notice_due_at IS NOT NULL",
	} {
		if left := f.list(query); len(left) > 0 {
			f.t.Fatalf("at the end there is %s: %v", what, left)
		}
	}
	for _, kind := range domain.TaskKinds() {
		tasks, err := f.engine.DueTasks(f.ctx(), kind, 365*24*time.Hour, 10)
		f.must(err)
		if len(tasks) > 0 {
			f.t.Fatalf("at the end something is due: %+v", tasks)
		}
	}
	f.load()
	for _, id := range f.order {
		f.lawTold(f.work[id])
		f.lawEvents(f.work[id])
	}
	f.lawCost()
}

// lawTold: a giver that was not stopped itself gets each result exactly once, and none of
// work that it stopped.
func (f *forest) lawTold(g domain.Delegation) {
	f.t.Helper()
	told := f.count("SELECT count(*) FROM items WHERE chat_id = ? AND kind = 'notice' AND text LIKE ?", g.Parent.Chat, "[OpenBot] The work "+string(g.ID)+" that you gave to%")
	low, high := 1, 1
	switch {
	case f.silent[g.ID]:
		low, high = 0, 0
	case f.deleted[g.Parent.Chat] || f.covered[g.ID]:
		low = 0
	}
	if told < low || told > high {
		f.t.Fatalf("the giver of %s, which is %s (%q), was told %d times, want %d to %d", g.ID, g.Status, g.Result, told, low, high)
	}
	f.reached[fmt.Sprint("told ", told)]++
}

// lawEvents: readers of its run are told of the end once, with the last event.
func (f *forest) lawEvents(g domain.Delegation) {
	f.t.Helper()
	events, err := f.store.ChatEvents(f.ctx(), g.Chat, g.FirstEvent, 100_000)
	f.must(err)
	for i, ev := range events {
		end := ev.Kind == domain.EventDelegation && ev.Subject == string(g.ID) &&
			slices.ContainsFunc([]domain.DelegationStatus{domain.DelegationCompleted, domain.DelegationFailed, domain.DelegationCancelled}, func(s domain.DelegationStatus) bool {
				return strings.Contains(string(ev.Data), `"status":"`+string(s)+`"`)
			})
		if ev.Sequence != g.FirstEvent+int64(i)+1 || end != (ev.Sequence == g.LastEvent) {
			f.t.Fatalf("event %d of the run of %s, which ended with %d, is %s %s", ev.Sequence, g.ID, g.LastEvent, ev.Kind, ev.Data)
		}
	}
}

// lawCost: the cost of a piece is that of its own steps and of all work below it.
func (f *forest) lawCost() {
	f.t.Helper()
	own := map[domain.DelegationID]int64{}
	for _, id := range f.order {
		g := f.work[id]
		// Its Turns began with an event of its run.
		own[id] = int64(f.count(`SELECT coalesce(sum(t.cost_nanos), 0) FROM turns t WHERE t.chat_id = ? AND EXISTS (SELECT 1 FROM events e WHERE e.chat_id = t.chat_id
			AND e.subject = t.id AND e.kind = 'turn.status' AND e.sequence > ? AND e.sequence <= ?)`, g.Chat, g.FirstEvent, g.LastEvent))
	}
	total := map[domain.DelegationID]int64{}
	byDepth := slices.SortedFunc(slices.Values(f.order), func(a, b domain.DelegationID) int { return cmp.Compare(len(f.path(b)), len(f.path(a))) })
	for _, id := range byDepth {
		total[id] += own[id]
		if above := f.work[id].Above; above != "" {
			total[above] += total[id]
		}
		if got := f.work[id].CostNanos; got != total[id] {
			f.t.Fatalf("%s cost %d, its own steps and all below cost %d", id, got, total[id])
		}
		f.reached[fmt.Sprint("depth ", len(f.path(id)))]++
	}
}
