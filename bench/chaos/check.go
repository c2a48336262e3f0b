//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// settle answers what is left until every Chat is idle or the limit is over.
func (l *load) settle(ctx context.Context, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	random := seeded(l.o.seed, 3)
	open := slices.Clone(l.said)
	for ctx.Err() == nil && len(open) > 0 {
		if l.answerAll(ctx, random) == 0 {
			open = slices.DeleteFunc(open, func(s said) bool {
				var chat struct{ Status string }
				return l.w.clients[0].insist(ctx, 10*time.Second, "GET", "/v1/chats/"+s.chat, nil, &chat) == nil && chat.Status == "idle"
			})
		}
		wait(ctx, 500*time.Millisecond)
	}
	for _, s := range open {
		l.breach("stuck", "Chat %s is not idle %s after everything was healed", s.chat, limit)
	}
}

type turn struct {
	ID, Status string
	Calls      []struct{ ID, Status string }
}

// check compares the record of the App with what the server says.
func (l *load) check(ctx context.Context) []breach {
	sent := map[string]int{}
	for _, r := range l.w.app.Receipts() {
		var arguments struct{ To string }
		_ = json.Unmarshal(r.Arguments, &arguments)
		sent[arguments.To]++
	}
	c := l.w.clients[0]
	for _, s := range l.said {
		var turns []turn
		if err := c.insist(ctx, 20*time.Second, "GET", "/v1/chats/"+s.chat+"/turns", nil, &turns); err != nil {
			l.breach("lost", "%v", err)
			continue
		}
		switch {
		case len(turns) == 0:
			l.breach("lost", "Chat %s took a message and has no Turn", s.chat)
		case len(turns) > 1:
			l.breach("doubled", "Chat %s has %d Turns for one commandKey", s.chat, len(turns))
		}
		n := sent[s.to]
		if n > 1 {
			l.breach("doubled", "the call of Chat %s went out %d times", s.chat, n)
		}
		for _, t := range turns {
			if l.denied[t.ID] && n > 0 {
				l.breach("undecided", "the call of Turn %s was denied and reached the App", t.ID)
			}
			for _, call := range t.Calls {
				l.calls++
				switch {
				case call.Status == "succeeded" && n == 0:
					l.breach("lost", "call %s succeeded and never reached the App", call.ID)
				case call.Status == "denied" && n > 0:
					l.breach("undecided", "call %s is denied and reached the App", call.ID)
				}
			}
		}
	}
	l.checkEvidence(ctx)
	return l.breaches
}

// checkEvidence asks for the receipt of each answer, has some verified, and has the
// audit log verified.
func (l *load) checkEvidence(ctx context.Context) {
	verified := 0
	for _, id := range l.decided {
		status, raw := l.w.clients[0].try(ctx, "GET", "/v1/requests/"+id+"/receipt", nil)
		if status != 200 {
			l.breach("receipt", "the receipt of %s: %d", id, status)
			continue
		}
		if verified++; verified > 5 { // a process for each is dear
			continue
		}
		file := filepath.Join(l.w.folder, "receipt.jws")
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			l.breach("receipt", "%v", err)
		}
		if out, err := l.w.command(ctx, "verify", file); err != nil {
			l.breach("receipt", "the receipt of %s: %s", id, out)
		}
	}
	wait(ctx, 3*time.Second) // new entries are chained each second
	out, err := l.w.command(ctx, "audit", "verify")
	if err != nil || strings.Contains(out, "wait to be chained") || strings.Contains(out, "no entries") {
		l.breach("audit", "openbot audit verify: %s", out)
	}
}

// report prints the table; breaches are an error.
func report(out io.Writer, l *load, strikes map[string]int, found []breach) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "Turns\t%d\nanswers taken\t%d\ncalls compared\t%d\ncalls that reached the App\t%d\n", len(l.said), l.answers, l.calls, l.w.app.Count("send_email"))
	for _, name := range slices.Sorted(maps.Keys(strikes)) {
		fmt.Fprintf(table, "%s\t%d\n", name, strikes[name])
	}
	kinds := map[string]int{"lost": 0, "doubled": 0, "undecided": 0, "stale answer": 0, "stuck": 0, "not interrupted": 0, "receipt": 0, "audit": 0}
	for _, b := range found {
		kinds[b.kind]++
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Fprintf(table, "BREACH %s\t%d\n", kind, kinds[kind])
	}
	_ = table.Flush()
	for i, b := range found {
		if i == 20 {
			break
		}
		fmt.Fprintf(out, "%s: %s\n", b.kind, b.what)
	}
	if len(l.said) == 0 || l.answers == 0 || l.calls == 0 {
		return errors.New("nothing was said, answered or compared: the run shows nothing")
	}
	if len(found) > 0 {
		return fmt.Errorf("%d breaches (seed %d)", len(found), l.o.seed)
	}
	return nil
}
