// Package example is an App to try OpenBot with: a mailbox and a folder of notes,
// served as an MCP server over HTTP. It keeps everything in plain files under one
// directory, opens no port by itself, and sends no mail anywhere: what is "sent" is
// appended to a file. Its callers are not trusted: names are checked, sizes bounded.
package example

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Handler makes the App on a directory, which is made and filled with some mail and
// notes when there is nothing yet.
func Handler(dir string) (http.Handler, error) {
	s, err := openStore(dir)
	if err != nil {
		return nil, err
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "openbot-example", Title: "Example: mail and notes", Version: "1"},
		&mcp.ServerOptions{Instructions: "A mailbox and a folder of notes to try OpenBot with. Mail is written to a file and goes nowhere."})
	addMail(server, s)
	addNotes(server, s)
	addPrompt(server)
	// Stateless: a restart of OpenBot leaves no session behind that nobody knows.
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true, MaxRequestBodyBytes: 256 << 10}), nil
}

func flag(b bool) *bool { return &b }

// reads are the notes of a tool that only reads.
func reads() *mcp.ToolAnnotations {
	return &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: flag(false), OpenWorldHint: flag(false)}
}

type none struct{}

type idInput struct {
	ID string `json:"id" jsonschema:"the id of the mail, as list_mail shows it"`
}

type mailInput struct {
	To      string `json:"to" jsonschema:"the address to send to, e.g. ops@example.test"`
	Subject string `json:"subject" jsonschema:"the subject, one line"`
	Body    string `json:"body" jsonschema:"the text of the mail"`
}

type nameInput struct {
	Name string `json:"name" jsonschema:"the name of the note: letters, digits, '-' and '_', at most 64"`
}

type noteInput struct {
	Name string `json:"name" jsonschema:"the name of the note: letters, digits, '-' and '_', at most 64"`
	Text string `json:"text" jsonschema:"the whole text of the note, in Markdown"`
}

func text(format string, args ...any) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}}
}

// asJSON shows a value to a model.
func asJSON(value any) (*mcp.CallToolResult, any, error) {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return nil, nil, err
	}
	return text("%s", data), nil, nil
}

func addMail(server *mcp.Server, s *store) {
	mcp.AddTool(server, &mcp.Tool{Name: "list_mail", Title: "List the mail", Annotations: reads(),
		Description: "Lists the mail in the inbox: id, sender, subject and date."},
		func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
			mails, err := s.inbox()
			if err != nil {
				return nil, nil, err
			}
			for i := range mails {
				mails[i].Body = ""
			}
			return asJSON(mails)
		})
	mcp.AddTool(server, &mcp.Tool{Name: "read_mail", Title: "Read a mail", Annotations: reads(),
		Description: "Reads one mail of the inbox."},
		func(_ context.Context, _ *mcp.CallToolRequest, in idInput) (*mcp.CallToolResult, any, error) {
			mail, err := s.mail(in.ID)
			if err != nil {
				return nil, nil, err
			}
			return asJSON(mail)
		})
	mcp.AddTool(server, &mcp.Tool{Name: "send_email", Title: "Send an email",
		Description: "Sends an email. Each call sends one more; it cannot be taken back.",
		Annotations: &mcp.ToolAnnotations{DestructiveHint: flag(false), OpenWorldHint: flag(true)}},
		func(_ context.Context, _ *mcp.CallToolRequest, in mailInput) (*mcp.CallToolResult, any, error) {
			id, err := s.send(in)
			if err != nil {
				return nil, nil, err
			}
			return text("Sent to %s with id %s.", in.To, id), nil, nil
		})
}

func addNotes(server *mcp.Server, s *store) {
	mcp.AddTool(server, &mcp.Tool{Name: "list_notes", Title: "List the notes", Annotations: reads(),
		Description: "Lists the names of all notes."},
		func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
			names, err := s.notes()
			if err != nil {
				return nil, nil, err
			}
			return asJSON(names)
		})
	mcp.AddTool(server, &mcp.Tool{Name: "read_note", Title: "Read a note", Annotations: reads(),
		Description: "Reads one note."},
		func(_ context.Context, _ *mcp.CallToolRequest, in nameInput) (*mcp.CallToolResult, any, error) {
			note, err := s.note(in.Name)
			if err != nil {
				return nil, nil, err
			}
			return text("%s", note), nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "write_note", Title: "Write a note",
		Description: "Writes a note. One of the same name is replaced.",
		Annotations: &mcp.ToolAnnotations{IdempotentHint: true, DestructiveHint: flag(true), OpenWorldHint: flag(false)}},
		func(_ context.Context, _ *mcp.CallToolRequest, in noteInput) (*mcp.CallToolResult, any, error) {
			if err := s.writeNote(in.Name, in.Text); err != nil {
				return nil, nil, err
			}
			addNoteResource(server, s, in.Name)
			return text("The note %s is written.", in.Name), nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "delete_note", Title: "Delete a note",
		Description: "Deletes a note for good.",
		Annotations: &mcp.ToolAnnotations{IdempotentHint: true, DestructiveHint: flag(true), OpenWorldHint: flag(false)}},
		func(_ context.Context, _ *mcp.CallToolRequest, in nameInput) (*mcp.CallToolResult, any, error) {
			if err := s.deleteNote(in.Name); err != nil {
				return nil, nil, err
			}
			server.RemoveResources(noteURI(in.Name))
			return text("The note %s is gone.", in.Name), nil, nil
		})
	server.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "note:///{name}", Name: "note",
		Description: "A note by its name", MIMEType: "text/markdown"}, s.readResource)
	names, err := s.notes()
	if err != nil {
		return // the tools will say so
	}
	for _, name := range names {
		addNoteResource(server, s, name)
	}
}

func noteURI(name string) string { return "note:///" + name }

func addNoteResource(server *mcp.Server, s *store, name string) {
	server.AddResource(&mcp.Resource{URI: noteURI(name), Name: name, MIMEType: "text/markdown"}, s.readResource)
}

func (s *store) readResource(_ context.Context, request *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := request.Params.URI
	const scheme = "note:///"
	if len(uri) <= len(scheme) || uri[:len(scheme)] != scheme {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	note, err := s.note(uri[len(scheme):])
	if err != nil {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: "text/markdown", Text: note}}}, nil
}

func addPrompt(server *mcp.Server) {
	server.AddPrompt(&mcp.Prompt{Name: "answer_mail", Title: "Answer a mail",
		Description: "Asks for an answer to one mail of the inbox.",
		Arguments: []*mcp.PromptArgument{
			{Name: "id", Description: "the id of the mail", Required: true},
			{Name: "tone", Description: "how the answer should sound, e.g. short and friendly"},
		}},
		func(_ context.Context, request *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			tone := request.Params.Arguments["tone"]
			if tone == "" {
				tone = "short and friendly"
			}
			return &mcp.GetPromptResult{Description: "Answer a mail", Messages: []*mcp.PromptMessage{{Role: "user",
				Content: &mcp.TextContent{Text: fmt.Sprintf("Read the mail %q with read_mail, then answer it with send_email. The answer should sound %s.",
					request.Params.Arguments["id"], tone)}}}}, nil
		})
}
