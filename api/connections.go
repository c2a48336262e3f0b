package api

import (
	"context"
	"encoding/json"
	"net/http"

	"openbot/domain"
	"openbot/domain/engine"
)

// Connection is the way to one App. Its secrets never come back.
type Connection struct {
	ID                domain.ConnectionID  `json:"id" example:"con_018f6b1c2d3e7a4b8c9d0e1f2a3b4c5d"`
	Name              string               `json:"name"`
	Transport         string               `json:"transport" enum:"http,stdio"`
	URL               string               `json:"url,omitempty" doc:"Of transport http."`
	Command           string               `json:"command,omitempty" doc:"Of transport stdio."`
	Args              []string             `json:"args,omitempty" doc:"Of transport stdio."`
	HeaderNames       []string             `json:"headerNames" doc:"The headers that are set; their values are secret."`
	EnvNames          []string             `json:"envNames" doc:"The environment that is set; its values are secret."`
	Shared            bool                 `json:"shared" doc:"For the whole organization."`
	Revision          int64                `json:"revision" doc:"Goes up with every change of the Connection or of what the App offers. No decision outlives it."`
	Health            ConnectionHealth     `json:"health"`
	Tools             []AppTool            `json:"tools"`
	Resources         []domain.AppResource `json:"resources"`
	ResourceTemplates []domain.AppTemplate `json:"resourceTemplates"`
	Prompts           []AppPrompt          `json:"prompts"`
	Skipped           []string             `json:"skipped" doc:"Tools that cannot be offered, each with the reason."`
	CreatedAt         int64                `json:"createdAt"`
	UpdatedAt         int64                `json:"updatedAt"`
}

// ConnectionHealth is what the last look at the App found.
type ConnectionHealth struct {
	Status   string  `json:"status" enum:"unknown,ok,unreachable"`
	Reason   *string `json:"reason" doc:"Why it is unreachable."`
	LookedAt *int64  `json:"lookedAt"`
}

// AppTool is a tool as its App describes it. None of it is trusted.
type AppTool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema" doc:"The JSON Schema of its arguments."`
	Hints       AppHints        `json:"hints" doc:"The App's own notes; they never decide that a tool is safe."`
}

// AppHints are the App's own notes about a tool; one that is not there says
// nothing.
type AppHints struct {
	ReadOnly    *bool `json:"readOnly,omitempty"`
	Destructive *bool `json:"destructive,omitempty"`
	Idempotent  *bool `json:"idempotent,omitempty"`
	OpenWorld   *bool `json:"openWorld,omitempty"`
}

// AppPrompt is a prompt that an App offers.
type AppPrompt struct {
	Name        string                     `json:"name"`
	Description string                     `json:"description,omitempty"`
	Arguments   []domain.AppPromptArgument `json:"arguments,omitempty"`
}

func wireConnection(c domain.Connection) Connection {
	out := Connection{ID: c.ID, Name: c.Name, Transport: string(c.Transport), URL: c.URL, Command: c.Command, Args: c.Args,
		HeaderNames: nonNil(c.HeaderNames), EnvNames: nonNil(c.EnvNames), Shared: c.Shared, Revision: c.Revision,
		Health: ConnectionHealth{Status: c.Health, Reason: orNull(c.HealthWhy), LookedAt: msOrNull(c.LookedAt)},
		Tools:  []AppTool{}, Resources: nonNil(c.Look.Resources), ResourceTemplates: nonNil(c.Look.Templates), Prompts: []AppPrompt{},
		Skipped: nonNil(c.Look.Skipped), CreatedAt: ms(c.CreatedAt), UpdatedAt: ms(c.UpdatedAt)}
	for _, t := range c.Look.Tools {
		out.Tools = append(out.Tools, AppTool{Name: t.Name, Title: t.Title, Description: t.Description, Schema: rawJSON(t.Schema), Hints: AppHints(t.Hints)})
	}
	for _, p := range c.Look.Prompts {
		out.Prompts = append(out.Prompts, AppPrompt{Name: p.Name, Description: p.Description, Arguments: p.Arguments})
	}
	return out
}

// NewConnection is the body that connects an App.
type NewConnection struct {
	Name      string            `json:"name" minLength:"1" maxLength:"100"`
	Transport string            `json:"transport" enum:"http,stdio"`
	URL       *string           `json:"url,omitempty" maxLength:"2000" doc:"Of transport http."`
	Command   *string           `json:"command,omitempty" maxLength:"4096" doc:"Of transport stdio; admins only, where the server allows commands."`
	Args      []string          `json:"args,omitempty" maxItems:"100"`
	Env       map[string]string `json:"env,omitempty" doc:"Secret: never comes back."`
	Headers   map[string]string `json:"headers,omitempty" doc:"Secret: never comes back."`
	Shared    *bool             `json:"shared,omitempty" doc:"For the whole organization; needs admin."`
}

// ConnectionChange is the body that changes a Connection; any change is a new
// revision.
type ConnectionChange struct {
	Name      *string            `json:"name,omitempty" minLength:"1" maxLength:"100"`
	Transport *string            `json:"transport,omitempty" enum:"http,stdio"`
	URL       *string            `json:"url,omitempty" maxLength:"2000"`
	Command   *string            `json:"command,omitempty" maxLength:"4096"`
	Args      *[]string          `json:"args,omitempty" maxItems:"100" doc:"Replaces all of them."`
	Env       *map[string]string `json:"env,omitempty" doc:"Replaces all secrets, those of headers too."`
	Headers   *map[string]string `json:"headers,omitempty" doc:"Replaces all secrets, those of env too."`
	Shared    *bool              `json:"shared,omitempty"`
}

