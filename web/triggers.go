package web

// Triggers is the page of what gives work at times or on a signal.
type Triggers struct {
	Rows  []TriggerRow
	More  string // the ID after which the next page goes on, or ""
	Bots  []Choice
	Key   string
	Fresh *FreshSecret
}

// View makes the page.
func (v Triggers) View() View { return View{"triggers.html", "Triggers", v} }

// TriggerRow is one trigger in a list.
type TriggerRow struct {
	ID      string
	Name    string
	Bot     string
	When    string // in words
	Enabled bool
	Problem string // why the server switched it off, or ""
	Next    *Moment
	Last    *Moment
}

// FreshSecret is the signing secret of a new trigger, shown once.
type FreshSecret struct {
	Name   string
	Secret string
	Signal string // where the signal goes
}

// Trigger is the page of one trigger.
type Trigger struct {
	TriggerRow
	Webhook  bool
	Signal   string
	Cron     string
	TimeZone string
	Missed   []Choice
	Bots     []Choice
	BotID    string
	Chat     string
	Task     string
	Work     string // the work that it gave last, or ""
	Saved    bool
}

// View makes the page.
func (v Trigger) View() View { return View{"trigger.html", v.Name, v} }
