package repositorytest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"openbot/domain"
)

func (w *world) work(id domain.DelegationID) domain.Delegation {
	w.Helper()
	return must[domain.Delegation](w)(w.store.Delegation(w.ctx, id))
}

// taskChat is the Chat in which a piece of work runs.
func (w *world) taskChat(g *domain.Delegation) *domain.Chat {
	chat := w.newChat()
	chat.ID, chat.Kind, chat.Parent = g.Chat, domain.ChatTask, &domain.ChatParent{Chat: g.Parent.Chat, Delegation: g.ID}
	return chat
}

func gateOf(g *domain.Delegation) domain.WorkGate { return domain.WorkGate{ID: g.ID, Gate: g.Gate} }

var works = []promise{
	{"work comes with all work above it, nearest first, of those above without their texts", func(w *world) {
		w.settle()
		chat := w.newChat()
		top := w.newWork(chat, "")
		middle := w.newWork(chat, top.ID)
		low, beside := w.newWork(chat, middle.ID), w.newWork(chat, top.ID)
		low.Result, middle.Result = "result", "result"
		middle.EndedAt, middle.Status = ptr(w.now), domain.DelegationCompleted
		w.commit(chat, top, middle, low, beside)
		bare := func(g *domain.Delegation) domain.Delegation {
			short := *g
			short.Task, short.Reason, short.Result = "", "", ""
			return short
		}
		w.same("path", must[[]domain.Delegation](w)(w.store.Work(w.ctx, low.ID)), []domain.Delegation{*low, bare(middle), bare(top)})
		w.same("path of the top", must[[]domain.Delegation](w)(w.store.Work(w.ctx, top.ID)), []domain.Delegation{*top})
		w.same("path of nothing", len(must[[]domain.Delegation](w)(w.store.Work(w.ctx, "dlg_absent"))), 0)
		paths := must[[][]domain.Delegation](w)(w.store.Works(w.ctx, []domain.DelegationID{top.ID, "dlg_absent", low.ID}))
		w.same("several paths", paths, [][]domain.Delegation{{*top}, {}, {*low, bare(middle), bare(top)}})
		w.same("no paths", len(must[[][]domain.Delegation](w)(w.store.Works(w.ctx, nil))), 0)
		w.same("by its run", must[domain.Delegation](w)(w.store.DelegationOf(w.ctx, low.Execution)), *low)
		_, err := w.store.DelegationOf(w.ctx, "absent")
		w.code(err, domain.CodeNotFound)
	}},
	{"the work that a Chat gave is listed newest first, and by pages", func(w *world) {
		w.settle()
		chat, other := w.newChat(), w.newChat()
		a, b, c := w.newWork(chat, ""), w.newWork(chat, ""), w.newWork(other, "")
		b.EndedAt = ptr(w.now)
		w.commit(chat, other, a, b, c)
		list := func(page domain.Page) []string {
			w.Helper()
			return ids(must[[]domain.Delegation](w)(w.store.Delegations(w.ctx, chat.ID, page)))
		}
		w.same("all", list(domain.Page{Limit: 9}), []string{string(b.ID), string(a.ID)})
		w.same("one", list(domain.Page{Limit: 1}), []string{string(b.ID)})
		w.same("the next", list(domain.Page{Limit: 1, Before: string(b.ID)}), []string{string(a.ID)})
	}},
	{"a cost is counted for work and all named above it, without a version and without a change by other commits", func(w *world) {
		w.settle()
		chat := w.newChat()
		top := w.newWork(chat, "")
		low, beside := w.newWork(chat, top.ID), w.newWork(chat, top.ID)
		w.commit(chat, top, low, beside)
		won := w.race(20, func(int) error {
			return w.store.Commit(w.ctx, domain.Commit{Cost: &domain.WorkCost{Path: []domain.DelegationID{low.ID, top.ID}, Nanos: 7}})
		})
		w.same("commits", won, 20)
		low.Steps, low.CostNanos = 5, 1_000_000 // what a commit says of the cost counts for nothing
		w.ok(w.store.Commit(w.ctx, domain.Commit{Rows: []domain.Row{low}, Cost: &domain.WorkCost{Path: []domain.DelegationID{low.ID, top.ID}, Nanos: 3}}))
		w.same("cost", []int64{w.work(top.ID).CostNanos, w.work(low.ID).CostNanos, w.work(beside.ID).CostNanos}, []int64{143, 143, 0})
		w.same("versions", []int64{w.work(top.ID).Version, w.work(low.ID).Version}, []int64{1, 2})
		stale := *low
		stale.Version = 1
		w.code(w.store.Commit(w.ctx, domain.Commit{Rows: []domain.Row{&stale}, Cost: &domain.WorkCost{Path: []domain.DelegationID{top.ID}, Nanos: 9}}), domain.CodeConflict)
		w.same("cost after a refused commit", w.work(top.ID).CostNanos, int64(143))
	}},
	{"a gate that has moved, or that there is not, is a conflict that changes nothing", func(w *world) {
		w.settle()
		chat := w.newChat()
		top := w.newWork(chat, "")
		low := w.newWork(chat, top.ID)
		w.commit(chat, top, low)
		w.ok(w.store.Commit(w.ctx, domain.Commit{Rows: []domain.Row{chat}, Gates: []domain.WorkGate{gateOf(low), gateOf(top)}}))
		w.same("work that was only looked at", []domain.Delegation{w.work(top.ID), w.work(low.ID)}, []domain.Delegation{*top, *low})
		seen := gateOf(top)
		top.Gate++
		w.commit(top)
		w.allOrNothing("gate that moved", func(c *domain.Commit) { c.Gates = []domain.WorkGate{gateOf(low), seen} })
		w.allOrNothing("gate of nothing", func(c *domain.Commit) { c.Gates = []domain.WorkGate{gateOf(low), {ID: "dlg_absent"}} })
		w.ok(w.store.Commit(w.ctx, domain.Commit{Rows: []domain.Row{chat}, Gates: []domain.WorkGate{gateOf(top), gateOf(low)}}))
	}},
	{"work may stand below any number of others", func(w *world) {
		w.settle()
		chat := w.newChat()
		var rows []domain.Row
		var gates []domain.WorkGate
		cost := domain.WorkCost{Nanos: 2}
		above := domain.DelegationID("")
		for range 1200 {
			g := w.newWork(chat, above)
			above = g.ID
			rows, gates, cost.Path = append(rows, g), append(gates, gateOf(g)), append(cost.Path, g.ID)
		}
		w.commit(append(rows, chat)...)
		w.same("work above", len(must[[]domain.Delegation](w)(w.store.Work(w.ctx, above))), 1200)
		w.ok(w.store.Commit(w.ctx, domain.Commit{Rows: []domain.Row{chat}, Gates: gates, Cost: &cost}))
		w.same("cost at the top", w.work(cost.Path[0]).CostNanos, int64(2))
		gates[0].Gate = 9
		w.code(w.store.Commit(w.ctx, domain.Commit{Rows: []domain.Row{chat}, Gates: gates}), domain.CodeConflict)
	}},
	{"all open work of a Chat is stopped at once, and nothing else", func(w *world) {
		w.settle()
		chat, other := w.newChat(), w.newChat()
		open, parked, ended, stopping, foreign := w.newWork(chat, ""), w.newWork(chat, ""), w.newWork(chat, ""), w.newWork(chat, ""), w.newWork(other, "")
		below := w.newWork(other, open.ID)
		open.DueAt, parked.ParkedBy = ptr(w.now), "dlg_above"
		ended.EndedAt, ended.Status = ptr(w.now), domain.DelegationCompleted
		stopping.StoppingAt, stopping.StopWhy = ptr(w.now), "before"
		w.commit(chat, other, open, parked, ended, stopping, foreign, below)
		at := w.now.Add(time.Second)
		stop := domain.Commit{At: at, StopWork: &domain.StopWork{Chat: chat.ID, Why: "enough\x00", Notice: domain.NoticeHistory}}
		failing := stop
		failing.Gates = []domain.WorkGate{{ID: "dlg_absent"}}
		w.code(w.store.Commit(w.ctx, failing), domain.CodeConflict)
		w.same("work after a refused stop", w.work(open.ID), *open)
		w.ok(w.store.Commit(w.ctx, stop))
		for _, g := range []*domain.Delegation{open, parked} {
			g.StoppingAt, g.ClosingDueAt, g.StopWhy, g.Notice, g.UpdatedAt = ptr(at), ptr(at), "enough\uFFFD", domain.NoticeHistory, at
			g.DueAt, g.ParkedBy = nil, ""
			g.Gate++
			g.Version++
			w.same("stopped work", w.work(g.ID), *g)
		}
		for _, g := range []*domain.Delegation{ended, stopping, foreign, below} {
			w.same("other work", w.work(g.ID), *g)
		}
	}},
	{"open work below that has none below itself is found, by ID and by pages", func(w *world) {
		w.settle()
		chat := w.newChat()
		top, elsewhere := w.newWork(chat, ""), w.newWork(chat, "")
		a, b, foreign := w.newWork(chat, top.ID), w.newWork(chat, top.ID), w.newWork(chat, elsewhere.ID)
		a1, a2, b1 := w.newWork(chat, a.ID), w.newWork(chat, a.ID), w.newWork(chat, b.ID)
		b1.EndedAt = ptr(w.now)
		w.commit(chat, top, elsewhere, a, b, foreign, a1, a2, b1)
		below := func(id, after domain.DelegationID, limit int) []domain.DelegationID {
			w.Helper()
			return must[[]domain.DelegationID](w)(w.store.OpenBelow(w.ctx, id, after, limit))
		}
		w.same("leaves", below(top.ID, "", 9), []domain.DelegationID{b.ID, a1.ID, a2.ID})
		w.same("a page", below(top.ID, b.ID, 1), []domain.DelegationID{a1.ID})
		w.same("below a leaf", len(below(a1.ID, "", 9)), 0)
		w.same("below nothing", len(below("", "", 9)), 0)
		for _, g := range []*domain.Delegation{a1, a2} {
			g.EndedAt = ptr(w.now)
			w.commit(g)
		}
		w.same("leaves after some ended", below(top.ID, "", 9), []domain.DelegationID{a.ID, b.ID})
	}},
	{"a Chat is told of ended work that it was not told of yet, oldest first", func(w *world) {
		w.settle()
		chat, other := w.newChat(), w.newChat()
		a, b, told, open, foreign := w.newWork(chat, ""), w.newWork(chat, ""), w.newWork(chat, ""), w.newWork(chat, ""), w.newWork(other, "")
		for i, g := range []*domain.Delegation{a, b, told, foreign} {
			g.EndedAt = ptr(w.now)
			if g != told {
				g.NoticeDueAt = ptr(w.now.Add(time.Duration(-i) * time.Second))
			}
		}
		w.commit(chat, other, a, b, told, open, foreign)
		w.same("untold", ids(must[[]domain.Delegation](w)(w.store.Untold(w.ctx, chat.ID, 9))), []string{string(a.ID), string(b.ID)})
		w.same("one", ids(must[[]domain.Delegation](w)(w.store.Untold(w.ctx, chat.ID, 1))), []string{string(a.ID)})
	}},
	{"the end of work sees its Chat, newest Turn, path, inbox and all that is open", func(w *world) {
		w.settle()
		from := w.newChat()
		top := w.newWork(from, "")
		g := w.newWork(from, top.ID)
		chat := w.taskChat(g)
		turn := w.newTurn(chat)
		chat.LastTurn = turn.ID
		input := w.newInput(chat)
		w.ok(w.store.Commit(w.ctx, domain.Commit{Rows: []domain.Row{from, top, g, chat, turn}, Inputs: []domain.Input{input}}))
		above := *top
		above.Task, above.Reason = "", ""
		want := domain.WorkFacts{Chat: *chat, Turn: *turn, Work: []domain.Delegation{*g, above}, Inbox: []domain.Input{input}}
		facts := func() domain.WorkFacts { return must[domain.WorkFacts](w)(w.store.WorkFacts(w.ctx, chat.ID)) }
		w.same("nothing is open", facts(), want)

		round := w.newWork(from, g.ID) // that a person started further down
		given, ended, untold := w.newWork(chat, g.ID), w.newWork(chat, g.ID), w.newWork(chat, g.ID)
		ended.EndedAt, untold.EndedAt, untold.NoticeDueAt = ptr(w.now), ptr(w.now), ptr(w.now)
		pending, decided := w.newRequest(w.newCall(turn, 1, 0)), w.newRequest(w.newCall(turn, 1, 1))
		decided.Status = domain.RequestDenied
		work := w.newCall(turn, domain.WorkStep, 0)
		out, unknown, settled, waiting := w.newCall(turn, 1, 2), w.newCall(turn, 1, 3), w.newCall(turn, 1, 4), w.newCall(turn, 1, 5)
		out.Status, unknown.Status, settled.Status = domain.CallSending, domain.CallUnknown, domain.CallUnknown
		settled.EndedAt = ptr(w.now)
		w.commit(round, given, ended, untold, pending, decided, work, out, unknown, settled, waiting)
		want.OpenWork = domain.OpenWork{Given: 2, Untold: 1, Requests: 2, Out: 2}
		w.same("what is open", facts(), want)
		w.same("as a step sees it", must[domain.StepFacts](w)(w.store.StepFacts(w.ctx, turn.ID)).OpenWork, want.OpenWork)
		w.same("work above a step", must[domain.StepFacts](w)(w.store.StepFacts(w.ctx, turn.ID)).Work, want.Work)
		w.same("work above a call", must[domain.CallFacts](w)(w.store.CallFacts(w.ctx, waiting.ID)).Work, want.Work)

		plain := must[domain.WorkFacts](w)(w.store.WorkFacts(w.ctx, from.ID))
		w.same("a plain Chat", []any{len(plain.Work), plain.OpenWork}, []any{0, domain.OpenWork{}})
		_, err := w.store.WorkFacts(w.ctx, "chat_absent")
		w.code(err, domain.CodeNotFound)
	}},
	{"work is shown with what is above it, the Request that decides about it and what its Chat waits for", func(w *world) {
		w.settle()
		chat := w.newChat()
		turn := w.newTurn(chat)
		top := w.newWork(chat, "")
		paused, running, ended := w.newWork(chat, top.ID), w.newWork(chat, ""), w.newWork(chat, top.ID)
		paused.Status = domain.DelegationPaused
		ended.Status, ended.EndedAt = domain.DelegationCompleted, ptr(w.now)
		ask := func(g *domain.Delegation, status domain.RequestStatus, i int) *domain.Request {
			r := w.newRequest(w.newCall(turn, domain.WorkStep, i))
			r.Delegation, r.Status = g.ID, status
			return r
		}
		pending, decided, ofRunning := ask(paused, domain.RequestPending, 0), ask(paused, domain.RequestDenied, 1), ask(running, domain.RequestPending, 2)
		within := func(g *domain.Delegation, status domain.RequestStatus, i int) *domain.Request {
			r := ask(g, status, i)
			r.Delegation, r.Chat = "", g.Chat
			return r
		}
		waits, answered, ofPaused := within(running, domain.RequestPending, 3), within(running, domain.RequestAllowed, 4), within(paused, domain.RequestPending, 5)
		w.commit(chat, turn, top, paused, running, ended, pending, decided, ofRunning, waits, answered, ofPaused)
		above := *top
		above.Task, above.Reason = "", ""
		got := must[[]domain.DelegationView](w)(w.store.WorkViews(w.ctx, []domain.Delegation{*ended, *paused, *running}))
		w.same("views", got, []domain.DelegationView{{Delegation: *ended}, {Delegation: *paused, Above: []domain.Delegation{above}, Request: pending.ID}, {Delegation: *running, Waits: waits.ID}})
		w.same("none", len(must[[]domain.DelegationView](w)(w.store.WorkViews(w.ctx, nil))), 0)
	}},
}

