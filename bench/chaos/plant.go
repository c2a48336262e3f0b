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

// edit is a text of one file and what takes its place.
type edit struct{ file, old, fault string }

// plant is one fault that is known, and a load under which it cannot hide.
type plant struct {
	what   string // is wrong
	kind   string // the breach that shows it
	only   string // the one kind of story that meets it; "" tells all
	strike string // the one strike that brings it out; "" strikes nothing
	edits  []edit
}

var plants = map[string]plant{
	"revision": {"an answer to an old revision counts", staleTaken, kindRound, "",
		[]edit{{"domain/request.go", "if ev.Expected != r.Revision {", "if false {"}}},
	"deadline": {"the deadline is not checked in the answer's transaction", late, kindLate, "",
		[]edit{{"domain/request.go", "if !Before(ev.At, r.ExpiresAt) {\n\t\treturn requestConflict(", "if false {\n\t\treturn requestConflict("}}},
	"denial": {"a call that was denied goes out", undecided, kindRound, "",
		[]edit{{"domain/call.go", "if ev.Allow {\n\t\tc.Status, c.DueAt", "if true {\n\t\tc.Status, c.DueAt"}}},
	"expiry": {"a Request that nobody answers is allowed", undecided, kindLate, "",
		[]edit{{"domain/request.go", "d := Decision{Decision: DecisionDeny, Scope: ScopeOnce, By: Actor{Tag: TagExpiry}", "d := Decision{Decision: DecisionAllow, Scope: ScopeOnce, By: Actor{Tag: TagExpiry}"}}},
	"quote": {"the judge's quote need not stand in the Rule", undecided, kindJudged, "",
		[]edit{{"domain/rule.go", "func (r Rule) Holds(quote string) bool {", "func (r Rule) Holds(quote string) bool {\n\tif quote != \"\" {\n\t\treturn true\n\t}"}}},
	"cap": {"an endorsing Bot's Grant is as wide as the Bot likes, not as the answer", tooWide, kindChain, "",
		[]edit{{"domain/request.go", "if scope := narrower(e.Scope, d.Scope); scope", "if scope := e.Scope; scope"}}},
	"key": {"answers are not kept by their key", doubled, kindRound, "",
		[]edit{{"domain/engine/keeping.go", "d.commit.Kept = &kept", "_ = kept"}}},
	"interrupt": {"an interrupt leaves the Turn as it is", stopless, kindStopped, "",
		[]edit{{"domain/engine/chats.go", "d.in(&chat)\n\t\tif err := e.stopTurn(ctx, d, chat.Turn); err != nil {", "d.in(&chat)\n\t\tif err := error(nil); err != nil {"}}},
	"steps": {"the limit of steps is not looked at", limitless, kindWork, "",
		[]edit{{"domain/worktime.go", "return g.Limits.Steps > 0 && g.Steps-", "return false && g.Steps-"}}},
	"notice": {"the end of work is not told to its giver", lost, kindWork, "",
		[]edit{{"domain/engine/workend.go", "if g.Notice == domain.NoticeNone || chat.DeletedAt != nil {", "if true {"}}},
	"reminder": {"a reminder stays after it came", doubled, kindReminder, "",
		[]edit{{"domain/engine/reminders.go", "d.commit.Reminded = append(d.commit.Reminded, r.ID)", ""}}},
	"sending": {"sending is not committed before the call goes out", doubled, kindRound, nameSlowKilled,
		[]edit{{"domain/engine/calls.go", "if err := w.move(domain.Taken{At: d.at, Lease: lease}); err != nil {\n\t\t\treturn err\n\t\t}\n\t\ttaken = w",
			"next, err := domain.DecideCall(f.Call, domain.Taken{At: d.at, Lease: lease})\n\t\tif err != nil {\n\t\t\treturn err\n\t\t}\n\t\tw.call, w.moved = next, &next\n\t\ttaken = w"}}},
	"alive": {"a worker whose lease is over sends all the same", doubled, kindRound, nameMute,
		[]edit{{"worker/send.go", "held = &lease{Context: ctx, taken:", "held = &lease{Context: context.WithoutCancel(ctx), taken:"},
			{"worker/send.go", "if time.Since(l.taken) > lookAgainAfter {", "if false {"},
			{"worker/send.go", "if l.Err() != nil || !domain.Before(time.Now(), l.until) {", "if false {"}}},
	"lease": {"the lease of a call that is out is not renewed", lost, kindRound, nameSlower,
		[]edit{{"worker/send.go", "until, ours, err := w.Engine.RenewCall(ctx, s)", "until, ours, err := s.Until, true, error(nil)"}}},
	"resend": {"a call whose worker died is sent again by itself", doubled, kindRound, nameSlowKilled,
		[]edit{{"domain/engine/attempts.go", "return s.IsRepeatSafe(c.Capability.Target)", "return true"}}},
	"ring": {"workers are rung before the commit", slow, kindRound, "",
		[]edit{{"domain/engine/engine.go", "err := e.Store.Commit(ctx, d.commit)\n\t\tif err == nil {\n\t\t\te.announce(ctx, d)", "e.announce(ctx, d)\n\t\terr := e.Store.Commit(ctx, d.commit)\n\t\tif err == nil {"}}},
	"sweep": {"nobody sweeps", stuck, kindLate, nameEmptied,
		[]edit{{"scheduler/scheduler.go", "\t\ts.Sweep(ctx)\n", ""}}},
	"receipt": {"receipts are signed and thrown away", noReceipt, kindRound, "",
		[]edit{{"domain/engine/receipts.go", "if r.Receipt, err = key.SignReceipt(receipt)", "if _, err = key.SignReceipt(receipt)"}}},
	"chain": {"the audit log is not chained", noAudit, kindRound, "",
		[]edit{{"scheduler/scheduler.go", "cleaning.Go(func() { s.chain(ctx) })", ""}}},
}

// allPlants stands for each of them in turn.
const allPlants = "all"

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

// overlayOf writes the faulty files and gives the path of the overlay that names them.
func overlayOf(root, folder, name string) (string, error) {
	p, ok := plants[name]
	if !ok {
		return "", fmt.Errorf("-plant: %q is none of %s", name, strings.Join(plantNames(), ", "))
	}
	replace := map[string]string{}
	for i, e := range p.edits {
		source := filepath.Join(root, e.file)
		before := source
		if replace[source] != "" { // a second edit of the same file
			before = replace[source]
		}
		text, err := os.ReadFile(before)
		if err != nil {
			return "", err
		}
		if n := strings.Count(string(text), e.old); n != 1 {
			return "", fmt.Errorf("the plant %q finds its place %d times in %s, want once", name, n, e.file)
		}
		faulty := filepath.Join(folder, fmt.Sprintf("faulty%d.go", i))
		if err := os.WriteFile(faulty, []byte(strings.Replace(string(text), e.old, e.fault, 1)), 0o600); err != nil {
			return "", err
		}
		replace[source] = faulty
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", err
	}
	file := filepath.Join(folder, "overlay.json")
	return file, os.WriteFile(file, overlay, 0o600)
}
