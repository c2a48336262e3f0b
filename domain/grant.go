package domain

import "time"

// Scopes of a decision.
const (
	ScopeOnce     = "once"
	ScopeChat     = "chat"
	ScopeLifetime = "lifetime"
)

// Decisions of an answer.
const (
	DecisionAllow = "allow"
	DecisionDeny  = "deny"
	DecisionAsk   = "ask" // a deny with a question, for work at a limit
)

// Sources of a Grant or Rule.
const (
	SourceRequest     = "request"
	SourceEndorsement = "endorsement"
	SourcePerson      = "person"
)

// Grant is a kept decision for a Bot and exactly one capability.
type Grant struct {
	ID           GrantID
	Organization OrganizationID
	Member       MemberID // it counts only in work for this Member
	Bot          BotID
	Capability   Capability
	Limit        string // for delegations.continue: the kind of limit; "" is each kind
	Decision     string
	Scope        string // chat or lifetime
	Chat         ChatID // for scope chat
	Revision     int64  // for apps.call: the one Connection revision that it holds for
	Source       string
	Request      RequestID  // the Request that it comes from, or ""
	Parent       GrantID    // the Grant on whose strength a Bot gave it, or ""
	Shown        Taint      // of an allow by a person: the taint that the Request showed
	ShownIn      ChatID     // the Chat of that Request; "" when it showed none
	SettleDueAt  *time.Time // set until equal pending Requests were settled
	CreatedAt    time.Time
	RevokedAt    *time.Time
	Version      int64
}

// Covers reports whether the Grant speaks about this attempt.
func (g Grant) Covers(a Attempt) bool {
	if g.RevokedAt != nil || g.Bot != a.Bot || g.Member != a.Member || g.Capability != a.Capability {
		return false
	}
	if g.Capability.Action == ActionAppsCall && g.Revision != a.Revision {
		return false
	}
	if g.Limit != "" && g.Limit != a.Limit {
		return false
	}
	switch g.Scope {
	case ScopeLifetime:
		return true
	case ScopeChat:
		return g.Chat != "" && g.Chat == a.Chat
	default:
		return false
	}
}

// showed reports whether a person gave the Grant in this Chat on a Request that showed
// all of this taint.
func (g Grant) showed(taint Taint, chat ChatID) bool {
	return chat != "" && g.ShownIn == chat && g.Source == SourceRequest && taint.Within(g.Shown)
}

// Rule is a kept decision in plain language, read by the judge model.
type Rule struct {
	ID           RuleID
	Organization OrganizationID
	Member       MemberID // a Rule of one Bot counts only in work for this Member
	Bot          BotID    // "" for the whole organization
	Text         string
	Effect       string // allow, deny or either
	Enabled      bool
	Source       string
	Keeper       BotID // the Bot that keeps it; "" for one of a person
	Request      RequestID
	CreatedAt    time.Time
	DeletedAt    *time.Time
	Version      int64
}

// MaxRuleText is the longest Rule, in bytes.
const MaxRuleText = 4000
