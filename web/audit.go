package web

// Audit is the page of the audit log.
type Audit struct {
	Kinds   []Choice
	Subject string
	Actor   string
	From    string // a day, or ""
	To      string // the last day, or ""
	Rows    []AuditRow
	More    string // the query of the next page, or ""
	Export  string // the query of an export of what fits
	Narrow  bool   // something narrows the list
	Head    *AuditEnd
}

// View makes the page.
func (v Audit) View() View { return View{"audit.html", "Audit", v} }

// AuditRow is one entry.
type AuditRow struct {
	Number  string // its place in the chain, or ""
	At      Moment
	Kind    string
	Subject string
	Link    string // the page of the subject, or ""
	Actor   string // in words
	ActorID string
	Address string
	Token   string
	Data    string
	Hash    string
}

// AuditEnd is the end of the chain, to be written down elsewhere.
type AuditEnd struct {
	Count int64
	Hash  string
	At    Moment
}
