package web

// Tokens is the page of tokens and Members.
type Tokens struct {
	Rows    []TokenRow
	More    string
	Members []Choice
	People  []MemberRow
	Made    *MadeSecret
	Link    string // a login link that was just made, or ""
}

// View makes the page.
func (v Tokens) View() View { return View{"tokens.html", "Tokens", v} }

// TokenRow is one token, without its secret.
type TokenRow struct {
	ID      string
	Name    string
	Member  string
	Scopes  string
	Created Moment
	Used    *Moment
	Expires *Moment
	Revoked *Moment
	Expired bool
	Current bool // of this session
}

// MemberRow is a person.
type MemberRow struct {
	ID          string
	Name        string
	Permissions string
	Disabled    bool
	Me          bool
}

// MadeSecret is a new token with its secret, shown once.
type MadeSecret struct {
	Name   string
	Secret string
}

// Settings is the page of what the organization chose.
type Settings struct {
	RequestTimeout    Span
	WorkTimeLimit     Span
	Reads             string // one pattern a line
	RepeatSafe        string
	ToolTags          string // pattern: tag, tag
	Policy            []TagPolicy
	Trusted           string
	Resources         string // pattern: template
	RedactKeys        string
	RedactMail        bool
	RedactPhone       bool
	Reviewer          bool
	JudgeModel        string
	Prices            string // model: in out cached
	PerKey            int
	PerOrganization   int
	FailedAuth        int
	V1PerKey          string
	RemindBefore      Span
	EscalationAfter   Span
	EscalationMembers []Choice
	Saved             bool
	Tags              string
}

// View makes the page.
func (v Settings) View() View { return View{"settings.html", "Settings", v} }

// Span is a duration as people write it.
type Span struct {
	Number int64
	Units  []Choice
}

// TagPolicy is what happens to calls with a tag.
type TagPolicy struct {
	Tag     string
	Choices []Choice
	Tainted bool // never released in a tainted Chat
}

// spanField is a Span with the name of its field.
type spanField struct {
	Name string
	Span Span
}

func span(name string, s Span) spanField { return spanField{name, s} }
