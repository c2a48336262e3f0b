package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"openbot/domain"
)

const delegateSchema = `{"type":"object","properties":{` +
	`"task":{"type":"string","minLength":1,"maxLength":262144,"description":"What to do, with everything that the work needs. The other Bot does not see this Chat."},` +
	`"limits":{"type":"object","properties":{"timeMs":{"type":"integer","minimum":1000,"maximum":2592000000,"description":"Running time in milliseconds."},` +
	`"steps":{"type":"integer","minimum":1,"maximum":1000000000,"description":"Model steps."},` +
	`"budgetMicros":{"type":"integer","minimum":1,"maximum":1000000000000000,"description":"Cost of the work and of all work below it, in micro-USD."}},"required":["timeMs"],"additionalProperties":false},` +
	`"bot":{"type":"string","description":"The ID of the Bot that does the work. Left out: a helper like you, with no history."},` +
	`"reason":{"type":"string","minLength":1,"maxLength":4000,"description":"Why you give this work. Required for a Bot that you do not own."},` +
	`"delegation":{"type":"string","description":"The ID of earlier work of this Chat that the task goes on with."}},` +
	`"required":["task","limits"],"additionalProperties":false}`

// workTools are the tools for work that is given away.
func workTools() []builtin {
	delegate := define("openbot_delegate", "Gives a task to a Bot, or to yourself. It returns at once; the result comes back to this Chat as a message.",
		delegateSchema, domain.CallOwn, nil)
	delegate.give = delegateWork
	cancel := define("openbot_cancel_delegation", "Stops work that this Chat gave away, with all work below it.",
		`{"type":"object","properties":{"delegation":{"type":"string"},"reason":{"type":"string","maxLength":4000}},"required":["delegation"],"additionalProperties":false}`,
		domain.CallBuiltin, cancelGiven)
	cancel.writes = true
	return []builtin{delegate, cancel}
}

// giving is the arguments of openbot_delegate.
type giving struct {
	Task       string
	Limits     domain.Limits
	Bot        domain.BotID
	Reason     string
	Delegation domain.DelegationID
}

func readGiving(arguments json.RawMessage) (giving, error) {
	var in giving
	if err := json.Unmarshal(arguments, &in); err != nil {
		return in, err
	}
	in.Task, in.Reason = safeText(in.Task), safeText(cut(in.Reason, domain.MaxReason))
	if strings.TrimSpace(in.Task) == "" {
		return in, fmt.Errorf("task must not be empty")
	}
	if len(in.Task) > domain.MaxTask {
		return in, fmt.Errorf("task must have at most %d bytes", domain.MaxTask)
	}
	if faults := in.Limits.Faults("limits"); len(faults) > 0 {
		return in, fmt.Errorf("%s %s", faults[0].Path, faults[0].Message)
	}
	return in, nil
}

