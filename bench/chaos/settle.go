//go:build linux

package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// settle answers what is left until every story is over, or the limit is. It gives how
// long that took.
func (l *load) settle(ctx context.Context, limit time.Duration) time.Duration {
	healed := time.Now()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	open := l.record.told()
	for round := 0; ctx.Err() == nil && len(open) > 0; round++ {
		_ = l.w.tendOnce()
		if l.person.answerAll(ctx) == 0 {
			open = slices.DeleteFunc(open, func(s *story) bool { return l.isOver(ctx, s) })
		}
		wait(ctx, 500*time.Millisecond)
	}
	l.person.lingered.Wait()
	for _, s := range open {
		l.record.breach(stuck, "story %d (%s) is not over %s after everything was healed; its Chat is %s", s.number, s.kind, limit, s.chat)
	}
	return time.Since(healed)
}

// isOver says whether nothing of a story is open.
func (l *load) isOver(ctx context.Context, s *story) bool {
	c := l.w.clients[s.number%len(l.w.clients)]
	var chat struct{ Status string }
	if c.insist(ctx, 10*time.Second, "GET", "/v1/chats/"+s.chat, nil, &chat) != nil || chat.Status != "idle" {
		return false
	}
	switch s.kind {
	case kindWork, kindTree, kindForeign:
		var given []work
		if c.insist(ctx, 10*time.Second, "GET", "/v1/chats/"+s.chat+"/delegations", nil, &given) != nil {
			return false
		}
		return !slices.ContainsFunc(given, func(g work) bool { return !(&workSeen{work: g}).over() })
	case kindReminder:
		var items []item
		return time.Since(s.remind) > tooLate || c.insist(ctx, 10*time.Second, "GET", "/v1/chats/"+s.chat+"/items", nil, &items) == nil &&
			slices.ContainsFunc(items, func(i item) bool { return i.Kind == "reminder" })
	}
	return true
}

// verify has the program itself look at a receipt and says what is wrong with it.
func (l *load) verify(ctx context.Context, request string, receipt []byte) string {
	file := filepath.Join(l.w.folder, request+".jws")
	if err := os.WriteFile(file, receipt, 0o600); err != nil {
		return err.Error()
	}
	if out, err := l.w.command(ctx, "verify", file); err != nil {
		return "the receipt of Request " + request + ": " + out
	}
	return ""
}

// auditFault says what is wrong with the audit log.
func (l *load) auditFault(ctx context.Context) string {
	wait(ctx, 3*time.Second) // new entries are chained each second
	out, err := l.w.command(ctx, "audit", "verify")
	if err != nil || strings.Contains(out, "wait to be chained") || strings.Contains(out, "no entries") {
		return out
	}
	return ""
}
