package web

// Work is the page of work that Bots give each other.
type Work struct {
	Groups []WorkGroup
	More   string // the ID of the Chat after which the next page goes on, or ""
	Later  bool   // this is not the first page
	One    bool   // of one Chat alone
}

// View makes the page.
func (v Work) View() View { return View{"work.html", "Work", v} }

// Part makes what is kept up to date alone.
func (v Work) Part() View { return View{"work-groups", "Work", v} }

// WorkGroup is the work that one Chat gave.
type WorkGroup struct {
	ID   string // of the Chat
	Name string
	Rows []WorkRow
	More string // where older work of it stands, or ""
}

// WorkRow is one piece of work, with what it gave away itself when that is shown.
type WorkRow struct {
	ID       string
	Bot      string
	BotID    string
	Status   string
	Dot      string // of the status: a word of the style sheet
	Task     string // its first line
	Whole    string // the task, when that is more than its first line
	Cut      int    // bytes of the whole task when Whole is not all of it, or 0
	Reason   string // the giving Bot's words
	Result   string
	Rest     int  // bytes of the whole result when Result is not all of it, or 0
	Bad      bool // the result is an error
	Chat     string
	Request  string // that decides whether it starts or goes on, or what it waits for, or ""
	Hold     string // why it does not go on now, in words
	HoldAt   string // where the work above stands that holds it, or ""
	Trigger  string
	Limits   []Limit
	Updated  Moment
	MayStop  bool
	MayWrite bool
	Open     bool
	Expand   string // the address that shows the work below, or ""
	Fold     string // the address that hides it, or ""
	Below    []WorkRow
	More     string // where older work below it stands, or ""
	Place    []PlacePart
	Key      string
}

// PlacePart is a hidden field that leads back to where a form was sent from.
type PlacePart struct{ Name, Value string }

// Limit is what was used of one limit.
type Limit struct {
	Name string
	Text string // what was used of what, in words
	Used int64
	Max  int64 // 0: there is no limit
	Full bool
}

// ChatWork is the work that runs in a Chat, and what the Chat gave away.
type ChatWork struct {
	Chat  string
	Own   *WorkRow  // of a task Chat: its newest round
	Open  []WorkRow // what it gave that has not ended, newest first
	Given int       // how much it gave, as far as it was counted
	More  bool      // it gave more
}
