package api

import (
	"context"
	"encoding/json"
	"net/http"

	"openbot/domain"
	"openbot/domain/engine"
)

// HostTool is a tool of the host.
type HostTool struct {
	ID          domain.HostToolID `json:"id" example:"hook_018f6b1c2d3e7a4b8c9d0e1f2a3b4c5d"`
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Schema      json.RawMessage   `json:"schema" doc:"The JSON Schema of its arguments."`
	Endpoint    string            `json:"endpoint" doc:"The calls go there, signed as Standard Webhooks says."`
	Approval    string            `json:"approval" enum:"required,none"`
	Tags        []string          `json:"tags"`
	Repeat      string            `json:"repeat" enum:"safe,unsafe" doc:"safe: a call of which nothing came back may be sent again."`
	Revision    int64             `json:"revision"`
	CreatedAt   int64             `json:"createdAt"`
	UpdatedAt   int64             `json:"updatedAt"`
	Secret      string            `json:"secret,omitempty" doc:"The signing secret, shown this once, in the answer that makes the tool."`
}

func wireTool(h domain.HostTool) HostTool {
	out := HostTool{ID: h.ID, Name: h.Name, Description: h.Description, Schema: rawJSON(h.Schema), Endpoint: h.Endpoint,
		Approval: "none", Tags: nonNil(h.Tags), Repeat: "unsafe", Revision: h.Revision, CreatedAt: ms(h.CreatedAt), UpdatedAt: ms(h.UpdatedAt)}
	if h.Approval {
		out.Approval = "required"
	}
	if h.RepeatSafe {
		out.Repeat = "safe"
	}
	return out
}

// NewTool is the body that registers a tool.
type NewTool struct {
	Name        string          `json:"name" pattern:"^[A-Za-z][A-Za-z0-9_-]{0,63}$" doc:"What models call it."`
	Description string          `json:"description,omitempty" maxLength:"4096"`
	Schema      json.RawMessage `json:"schema" doc:"A JSON Schema of type object."`
	Endpoint    string          `json:"endpoint" maxLength:"2000" doc:"An https address."`
	Secret      *string         `json:"secret,omitempty" maxLength:"200" doc:"whsec_ and base64; made when left out."`
	Approval    *string         `json:"approval,omitempty" enum:"required,none" doc:"Left out: required."`
	Tags        []string        `json:"tags,omitempty" maxItems:"11"`
	Repeat      *string         `json:"repeat,omitempty" enum:"safe,unsafe" doc:"Left out: unsafe."`
}

// ToolChange is the body that changes a tool; calls that were saved before fail.
type ToolChange struct {
	Name        *string         `json:"name,omitempty" pattern:"^[A-Za-z][A-Za-z0-9_-]{0,63}$"`
	Description *string         `json:"description,omitempty" maxLength:"4096"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	Endpoint    *string         `json:"endpoint,omitempty" maxLength:"2000"`
	Secret      *string         `json:"secret,omitempty" maxLength:"200"`
	Approval    *string         `json:"approval,omitempty" enum:"required,none"`
	Tags        *[]string       `json:"tags,omitempty" maxItems:"11" doc:"Replaces all of them."`
	Repeat      *string         `json:"repeat,omitempty" enum:"safe,unsafe"`
}

// ToolPath names a tool of the host in an address.
type ToolPath struct {
	Tool string `path:"tool" doc:"The ID of the tool."`
}

func (p ToolPath) id() (domain.HostToolID, error) {
	if !domain.ValidID(p.Tool, domain.PrefixHostTool) {
		return "", newProblem(http.StatusNotFound, "ToolNotFound", "There is no tool with this ID.")
	}
	return domain.HostToolID(p.Tool), nil
}

type toolOut = struct{ Body HostTool }

func (s *server) toolRoutes() {
	const list = "tools"
	register(s, route{id: "listTools", method: http.MethodGet, path: "/v1/tools", tag: "Tools", summary: "List the tools of the host, newest first",
		role: domain.RoleRead, status: 200},
		func(ctx context.Context, p domain.Principal, in *struct{ Paged }) (*listed[HostTool], error) {
			page, err := in.page(list)
			if err != nil {
				return nil, err
			}
			rows, err := s.Engine.HostTools(ctx, p, page)
			if err != nil {
				return nil, err
			}
			return listOf(ctx, list, in.Paged, rows, func(h domain.HostTool) string { return string(h.ID) }, wireTool), nil
		})
	register(s, route{id: "createTool", method: http.MethodPost, path: "/v1/tools", tag: "Tools", summary: "Register a tool of the host",
		about: "The signing secret is in this answer alone.", role: domain.RoleAdmin, status: 201, errors: []int{409}},
		func(ctx context.Context, p domain.Principal, in *struct {
			Keyed
			Body NewTool
		}) (*toolOut, error) {
			b := in.Body
			h, secret, err := s.Engine.CreateHostTool(keep(ctx, wireTool), p, engine.HostToolFields{Name: &b.Name, Description: &b.Description,
				Schema: b.Schema, Endpoint: &b.Endpoint, Secret: b.Secret, Approval: b.Approval, Tags: b.Tags, Repeat: b.Repeat})
			if err != nil {
				return nil, err
			}
			out := wireTool(h)
			out.Secret = secret
			return &toolOut{out}, nil
		})
	register(s, route{id: "readTool", method: http.MethodGet, path: "/v1/tools/{tool}", tag: "Tools", summary: "Read a tool of the host",
		role: domain.RoleRead, status: 200, errors: []int{404}},
		func(ctx context.Context, p domain.Principal, in *ToolPath) (*toolOut, error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			h, err := s.Engine.HostTool(ctx, p, id)
			return &toolOut{wireTool(h)}, err
		})
	register(s, route{id: "changeTool", method: http.MethodPatch, path: "/v1/tools/{tool}", tag: "Tools", summary: "Change a tool of the host",
		role: domain.RoleAdmin, status: 200, errors: []int{404, 409}},
		func(ctx context.Context, p domain.Principal, in *struct {
			ToolPath
			Body ToolChange
		}) (*toolOut, error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			b := in.Body
			fields := engine.HostToolFields{Name: b.Name, Description: b.Description, Schema: b.Schema, Endpoint: b.Endpoint,
				Secret: b.Secret, Approval: b.Approval, Repeat: b.Repeat}
			if b.Tags != nil {
				fields.Tags = nonNil(*b.Tags)
			}
			h, err := s.Engine.ChangeHostTool(ctx, p, id, fields)
			return &toolOut{wireTool(h)}, err
		})
	register(s, route{id: "deleteTool", method: http.MethodDelete, path: "/v1/tools/{tool}", tag: "Tools", summary: "Take a tool of the host away",
		role: domain.RoleAdmin, status: 204, errors: []int{404, 409}},
		func(ctx context.Context, p domain.Principal, in *ToolPath) (*none, error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			return nil, s.Engine.DeleteHostTool(ctx, p, id)
		})
}
