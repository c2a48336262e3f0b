package web

import "strconv"

// Requests is the page where people answer: what waits on one side, one of it on
// the other.
type Requests struct {
	List   RequestList
	Detail *Request // nil for none
	Bulk   *Bulk    // many at once, instead of one
	Picked bool     // the person chose what is shown; else a narrow page shows the list
	Notice *Notice
}

// View makes the page.
func (v Requests) View() View {
	title := "Requests"
	if n := len(v.List.Rows); n > 0 {
		title = "(" + v.List.Number() + ") Requests"
	}
	return View{"requests.html", title, v}
}

// RequestList is what waits, newest first.
type RequestList struct {
	Rows   []RequestRow
	Search string
	More   string // the ID after which the next page goes on, or ""
	Later  bool   // this is not the first page
	Shown  string // the ID of the Request beside the list
}

// Part makes the list alone.
func (v RequestList) Part() View { return View{"request-list", "Requests", v} }

// Number is how many there are, as far as they were counted.
func (v RequestList) Number() string {
	n := strconv.Itoa(len(v.Rows))
	if v.More != "" || v.Later {
		n += "+"
	}
	return n
}

// RequestRow is one Request in the list.
type RequestRow struct {
	ID       string
	Like     string // equal for those of the same Bot and tool
	Title    string // the tool, or the action in words
	Bot      string
	App      string
	Sample   string // the beginning of its arguments
	Asked    Moment
	Expires  Moment
	Unknown  bool
	Supports int
	Warnings []string
}

// Request is one question, as the person needs to see it before answering. Every
// text of a Bot or an App is shown as what it is: words of others.
type Request struct {
	ID        string
	Expected  int64 // the revision that is shown
	Bot       string
	BotID     string
	Chain     []string // the names from the top Bot to the asking one
	Verb      string   // what it asks to do, in words
	Tool      string
	App       string // the name of the Connection, or ""
	AppID     string
	Revision  int64 // of the Connection
	Action    string
	Target    string
	Chat      string
	ChatTitle string
	Tags      []string
	ForPeople string   // the tag that only people may allow, or ""
	Resource  string   // derived by the server, or ""
	Taint     []string // where content from outside came from
	Held      string   // the tag because of which the taint makes it a question, or ""
	Fields    []Field
	Raw       string // the arguments as they will be sent
	RawCut    bool
	Digest    string
	Size      int
	Whole     bool // nothing is cut
	Cut       bool // something is
	Earlier   *Earlier
	Program   *Program
	Plan      string
	PlanCut   int // bytes of the whole plan when Plan is not all of it, or 0
	Reason    string
	Supports  []Support
	Verdict   *Verdict
	UnknownAt *Moment
	OnExpire  string // what happens when nobody answers
	Asked     Moment
	Expires   Moment
	Open      bool
	MayAnswer bool
	LeftOpen  string // what follows from it that the person has not answered in time, or ""
	Foreign   bool   // of the work of another Member, whose Chats cannot be opened
	WaitsFor  string // who must answer, when it is not this person
	Ways      []Way
	Ask       bool     // takes a question for an answer
	Offer     *Offer   // to be asked less
	Outcome   *Outcome // how it ended
	Stale     bool     // the answer that was just sent did not count
	Work      *WorkRow // that would start or go on, as it stands now
	Continues bool     // it asks whether work goes on past a limit
	Named     bool     // Tool is the name of a Bot
	Sends     bool     // its arguments go out as they are
}

// Part makes the Request alone.
func (v Request) Part() View { return View{"request-detail", "Request", v} }

// Earlier is the call before of the same tool that was allowed.
type Earlier struct {
	ID   string
	When Moment
	Same bool // exactly the same arguments
}

// Program is what makes the call.
type Program struct {
	Lines []ProgramLine
	Place string // in words
	Cut   bool
}

// ProgramLine is one line of it.
type ProgramLine struct {
	Number int
	Text   string
	Here   bool // the call stands here
}

// Support is the endorsement of a Bot.
type Support struct {
	Bot    string
	Scope  string // in words
	Reason string
	At     Moment
}

// Verdict is what the automatic reviewer read.
type Verdict struct {
	Word string
	Note string
}

// Way is one way to answer, with what it would let happen.
type Way struct {
	Value string // decision and scope, e.g. allow-once
	Label string
	Words string
	Allow bool
	Rule  bool // needs the text of a Rule
	Key   string
	First bool // shown before the others
}

// Offer is how to be asked less.
type Offer struct {
	Times int // the person allowed the same so often
	Words string
	Rule  string // the text of a Rule to begin with
	Bot   string // ID of the Bot that it would be for
}

// Outcome is how a Request ended.
type Outcome struct {
	Good   bool
	Title  string // e.g. allowed by you
	Words  string // what it lets happen
	Reason string
	Rule   string
	At     *Moment
}

// Notice says what became of the last action.
type Notice struct {
	Kind  string // good, bad or plain
	Title string
	Text  string
}

// Bulk is many Requests that are answered at once.
type Bulk struct {
	Requests []Request
	Kinds    int // different Bots and tools among them
	Title    string
	Results  []BulkResult // after the answer
	Done     bool
	Gone     int // chosen ones that do not wait any more
}

// Part makes it alone.
func (v Bulk) Part() View { return View{"request-bulk", "Requests", v} }

// BulkResult is what came of one of many answers.
type BulkResult struct {
	ID    string
	Title string
	Text  string
	Good  bool
}

// Open counts those that can be answered.
func (v Bulk) Open() int {
	n := 0
	for _, r := range v.Requests {
		if r.Open && r.MayAnswer {
			n++
		}
	}
	return n
}
