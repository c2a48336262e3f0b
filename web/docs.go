package web

// Docs is the page that describes the API.
type Docs struct {
	Title   string
	Version string
	About   string
	Groups  []DocsGroup
	Schemas []DocsSchema
}

// DocsGroup is a group of operations.
type DocsGroup struct {
	Name       string
	About      string
	Operations []DocsOperation
}

// DocsOperation is one operation.
type DocsOperation struct {
	ID         string
	Method     string
	Path       string
	Summary    string
	About      string
	Role       string // needed to call it; "" for what anybody may call
	Parameters []DocsField
	Body       []DocsField
	BodyNote   string
	Answers    []DocsAnswer
}

// DocsAnswer is one answer of an operation.
type DocsAnswer struct {
	Status string
	Text   string
	Type   DocsType
}

// DocsField is a parameter, or a field of an object.
type DocsField struct {
	Name     string
	In       string // path, query, header, or "" for a field
	Type     DocsType
	Required bool
	About    string
}

// DocsType is a type in words, with the named object that it speaks of.
type DocsType struct {
	Before string
	Ref    string
	After  string
}

// DocsSchema is a named object.
type DocsSchema struct {
	Name   string
	Fields []DocsField
}

// View makes the page.
func (v Docs) View() View { return View{"docs.html", "API", v} }
