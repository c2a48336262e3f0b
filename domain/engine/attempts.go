package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"openbot/domain"
)

// planCall saves one call that the model asked for, checks it, and gives the
// Request that it makes, if it makes one.
func (e *Engine) planCall(ctx context.Context, d *draft, w *stepWork, position int, asked domain.ModelCall) (*domain.Call, *domain.Request, error) {
	call := w.newCall(d, position, safeText(asked.Name))
	call.ModelID = asked.ID
	t, ok := w.box.byName[asked.Name]
	if !ok {
		call.Arguments = quoted(asked.Arguments)
		return ran(d, call, true, domain.TextNoTool(cut(call.Name, 100)))
	}
	return e.planTool(ctx, d, w, call, t, asked.Arguments, "")
}

func (w *stepWork) newCall(d *draft, position int, name string) domain.Call {
	return domain.Call{ID: newID[domain.CallID](domain.PrefixCall), Organization: w.chat.Organization, Member: w.turn.Member,
		Chat: w.chat.ID, Turn: w.turn.ID, Step: w.step, Position: position, Name: name,
		Kind: domain.CallBuiltin, Arguments: json.RawMessage("{}"), Status: domain.CallPlanned, CreatedAt: d.at, UpdatedAt: d.at}
}

// ran ends a call in the commit that saves it.
func ran(d *draft, call domain.Call, failed bool, text string) (*domain.Call, *domain.Request, error) {
	next, err := domain.DecideCall(call, domain.Ran{At: d.at, Failed: failed, Result: text})
	return &next, nil, err
}

// planTool checks a call of a tool, whoever asked for it. reason stands in place of
// one in the arguments.
func (e *Engine) planTool(ctx context.Context, d *draft, w *stepWork, call domain.Call, t tool, given json.RawMessage, reason string) (*domain.Call, *domain.Request, error) {
	ran := func(failed bool, text string) (*domain.Call, *domain.Request, error) {
		return ran(d, call, failed, text)
	}
	arguments, within, err := splitArguments(given, t.hasReason)
	if err != nil {
		call.Arguments = quoted(given)
		return ran(true, domain.TextBadArguments(err.Error()))
	}
	call.Kind, call.Tool, call.Arguments, call.Reason = t.kind, t.name, arguments, safeText(cut(cmp.Or(reason, within), domain.MaxReason))
	if err := t.fits(arguments); err != nil {
		return ran(true, domain.TextBadArguments(err.Error()))
	}
	if call.Digest, err = digest(arguments); err != nil {
		return ran(true, domain.TextBadArguments("they have no canonical form"))
	}
	if t.builtin.give != nil {
		next, err := t.builtin.give(ctx, e, d, w, &call)
		var failure *domain.Error
		if errors.As(err, &failure) {
			return nil, nil, err
		}
		if err != nil {
			return ran(true, domain.TextBadArguments(err.Error()))
		}
		return &next, nil, nil
	}
	if t.builtin.run != nil {
		a := domain.Attempt{At: d.at, Bot: w.bot.ID, Member: w.turn.Member, Chat: w.chat.ID, Rights: w.facts.Rights,
			Visible: true, Exempt: "tools of OpenBot itself"}
		if t.builtin.writes && w.chat.Mode == domain.ModePlan {
			a.Planning, a.Exempt = true, ""
		}
		stands := domain.Check(a)
		if stands.Outcome != domain.OutcomeAllow {
			next, err := domain.DecideCall(call, domain.Checked{At: d.at, Verdict: stands, Result: domain.TextDenied(stands.Decided, stands.Reason)})
			return &next, nil, err
		}
		text, err := t.builtin.run(ctx, e, w, arguments)
		var failure *domain.Error
		if errors.As(err, &failure) {
			return nil, nil, err
		}
		if err != nil {
			return ran(true, domain.TextBadArguments(err.Error()))
		}
		return ran(false, text)
	}
	attempt, problem, err := e.attempt(ctx, d.at, &call, t, w)
	if err != nil {
		return nil, nil, err
	}
	if problem != "" {
		return ran(true, problem)
	}
	verdict := domain.Check(attempt)
	checked := domain.Checked{At: d.at, Verdict: verdict, Result: domain.TextDenied(verdict.Decided, verdict.Reason)}
	var request *domain.Request
	if verdict.Outcome == domain.OutcomeAsk {
		request = newRequest(d.at, &call, w.program, &w.chat, w.facts.Organization.Settings, w.bot.ID, w.chain(), verdict)
		checked.Request = request.ID
	}
	next, err := domain.DecideCall(call, checked)
	return &next, request, err
}

