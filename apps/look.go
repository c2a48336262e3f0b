package apps

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/gowebpki/jcs"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"openbot/domain"
)

// What is kept of an App at most. Lengths are in bytes.
const (
	maxPages       = 50
	maxTools       = 500
	maxResources   = 1000
	maxTemplates   = 200
	maxPrompts     = 200
	maxSkipped     = 100
	maxName        = 256
	maxDescription = 4 << 10
	maxListed      = 16 << 20 // all tools of one look together
)

// offer gathers what one look finds.
type offer struct {
	look    domain.AppLook
	covered []domain.AppTool // the tools as the digest covers them, with whole schemas
}

// look reads everything that the App offers and has announced.
func (s *session) look(ctx context.Context) (domain.AppLook, error) {
	o := offer{covered: []domain.AppTool{}}
	result := s.client.InitializeResult()
	if result == nil || result.Capabilities == nil {
		result = &mcp.InitializeResult{Capabilities: &mcp.ServerCapabilities{}, ServerInfo: nil}
	}
	if result.ServerInfo != nil {
		o.look.Name = cleanLine(result.ServerInfo.Name, maxName)
		o.look.Version = cleanLine(result.ServerInfo.Version, maxName)
	}
	if result.Capabilities.Tools != nil {
		if err := s.lookTools(ctx, &o); err != nil {
			return domain.AppLook{}, err
		}
	}
	if result.Capabilities.Resources != nil {
		if err := s.lookResources(ctx, &o); err != nil {
			return domain.AppLook{}, err
		}
	}
	if result.Capabilities.Prompts != nil {
		if err := s.lookPrompts(ctx, &o); err != nil {
			return domain.AppLook{}, err
		}
	}
	digest, err := o.digest()
	if err != nil {
		return domain.AppLook{}, badAnswer("What the App offers has no canonical form, so that changes could not be noticed")
	}
	o.look.Digest = digest
	return o.look, nil
}

// skip names something that cannot be offered.
func (o *offer) skip(kind, name, reason string) {
	if len(o.look.Skipped) < maxSkipped {
		o.look.Skipped = append(o.look.Skipped, fmt.Sprintf("%s %q: %s", kind, cleanLine(name, 80), reason))
	}
}

func (o *offer) note(text string) {
	if len(o.look.Skipped) < maxSkipped {
		o.look.Skipped = append(o.look.Skipped, text)
	}
}

// digest is the SHA-256 over the canonical form (RFC 8785) of the tools. The order in
// which the App lists them does not count, and resources and prompts do not either:
// they are reads without a decision, and an App that gains a resource whenever
// something is written would else void every call that waits.
func (o *offer) digest() (string, error) {
	slices.SortFunc(o.covered, func(a, b domain.AppTool) int { return cmp.Compare(a.Name, b.Name) })
	plain, err := json.Marshal(o.covered)
	if err != nil {
		return "", err
	}
	canonical, err := jcs.Transform(plain)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}

// pages walks the pages of a list: one gets a page and gives the next cursor. It
// stops when one has had enough, on a cursor that was seen before, and at maxPages.
func pages(what string, note func(string), one func(cursor string) (next string, more bool, err error)) error {
	seen := map[string]bool{"": true}
	cursor := ""
	for range maxPages {
		next, more, err := one(cursor)
		if err != nil {
			return err
		}
		if next == "" || !more {
			return nil
		}
		if seen[next] {
			note("The App's list of " + what + " goes in a circle; what came before is kept")
			return nil
		}
		seen[next] = true
		cursor = next
	}
	note(fmt.Sprintf("The App's list of %s has more than %d pages; the rest is left out", what, maxPages))
	return nil
}

// absent reports an App that announces a list and does not know its method.
func absent(err error) bool {
	var fault *jsonrpc.Error
	return errors.As(err, &fault) && fault.Code == jsonrpc.CodeMethodNotFound
}

