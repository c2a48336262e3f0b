package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"openbot/domain"
)

// ConnectionFields is what a Member sets of a Connection; nil leaves a field as it
// is. Headers and Env replace all of them; they never come back.
type ConnectionFields struct {
	Name      *string
	Transport *domain.Transport
	URL       *string
	Command   *string
	Args      []string
	Headers   map[string]string
	Env       map[string]string
	Shared    *bool
}

// LookWait is how long POST, PATCH and refresh wait for a worker to look at the
// App before they answer with what is known.
const LookWait = 10 * time.Second

const maxConnectionEntries = 100

// CreateConnection saves the way to an App and asks a worker to look at it.
func (e *Engine) CreateConnection(ctx context.Context, p domain.Principal, in ConnectionFields) (domain.Connection, error) {
	var c domain.Connection
	err := e.decide(ctx, string(p.Member.ID), func(d *draft) error {
		c = domain.Connection{ID: newID[domain.ConnectionID](domain.PrefixConnection), Organization: p.Organization,
			Member: p.Member.ID, Revision: 1, Health: domain.HealthUnknown, CreatedAt: d.at, UpdatedAt: d.at}
		if err := e.setConnection(&c, p, in); err != nil {
			return err
		}
		askLook(&c, d.at)
		d.put(&c)
		d.result = c
		return nil
	})
	if err != nil {
		return c, err
	}
	return e.awaitLook(ctx, c)
}

// ChangeConnection sets fields of a Connection; any change is a new revision.
func (e *Engine) ChangeConnection(ctx context.Context, p domain.Principal, id domain.ConnectionID, in ConnectionFields) (domain.Connection, error) {
	c, err := e.editConnection(ctx, p, id, func(c *domain.Connection, at time.Time) error {
		c.Edit(at)
		return e.setConnection(c, p, in)
	})
	if err != nil {
		return c, err
	}
	return e.awaitLook(ctx, c)
}

// RefreshConnection asks a worker to look at the App again.
func (e *Engine) RefreshConnection(ctx context.Context, p domain.Principal, id domain.ConnectionID) (domain.Connection, error) {
	c, err := e.editConnection(ctx, p, id, func(*domain.Connection, time.Time) error { return nil })
	if err != nil {
		return c, err
	}
	return e.awaitLook(ctx, c)
}

// DeleteConnection takes a Connection away: calls that were allowed and did not go
// out are denied at their last look.
func (e *Engine) DeleteConnection(ctx context.Context, p domain.Principal, id domain.ConnectionID) error {
	return e.decide(ctx, string(id), func(d *draft) error {
		c, err := e.changeableConnection(ctx, p, id)
		if err != nil {
			return err
		}
		at := d.at
		c.DeletedAt, c.LookDueAt, c.UpdatedAt, c.Sealed = &at, nil, at, nil
		d.put(&c)
		return nil
	})
}

// Connection reads a Connection that the caller can see.
func (e *Engine) Connection(ctx context.Context, p domain.Principal, id domain.ConnectionID) (domain.Connection, error) {
	c, err := e.Store.Connection(ctx, id)
	if err != nil {
		return c, asNotFound(err, "ConnectionNotFound", "There is no Connection with this ID.")
	}
	if c.Organization != p.Organization || !c.VisibleTo(p.Member.ID) {
		return domain.Connection{}, domain.Errorf(domain.CodeNotFound, "ConnectionNotFound", "There is no Connection with this ID.")
	}
	return c, nil
}

// Connections lists those that the caller can see.
func (e *Engine) Connections(ctx context.Context, p domain.Principal, page domain.Page) ([]domain.Connection, error) {
	return e.Store.Connections(ctx, p.Organization, p.Member.ID, page)
}

func (e *Engine) editConnection(ctx context.Context, p domain.Principal, id domain.ConnectionID, edit func(*domain.Connection, time.Time) error) (domain.Connection, error) {
	var c domain.Connection
	err := e.decide(ctx, string(id), func(d *draft) error {
		var err error
		if c, err = e.changeableConnection(ctx, p, id); err != nil {
			return err
		}
		before := c
		d.was(&before)
		if err := edit(&c, d.at); err != nil {
			return err
		}
		c.UpdatedAt = d.at
		askLook(&c, d.at)
		d.put(&c)
		d.result = c
		return nil
	})
	return c, err
}

func (e *Engine) changeableConnection(ctx context.Context, p domain.Principal, id domain.ConnectionID) (domain.Connection, error) {
	c, err := e.Connection(ctx, p, id)
	if err != nil {
		return c, err
	}
	if c.Member != p.Member.ID && !p.HasRole(domain.RoleAdmin) {
		return c, domain.Errorf(domain.CodeForbidden, "Forbidden", "Only an admin may change a shared Connection of another Member.")
	}
	return c, nil
}

