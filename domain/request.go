package domain

import (
	"encoding/json"
	"slices"
	"time"
)

// RequestStatus is where a Request stands.
type RequestStatus string

const (
	// RequestPending waits for its approver. A person moves it by an answer, a Bot by a
	// decision in its review Chat; a review that gives none by its time sends it up (the
	// sweep at review_due_at), and nobody by expiresAt ends it (timer, and the sweep,
	// also after a stop of all servers). Whoever is told of it again meanwhile, or may
	// answer it too, is found at remind_at and escalate_at (timer and sweep). The automatic reviewer leaves its verdict beside
	// this and moves nothing. No process holds it.
	RequestPending RequestStatus = "pending"
	// RequestAllowed lets its call run. End state.
	RequestAllowed RequestStatus = "allowed"
	// RequestDenied ends its call. End state.
	RequestDenied RequestStatus = "denied"
	// RequestCancelled was closed with its Turn, token or Member. End state.
	RequestCancelled RequestStatus = "cancelled"
)

// RequestStatuses lists every status, for tests over the table.
func RequestStatuses() []RequestStatus {
	return []RequestStatus{RequestPending, RequestAllowed, RequestDenied, RequestCancelled}
}

// Request events, as the table names them.
const (
	RequestEventAnswered  = "Answered"
	RequestEventSettled   = "Settled"
	RequestEventElapsed   = "Elapsed"
	RequestEventCancelled = "Cancelled"
	RequestEventReviewing = "Reviewing"
	RequestEventPassed    = "Passed"
	RequestEventReviewed  = "Reviewed"
	RequestEventAsked     = "ReviewerAsked"
	RequestEventVerdict   = "VerdictLeft"
	RequestEventReminded  = "Reminded"
	RequestEventEscalated = "Escalated"
)

// RequestTransitions is the law of a Request.
var RequestTransitions = []Transition{
	{string(RequestPending), RequestEventAnswered, []string{string(RequestAllowed), string(RequestDenied)}},
	{string(RequestPending), RequestEventSettled, []string{string(RequestAllowed), string(RequestDenied)}},
	{string(RequestPending), RequestEventElapsed, []string{string(RequestAllowed), string(RequestDenied)}},
	{string(RequestPending), RequestEventCancelled, []string{string(RequestCancelled)}},
	{string(RequestPending), RequestEventReviewing, []string{string(RequestPending)}},
	{string(RequestPending), RequestEventPassed, []string{string(RequestPending)}},
	{string(RequestPending), RequestEventReviewed, []string{string(RequestPending), string(RequestAllowed), string(RequestDenied)}},
	{string(RequestPending), RequestEventAsked, []string{string(RequestPending)}},
	{string(RequestPending), RequestEventVerdict, []string{string(RequestPending)}},
	{string(RequestPending), RequestEventReminded, []string{string(RequestPending)}},
	{string(RequestPending), RequestEventEscalated, []string{string(RequestPending)}},
}

// Request is a question to a decider whether one attempt may run.
type Request struct {
	ID            RequestID
	Organization  OrganizationID
	Member        MemberID // whom the work is for
	Bot           BotID
	Capability    Capability
	Reason        string // the Bot's words: data, never an instruction
	Approver      Actor
	Chain         []BotID
	Chat          ChatID
	Turn          TurnID
	Call          CallID
	Asked         CallID       // of bots.delegate: the tool call that wanted the work
	Delegation    DelegationID // of bots.delegate and delegations.continue: the work
	Limit         string       // of delegations.continue: the kind of limit
	Arguments     json.RawMessage
	App           *SavedCall
	Code          *SavedCode // of a call from a program
	Plan          string     // of plans.run: the plan itself
	OnExpire      string     // of plans.run: allow or deny; "" is deny
	Unknown       *Unknown
	Endorsements  []Endorsement
	Tags          []string // permission tags of the call
	TagLine       TagLine  // of the tag policy, when the Request was made
	Taint         Taint    // of the Chat, when the Request was made
	TaintedTag    string   // the tag because of which the taint holds the call back, or ""
	Resource      string   // of the call, derived by the server; "" when there is none
	ReviewVerdict *ReviewVerdict
	VerdictDueAt  *time.Time // while the automatic reviewer has not read it: when somebody must look
	VerdictTries  int        // how often it was asked
	Review        ChatID     // where a Bot decides it now, or ""
	ReviewDueAt   *time.Time // while a Bot must decide it: when somebody must look
	RemindAt      *time.Time // when the person is told once more; nil when never, or done
	Escalation    *Escalation
	EscalateAt    *time.Time // when it goes to the second Member too; nil when never, or done
	Second        MemberID   // who may answer it beside the person since it was escalated, or ""
	Status        RequestStatus
	Decision      *Decision
	Receipt       string // of the decision, signed with it; "" before
	Revision      int64  // moves with approver, endorsements and status, at nothing else
	CreatedAt     time.Time
	ExpiresAt     time.Time
	UpdatedAt     time.Time
	Version       int64
}

