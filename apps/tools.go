package apps

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"openbot/domain"
)

// eachTool hands every tool of the App to take, until take has had enough. It also
// hands on the tools that the library drops from its lists.
func (s *session) eachTool(ctx context.Context, take func(*mcp.Tool) bool, note func(string)) error {
	return pages("tools", note, func(cursor string) (string, bool, error) {
		var all []*mcp.Tool
		page, err := s.client.ListTools(context.WithValue(ctx, allToolsKey{}, &all), &mcp.ListToolsParams{Cursor: cursor})
		if err != nil {
			return "", false, err
		}
		for _, tool := range all {
			if tool != nil && !slices.Contains(page.Tools, tool) {
				note(fmt.Sprintf("tool %q: its notes on HTTP headers are not valid", cleanLine(tool.Name, 80)))
			}
		}
		for _, tool := range page.Tools {
			if !take(tool) {
				return "", false, nil
			}
		}
		return page.NextCursor, true, nil
	})
}

func (s *session) lookTools(ctx context.Context, o *offer) error {
	names := make(map[string]bool)
	size := 0
	err := s.eachTool(ctx, func(tool *mcp.Tool) bool {
		if fault := nameFault(tool.Name); fault != "" {
			o.skip("tool", tool.Name, fault)
			return true
		}
		if names[tool.Name] {
			o.skip("tool", tool.Name, "the App lists another tool of this name")
			return true
		}
		names[tool.Name] = true
		whole, usable, fault := toolSchema(tool.InputSchema)
		if fault != "" {
			o.skip("tool", tool.Name, fault)
			return true
		}
		if size += len(whole) + len(tool.Description); len(o.look.Tools) == maxTools || size > maxListed {
			o.note(fmt.Sprintf("The App has more than %d tools, or %d MiB of them; the rest is left out", maxTools, maxListed>>20))
			return false
		}
		kept := domain.AppTool{Name: tool.Name, Title: cleanLine(title(tool), maxName),
			Description: description(tool.Description), Hints: hints(tool.Annotations)}
		covered := kept
		kept.Schema, covered.Schema = usable, whole
		o.look.Tools = append(o.look.Tools, kept)
		o.covered = append(o.covered, covered)
		return true
	}, o.note)
	slices.SortFunc(o.look.Tools, func(a, b domain.AppTool) int { return cmp.Compare(a.Name, b.Name) })
	if err != nil && !absent(err) {
		return err
	}
	return nil
}

func title(tool *mcp.Tool) string {
	if tool.Title == "" && tool.Annotations != nil {
		return tool.Annotations.Title
	}
	return tool.Title
}

// hints keeps an App's notes. The library cannot tell a false from nothing for two
// of them; both mean the same, so false is kept as nothing said.
func hints(notes *mcp.ToolAnnotations) domain.AppHints {
	if notes == nil {
		return domain.AppHints{}
	}
	out := domain.AppHints{Destructive: notes.DestructiveHint, OpenWorld: notes.OpenWorldHint}
	yes := true
	if notes.ReadOnlyHint {
		out.ReadOnly = &yes
	}
	if notes.IdempotentHint {
		out.Idempotent = &yes
	}
	return out
}
