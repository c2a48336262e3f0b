package engine

import (
	"encoding/json"

	"openbot/domain"
)

// workCall makes the call of a piece of work whose decision the work waits for. Its
// place among the calls of the Turn is that of the Chat's next event, which no other
// has.
func workCall(d *draft, chat *domain.Chat, kind domain.CallKind, g domain.DelegationID, member domain.MemberID, c domain.Capability, arguments json.RawMessage) (domain.Call, error) {
	sum, err := digest(arguments)
	if err != nil {
		return domain.Call{}, domain.Wrap(domain.CodeInternal, "Internal", "The arguments of a work call have no canonical form.", err)
	}
	return domain.Call{ID: newID[domain.CallID](domain.PrefixCall), Organization: chat.Organization, Member: member, Chat: chat.ID,
		Turn: chat.LastTurn, Step: domain.WorkStep, Position: int(chat.LastEvent), Name: c.Action, Kind: kind, Capability: c, Delegation: g,
		Arguments: arguments, Digest: sum, Status: domain.CallPlanned, CreatedAt: d.at, UpdatedAt: d.at}, nil
}

// askToGive makes the call that the start of work waits for, with its Request unless the
// judge is asked first.
func (e *Engine) askToGive(d *draft, w *stepWork, asked domain.Call, a domain.Attempt, verdict domain.Verdict, id domain.DelegationID) error {
	call, err := workCall(d, &w.chat, domain.CallGive, id, w.turn.Member, a.Capability, asked.Arguments)
	if err != nil {
		return err
	}
	call.Turn, call.Parent, call.Reason, call.Tool = w.turn.ID, asked.ID, asked.Reason, asked.Tool
	next, request, err := e.checkWork(d, &w.chat, w.facts.Organization.Settings, w.bot.ID, w.chain(), call, verdict)
	if err != nil {
		return err
	}
	for _, row := range d.commit.Rows {
		if g, ok := row.(*domain.Delegation); ok && g.ID == id && g.Status == domain.DelegationAuthorizing {
			g.Call = next.ID
		}
	}
	d.put(next)
	d.event(domain.EventNotice, string(id), map[string]any{"turn": w.turn.ID, "delegation": id, "status": domain.DelegationAuthorizing})
	if request != nil {
		d.request(request)
	}
	return nil
}

// checkWork moves a new work call by the outcome of its check.
func (e *Engine) checkWork(d *draft, chat *domain.Chat, s domain.Settings, bot domain.BotID, chain []domain.BotID, call domain.Call, verdict domain.Verdict) (*domain.Call, *domain.Request, error) {
	checked := domain.Checked{At: d.at, Verdict: verdict, Result: domain.TextDenied(verdict.Decided, verdict.Reason)}
	var request *domain.Request
	if verdict.Outcome == domain.OutcomeAsk {
		request = newRequest(d.at, &call, nil, chat, s, bot, chain, verdict)
		checked.Request = request.ID
	}
	next, err := domain.DecideCall(call, checked)
	return &next, request, err
}

// carryWork does what the decision about a piece of work lets happen.
func (w *callWork) carryWork() error {
	failed := func(why string) error {
		return w.move(domain.Carried{At: w.d.at, Failed: true, Result: domain.TextOwnFailed(why)})
	}
	path, err := w.e.Store.Work(w.ctx, w.f.Call.Delegation)
	if err != nil {
		return err
	}
	if len(path) == 0 {
		return failed("the work is not there any more")
	}
	if w.f.Call.Kind == domain.CallContinue {
		return w.carryContinue(path, failed)
	}
	return w.carryGive(path, failed)
}

// carryContinue lets paused work go on. The reason of the decision is what its next step
// reads first.
func (w *callWork) carryContinue(path []domain.Delegation, failed func(string) error) error {
	d, g := w.d, path[0]
	if g.Pause == nil || g.Call != w.f.Call.ID || g.Stopping() {
		return failed("the work does not wait for this any more")
	}
	next, err := domain.DecideDelegation(g, domain.Continued{At: d.at, Path: path})
	if err != nil {
		return err
	}
	d.guard(path[1:])
	d.in(&w.f.Chat)
	d.work(&next, nil)
	if r := w.f.Request; r != nil && r.Decision != nil && r.Decision.Reason != nil && *r.Decision.Reason != "" {
		in := domain.Input{ID: newID[domain.InputID](domain.PrefixInput), Kind: domain.ItemMessage, From: r.Decision.By.ID(),
			Text: *r.Decision.Reason, Topic: domain.TopicDecision, Authority: g.Authority}
		if w.f.Chat.Turn == "" {
			d.startTurn([]domain.Input{in})
		} else {
			waiting, err := w.e.Store.Inbox(w.ctx, w.f.Chat.ID)
			if err != nil {
				return err
			}
			d.enqueueFirst(in, waiting)
		}
		d.event(domain.EventMessage, string(w.f.Chat.Turn), map[string]any{"turn": w.f.Chat.Turn, "from": in.From})
	}
	if err := w.move(domain.Carried{At: d.at, Result: "The work goes on."}); err != nil {
		return err
	}
	return w.e.settleWork(w.ctx, d) // its Turn may have ended in the pause
}