// attempt names the capability of a call and gathers what its check reads.
func (e *Engine) attempt(ctx context.Context, at time.Time, call *domain.Call, t tool, w *stepWork) (a domain.Attempt, problem string, err error) {
	a = domain.Attempt{At: at, Bot: w.bot.ID, Member: w.turn.Member, Chat: w.chat.ID, Rights: w.facts.Rights, Grants: w.facts.Grants,
		Planning: w.chat.Mode == domain.ModePlan, Rules: w.facts.Rules, Deciders: domain.Deciders(w.chain())}
	settings := w.facts.Organization.Settings
	switch t.kind {
	case domain.CallApp:
		call.Connection, call.Revision = t.connection.ID, t.connection.Revision
		call.Capability = domain.Capability{Action: domain.ActionAppsCall, Target: string(t.connection.ID) + "/" + t.name}
		a.Visible = t.connection.VisibleTo(w.turn.Member)
	case domain.CallHost:
		call.Revision = t.host.Revision
		call.Capability = domain.Capability{Action: domain.ActionToolsCall, Target: t.name}
		a.Visible = t.host.DeletedAt == nil
	case domain.CallResource, domain.CallPrompt:
		var in struct{ Connection domain.ConnectionID }
		if err := json.Unmarshal(call.Arguments, &in); err != nil {
			return a, domain.TextBadArguments("connection must be a text"), nil
		}
		c := visibleConnection(w.facts.Connections, in.Connection)
		if c == nil {
			return a, domain.TextBadArguments("there is no connection " + cut(string(in.Connection), 60)), nil
		}
		call.Connection, call.Revision = c.ID, c.Revision
		a.Visible = true
	case domain.CallOwn:
		capability, err := t.builtin.own.names(ctx, e, w, call.Arguments)
		var failure *domain.Error
		switch {
		case errors.Is(err, errNoPlanMode):
			return a, domain.TextNoPlanMode(), nil
		case errors.As(err, &failure):
			return a, "", err
		case err != nil:
			return a, domain.TextBadArguments(err.Error()), nil
		}
		call.Capability, call.Reason = capability, reasonIn(call.Arguments)
		a.Visible = true
	case domain.CallDecide:
		a.Visible = true
	case domain.CallProgram:
		if len(domain.ProgramText(call.Arguments)) > domain.MaxProgram {
			return a, domain.TextBadArguments(fmt.Sprintf("the program has more than %d bytes", domain.MaxProgram)), nil
		}
		call.Program = &domain.ProgramState{Seed: newSeed(), StartedAtMs: at.UnixMilli()}
		a.Visible = true
	}
	a.Capability, a.Revision = call.Capability, call.Revision
	a.Exempt = exemption(settings, *call, t.host)
	a.Caution = caution(settings, *call, t.connection, t.host, w.chat.Taint)
	call.Repeatable = repeatable(settings, *call, t.host)
	return a, "", nil
}

// errNoPlanMode is a plan that nobody asked for.
var errNoPlanMode = errors.New("the Chat is not in plan mode")

