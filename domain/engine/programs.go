package engine

import (
	"context"

	"openbot/domain"
)

// ProgramRun is one run of a program that a worker may make. What comes of it is saved
// with CommitProgram.
type ProgramRun struct {
	Source  domain.ProgramSource
	Answers []*domain.ProgramAnswer
	Earlier domain.ProgramTrace
	call    domain.CallID
	chat    domain.ChatID
	version int64
}

// Call gives the ID of the program's call, for logs.
func (r *ProgramRun) Call() domain.CallID { return r.call }

// Chat gives the ID of the program's Chat, for logs.
func (r *ProgramRun) Chat() domain.ChatID { return r.chat }

// PrepareProgram looks at a program once more and notes that it is being run. It gives
// nil when it is not wanted any more, was refused at this last look, or was run too
// often for nothing.
func (e *Engine) PrepareProgram(ctx context.Context, id domain.CallID, version int64) (*ProgramRun, error) {
	var run *ProgramRun
	var row *domain.Call
	err := e.decideCall(ctx, id, func(d *draft, f *domain.CallFacts) error {
		run, row = nil, nil
		c := f.Call
		if c.Status != domain.CallAllowed || c.Version != version || c.Kind != domain.CallProgram || c.Program == nil {
			return nil
		}
		w := e.callWork(ctx, d, f)
		if f.Turn.Status.Ended() || f.Chat.DeletedAt != nil {
			return w.endProgram(domain.CallStopped{At: d.at, Result: domain.TextCancelled()})
		}
		if held, err := w.heldUp(); held || err != nil {
			return err
		}
		d.guard(f.Work)
		switch refusal := lastLook(d.at, f).(type) {
		case nil:
		case domain.Refused:
			refusal.Result = domain.TextProgramRefused(refusal.Result, f.Children)
			return w.endProgram(refusal)
		default:
			return w.move(refusal)
		}
		if c.Program.Tries >= domain.MaxProgramTries {
			return w.endProgram(domain.Carried{At: d.at, Failed: true, Result: domain.TextProgramStuck(f.Children)})
		}
		next, err := domain.DecideCall(c, domain.ProgramStarted{At: d.at})
		if err != nil {
			return err
		}
		row = &next
		d.put(row) // alone: a run moves nothing in the Chat before its end
		run = &ProgramRun{call: c.ID, chat: c.Chat, Earlier: c.Program.Trace, Answers: answersOf(f.Children),
			Source: domain.ProgramSource{Text: domain.ProgramText(c.Arguments), Seed: c.Program.Seed, StartedAtMs: c.Program.StartedAtMs}}
		return nil
	})
	if err != nil || run == nil {
		return nil, err
	}
	run.version = row.Version
	return run, nil
}

// answersOf gives the results of a program's calls by number, nil for open ones.
func answersOf(calls []domain.Call) []*domain.ProgramAnswer {
	answers := make([]*domain.ProgramAnswer, len(calls))
	for i, c := range calls {
		if !c.Open() {
			answers[i] = &domain.ProgramAnswer{OK: c.Status == domain.CallSucceeded, Text: c.Result}
		}
	}
	return answers
}

// PushProgram says that the program is still being run. It reports false when what
// comes of it is not wanted any more.
func (e *Engine) PushProgram(ctx context.Context, r *ProgramRun) (bool, error) {
	return e.Store.PushCall(ctx, r.call, r.version, e.now().Add(domain.LeaseTime))
}

// CommitProgram saves what a run gave: the calls that it made, each with its check, or
// the end of the program. A run that is not wanted any more is dropped. A call that
// ended during the run leads to another run, so that no answer is missed.
func (e *Engine) CommitProgram(ctx context.Context, r *ProgramRun, outcome domain.ProgramOutcome) error {
	return e.decideCall(ctx, r.call, func(d *draft, f *domain.CallFacts) error {
		if f.Call.Status != domain.CallAllowed || f.Call.Version != r.version {
			return nil
		}
		w := e.callWork(ctx, d, f)
		if f.Turn.Status.Ended() || f.Chat.DeletedAt != nil {
			return w.endProgram(domain.CallStopped{At: d.at, Result: domain.TextCancelled()})
		}
		if outcome.Status != domain.ProgramWaiting {
			return w.endProgram(domain.Carried{At: d.at, Failed: outcome.Status != domain.ProgramFinished,
				Result: safeText(domain.TextProgram(outcome, f.Children))})
		}
		return w.pauseProgram(r, outcome.Trace)
	})
}

// pauseProgram saves the new calls of a program that waits.
func (w *callWork) pauseProgram(r *ProgramRun, trace domain.ProgramTrace) error {
	d, children := w.d, w.f.Children
	if len(trace.Calls) < len(children) || len(trace.Calls) > domain.MaxProgramCalls {
		return domain.Errorf(domain.CodeInternal, "ProgramConflict", "What a run gave does not fit to the calls that are saved.")
	}
	again, open := false, 0
	for i, c := range children {
		if c.Open() {
			open++
		} else if i >= len(r.Answers) || r.Answers[i] == nil {
			again = true
		}
	}
	d.in(&w.f.Chat)
	var made []*domain.Call
	var requests []*domain.Request
	if asked := trace.Calls[len(children):]; len(asked) > 0 {
		var err error
		if made, requests, err = w.planProgramCalls(asked); err != nil {
			return err
		}
	}
	for _, c := range made {
		if c.Open() {
			open++
		} else {
			again = true
		}
	}
	if !again && open == 0 {
		outcome := domain.ProgramOutcome{Status: domain.ProgramFailed, Message: "The program failed: it awaits something that can never come."}
		return w.endProgram(domain.Carried{At: d.at, Failed: true, Result: domain.TextProgram(outcome, children)})
	}
	next, err := domain.DecideCall(w.f.Call, domain.ProgramPaused{At: d.at, Trace: trace, Again: again})
	if err != nil {
		return err
	}
	moved := []domain.Call{next}
	for _, c := range made {
		d.item(domain.Item{Turn: c.Turn, Step: c.Step, Kind: domain.ItemToolCall, From: string(w.f.Turn.Bot), Text: c.Name, Call: c.ID})
		moved = append(moved, *c)
	}
	for _, c := range made {
		d.call(c)
	}
	for _, request := range requests {
		d.request(request)
	}
	d.call(&next)
	return w.follow(moved...)
}