// delegateWork carries openbot_delegate out in the commit of the step: the work starts,
// or it waits for the decision whether it may be given. A plain error is for the model
// and nothing is created.
func delegateWork(ctx context.Context, e *Engine, d *draft, w *stepWork, call *domain.Call) (domain.Call, error) {
	in, err := readGiving(call.Arguments)
	if err != nil {
		return *call, err
	}
	var earlier []domain.Delegation
	if in.Delegation != "" {
		if earlier, err = e.earlierWork(ctx, w, in); err != nil {
			return *call, err
		}
		in.Bot = earlier[0].Bot
	}
	target, free, err := e.workTarget(ctx, w, in.Bot)
	if err != nil {
		return *call, err
	}
	if free == "" && strings.TrimSpace(in.Reason) == "" {
		return *call, fmt.Errorf("reason is required for a Bot that you do not own")
	}
	call.Reason = in.Reason
	a := domain.Attempt{At: d.at, Bot: w.bot.ID, Member: w.turn.Member, Chat: w.chat.ID, Rights: w.facts.Rights, Grants: w.facts.Grants,
		Planning: w.chat.Mode == domain.ModePlan, Rules: w.facts.Rules, Deciders: domain.Deciders(w.chain()), Visible: true, Exempt: free}
	if free == "" || a.Planning {
		a.Exempt = ""
		call.Capability = domain.Capability{Action: domain.ActionBotsDelegate, Target: string(target.ID)}
		a.Capability = call.Capability
	}
	a.Caution = caution(w.facts.Organization.Settings, *call, nil, nil, w.chat.Taint)
	verdict := domain.Check(a)
	if verdict.Outcome == domain.OutcomeDeny {
		return domain.DecideCall(*call, domain.Checked{At: d.at, Verdict: verdict, Result: domain.TextDenied(verdict.Decided, verdict.Reason)})
	}
	allowed := verdict.Outcome == domain.OutcomeAllow
	g := &newWork{e: e, d: d, giver: w.bot, chat: &w.chat, path: w.facts.Work, member: w.turn.Member, authority: w.turn.Authority,
		parent: domain.WorkParent{Chat: w.chat.ID, Turn: w.turn.ID, Call: call.ID}, in: in, target: target, taint: w.chat.Taint}
	id, status, note, err := g.place(ctx, earlier, allowed)
	if err != nil {
		return *call, err
	}
	if !allowed {
		if err := e.askToGive(d, w, *call, a, verdict, id); err != nil {
			return *call, err
		}
	}
	w.touch(id)
	text, err := json.Marshal(struct {
		Delegation domain.DelegationID     `json:"delegation"`
		Status     domain.DelegationStatus `json:"status"`
		Note       string                  `json:"note"`
	}{id, status, note})
	if err != nil {
		return *call, err
	}
	if !allowed {
		return domain.DecideCall(*call, domain.Ran{At: d.at, Result: string(text)})
	}
	next, err := domain.DecideCall(*call, domain.Checked{At: d.at, Verdict: verdict})
	if err != nil {
		return next, err
	}
	return domain.DecideCall(next, domain.Carried{At: d.at, Result: string(text)})
}

// touch notes that a step changes a piece of work: what is loaded does not show it, so
// the step may change it once.
func (w *stepWork) touch(id domain.DelegationID) {
	if w.touched == nil {
		w.touched = map[domain.DelegationID]bool{}
	}
	w.touched[id] = true
}

// earlierWork reads work of this Chat that takes one more task.
func (e *Engine) earlierWork(ctx context.Context, w *stepWork, in giving) ([]domain.Delegation, error) {
	path, err := e.givenWork(ctx, w, in.Delegation)
	if err != nil {
		return nil, err
	}
	g := path[0]
	switch {
	case in.Bot != "" && in.Bot != g.Bot:
		return nil, fmt.Errorf("the work %s is done by %s, not by %s; leave bot out", g.ID, g.Bot, in.Bot)
	case g.Status == domain.DelegationAuthorizing:
		return nil, fmt.Errorf("the work %s waits for a decision whether it may be given; wait for the message about it", g.ID)
	case domain.HeldBy(path).Stopping != "":
		return nil, fmt.Errorf("the work %s is being stopped", g.ID)
	}
	chat, err := e.Store.Chat(ctx, g.Chat)
	if err != nil {
		return nil, err
	}
	if chat.DeletedAt != nil {
		return nil, fmt.Errorf("the Chat of the work %s was deleted", g.ID)
	}
	if newest := chat.Delegation(); newest != g.ID {
		// A person started a new round meanwhile: the newest one takes the task.
		if path, err = e.Store.Work(ctx, newest); err != nil {
			return nil, err
		}
		if len(path) == 0 || path[0].Status == domain.DelegationAuthorizing || domain.HeldBy(path).Stopping != "" || w.touched[newest] {
			return nil, fmt.Errorf("the work %s cannot take a task now", g.ID)
		}
	}
	return path, nil
}