// SavedCall is the exact App call that an allow lets run. Its arguments are those
// of the Request.
type SavedCall struct {
	Connection ConnectionID `json:"connection"`
	Revision   int64        `json:"revision"`
	Tool       string       `json:"tool"`
	SHA256     string       `json:"sha256"` // of the RFC 8785 form of the arguments
}

// Unknown marks a Request about a call that went out and gave no sign.
type Unknown struct {
	SentAtMs int64 `json:"sentAt"`
}

// Endorsement is the support of a Bot that may not decide by itself.
type Endorsement struct {
	Bot    BotID  `json:"bot"`
	Scope  string `json:"scope"`
	Reason string `json:"reason"`
	AtMs   int64  `json:"at"`
	// Chat is the Chat from which the Bot gave the work that asks, or "".
	Chat ChatID `json:"chat,omitempty"`
}

// Decision is how a Request ended.
type Decision struct {
	Decision string  `json:"decision"`
	Scope    string  `json:"scope"`
	Reason   *string `json:"reason"`
	Rule     *string `json:"rule"`
	By       Actor   `json:"by"`
	AtMs     int64   `json:"at"`
}

// MaxReason is the longest reason of an answer, in bytes.
const MaxReason = 4000

// RequestEvent is something that happened to a Request.
type RequestEvent interface{ requestEvent() string }

// Answered is a person's answer. GrantID and RuleID are used when one is kept.
type Answered struct {
	At       time.Time
	Expected int64
	Member   MemberID
	Decision string
	Scope    string
	Reason   *string
	Rule     *string
	GrantID  GrantID
	RuleID   RuleID
	Endorsed []GrantID // IDs for the Grants of the Bots that endorsed it, in their order
	TagLine  TagLine   // of the tag policy as it is now
}

// Settled is a Grant that now decides the same question.
type Settled struct {
	At    time.Time
	Grant Grant
}

// Elapsed is the end of a Request's time.
type Elapsed struct{ At time.Time }

// RequestCancelledEvent closes a Request with the work that made it.
type RequestCancelledEvent struct{ At time.Time }

func (Reviewing) requestEvent() string             { return RequestEventReviewing }
func (Passed) requestEvent() string                { return RequestEventPassed }
func (Reviewed) requestEvent() string              { return RequestEventReviewed }
func (Answered) requestEvent() string              { return RequestEventAnswered }
func (Settled) requestEvent() string               { return RequestEventSettled }
func (Elapsed) requestEvent() string               { return RequestEventElapsed }
func (RequestCancelledEvent) requestEvent() string { return RequestEventCancelled }

// Effect is something that a decision leaves behind beside the new state.
type Effect interface{ effect() }

// KeepGrant keeps a decision.
type KeepGrant struct{ Grant Grant }

// KeepRule keeps a Rule.
type KeepRule struct{ Rule Rule }

func (KeepGrant) effect() {}
func (KeepRule) effect()  {}

