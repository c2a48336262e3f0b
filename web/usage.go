package web

// Usage is the page of what models cost, by Bot and day.
type Usage struct {
	Days    []Choice // how many days it may be of
	Total   string   // of all Bots, in words
	Bots    []UsageBot
	First   string // the first day
	Last    string // the last one
	Highest string // what the tallest bar stands for
	Tokens  bool   // the bars show tokens: nothing has a price
	Rows    []UsageRow
	Cut     bool // there are more rows
}

// View makes the page.
func (v Usage) View() View { return View{"usage.html", "Usage", v} }

// UsageBot is what one Bot used, with one bar for each day.
type UsageBot struct {
	ID    string
	Name  string
	Total string // in words
	Label string // the bars in words
	Width int    // of the plot, in its own units
	Bars  []UsageBar
}

// UsageBar is one day of a plot that is 100 units tall.
type UsageBar struct {
	X, Y, Height int
	Label        string
}

// UsageRow is what one Bot used on one day.
type UsageRow struct {
	Day    string
	ID     string
	Bot    string
	Cost   string
	Steps  int64
	Input  int64
	Output int64
}