// givenWork reads work that this Chat gave away, with all work above it. A plain error is
// for the model.
func (e *Engine) givenWork(ctx context.Context, w *stepWork, id domain.DelegationID) ([]domain.Delegation, error) {
	missing := fmt.Errorf("there is no work %s that this Chat gave away", cut(string(id), 60))
	if !domain.ValidID(string(id), domain.PrefixDelegation) {
		return nil, missing
	}
	path, err := e.Store.Work(ctx, id)
	if err != nil {
		return nil, err
	}
	if len(path) == 0 || path[0].Parent.Chat != w.chat.ID {
		return nil, missing
	}
	if w.touched[id] {
		return nil, fmt.Errorf("the work %s was changed in this step already; do this in the next one", id)
	}
	return path, nil
}

// workTarget finds the Bot that does the work, and why giving it work needs no decision,
// or "".
func (e *Engine) workTarget(ctx context.Context, w *stepWork, id domain.BotID) (bot domain.Bot, free string, err error) {
	if id == "" || id == w.bot.ID {
		return w.bot, "work for the Bot itself", nil
	}
	missing := fmt.Errorf("there is no Bot %s that you can give work to", cut(string(id), 60))
	if !domain.ValidID(string(id), domain.PrefixBot) {
		return bot, "", missing
	}
	bot, err = e.visibleBot(ctx, w.facts.Organization.ID, w.turn.Member, id)
	if domain.IsCode(err, domain.CodeNotFound) {
		return bot, "", missing
	}
	switch {
	case err != nil:
		return bot, "", err
	case bot.ArchivedAt != nil:
		return bot, "", fmt.Errorf("the Bot %s is archived", id)
	case bot.Kind == domain.BotSession && bot.Chat != w.chat.ID:
		return bot, "", missing
	case bot.Kind == domain.BotSession:
		return bot, "work for a helper of this Chat", nil
	case bot.Owner == w.bot.ID:
		return bot, "work for a Bot that it owns", nil
	}
	return bot, "", nil
}

// newWork gives one task: to new work, or to work that there is.
type newWork struct {
	e         *Engine
	d         *draft
	giver     domain.Bot
	giverName string              // instead of the giver's name
	chat      *domain.Chat        // the giving Chat
	path      []domain.Delegation // the work of the giving Chat and all above it
	member    domain.MemberID
	authority []domain.Authority
	parent    domain.WorkParent
	trigger   domain.TriggerID
	in        giving
	target    domain.Bot
	taint     domain.Taint // what the task rests on
}

func (n *newWork) from() string {
	if n.giverName != "" {
		return n.giverName
	}
	return n.giver.Name
}

// place puts the task where it belongs and starts it when it is allowed.
func (n *newWork) place(ctx context.Context, earlier []domain.Delegation, allowed bool) (domain.DelegationID, domain.DelegationStatus, string, error) {
	n.d.guard(n.path)
	if len(earlier) > 0 && earlier[0].Open() {
		g := earlier[0]
		if !allowed {
			return g.ID, domain.DelegationAuthorizing, domain.TextWorkGiven(domain.DelegationAuthorizing), nil
		}
		return g.ID, g.Status, domain.TextTaskTaken, n.add(ctx, g)
	}
	g, chat, err := n.make(ctx, earlier)
	if err != nil {
		return "", "", "", err
	}
	err = n.d.inside(chat, func() error {
		if !allowed {
			n.d.work(g, nil)
			return nil
		}
		return n.begin(g)
	})
	return g.ID, g.Status, domain.TextWorkGiven(g.Status), err
}

