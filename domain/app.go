package domain

import (
	"encoding/json"
)

// Transport says how an App is reached.
type Transport string

const (
	// TransportHTTP is MCP over streamable HTTP.
	TransportHTTP Transport = "http"
	// TransportStdio is MCP over the standard streams of a child process.
	TransportStdio Transport = "stdio"
)

// AppEndpoint is how to reach one App. Secrets are sealed; only the Apps port
// opens them, just before it dials.
type AppEndpoint struct {
	Connection   ConnectionID
	Organization OrganizationID
	Revision     int64 // a client cached for an older revision is closed
	Transport    Transport
	URL          string
	Command      string
	Args         []string
	Sealed       []byte // AppSecrets as JSON, encrypted for this organization and connection
}

// AppSecrets are the parts of a Connection that are kept encrypted and never come
// back: headers of HTTP requests and the environment of a command.
type AppSecrets struct {
	Headers map[string]string `json:"headers,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
}

// AppLook is what a look at an App found.
type AppLook struct {
	Name      string `json:"name"`    // the App's own name for itself
	Version   string `json:"version"` // the App's own version
	Tools     []AppTool
	Resources []AppResource
	Templates []AppTemplate
	Prompts   []AppPrompt
	Skipped   []string // tools that cannot be offered, each with the reason
	Digest    string   // SHA-256 in hex over the canonical form of the tools
	// Changes are what became different at past revisions, newest first. No App gives
	// them: they are noted here.
	Changes []AppChange
}

// AppTool is a tool as its App describes it. None of it is trusted: it is shown
// to models and people as data and decides nothing.
type AppTool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema"`
	Hints       AppHints        `json:"hints"`
}

// AppHints are the App's own notes about a tool; nil means that it said nothing.
type AppHints struct {
	ReadOnly    *bool `json:"readOnly,omitempty"`
	Destructive *bool `json:"destructive,omitempty"`
	Idempotent  *bool `json:"idempotent,omitempty"`
	OpenWorld   *bool `json:"openWorld,omitempty"`
}

// AppResource is something that an App lets read.
type AppResource struct {
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mimeType,omitempty"`
}

// AppTemplate is a pattern of resource addresses.
type AppTemplate struct {
	URITemplate string `json:"uriTemplate"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mimeType,omitempty"`
}

// AppPrompt is a prompt that an App offers.
type AppPrompt struct {
	Name        string              `json:"name"`
	Description string              `json:"description,omitempty"`
	Arguments   []AppPromptArgument `json:"arguments,omitempty"`
}

// AppPromptArgument is one argument of a prompt.
type AppPromptArgument struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
}

// AppCall is the saved call as it goes out. Arguments are the exact bytes that
// were shown and decided.
type AppCall struct {
	Tool      string
	Arguments json.RawMessage
}

// AppResult is what an App answered. Text is what the model reads.
type AppResult struct {
	Text    string
	IsError bool // the App says that the call failed
	Cut     bool // the answer was longer than the limit and was cut
}

// AppError is an App call without a usable answer.
type AppError struct {
	// NoAnswer is true when the call may have gone out and nothing came back, so
	// that nobody knows whether it ran. It is false when it surely did not go out,
	// or when the App did answer, however badly.
	NoAnswer bool
	Message  string // for the model and the person; never holds a secret
	Err      error  // for logs
}

// Error joins the message and the cause.
func (e *AppError) Error() string {
	if e.Err != nil {
		return e.Message + ": " + e.Err.Error()
	}
	return e.Message
}

// Unwrap gives the cause.
func (e *AppError) Unwrap() error { return e.Err }
