package web

// Bots is the page of all Bots.
type Bots struct {
	Rows   []BotRow
	More   string
	Owners []Choice
}

// View makes the page.
func (v Bots) View() View { return View{"bots.html", "Bots", v} }

// BotRow is one Bot in a list.
type BotRow struct {
	ID       string
	Name     string
	Role     string
	Kind     string // in words
	Owner    string // in words, or ""
	Archived bool
}

// Bot is the page of one Bot.
type Bot struct {
	BotRow
	OwnerID      string
	Instructions string
	Model        string
	Memory       string
	Created      Moment
	MayChange    bool
	MayArchive   bool
	Key          string
}

// View makes the page.
func (v Bot) View() View { return View{"bot.html", v.Name, v} }