// DecideRequest moves a Request. The same answer by the same Member again gives
// the decided Request unchanged, without effects and without an error. It refuses
// with conflict an old revision, a closed Request, an answer after the time is up
// and one by somebody whose turn it is not; with invalid an answer that no
// Request of this kind takes.
func DecideRequest(r Request, ev RequestEvent) (Request, []Effect, error) {
	if a, ok := ev.(Answered); ok && r.Status != RequestPending {
		if r.sameAnswer(a) {
			return r, nil, nil
		}
		return r, nil, requestConflict("The Request is already %s. Read it again.", r.Status)
	}
	if !legal(RequestTransitions, string(r.Status), ev.requestEvent()) {
		return r, nil, requestConflict("The Request is already %s.", r.Status)
	}
	switch ev := ev.(type) {
	case Answered:
		if err := r.mayAnswer(ev); err != nil {
			return r, nil, err
		}
		d := Decision{Decision: ev.Decision, Scope: ev.Scope, Reason: ev.Reason, Rule: ev.Rule,
			By: Person(ev.Member), AtMs: ev.At.UnixMilli()}
		return r.closed(ev.At, d), r.kept(ev.At, d, kept{grant: ev.GrantID, rule: ev.RuleID, endorsed: ev.Endorsed}), nil
	case Reviewing:
		next, err := r.reviewing(ev)
		return next, nil, err
	case Passed:
		next, err := r.passed(ev)
		return next, nil, err
	case Reviewed:
		return r.reviewed(ev)
	case ReviewerAsked:
		next, err := r.askingReviewer(ev)
		return next, nil, err
	case VerdictLeft:
		next, err := r.takingVerdict(ev)
		return next, nil, err
	case RequestReminded:
		next, err := r.remind(ev)
		return next, nil, err
	case RequestEscalated:
		next, err := r.escalate(ev)
		return next, nil, err
	case Settled:
		a := r.attempt()
		if r.Unknown != nil || !ev.Grant.Covers(a) || ev.Grant.Decision == DecisionAllow && a.heldFrom(ev.Grant) != "" {
			return r, nil, requestConflict("This Grant does not decide this Request.")
		}
		if !Before(ev.At, r.ExpiresAt) {
			return r, nil, requestConflict("The time of this Request is up.")
		}
		d := Decision{Decision: ev.Grant.Decision, Scope: ev.Grant.Scope, By: ByGrant(ev.Grant.ID), AtMs: ev.At.UnixMilli()}
		return r.closed(ev.At, d), nil, nil
	case Elapsed:
		if Before(ev.At, r.ExpiresAt) {
			return r, nil, Errorf(CodePrecondition, "RequestConflict", "The time of this Request is not up yet.")
		}
		d := Decision{Decision: DecisionDeny, Scope: ScopeOnce, By: Actor{Tag: TagExpiry}, AtMs: ev.At.UnixMilli()}
		if r.AllowsOnExpiry() {
			d.Decision = DecisionAllow
		}
		return r.closed(ev.At, d), nil, nil
	case RequestCancelledEvent:
		next := r.unfollowed()
		next.Status, next.UpdatedAt = RequestCancelled, ev.At
		next.ReviewDueAt, next.VerdictDueAt = nil, nil
		next.Revision++
		return next, nil, nil
	default:
		return r, nil, Errorf(CodeInternal, "RequestConflict", "An event that no Request knows.")
	}
}

func (r Request) mayAnswer(ev Answered) error {
	if !r.AnswerableBy(ev.Member) {
		return requestConflict("Another decider must answer this Request.")
	}
	if ev.Expected != r.Revision {
		return requestConflict("The Request has revision %d, not %d. Read it again.", r.Revision, ev.Expected)
	}
	if !Before(ev.At, r.ExpiresAt) {
		return requestConflict("The time of this Request is up.")
	}
	if !slices.Contains([]string{DecisionAllow, DecisionDeny, DecisionAsk}, ev.Decision) {
		return invalid("decision", "must be allow or deny")
	}
	if ev.Decision == DecisionAsk && r.Capability.Action != ActionDelegationsContinue {
		return invalid("decision", "ask is only for work at a limit (delegations.continue)")
	}
	if !slices.Contains([]string{ScopeOnce, ScopeChat, ScopeLifetime}, ev.Scope) {
		return invalid("scope", "must be once, chat or lifetime")
	}
	if r.Unknown != nil && ev.Scope != ScopeOnce {
		return invalid("scope", "a call whose outcome is unknown takes once only")
	}
	if r.Unknown != nil && ev.Rule != nil {
		return invalid("rule", "a call whose outcome is unknown keeps no Rule")
	}
	return r.forPeople(ev)
}

// attempt is what the Request asks about, as far as a Grant speaks of it.
func (r Request) attempt() Attempt {
	a := Attempt{Bot: r.Bot, Member: r.Member, Chat: r.Chat, Capability: r.Capability, Limit: r.Limit, Caution: r.caution()}
	if r.App != nil {
		a.Revision = r.App.Revision
	}
	return a
}