// nameFault says why a name cannot be kept, or "".
func nameFault(name string) string {
	switch {
	case name == "":
		return "it has no name"
	case len(name) > maxName:
		return fmt.Sprintf("its name is longer than %d bytes", maxName)
	case !utf8.ValidString(name) || slices.ContainsFunc([]rune(name), unicode.IsControl):
		return "its name holds control characters"
	}
	return ""
}

func description(text string) string { return cutText(cleanText(text), maxDescription) }

func (s *session) lookResources(ctx context.Context, o *offer) error {
	err := pages("resources", o.note, func(cursor string) (string, bool, error) {
		page, err := s.client.ListResources(ctx, &mcp.ListResourcesParams{Cursor: cursor})
		if err != nil {
			return "", false, err
		}
		for _, r := range page.Resources {
			if r == nil {
				continue
			}
			if len(o.look.Resources) == maxResources {
				o.note(fmt.Sprintf("The App has more than %d resources; the rest is left out", maxResources))
				return "", false, nil
			}
			if len(r.URI) > maxURL || nameFault(r.URI) != "" && len(r.URI) <= maxName {
				o.skip("resource", r.URI, "its address is empty, too long or holds control characters")
				continue
			}
			kept := domain.AppResource{URI: r.URI, Name: cleanLine(r.Name, maxName),
				Description: description(r.Description), MIMEType: cleanLine(r.MIMEType, maxName)}
			o.look.Resources = append(o.look.Resources, kept)
		}
		return page.NextCursor, true, nil
	})
	if err != nil && !absent(err) {
		return err
	}
	err = pages("resource templates", o.note, func(cursor string) (string, bool, error) {
		page, err := s.client.ListResourceTemplates(ctx, &mcp.ListResourceTemplatesParams{Cursor: cursor})
		if err != nil {
			return "", false, err
		}
		for _, t := range page.ResourceTemplates {
			if t == nil {
				continue
			}
			if len(o.look.Templates) == maxTemplates {
				o.note(fmt.Sprintf("The App has more than %d resource templates; the rest is left out", maxTemplates))
				return "", false, nil
			}
			kept := domain.AppTemplate{URITemplate: cleanLine(t.URITemplate, maxURL), Name: cleanLine(t.Name, maxName),
				Description: description(t.Description), MIMEType: cleanLine(t.MIMEType, maxName)}
			o.look.Templates = append(o.look.Templates, kept)
		}
		return page.NextCursor, true, nil
	})
	slices.SortStableFunc(o.look.Resources, func(a, b domain.AppResource) int { return cmp.Compare(a.URI, b.URI) })
	slices.SortStableFunc(o.look.Templates, func(a, b domain.AppTemplate) int { return cmp.Compare(a.URITemplate, b.URITemplate) })
	if err != nil && !absent(err) {
		return err
	}
	return nil
}

func (s *session) lookPrompts(ctx context.Context, o *offer) error {
	err := pages("prompts", o.note, func(cursor string) (string, bool, error) {
		page, err := s.client.ListPrompts(ctx, &mcp.ListPromptsParams{Cursor: cursor})
		if err != nil {
			return "", false, err
		}
		for _, p := range page.Prompts {
			if p == nil {
				continue
			}
			if len(o.look.Prompts) == maxPrompts {
				o.note(fmt.Sprintf("The App has more than %d prompts; the rest is left out", maxPrompts))
				return "", false, nil
			}
			if fault := nameFault(p.Name); fault != "" {
				o.skip("prompt", p.Name, fault)
				continue
			}
			kept := domain.AppPrompt{Name: p.Name, Description: description(p.Description)}
			for _, argument := range p.Arguments {
				if argument != nil && len(kept.Arguments) < 50 {
					kept.Arguments = append(kept.Arguments, domain.AppPromptArgument{Name: cleanLine(argument.Name, maxName),
						Description: description(argument.Description), Required: argument.Required})
				}
			}
			o.look.Prompts = append(o.look.Prompts, kept)
		}
		return page.NextCursor, true, nil
	})
	slices.SortStableFunc(o.look.Prompts, func(a, b domain.AppPrompt) int { return cmp.Compare(a.Name, b.Name) })
	if err != nil && !absent(err) {
		return err
	}
	return nil
}
