package domain

// Tags of an Actor on the wire.
const (
	TagPerson    = "Person"
	TagBot       = "Bot"
	TagGrant     = "Grant"
	TagRule      = "Rule"
	TagExpiry    = "Expiry"
	TagPolicy    = "Policy"
	TagExemption = "Exemption"
	// TagServer is the server itself, where nobody asked for it.
	TagServer = "Server"
	// TagOperator is whoever runs commands on the server's machine, as a Member.
	TagOperator = "Operator"
)

// ActorTags lists every tag.
func ActorTags() []string {
	return []string{TagPerson, TagBot, TagGrant, TagRule, TagExpiry, TagPolicy, TagExemption, TagServer, TagOperator}
}

// Actor is who decides or decided. Exactly the field that its tag names is set.
type Actor struct {
	Tag   string   `json:"_tag"`
	User  MemberID `json:"userId,omitempty"`
	Bot   BotID    `json:"botId,omitempty"`
	Grant GrantID  `json:"grantId,omitempty"`
	Rule  RuleID   `json:"ruleId,omitempty"`
}

// Person is the actor of a Member.
func Person(id MemberID) Actor { return Actor{Tag: TagPerson, User: id} }

// ByGrant is the actor of a kept decision.
func ByGrant(id GrantID) Actor { return Actor{Tag: TagGrant, Grant: id} }

// ByBot is the actor of a Bot that decides.
func ByBot(id BotID) Actor { return Actor{Tag: TagBot, Bot: id} }

// ID is the ID that the actor's tag names, or the tag.
func (a Actor) ID() string {
	switch a.Tag {
	case TagPerson, TagOperator:
		return string(a.User)
	case TagBot:
		return string(a.Bot)
	case TagGrant:
		return string(a.Grant)
	case TagRule:
		return string(a.Rule)
	}
	return a.Tag
}

// Step names the step of the check that decided.
type Step string

const (
	// StepPolicy only ever denies.
	StepPolicy Step = "policy"
	// StepExemption is a call that needs no decision.
	StepExemption Step = "exemption"
	// StepGrant is a kept decision.
	StepGrant Step = "grant"
	// StepRule is a Rule that the judge quoted.
	StepRule Step = "rule"
	// StepDecider is a Request and its answer.
	StepDecider Step = "decider"
)

// DecidedBy is the evidence kept with a call: which step decided, who, and on
// the strength of what.
type DecidedBy struct {
	Step    Step      `json:"step"`
	By      Actor     `json:"by"`
	Request RequestID `json:"request,omitempty"`
	Grant   GrantID   `json:"grant,omitempty"`
	Rule    RuleID    `json:"rule,omitempty"`
	Quote   string    `json:"quote,omitempty"`
	// RuleVersion is the state of the Rule that was quoted.
	RuleVersion int64  `json:"ruleVersion,omitempty"`
	Pattern     string `json:"pattern,omitempty"` // of policy or of the setting that exempts
	Scope       string `json:"scope,omitempty"`   // of the Grant
	AtMs        int64  `json:"at"`                // milliseconds since the epoch
}

// canAllow reports whether this is evidence that can stand behind a call that goes
// out: policy only denies, and an expiry allows a plan at most. Whatever is empty or
// not known here allows nothing.
func (d DecidedBy) canAllow(c Capability) bool {
	switch d.Step {
	case StepExemption:
		return d.By.Tag == TagExemption
	case StepGrant:
		return d.By.Tag == TagGrant
	case StepRule:
		return d.By.Tag == TagRule && d.Rule != "" && d.Rule == d.By.Rule && d.Quote != ""
	case StepDecider:
		return d.By.Tag == TagPerson || d.By.Tag == TagBot || d.By.Tag == TagGrant ||
			d.By.Tag == TagExpiry && c.Action == ActionPlansRun
	}
	return false
}