var parking = []promise{
	{"what a pause parked is set free in batches, due, and told as tasks; nothing else is", func(w *world) {
		w.settle()
		const by, due = domain.DelegationID("dlg_1"), time.Minute
		chat := w.newChat()
		rows := []domain.Row{chat}
		var want []string
		position := 0
		park := func(parkedBy domain.DelegationID) {
			turn := w.newTurn(chat)
			turn.Status, turn.DueAt, turn.ParkedBy = domain.TurnWaiting, nil, parkedBy
			call := func(status domain.CallStatus, kind domain.CallKind) *domain.Call {
				c := w.newCall(turn, 1, position)
				position++
				c.Status, c.Kind, c.ParkedBy = status, kind, parkedBy
				return c
			}
			send, judge, program, decide := call(domain.CallAllowed, domain.CallApp), call(domain.CallChecking, domain.CallApp),
				call(domain.CallAllowed, domain.CallProgram), call(domain.CallAllowed, domain.CallDecide)
			g := w.newWork(chat, "")
			g.ParkedBy = parkedBy
			rows = append(rows, turn, send, judge, program, decide, g)
			if parkedBy != by {
				return
			}
			told := func(kind domain.TaskKind, id string, revision int64, urgency domain.Urgency) {
				want = append(want, fmt.Sprint(kind, " ", id, " ", revision, " ", urgency))
			}
			told(domain.TaskTurnStep, string(turn.ID), 2, domain.UrgencyAnswer)
			told(domain.TaskCallSend, string(send.ID), 2, domain.UrgencyAnswer)
			told(domain.TaskCallJudge, string(judge.ID), 2, domain.UrgencyJudge)
			told(domain.TaskProgramRun, string(program.ID), 2, domain.UrgencyProgram)
			told(domain.TaskCallSend, string(decide.ID), 2, domain.UrgencyJudge)
			told(domain.TaskWorkElapse, string(g.ID), w.now.Add(due).UnixMilli(), domain.UrgencyTurn)
		}
		for range 3 {
			park(by)
			park("dlg_2")
			park("")
		}
		w.commit(rows...)
		got, rounds := []string{}, 0
		for ; ; rounds++ {
			tasks := must[[]domain.Task](w)(w.store.Unpark(w.ctx, by, w.now.Add(due), 5))
			if len(tasks) == 0 {
				break
			}
			if len(tasks) > 15 {
				w.Fatalf("%d rows came at once, want at most 5 of each kind", len(tasks))
			}
			for _, task := range tasks {
				got = append(got, fmt.Sprint(task.Kind, " ", task.Subject, " ", task.Revision, " ", task.Urgency))
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		w.same("tasks", strings.Join(got, "\n"), strings.Join(want, "\n"))
		w.same("rounds", rounds, 3) // twelve calls, five at a time
		for _, row := range rows[1:] {
			switch before := row.(type) {
			case *domain.Turn:
				if before.ParkedBy == by {
					before.Status, before.Version = domain.TurnRunning, 2
					before.ParkedBy, before.DueAt = "", ptr(w.now.Add(due))
				}
				w.same("Turn", must[domain.Turn](w)(w.store.Turn(w.ctx, before.ID)), *before)
			case *domain.Delegation:
				if before.ParkedBy == by {
					before.Version, before.ParkedBy, before.DueAt = 2, "", ptr(w.now.Add(due))
				}
				w.same("work", w.work(before.ID), *before)
			case *domain.Call:
				if before.ParkedBy == by {
					before.Version, before.ParkedBy, before.DueAt = 2, "", ptr(w.now.Add(due))
				}
				w.same("call", must[map[domain.CallID]domain.Call](w)(w.store.ItemCalls(w.ctx, []domain.Item{{Call: before.ID}}))[before.ID], *before)
			}
		}
		w.same("set free by nothing", len(must[[]domain.Task](w)(w.store.Unpark(w.ctx, "", w.now, 9))), 0)
	}},
}
