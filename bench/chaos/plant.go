//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// plant is one fault: a text of one file and what takes its place.
type plant struct{ file, old, fault string }

var plants = map[string]plant{
	"revision":  {"domain/request.go", "if ev.Expected != r.Revision {", "if false {"},
	"receipt":   {"domain/engine/receipts.go", "if r.Receipt, err = key.SignReceipt(receipt)", "if _, err = key.SignReceipt(receipt)"},
	"chain":     {"scheduler/scheduler.go", "cleaning.Go(func() { s.chain(ctx) })", ""},
	"denial":    {"domain/call.go", "if ev.Allow {\n\t\tc.Status, c.DueAt", "if true {\n\t\tc.Status, c.DueAt"},
	"resend":    {"domain/engine/attempts.go", "return s.IsRepeatSafe(c.Capability.Target)", "return true"},
	"key":       {"domain/engine/keeping.go", "d.commit.Kept = &kept", "_ = kept"},
	"interrupt": {"domain/engine/chats.go", "d.in(&chat)\n\t\tif err := e.stopTurn(ctx, d, chat.Turn); err != nil {", "d.in(&chat)\n\t\tif err := error(nil); err != nil {"},
	"sweep":     {"scheduler/scheduler.go", "\t\ts.Sweep(ctx)\n", ""},
}

func plantNames() []string { return slices.Sorted(maps.Keys(plants)) }

// build builds the binary, with the planted fault laid over the sources.
func build(ctx context.Context, o options, folder, binary string) error {
	where, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	root := strings.TrimSpace(string(where))
	arguments := append([]string{"build", "-tags=nomsgpack"}, o.flags...)
	if o.plant != "" {
		overlay, err := overlayOf(root, folder, o.plant)
		if err != nil {
			return err
		}
		arguments = append(arguments, "-overlay", overlay)
	}
	command := exec.CommandContext(ctx, "go", append(arguments, "-o", binary, ".")...)
	command.Dir = root
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w: %s", err, output)
	}
	return nil
}

// overlayOf writes the faulty file and gives the path of the overlay that names it.
func overlayOf(root, folder, name string) (string, error) {
	p, ok := plants[name]
	if !ok {
		return "", fmt.Errorf("-plant: %q is none of %s", name, strings.Join(plantNames(), ", "))
	}
	source := filepath.Join(root, p.file)
	text, err := os.ReadFile(source)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), p.old); n != 1 {
		return "", fmt.Errorf("the plant %q finds its place %d times in %s, want once", name, n, p.file)
	}
	faulty := filepath.Join(folder, "faulty.go")
	if err := os.WriteFile(faulty, []byte(strings.Replace(string(text), p.old, p.fault, 1)), 0o600); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {source: faulty}})
	if err != nil {
		return "", err
	}
	file := filepath.Join(folder, "overlay.json")
	return file, os.WriteFile(file, overlay, 0o600)
}
