package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"openbot/domain"
)

// Step is one model step that a worker may take.
type Step struct {
	Request  domain.ModelRequest
	facts    domain.StepFacts
	read     []domain.Input // of the inbox: what the model got to see
	box      *toolbox
	loadedAt time.Time
}

// Turn gives the ID of the step's Turn.
func (s *Step) Turn() domain.TurnID { return s.facts.Turn.ID }

// Chat gives the ID of the step's Chat, for logs.
func (s *Step) Chat() domain.ChatID { return s.facts.Chat.ID }

// freshFor is how long what was loaded before a model call is good enough to
// decide on after it. The versions fence the Chat; this bounds how old settings,
// rights and Grants may be, which the last look before a call goes out sees again.
const freshFor = 250 * time.Millisecond

// PrepareStep loads a Turn for its next model step. It gives nil when the step is
// not wanted any more: the Turn moved on, waits, or ended.
func (e *Engine) PrepareStep(ctx context.Context, id domain.TurnID, version int64) (*Step, error) {
	facts, err := e.Store.StepFacts(ctx, id)
	if domain.IsCode(err, domain.CodeNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	now := e.now()
	if facts.Turn.Version != version || !e.stepWanted(&facts) {
		return nil, nil
	}
	if facts.Turn.Tries > 0 && facts.Turn.DueAt != nil && domain.Before(now, *facts.Turn.DueAt) {
		return nil, nil // rung early; the timer or the sweep comes back
	}
	if err := e.addRights(ctx, &facts, facts.Inbox); err != nil {
		return nil, err
	}
	box := e.toolboxFor(&facts)
	step := &Step{Request: e.modelRequest(&facts, box), facts: facts, read: facts.Inbox, box: box, loadedAt: now}
	if facts.Bot.ArchivedAt != nil {
		return nil, e.FailStep(ctx, step, &domain.ModelError{Message: "The Bot is archived."})
	}
	return step, nil
}

// addRights adds the rights behind input that this step reads, so that it narrows
// the calls of the same step. Rights that cannot be loaded are an error: leaving
// them out would widen what the Turn may do.
func (e *Engine) addRights(ctx context.Context, f *domain.StepFacts, read []domain.Input) error {
	all := f.Turn.Authority
	for _, in := range read {
		all = domain.AddAuthority(all, in.Authority...)
	}
	for _, a := range all[len(f.Turn.Authority):] {
		member, err := e.Store.Member(ctx, a.Member)
		if err != nil {
			return err
		}
		token, err := e.Store.Token(ctx, a.Token)
		if err != nil {
			return err
		}
		f.Rights = append(f.Rights, domain.Rights{Member: member, Token: token})
	}
	return nil
}

func (e *Engine) stepWanted(f *domain.StepFacts) bool {
	return f.Turn.StepDue() && f.Chat.Turn == f.Turn.ID && f.Chat.DeletedAt == nil
}

// PushStep says that the model call is still under way. It reports false when the
// step is not wanted any more.
func (e *Engine) PushStep(ctx context.Context, s *Step) (bool, error) {
	return e.Store.PushTurn(ctx, s.facts.Turn.ID, s.facts.Turn.Version, e.now().Add(domain.LeaseTime))
}

// stepWork is one decision about a step: what was loaded, and what it changes.
type stepWork struct {
	facts      *domain.StepFacts
	box        *toolbox
	chat       domain.Chat
	turn       domain.Turn
	bot        domain.Bot
	botChanged bool
	step       int
	read       []domain.Input
	program    *domain.Call // the program that makes the calls; nil when the model does
}

func (s *Step) work() *stepWork {
	return &stepWork{facts: &s.facts, box: s.box, chat: s.facts.Chat, turn: s.facts.Turn, bot: s.facts.Bot,
		step: s.facts.Turn.Steps + 1, read: s.read}
}

// unread is the input that came after the model had read the inbox. It is complete
// whenever the commit goes through: input moves the version of the Chat.
func (w *stepWork) unread() []domain.Input { return w.facts.Inbox[len(w.read):] }

// CommitStep saves what a model answered: its text, its calls with the check of
// each, and where the Turn goes from there. A step that is not wanted any more is
// dropped.
func (e *Engine) CommitStep(ctx context.Context, s *Step, reply domain.ModelReply) error {
	reply.Text = safeText(reply.Text)
	first := e.now().Sub(s.loadedAt) <= freshFor
	return e.decide(ctx, string(s.facts.Chat.ID), func(d *draft) error {
		if !first {
			if wanted, err := e.reload(ctx, s); err != nil || !wanted {
				return err
			}
		}
		first = false
		return e.planStep(ctx, d, s.work(), s.Request.Model, reply)
	})
}

// reload loads the step's facts again and reports whether the step is still
// wanted. Input that came meanwhile stays in the inbox for the next step: the model
// has not read it.
func (e *Engine) reload(ctx context.Context, s *Step) (bool, error) {
	facts, err := e.Store.StepFacts(ctx, s.facts.Turn.ID)
	if err != nil {
		return false, err
	}
	if facts.Turn.Version != s.facts.Turn.Version || !e.stepWanted(&facts) {
		return false, nil
	}
	if len(facts.Inbox) < len(s.read) {
		return false, nil // taken meanwhile: the Turn was read before that
	}
	if err := e.addRights(ctx, &facts, s.read); err != nil {
		return false, err
	}
	s.facts = facts
	s.box = e.toolboxFor(&s.facts)
	s.loadedAt = e.now()
	return true, nil
}

func (e *Engine) planStep(ctx context.Context, d *draft, w *stepWork, model string, reply domain.ModelReply) error {
	d.in(&w.chat)
	w.takeInbox(d)
	before := w.turn.Status
	cost := e.cost(w.facts, model, reply.Usage)
	if reply.Text != "" || len(reply.Calls) == 0 {
		d.item(domain.Item{Turn: w.turn.ID, Step: w.step, Kind: domain.ItemAnswer, From: string(w.bot.ID), Text: reply.Text})
	}
	if len(reply.Calls) == 0 {
		next, err := domain.DecideTurn(w.turn, domain.StepWithText{At: d.at, Text: reply.Text, MoreInput: len(w.unread()) > 0, Usage: reply.Usage, Cost: cost})
		if err != nil {
			return err
		}
		d.turn(before, &next)
		return e.reviewOver(ctx, d, &w.chat)
	}
	if w.chat.Kind == domain.ChatReview && w.step > e.ReviewSteps {
		return e.planFailure(ctx, d, w, reply.Usage, cost, fmt.Sprintf("The review took %d steps without a decision.", e.ReviewSteps))
	}
	if len(reply.Calls) > domain.MaxStepCalls {
		return e.planFailure(ctx, d, w, reply.Usage, cost, fmt.Sprintf("The model asked for %d calls in one step; at most %d are taken.", len(reply.Calls), domain.MaxStepCalls))
	}
	calls := make([]*domain.Call, len(reply.Calls))
	requests := make([]*domain.Request, 0, len(reply.Calls))
	runnable, settled := 0, 0
	for i, asked := range reply.Calls {
		call, request, err := e.planCall(ctx, d, w, i, asked)
		if err != nil {
			return err
		}
		calls[i] = call
		if request != nil {
			requests = append(requests, request)
		}
		if !call.Open() {
			settled++
		} else if call.Runnable() {
			runnable++
		}
	}
	next, err := domain.DecideTurn(w.turn, domain.StepWithCalls{At: d.at, Calls: len(calls), Runnable: runnable, Settled: settled, Usage: reply.Usage, Cost: cost})
	if err != nil {
		return err
	}
	if next.Status == domain.TurnFailed {
		return e.planFailure(ctx, d, w, reply.Usage, cost, next.Error)
	}
	for _, c := range calls {
		d.item(domain.Item{Turn: w.turn.ID, Step: w.step, Kind: domain.ItemToolCall, From: string(w.bot.ID), Text: c.Name, Call: c.ID})
	}
	for _, c := range calls {
		d.call(c)
	}
	for _, r := range requests {
		d.request(r)
	}
	if w.botChanged {
		w.bot.UpdatedAt = d.at
		d.put(&w.bot)
	}
	d.turn(before, &next)
	return nil
}

// takeInbox moves the input that the model has read into the history.
func (w *stepWork) takeInbox(d *draft) {
	for _, in := range w.read {
		d.commit.Taken = append(d.commit.Taken, in.ID)
		d.item(domain.Item{Turn: w.turn.ID, Kind: in.Kind, From: in.From, Text: in.Text})
		w.turn.Authority = domain.AddAuthority(w.turn.Authority, in.Authority...)
	}
}

// cost prices a step: the organization's price first, then the shipped table; a
// model without a price costs 0.
func (e *Engine) cost(f *domain.StepFacts, model string, usage domain.ModelUsage) int64 {
	price, ok := f.Organization.Settings.Price(model)
	if !ok {
		if price, ok = e.Models.Price(model); !ok {
			return 0
		}
	}
	return price.CostNanos(usage)
}

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
		request = newRequest(d.at, &call, w.program, &w.chat, w.facts.Organization.Settings, w.bot.ID, w.chain(), verdict.Approver)
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

// newRequest makes the Request about a call. One that a program makes shows the
// program; a plan shows itself, with the time and the end that a person set for it.
func newRequest(at time.Time, c, program *domain.Call, chat *domain.Chat, s domain.Settings, bot domain.BotID, chain []domain.BotID, approver domain.Actor) *domain.Request {
	r := &domain.Request{ID: newID[domain.RequestID](domain.PrefixRequest), Organization: c.Organization, Member: c.Member,
		Bot: bot, Capability: c.Capability, Reason: c.Reason, Approver: approver, Chain: chain, Chat: c.Chat, Turn: c.Turn, Call: c.ID,
		Code: domain.ShownCode(*c, program), Arguments: c.Arguments, Endorsements: []domain.Endorsement{}, Tags: []string{}, Status: domain.RequestPending,
		CreatedAt: at, UpdatedAt: at, ExpiresAt: at.Add(s.RequestTimeout())}
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
	if approver.Tag == domain.TagBot {
		due := at.Add(domain.RunnableGrace)
		r.ReviewDueAt = &due
	}
	return r
}

// FailStep saves that a model call gave no reply: it is tried again later, or the
// Turn fails with the reason. A step that is not wanted any more is dropped.
func (e *Engine) FailStep(ctx context.Context, s *Step, failure *domain.ModelError) error {
	return e.decide(ctx, string(s.facts.Chat.ID), func(d *draft) error {
		if wanted, err := e.reload(ctx, s); err != nil || !wanted {
			return err
		}
		w := s.work()
		before := w.turn.Status
		next, err := domain.DecideTurn(w.turn, domain.ModelFailed{At: d.at, Temporary: failure.Temporary, Message: safeText(failure.Message)})
		if err != nil {
			return err
		}
		d.in(&w.chat)
		if next.Status.Ended() {
			w.takeInbox(d)
		}
		d.turn(before, &next)
		if next.Status.Ended() {
			d.startNext(w.unread())
			return e.reviewOver(ctx, d, &w.chat)
		}
		return nil
	})
}

// planFailure ends a Turn whose step cannot be taken. The model call is paid for
// all the same.
func (e *Engine) planFailure(ctx context.Context, d *draft, w *stepWork, usage domain.ModelUsage, cost int64, why string) error {
	before := w.turn.Status
	next, err := domain.DecideTurn(w.turn, domain.ModelFailed{At: d.at, Message: why, Usage: usage, Cost: cost})
	if err != nil {
		return err
	}
	d.turn(before, &next)
	d.startNext(w.unread())
	return e.reviewOver(ctx, d, &w.chat)
}

// safeText makes a text of a model or App fit for a row.
func safeText(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return string([]rune(text))
}

// quoted gives what a model wrote as JSON whatever it is.
func quoted(raw json.RawMessage) json.RawMessage {
	if json.Valid(raw) && len(raw) <= maxArguments && utf8.Valid(raw) {
		return raw
	}
	text, err := json.Marshal(cut(string(raw), maxArguments/8))
	if err != nil {
		return json.RawMessage(`""`)
	}
	return text
}

// cut shortens a text to at most n bytes on a rune boundary.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}
