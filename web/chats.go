package web

// Chats is the page of conversations.
type Chats struct {
	Rows []ChatRow
	More string // the ID after which the next page goes on, or ""
	Bots []Choice
	Key  string // makes sending a form twice harmless
}

// View makes the page.
func (v Chats) View() View { return View{"chats.html", "Chats", v} }

// Choice is one of several in a form.
type Choice struct {
	Value  string
	Label  string
	Picked bool
}

// ChatRow is one conversation in a list.
type ChatRow struct {
	ID      string
	Title   string
	Bot     string
	Kind    string // in words, or ""
	Status  string
	Plan    bool
	Tainted bool
	Updated Moment
}

// Chat is the page of one conversation.
type Chat struct {
	ChatRow
	BotID      string
	Parent     string // the Chat that gave this work, or ""
	Busy       bool
	State      string // what happens now, in words
	Waits      []Wait
	Lines      []Line
	Earlier    int64  // the sequence before which the page before ends, or 0
	Later      bool   // this is not the end of the Chat
	Unread     []Line // what the Bot has not read yet
	MoreUnread int    // how much more there is of it
	Closed     bool   // takes no messages here
	Used       string
	Key        string
	Timeout    string // of its plans, in minutes, or ""
	OnExpire   string
	PlanTerms  bool // a person set them
	Work       ChatWork
}

// View makes the page.
func (v Chat) View() View { return View{"chat.html", v.Name(), v} }

// WorkPart makes the work of the Chat alone.
func (v Chat) WorkPart() View { return View{"chat-work", v.Name(), v.Work} }

// Part makes what was said alone.
func (v Chat) Part() View { return View{"chat-lines", v.Name(), v} }

// Name is its title, or what to call it without one.
func (v ChatRow) Name() string {
	if v.Title != "" {
		return v.Title
	}
	return "Chat with " + v.Bot
}

// Wait is a Request that a Turn waits for.
type Wait struct {
	Request string
	Title   string
}

// Line is one entry of a Chat.
type Line struct {
	Sequence int64
	Who      string
	Kind     string // me, bot, notice-line or call
	Text     string
	CutFrom  int // bytes of the whole text when Text is cut, or 0
	At       Moment
	Call     *CallLine
}

// CallLine is a tool call in a Chat, with who decided about it and what it gave.
type CallLine struct {
	Name      string
	Status    string
	Request   string // the Request that it waits for, or waited for last
	Decided   string // who decided and why, in words
	Quote     string // of the Rule that decided
	Steps     []string
	Fields    []Field
	Result    string
	ResultCut int  // bytes of the whole result when Result is cut, or 0
	Cut       bool // the arguments or the result are not all there
	Program   bool
	Within    bool // a program made it
}