// ConnectionPath names a Connection in an address.
type ConnectionPath struct {
	Connection string `path:"connection" doc:"The ID of the Connection."`
}

func (p ConnectionPath) id() (domain.ConnectionID, error) {
	if !domain.ValidID(p.Connection, domain.PrefixConnection) {
		return "", notFound("Connection")
	}
	return domain.ConnectionID(p.Connection), nil
}

type connectionOut = struct{ Body Connection }

func (s *server) connectionRoutes() {
	const list = "connections"
	const waits = "Answers when a worker has looked at the App, after 10 seconds at the latest; an App that cannot be reached is saved all the same."
	register(s, route{id: "listConnections", method: http.MethodGet, path: "/v1/connections", tag: "Connections",
		summary: "List your Connections and the shared ones, newest first", role: domain.RoleRead, status: 200},
		func(ctx context.Context, p domain.Principal, in *struct{ Paged }) (*listed[Connection], error) {
			page, err := in.page(list)
			if err != nil {
				return nil, err
			}
			rows, err := s.Engine.Connections(ctx, p, page)
			if err != nil {
				return nil, err
			}
			return listOf(ctx, list, in.Paged, rows, func(c domain.Connection) string { return string(c.ID) }, wireConnection), nil
		})
	register(s, route{id: "createConnection", method: http.MethodPost, path: "/v1/connections", tag: "Connections", summary: "Connect an App", about: waits,
		role: domain.RoleWrite, status: 201, errors: []int{404, 409}, fresh: s.freshConnection},
		func(ctx context.Context, p domain.Principal, in *struct {
			Keyed
			Body NewConnection
		}) (*connectionOut, error) {
			b := in.Body
			transport := domain.Transport(b.Transport)
			c, err := s.Engine.CreateConnection(keep(ctx, wireConnection), p, engine.ConnectionFields{Name: &b.Name, Transport: &transport,
				URL: b.URL, Command: b.Command, Args: b.Args, Headers: b.Headers, Env: b.Env, Shared: b.Shared})
			return &connectionOut{wireConnection(c)}, err
		})
	register(s, route{id: "readConnection", method: http.MethodGet, path: "/v1/connections/{connection}", tag: "Connections", summary: "Read a Connection",
		role: domain.RoleRead, status: 200, errors: []int{404}},
		func(ctx context.Context, p domain.Principal, in *ConnectionPath) (*connectionOut, error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			c, err := s.Engine.Connection(ctx, p, id)
			return &connectionOut{wireConnection(c)}, err
		})
	register(s, route{id: "changeConnection", method: http.MethodPatch, path: "/v1/connections/{connection}", tag: "Connections",
		summary: "Change a Connection", about: waits, role: domain.RoleWrite, status: 200, errors: []int{404, 409}}, s.changeConnection)
	register(s, route{id: "deleteConnection", method: http.MethodDelete, path: "/v1/connections/{connection}", tag: "Connections", summary: "Take a Connection away",
		about: "Calls that were allowed and did not go out are denied.", role: domain.RoleWrite, status: 204, errors: []int{404, 409}},
		func(ctx context.Context, p domain.Principal, in *ConnectionPath) (*none, error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			return nil, s.Engine.DeleteConnection(ctx, p, id)
		})
	register(s, route{id: "refreshConnection", method: http.MethodPost, path: "/v1/connections/{connection}/refresh", tag: "Connections",
		summary: "Look at the App again", about: waits, role: domain.RoleWrite, status: 200, errors: []int{404, 409},
		optionalBody: true, fresh: s.freshConnection},
		func(ctx context.Context, p domain.Principal, in *struct {
			Keyed
			ConnectionPath
			Body *struct{}
		}) (*connectionOut, error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			c, err := s.Engine.RefreshConnection(keep(ctx, wireConnection), p, id)
			return &connectionOut{wireConnection(c)}, err
		})
}

func (s *server) changeConnection(ctx context.Context, p domain.Principal, in *struct {
	ConnectionPath
	Body ConnectionChange
}) (*connectionOut, error) {
	id, err := in.id()
	if err != nil {
		return nil, err
	}
	b := in.Body
	fields := engine.ConnectionFields{Name: b.Name, URL: b.URL, Command: b.Command, Shared: b.Shared}
	if b.Transport != nil {
		transport := domain.Transport(*b.Transport)
		fields.Transport = &transport
	}
	if b.Args != nil {
		fields.Args = nonNil(*b.Args)
	}
	if b.Env != nil {
		fields.Env = *b.Env
	}
	if b.Headers != nil {
		fields.Headers = *b.Headers
	}
	c, err := s.Engine.ChangeConnection(ctx, p, id, fields)
	return &connectionOut{wireConnection(c)}, err
}

// freshConnection gives a Connection as it stands now for one that was kept before
// a worker had looked at the App: whoever lost the answer wants the tools.
func (s *server) freshConnection(ctx context.Context, p domain.Principal, kept []byte) ([]byte, error) {
	var first struct{ ID domain.ConnectionID }
	if err := json.Unmarshal(kept, &first); err != nil {
		return nil, err
	}
	c, err := s.Engine.Connection(ctx, p, first.ID)
	if domain.IsCode(err, domain.CodeNotFound) {
		return kept, nil // deleted since; the answer was what it was
	}
	if err != nil {
		return nil, err
	}
	return encode(wireConnection(c)), nil
}
