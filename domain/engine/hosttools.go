package engine

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	"openbot/domain"
)

// HostToolFields is what an admin sets of a tool of the host; nil leaves a field
// as it is.
type HostToolFields struct {
	Name        *string
	Description *string
	Schema      json.RawMessage
	Endpoint    *string
	Secret      *string // signs the calls; made when left out, and shown once
	Approval    *string // required or none
	Tags        []string
	Repeat      *string // safe or unsafe
}

var hostToolName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

// CreateHostTool registers a tool of the host. It gives the signing secret this
// once.
func (e *Engine) CreateHostTool(ctx context.Context, p domain.Principal, in HostToolFields) (domain.HostTool, string, error) {
	if in.Secret == nil {
		made := newSigningSecret()
		in.Secret = &made
	}
	var h domain.HostTool
	err := e.decide(ctx, string(p.Organization), func(d *draft) error {
		h = domain.HostTool{ID: newID[domain.HostToolID](domain.PrefixHostTool), Organization: p.Organization, Approval: true,
			Tags: []string{}, Revision: toolRevision(0, d.at), CreatedAt: d.at, UpdatedAt: d.at}
		if in.Name == nil || in.Endpoint == nil || in.Schema == nil {
			return invalid("name", "endpoint and schema are required")
		}
		if err := e.setHostTool(ctx, &h, in); err != nil {
			return err
		}
		d.put(&h)
		d.result = h
		return nil
	})
	return h, *in.Secret, err
}

// ChangeHostTool sets fields of a tool; calls that were saved before fail.
func (e *Engine) ChangeHostTool(ctx context.Context, p domain.Principal, id domain.HostToolID, in HostToolFields) (domain.HostTool, error) {
	var h domain.HostTool
	err := e.decide(ctx, string(id), func(d *draft) error {
		var err error
		if h, err = e.HostTool(ctx, p, id); err != nil {
			return err
		}
		h.Revision = toolRevision(h.Revision, d.at)
		h.UpdatedAt = d.at
		if err := e.setHostTool(ctx, &h, in); err != nil {
			return err
		}
		d.put(&h)
		return nil
	})
	return h, err
}

// DeleteHostTool takes a tool away.
func (e *Engine) DeleteHostTool(ctx context.Context, p domain.Principal, id domain.HostToolID) error {
	return e.decide(ctx, string(id), func(d *draft) error {
		h, err := e.HostTool(ctx, p, id)
		if err != nil {
			return err
		}
		at := d.at
		h.DeletedAt, h.UpdatedAt = &at, at
		d.put(&h)
		return nil
	})
}

// toolRevision gives the revision of a tool that is made or changed now, in
// microseconds since the epoch. A call finds its tool by the name, which can pass to
// another tool; a revision that no other tool of that name ever had keeps what was
// decided about one from reaching the other.
func toolRevision(before int64, at time.Time) int64 { return max(before+1, at.UnixMicro()) }

// HostTool reads a tool of the caller's organization.
func (e *Engine) HostTool(ctx context.Context, p domain.Principal, id domain.HostToolID) (domain.HostTool, error) {
	h, err := e.Store.HostTool(ctx, id)
	if err == nil && (h.Organization != p.Organization || h.DeletedAt != nil) {
		err = domain.Errorf(domain.CodeNotFound, "", "")
	}
	return h, asNotFound(err, "ToolNotFound", "There is no tool with this ID.")
}

// HostTools lists the tools of the caller's organization.
func (e *Engine) HostTools(ctx context.Context, p domain.Principal, page domain.Page) ([]domain.HostTool, error) {
	return e.Store.HostTools(ctx, p.Organization, page)
}

func (e *Engine) setHostTool(ctx context.Context, h *domain.HostTool, in HostToolFields) error {
	set(&h.Name, in.Name)
	set(&h.Description, in.Description)
	set(&h.Endpoint, in.Endpoint)
	if !hostToolName.MatchString(h.Name) || strings.HasPrefix(h.Name, "openbot_") || strings.Contains(h.Name, "__") {
		return invalid("name", "must be 1 to 64 of [A-Za-z0-9_-], start with a letter, not with openbot_, and hold no __")
	}
	others, err := e.Store.HostTools(ctx, h.Organization, domain.Page{Limit: maxHostTools})
	if err != nil {
		return err
	}
	if slices.ContainsFunc(others, func(o domain.HostTool) bool { return o.Name == h.Name && o.ID != h.ID }) {
		return domain.Errorf(domain.CodeConflict, "ToolConflict", "There is a tool of this name already.")
	}
	if len(others) >= maxHostTools {
		return domain.Errorf(domain.CodeConflict, "ToolConflict", "An organization has at most %d tools.", maxHostTools)
	}
	if len(h.Description) > 4096 {
		return invalid("description", "must have at most 4096 bytes")
	}
	if !strings.HasPrefix(h.Endpoint, "https://") {
		return invalid("endpoint", "must be an https address")
	}
	if e.CheckURL != nil {
		if err := e.CheckURL(h.Endpoint); err != nil {
			return invalid("endpoint", err.Error())
		}
	}
	if in.Schema != nil {
		if len(in.Schema) > 64*1024 {
			return invalid("schema", "must have at most 65536 bytes")
		}
		if err := prepare(in.Schema).err; err != nil {
			return invalid("schema", "must be a JSON Schema of an object whose references stay inside it and end")
		}
		var top struct{ Type string }
		if json.Unmarshal(in.Schema, &top) != nil || top.Type != "object" {
			return invalid("schema", "must be a JSON Schema of type object")
		}
		h.Schema = in.Schema
	}
	if in.Approval != nil {
		if *in.Approval != "required" && *in.Approval != "none" {
			return invalid("approval", "must be required or none")
		}
		h.Approval = *in.Approval == "required"
	}
	if in.Repeat != nil {
		if *in.Repeat != "safe" && *in.Repeat != "unsafe" {
			return invalid("repeat", "must be safe or unsafe")
		}
		h.RepeatSafe = *in.Repeat == "safe"
	}
	if in.Tags != nil {
		for _, tag := range in.Tags {
			if !slices.Contains(domain.Tags, tag) {
				return invalid("tags", "must be of: "+strings.Join(domain.Tags, ", "))
			}
		}
		h.Tags = in.Tags
	}
	if in.Secret != nil {
		h.Sealed, err = e.sealSigning(*in.Secret, h.Organization, string(h.ID))
	}
	return err
}

const maxHostTools = 200