// carryGive starts the work, or gives the task to work that is under way.
func (w *callWork) carryGive(path []domain.Delegation, failed func(string) error) error {
	d, g := w.d, path[0]
	in, err := readGiving(w.f.Call.Arguments)
	if err != nil {
		return failed("its arguments cannot be read")
	}
	target, err := w.e.Store.Bot(w.ctx, g.Bot)
	if err != nil {
		return err
	}
	giver, err := w.e.Store.Bot(w.ctx, w.f.Turn.Bot)
	if err != nil {
		return err
	}
	if target.ArchivedAt != nil {
		return failed("the Bot is archived")
	}
	above := w.f.Work
	if domain.HeldBy(above).Stopping != "" || domain.HeldBy(path).Stopping != "" {
		return failed("the work was stopped")
	}
	n := &newWork{e: w.e, d: d, giver: giver, chat: &w.f.Chat, path: above, member: w.f.Call.Member, authority: w.f.Turn.Authority, in: in, target: target,
		parent: domain.WorkParent{Chat: w.f.Chat.ID, Turn: w.f.Call.Turn, Call: w.f.Call.Parent}, taint: w.f.Chat.Taint}
	d.guard(above)
	d.in(&w.f.Chat)
	if g.Status != domain.DelegationAuthorizing {
		chat, err := w.e.Store.Chat(w.ctx, g.Chat)
		if err != nil {
			return err
		}
		if newest := chat.Delegation(); newest != g.ID {
			if path, err = w.e.Store.Work(w.ctx, newest); err != nil || len(path) == 0 {
				return err
			}
		}
		if chat.DeletedAt != nil || path[0].Status == domain.DelegationAuthorizing {
			return failed("the work takes no task now")
		}
		if _, _, _, err := n.place(w.ctx, path, true); err != nil {
			return err
		}
		return w.move(domain.Carried{At: d.at, Result: domain.TextTaskTaken})
	}
	chat, err := w.e.Store.Chat(w.ctx, g.Chat)
	if err != nil {
		return err
	}
	if err := d.inside(&chat, func() error { return n.begin(&g) }); err != nil {
		return err
	}
	return w.move(domain.Carried{At: d.at, Result: domain.TextWorkGiven(g.Status)})
}

// workMoved lets a piece of work follow the end of its call: what is not allowed stops
// it, or it never starts.
func (w *callWork) workMoved(c domain.Call) error {
	if c.Open() || c.Status == domain.CallSucceeded || c.Status == domain.CallCancelled {
		return nil
	}
	path, err := w.e.Store.Work(w.ctx, c.Delegation)
	if err != nil || len(path) == 0 {
		return err
	}
	g := path[0]
	decided, decision, reason := domain.DecidedBy{}, "", c.Result
	if c.Decided != nil {
		decided = *c.Decided
	}
	if by := w.answer; by != nil {
		decision, reason = by.Decision, ""
		if by.Reason != nil {
			reason = *by.Reason
		}
	}
	if c.Kind == domain.CallContinue {
		if g.Call != c.ID || g.Stopping() || !g.Open() {
			return nil
		}
		limit := c.Tool
		next, err := domain.DecideDelegation(g, domain.WorkStopping{At: w.d.at, Why: domain.TextLimitDenied(limit, decided, decision, reason), Notice: domain.NoticeInput})
		if err != nil {
			return err
		}
		w.d.work(&next, nil)
		return nil
	}
	if g.Status == domain.DelegationAuthorizing && g.Call == c.ID {
		if domain.HeldBy(path).Stopping != "" {
			return nil // it was stopped first: whoever closes it ends it as cancelled
		}
		chat, err := w.e.Store.Chat(w.ctx, g.Chat)
		if err != nil {
			return err
		}
		next, err := domain.DecideDelegation(g, domain.WorkRefused{At: w.d.at, Why: c.Result})
		if err != nil {
			return err
		}
		return w.d.inside(&chat, func() error {
			w.d.work(&next, nil)
			return nil
		})
	}
	w.d.deliver([]domain.Input{{ID: newID[domain.InputID](domain.PrefixInput), Kind: domain.ItemNotice, From: domain.FromServer,
		Text: domain.TextTaskRefused(c.Delegation, c.Result), Authority: w.f.Turn.Authority, Taint: w.d.chat.Taint}})
	return nil
}

// deliver gives input to the draft's Chat: an idle one starts a Turn.
func (d *draft) deliver(inputs []domain.Input) {
	if len(inputs) == 0 {
		return
	}
	if d.chat.Turn == "" {
		var now []domain.Input
		now, inputs = d.chat.ForOneTurn(inputs)
		d.startTurn(now)
	}
	for _, in := range inputs {
		d.enqueue(in)
	}
}
