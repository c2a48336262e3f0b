package web

// Apps is the page of Connections.
type Apps struct {
	Rows []AppRow
	More string
}

// View makes the page.
func (v Apps) View() View { return View{"apps.html", "Apps", v} }

// AppRow is one Connection in a list.
type AppRow struct {
	ID      string
	Name    string
	Address string
	Shared  bool
	Health  string
	Why     string
	Tools   int
}

// App is the page of one Connection.
type App struct {
	AppRow
	Transport string
	Revision  int64
	Looked    *Moment
	Secrets   []string // names of what is kept secret
	Own       string   // the App's own name and version
	ToolList  []AppTool
	Resources []AppThing
	Prompts   []AppThing
	Skipped   []string
	Changes   []AppChange
	MayChange bool
}

// View makes the page.
func (v App) View() View { return View{"app.html", v.Name, v} }

// AppTool is a tool as its App describes it, and what the organization says of it.
type AppTool struct {
	Name   string
	Title  string
	About  string
	Schema string
	Hints  []string
	Read   bool
	Repeat bool
	Tags   []string
	Exact  bool // it is a read by a pattern of its own, which can be taken away here
}

// AppThing is a resource or a prompt.
type AppThing struct {
	Name  string
	About string
}

// AppChange is what became different at a revision.
type AppChange struct {
	Revision int64
	At       Moment
	Words    []string
}