// reasonIn gives the reason that stands in the arguments of OpenBot's own tools.
func reasonIn(arguments json.RawMessage) string {
	var in struct{ Reason string }
	if json.Unmarshal(arguments, &in) != nil {
		return ""
	}
	return safeText(cut(in.Reason, domain.MaxReason))
}

// chain is the owner chain of the step's Bot.
func (w *stepWork) chain() []domain.BotID {
	return domain.OwnerChain(w.bot, w.facts.MainBot, w.facts.Owners)
}

// exemption says why a call needs no decision, or "".
func exemption(s domain.Settings, c domain.Call, host *domain.HostTool) string {
	switch c.Kind {
	case domain.CallResource, domain.CallPrompt:
		return "reads of Apps"
	case domain.CallDecide:
		return "the review of a Request"
	case domain.CallProgram:
		return "programs are checked call by call"
	case domain.CallHost:
		if host != nil && !host.Approval {
			return "approval: none"
		}
	case domain.CallApp:
		for _, pattern := range s.AppReadRules {
			if domain.Match(pattern, c.Capability.Target) {
				return pattern
			}
		}
	}
	return ""
}

// repeatable says whether a call may go out again by itself.
func repeatable(s domain.Settings, c domain.Call, host *domain.HostTool) bool {
	switch c.Kind {
	case domain.CallResource, domain.CallPrompt:
		return true
	case domain.CallHost:
		return host != nil && host.RepeatSafe
	case domain.CallApp:
		return s.IsRepeatSafe(c.Capability.Target)
	}
	return false
}

func visibleConnection(list []domain.Connection, id domain.ConnectionID) *domain.Connection {
	for i := range list {
		if list[i].ID == id {
			return &list[i]
		}
	}
	return nil
}

// asked is the tool call that wanted what a work call waits for, or "".
func asked(c domain.Call) domain.CallID {
	if c.Kind == domain.CallGive {
		return c.Parent
	}
	return ""
}

// newRequest makes the Request about a call. One that a program makes shows the
// program; a plan shows itself, with the time and the end that a person set for it.
func newRequest(at time.Time, c, program *domain.Call, chat *domain.Chat, s domain.Settings, bot domain.BotID, chain []domain.BotID, v domain.Verdict) *domain.Request {
	r := &domain.Request{ID: newID[domain.RequestID](domain.PrefixRequest), Organization: c.Organization, Member: c.Member,
		Bot: bot, Capability: c.Capability, Reason: c.Reason, Approver: v.Approver, Chain: chain, Chat: c.Chat, Turn: c.Turn, Call: c.ID,
		Asked: asked(*c), Delegation: c.Delegation, Code: domain.ShownCode(*c, program), Arguments: c.Arguments, Endorsements: []domain.Endorsement{}, Status: domain.RequestPending,
		CreatedAt: at, UpdatedAt: at, ExpiresAt: at.Add(s.RequestTimeout())}
	explain(r, s, *c, v.Caution)
	if s.Reviewer.Enabled {
		due := at.Add(domain.RunnableGrace)
		r.VerdictDueAt = &due
	}
	if c.Kind == domain.CallContinue {
		r.Limit = c.Tool
	}
	if c.Kind == domain.CallApp {
		r.App = &domain.SavedCall{Connection: c.Connection, Revision: c.Revision, Tool: c.Tool, SHA256: c.Digest}
	}
	if c.Capability.Action == domain.ActionPlansRun {
		var in struct{ Plan string }
		if json.Unmarshal(c.Arguments, &in) == nil {
			r.Plan = in.Plan
		}
		r.OnExpire = chat.Plan.OnExpire
		if ms := chat.Plan.TimeoutMs; ms > 0 {
			r.ExpiresAt = at.Add(time.Duration(ms) * time.Millisecond)
		}
	}
	if v.Approver.Tag == domain.TagBot {
		due := at.Add(domain.RunnableGrace)
		r.ReviewDueAt = &due
	}
	followed := r.FollowedUp(s)
	return &followed
}