func (e *Engine) setConnection(c *domain.Connection, p domain.Principal, in ConnectionFields) error {
	set(&c.Name, in.Name)
	set(&c.Transport, in.Transport)
	set(&c.URL, in.URL)
	set(&c.Command, in.Command)
	if in.Args != nil {
		c.Args = in.Args
	}
	if in.Shared != nil && *in.Shared != c.Shared {
		if !p.HasRole(domain.RoleAdmin) {
			return domain.Errorf(domain.CodeForbidden, "Forbidden", "Only an admin may share a Connection with the organization.")
		}
		c.Shared = *in.Shared
	}
	if n := len(c.Name); n < 1 || n > 100 || strings.ContainsFunc(c.Name, func(r rune) bool { return r < ' ' }) {
		return invalid("name", "must have 1 to 100 bytes without control characters")
	}
	switch c.Transport {
	case domain.TransportHTTP:
		if c.Command != "" || len(c.Args) > 0 || len(in.Env) > 0 {
			return invalid("command", "belongs to transport stdio, not to http")
		}
		if e.CheckURL != nil {
			if err := e.CheckURL(c.URL); err != nil {
				return invalid("url", err.Error())
			}
		}
	case domain.TransportStdio:
		if !p.HasRole(domain.RoleAdmin) {
			return domain.Errorf(domain.CodeForbidden, "Forbidden", "Only an admin may connect an App that is started as a command.")
		}
		if !e.AllowCommands {
			return domain.Errorf(domain.CodeForbidden, "Forbidden", "This server starts no commands. Its operator can allow them with OPENBOT_APPS_ALLOW_COMMANDS=true.")
		}
		if c.URL != "" || len(in.Headers) > 0 {
			return invalid("url", "belongs to transport http, not to stdio")
		}
		if c.Command == "" || len(c.Command) > 4096 || strings.ContainsRune(c.Command, 0) {
			return invalid("command", "must name the program to start")
		}
	default:
		return invalid("transport", "must be http or stdio")
	}
	if len(c.Args) > maxConnectionEntries || slices.ContainsFunc(c.Args, func(a string) bool { return len(a) > 16384 || strings.ContainsRune(a, 0) }) {
		return invalid("args", "must be at most 100 texts of at most 16384 bytes")
	}
	if in.Headers == nil && in.Env == nil && c.Sealed != nil {
		return nil
	}
	for path, entries := range map[string]map[string]string{"headers": in.Headers, "env": in.Env} {
		if len(entries) > maxConnectionEntries {
			return invalid(path, "has more than 100 entries")
		}
		for name, value := range entries {
			if !secretName(name) || len(value) > 16384 || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' }) {
				return invalid(path, "has a name or value with characters that cannot be sent")
			}
		}
	}
	plain, err := json.Marshal(domain.AppSecrets{Headers: in.Headers, Env: in.Env})
	if err != nil {
		return err
	}
	c.HeaderNames, c.EnvNames = slices.Sorted(maps.Keys(in.Headers)), slices.Sorted(maps.Keys(in.Env))
	c.Sealed, err = e.Sealer.Seal(plain, c.Organization, string(c.ID))
	return err
}

func secretName(name string) bool {
	return name != "" && len(name) <= 200 && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r > '~' || r == ':' || r == '='
	})
}

func set[T any](into *T, value *T) {
	if value != nil {
		*into = *value
	}
}

// askLook asks a worker to look at the App.
func askLook(c *domain.Connection, at time.Time) {
	due := at.Add(domain.RunnableGrace)
	c.LookDueAt = &due
}

// awaitLook waits until a worker has looked, at most LookWait, and gives the
// Connection as it stands then.
func (e *Engine) awaitLook(ctx context.Context, asked domain.Connection) (domain.Connection, error) {
	told, stop := e.Live.Subscribe(domain.ConnectionStream(asked.ID))
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, LookWait)
	defer cancel()
	again := time.NewTicker(time.Second) // a message of Live can be lost
	defer again.Stop()
	last := asked
	for {
		c, err := e.Store.Connection(context.WithoutCancel(ctx), asked.ID)
		if err != nil {
			return last, gone(err)
		}
		last = c
		if c.LookDueAt == nil || c.Version != asked.Version {
			return c, nil
		}
		select {
		case <-told:
		case <-again.C:
		case <-ctx.Done():
			return last, nil
		}
	}
}

// LookTarget gives a Connection that a worker must look at, or nil when the look
// is not wanted any more.
func (e *Engine) LookTarget(ctx context.Context, id domain.ConnectionID) (*domain.Connection, error) {
	c, err := e.Store.Connection(ctx, id)
	if err != nil {
		return nil, gone(err)
	}
	if c.DeletedAt != nil || c.LookDueAt == nil {
		return nil, nil
	}
	return &c, nil
}

// SaveLook saves what a look at an App found. looked is the Connection as it was
// when the worker began to look: another address or secret since then makes the
// look worthless.
func (e *Engine) SaveLook(ctx context.Context, looked domain.Connection, look domain.AppLook, failure *domain.AppError) error {
	return e.decide(ctx, string(looked.ID), func(d *draft) error {
		c, err := e.Store.Connection(ctx, looked.ID)
		if err != nil {
			return gone(err)
		}
		if c.DeletedAt != nil || c.Revision != looked.Revision {
			return nil
		}
		ev := domain.Looked{At: d.at, Look: usable(look)}
		if failure != nil {
			ev.Down = failure.Message
		}
		before := c
		d.was(&before)
		c = domain.DecideLook(c, ev)
		d.put(&c)
		return nil
	})
}

// usable moves tools whose schema no Bot could be held to from the tools to those
// that are left out, each with the reason. The digest stays that of what the App
// offers.
func usable(look domain.AppLook) domain.AppLook {
	kept := make([]domain.AppTool, 0, len(look.Tools))
	skipped := slices.Clone(look.Skipped)
	for _, t := range look.Tools {
		if got := prepare(t.Schema); got.err != nil {
			skipped = append(skipped, fmt.Sprintf("%s: %s", t.Name, got.err))
			continue
		}
		kept = append(kept, t)
	}
	look.Tools, look.Skipped = kept, skipped
	return look
}

// Endpoint says how to reach the App of a Connection.
func Endpoint(c domain.Connection) domain.AppEndpoint {
	return domain.AppEndpoint{Connection: c.ID, Organization: c.Organization, Revision: c.Revision, Transport: c.Transport,
		URL: c.URL, Command: c.Command, Args: c.Args, Sealed: c.Sealed}
}