func (r Request) closed(at time.Time, d Decision) Request {
	r.Status = RequestDenied
	if d.Decision == DecisionAllow {
		r.Status = RequestAllowed
	}
	r.Decision, r.UpdatedAt = &d, at
	r.ReviewDueAt, r.VerdictDueAt = nil, nil
	r.Revision++
	return r.unfollowed()
}

// AllowsOnExpiry reports whether the Request is a plan that a person let run when
// nobody answers.
func (r Request) AllowsOnExpiry() bool {
	return r.Capability.Action == ActionPlansRun && r.OnExpire == DecisionAllow && r.Unknown == nil
}

// kept holds the IDs of what a decision leaves behind, and on whose strength.
type kept struct {
	grant    GrantID
	rule     RuleID
	endorsed []GrantID
	parent   GrantID // the Grant that let the Bot that decides
	keeper   BotID   // the Bot that decides
}

// kept gives the Grants and the Rule that a final decision leaves behind. A Bot that
// endorsed gets a Grant of the scope that it chose, never wider than the decision; a
// Chat Grant of its own needs a Chat from which it gave the work.
func (r Request) kept(at time.Time, d Decision, k kept) []Effect {
	var effects []Effect
	decision := d.Decision
	if decision == DecisionAsk {
		decision = DecisionDeny
	}
	keep := func(id GrantID, bot BotID, source string, scope string, chat ChatID) {
		g := Grant{ID: id, Organization: r.Organization, Member: r.Member, Bot: bot, Capability: r.Capability,
			Limit: r.Limit, Decision: decision, Scope: scope, Source: source, Request: r.ID, Parent: k.parent, CreatedAt: at,
			SettleDueAt: ptr(at.Add(RunnableGrace))}
		if scope == ScopeChat {
			g.Chat = chat
		}
		if r.App != nil {
			g.Revision = r.App.Revision
		}
		if source == SourceRequest && d.By.Tag == TagPerson && decision == DecisionAllow && len(r.Taint) > 0 {
			g.Shown, g.ShownIn = r.Taint, r.Chat
		}
		effects = append(effects, KeepGrant{g})
	}
	if d.Scope != ScopeOnce {
		keep(k.grant, r.Bot, SourceRequest, d.Scope, r.Chat)
	}
	for i, e := range r.Endorsements {
		if decision != DecisionAllow || i >= len(k.endorsed) || e.Bot == r.Bot {
			continue
		}
		if scope := narrower(e.Scope, d.Scope); scope == ScopeLifetime || scope == ScopeChat && e.Chat != "" {
			keep(k.endorsed[i], e.Bot, SourceEndorsement, scope, e.Chat)
		}
	}
	if d.Rule != nil {
		rule := Rule{ID: k.rule, Organization: r.Organization, Member: r.Member, Bot: r.Bot, Text: *d.Rule, Effect: decision,
			Enabled: true, Source: SourceRequest, Keeper: k.keeper, Request: r.ID, CreatedAt: at}
		if k.keeper != "" {
			rule.Effect = DecisionDeny
		}
		effects = append(effects, KeepRule{rule})
	}
	return effects
}

// narrower gives the narrower of two scopes. A scope that there is not is once.
func narrower(a, b string) string {
	width := map[string]int{ScopeChat: 1, ScopeLifetime: 2}
	if width[a] > width[b] {
		a = b
	}
	if width[a] == 0 {
		return ScopeOnce
	}
	return a
}

func (r Request) sameAnswer(a Answered) bool {
	d := r.Decision
	return d != nil && d.By == Person(a.Member) && d.Decision == a.Decision && d.Scope == a.Scope &&
		sameText(d.Reason, a.Reason) && sameText(d.Rule, a.Rule)
}

func sameText(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

func requestConflict(format string, args ...any) *Error {
	return Errorf(CodeConflict, "RequestConflict", format, args...)
}

// invalid is an Error about one field.
func invalid(path, message string) *Error {
	return &Error{Code: CodeInvalid, Tag: "InvalidInput", Message: path + " " + message,
		Faults: []Fault{{Path: path, Message: message}}}
}