// make makes the work, in a task Chat of its own or in that of earlier work that has
// ended.
func (n *newWork) make(ctx context.Context, earlier []domain.Delegation) (*domain.Delegation, *domain.Chat, error) {
	g := &domain.Delegation{ID: newID[domain.DelegationID](domain.PrefixDelegation), Organization: n.target.Organization, Member: n.member,
		Execution: domain.ExecutionID(uuid.Must(uuid.NewV7()).String()), Parent: n.parent, Trigger: n.trigger, Giver: n.giver.ID, Bot: n.target.ID,
		Status: domain.DelegationAuthorizing, Task: n.in.Task, Reason: n.in.Reason, Limits: n.in.Limits, Authority: n.authority,
		CreatedAt: n.d.at, UpdatedAt: n.d.at}
	if n.target.Organization == "" {
		g.Organization = n.chat.Organization
	}
	if len(n.path) > 0 {
		g.Above = n.path[0].ID
	}
	chat := &domain.Chat{ID: newID[domain.ChatID](domain.PrefixChat), Organization: g.Organization, Member: n.member, Bot: n.target.ID,
		Kind: domain.ChatTask, Title: titleOf(n.in.Task), Status: domain.ChatIdle, CreatedAt: n.d.at}
	if len(earlier) > 0 {
		before, err := n.e.Store.Chat(ctx, earlier[0].Chat)
		if err != nil {
			return nil, nil, err
		}
		if before.Turn != "" || before.DeletedAt != nil {
			return nil, nil, errMoved
		}
		chat = &before
	}
	g.Chat, g.FirstEvent = chat.ID, chat.LastEvent
	chat.Parent = &domain.ChatParent{Chat: n.parent.Chat, Delegation: g.ID}
	return g, chat, nil
}

// begin starts work in the draft's Chat, which must be its task Chat.
func (n *newWork) begin(g *domain.Delegation) error {
	next, err := domain.DecideDelegation(*g, domain.Begun{At: n.d.at, Path: append([]domain.Delegation{*g}, n.path...)})
	if err != nil {
		return err
	}
	*g = next
	n.d.work(g, nil)
	n.d.startTurn([]domain.Input{n.input(domain.TextTask(n.from(), n.in.Task))})
	return nil
}

func (n *newWork) input(text string) domain.Input {
	return domain.Input{ID: newID[domain.InputID](domain.PrefixInput), Kind: domain.ItemNotice, From: domain.FromServer, Text: text,
		Topic: domain.TopicTask, Authority: n.authority, Taint: n.taint}
}

// add gives a task to work that is under way: it reads the task at its next step.
func (n *newWork) add(ctx context.Context, g domain.Delegation) error {
	chat, err := n.e.Store.Chat(ctx, g.Chat)
	if err != nil {
		return err
	}
	if chat.DeletedAt != nil || chat.Delegation() != g.ID {
		return errMoved
	}
	n.d.guard([]domain.Delegation{g})
	return n.d.inside(&chat, func() error {
		in := n.input(domain.TextTaskAdded(n.from(), n.in.Task))
		if chat.Turn == "" {
			n.d.startTurn([]domain.Input{in})
		} else {
			n.d.enqueue(in)
		}
		n.d.event(domain.EventNotice, string(g.ID), map[string]any{"turn": chat.Turn, "delegation": g.ID})
		return nil
	})
}

// titleOf names a task Chat by the first line of its task.
func titleOf(task string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(task), "\n")
	return cut(strings.TrimSpace(line), 80)
}

func cancelGiven(ctx context.Context, e *Engine, w *stepWork, arguments json.RawMessage) (string, error) {
	var in struct {
		Delegation domain.DelegationID
		Reason     string
	}
	if err := json.Unmarshal(arguments, &in); err != nil {
		return "", err
	}
	path, err := e.givenWork(ctx, w, in.Delegation)
	if err != nil {
		return "", err
	}
	g := path[0]
	if !g.Open() {
		return "", fmt.Errorf("the work %s is %s already", g.ID, g.Status)
	}
	why := "The Bot that gave it stopped it."
	if reason := strings.TrimSpace(safeText(cut(in.Reason, domain.MaxReason))); reason != "" {
		why += " Reason: " + reason
	}
	next, err := domain.DecideDelegation(g, domain.WorkStopping{At: w.d.at, Why: why, Notice: domain.NoticeNone})
	if err != nil {
		return "", fmt.Errorf("the work %s is being stopped already", g.ID)
	}
	w.touch(g.ID)
	w.d.put(&next)
	return fmt.Sprintf("Done: the work %s is being stopped, with all work below it. No message comes back about it.", g.ID), nil
}
