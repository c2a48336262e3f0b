package domain

import "time"

// Preview asks which of the last decided Requests one Rule would have decided, and
// how. It changes nothing.
type Preview struct {
	ID           PreviewID
	Organization OrganizationID
	Member       MemberID
	Bot          BotID // "" for every Bot of the Member's work
	Text         string
	Effect       string
	Number       int // of Requests to look at, newest first
	Results      []PreviewResult
	Tries        int
	DueAt        *time.Time // nil when it is done
	CreatedAt    time.Time
	Version      int64
}

// MaxPreview is how many Requests one preview looks at.
const MaxPreview = 50

// PreviewResult is one Request and what the Rule would have come to.
type PreviewResult struct {
	Request    RequestID  `json:"request"`
	Bot        BotID      `json:"bot"`
	Capability Capability `json:"capability"`
	Decision   string     `json:"decision"` // how it was decided
	Would      string     `json:"would"`    // allow, deny, or "" for no decision
	Quote      string     `json:"quote"`
	Why        string     `json:"why"`
}

// Rule is the Rule as if it were kept for the Bot that asked.
func (p Preview) Rule() Rule {
	return Rule{ID: "rul_preview", Organization: p.Organization, Text: p.Text, Effect: p.Effect, Enabled: true, Version: 1}
}

// JudgeCase is what the judge reads about a Request that was decided.
func (p Preview) JudgeCase(r Request) JudgeCase {
	c := JudgeCase{Rules: []Rule{p.Rule()}, Bot: r.Bot, Capability: r.Capability, Reason: r.Reason, Arguments: r.Arguments}
	if r.App != nil {
		c.Tool = r.App.Tool
	}
	return c
}

// Result is what a verdict about one Request says.
func (p Preview) Result(r Request, v RulesVerdict) PreviewResult {
	out := PreviewResult{Request: r.ID, Bot: r.Bot, Capability: r.Capability, Would: v.Decision, Quote: v.Quote, Why: v.Why}
	if r.Decision != nil {
		out.Decision = r.Decision.Decision
	}
	if held := r.caution().held(); held != "" && v.Decision == DecisionAllow {
		out.Would, out.Why = "", "no Rule could allow it: "+held
	}
	return out
}

// PreviewStream is told when a preview is done.
func PreviewStream(id PreviewID) string { return string(id) }