// planProgramCalls checks calls that a program asks for as those that a model asks for.
func (w *callWork) planProgramCalls(asked []domain.ProgramAsked) ([]*domain.Call, []*domain.Request, error) {
	facts, err := w.e.Store.StepFacts(w.ctx, w.f.Turn.ID)
	if err != nil {
		return nil, nil, err
	}
	step := &stepWork{facts: &facts, box: w.e.toolboxFor(&facts), chat: facts.Chat, turn: facts.Turn, bot: facts.Bot,
		step: w.f.Call.Step, program: &w.f.Call}
	var requests []*domain.Request
	made := make([]*domain.Call, len(asked))
	for i, a := range asked {
		call, request, err := w.e.planProgramCall(w.ctx, w.d, step, a)
		if err != nil {
			return nil, nil, err
		}
		made[i] = call
		if request != nil {
			requests = append(requests, request)
		}
	}
	return made, requests, nil
}

func (e *Engine) planProgramCall(ctx context.Context, d *draft, w *stepWork, asked domain.ProgramAsked) (*domain.Call, *domain.Request, error) {
	position := asked.Position
	call := w.newCall(d, domain.ProgramPlace(w.program.Position, position.Index), "")
	call.Parent, call.Code = w.program.ID, &position
	t, problem := w.appTool(asked)
	if problem != "" {
		call.Name, call.Arguments = safeText(cut(asked.Connection, 60)+"/"+cut(asked.Tool, 100)), quoted(asked.Arguments)
		return ran(d, call, true, problem)
	}
	call.Name = t.shown.Name
	return e.planTool(ctx, d, w, call, t, asked.Arguments, asked.Reason)
}

// appTool finds the tool of an App that a program names by the App's own name for it.
// The Connection is named by its ID or by a name that no other has.
func (w *stepWork) appTool(asked domain.ProgramAsked) (t tool, problem string) {
	found := visibleConnection(w.facts.Connections, domain.ConnectionID(asked.Connection))
	if found == nil {
		for i := range w.facts.Connections {
			c := &w.facts.Connections[i]
			if c.Name != asked.Connection {
				continue
			}
			if found != nil {
				return tool{}, domain.TextBadArguments("more than one connection is named " + cut(asked.Connection, 60) + "; use its ID")
			}
			found = c
		}
	}
	if found == nil {
		return tool{}, domain.TextBadArguments("there is no connection " + cut(asked.Connection, 60))
	}
	for _, t := range w.box.byName {
		if t.kind == domain.CallApp && t.connection.ID == found.ID && t.name == asked.Tool {
			return t, ""
		}
	}
	return tool{}, domain.TextNoTool(cut(asked.Tool, 100))
}

// wake lets a program that waits run again because one of its calls has ended. It
// gives nil when there is nothing to wake: a program that runs sees the end when it
// commits.
func (w *callWork) wake(ended domain.Call) (*domain.Call, error) {
	p := w.f.Parent
	if ended.Open() || p == nil || !p.Open() || p.Status != domain.CallWaiting {
		return nil, nil
	}
	next, err := domain.DecideCall(*p, domain.ProgramWoken{At: w.d.at})
	if err != nil {
		return nil, err
	}
	w.d.call(&next)
	return &next, nil
}

// endProgram ends a program. Calls that it left open are cancelled with their Requests,
// as in a Turn that is stopped; one that is out keeps its result, and the Turn waits
// for that.
func (w *callWork) endProgram(ev domain.CallEvent) error {
	d := w.d
	next, err := domain.DecideCall(w.f.Call, ev)
	if err != nil {
		return err
	}
	if d.chat != &w.f.Chat {
		d.in(&w.f.Chat)
	}
	moved := []domain.Call{next}
	for _, open := range w.f.Children {
		if !open.Open() || open.Status == domain.CallSending || open.Status == domain.CallUnknown {
			continue
		}
		c, err := domain.DecideCall(open, domain.CallStopped{At: d.at, Result: domain.TextStopped(open)})
		if err != nil {
			return err
		}
		if open.Status == domain.CallWaiting {
			if err := w.cancelRequest(open.Request); err != nil {
				return err
			}
		}
		d.call(&c)
		moved = append(moved, c)
	}
	d.call(&next)
	return w.follow(moved...)
}

// cancelRequest closes a pending Request with the call that waits for it.
func (w *callWork) cancelRequest(id domain.RequestID) error {
	r, err := w.e.Store.Request(w.ctx, id)
	if err != nil {
		return err
	}
	if r.Status != domain.RequestPending {
		return errMoved
	}
	next, _, err := domain.DecideRequest(r, domain.RequestCancelledEvent{At: w.d.at})
	if err != nil {
		return err
	}
	if next.Review != "" {
		if err := w.e.closeReview(w.ctx, w.d, next.Review); err != nil {
			return err
		}
	}
	w.d.request(&next)
	return nil
}
