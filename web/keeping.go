package web

// Grants is the page of kept decisions.
type Grants struct {
	Rows    []GrantRow
	More    string
	Revoked bool // shows those that were revoked
	Bots    []Choice
	Actions []Choice
	Targets []Choice // of App tools, to choose from
}

// View makes the page.
func (v Grants) View() View { return View{"grants.html", "Grants", v} }

// GrantRow is one kept decision, in words.
type GrantRow struct {
	ID       string
	Allow    bool
	What     string
	Where    string // in which Chats
	ChatID   string
	Limit    string // what ends it besides revoking, or ""
	From     string // where it comes from
	Request  string
	Created  Moment
	Revoked  *Moment
	Endorsed bool
}

// Rules is the page of Rules.
type Rules struct {
	Rows    []RuleRow
	More    string
	Draft   RuleDraft
	Tried   []RuleTried
	WasTry  bool
	Decided int // how many of those that were tried it would have decided
}

// View makes the page.
func (v Rules) View() View { return View{"rules.html", "Rules", v} }

// RuleRow is one Rule.
type RuleRow struct {
	ID      string
	Text    string
	Effect  string // in words
	For     string
	Keeper  string // the Bot that keeps it, or ""
	Enabled bool
	Request string
	Created Moment
	Whole   bool // of the whole organization
}

// RuleDraft is a Rule that is being written.
type RuleDraft struct {
	Text    string
	Effects []Choice
	Bots    []Choice
}

// RuleTried is what a Rule would have come to about an earlier Request.
type RuleTried struct {
	Request string
	Title   string
	Was     string
	Would   string // allow, deny or ""
	Quote   string
	Why     string
}

// History is the page of Requests that were decided.
type History struct {
	Rows   []HistoryRow
	More   string
	Search string
	Status []Choice
	Query  string // of the search, for the link to the next page
}

// View makes the page.
func (v History) View() View { return View{"history.html", "History", v} }

// HistoryRow is one of them.
type HistoryRow struct {
	ID     string
	Title  string
	Bot    string
	App    string
	Sample string
	Good   bool
	Word   string
	Reason string
	At     Moment
}
