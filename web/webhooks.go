package web

// Webhooks is the page of what tells people and programs that something waits or ended.
type Webhooks struct {
	Rows    []WebhookRow
	More    string // the ID after which the next page goes on, or ""
	Formats []FormatChoice
	Missing []string // why some formats cannot be chosen, in words
	Events  []Choice
	Key     string
	Made    *MadeSecret
}

// View makes the page.
func (v Webhooks) View() View { return View{"webhooks.html", "Notifications", v} }

// FormatChoice is a way to be told, which may need the server to be set up for it.
type FormatChoice struct {
	Choice
	Unready bool
}

// WebhookRow is one webhook in a list. Its address is never whole: it may be a secret.
type WebhookRow struct {
	ID      string
	Name    string // its address, as far as it is no secret
	Format  string // in words
	Events  string // in words
	Whole   bool   // of the work of the whole organization
	By      string // who made it, when that is another Member
	Enabled bool
	Problem string // why the server disabled it, or ""
}

// Webhook is the page of one webhook.
type Webhook struct {
	WebhookRow
	Signed     bool
	Mail       bool
	Choices    []Choice // of events
	Created    Moment
	Saved      bool
	Status     []Choice // of deliveries
	Deliveries []DeliveryRow
	More       string // the query of the next page, or ""
}

// View makes the page.
func (v Webhook) View() View { return View{"webhook.html", v.Name, v} }

// DeliveryRow is one message, with what became of it.
type DeliveryRow struct {
	ID      string
	Event   string // in words
	Link    string // the page of what it tells of, or ""
	Status  string
	Tries   int
	Outcome string
	Made    Moment
	Next    *Moment // when it is tried again at the latest
	Payload string
	Dead    bool
}
