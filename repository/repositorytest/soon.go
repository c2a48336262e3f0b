package repositorytest

import (
	"fmt"
	"testing"
	"time"

	"openbot/domain"
)

// Soon tries until nothing is missing any more, at most a minute: on PostgreSQL a
// transaction that is open anywhere in the database, another test's too, holds up whoever
// reads in the order of positions, until it ends.
func Soon(t *testing.T, try func() (missing string)) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(time.Minute); ; {
		missing := try()
		if missing == "" {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("not within a minute: %s", missing)
		}
	}
}

// logged gives the log of an organization once it shows so many entries.
func (w *world) logged(org domain.OrganizationID, many int) []domain.AuditEntry {
	w.Helper()
	var entries []domain.AuditEntry
	Soon(w.T, func() string {
		entries = w.log(org)
		return short(len(entries), many)
	})
	return entries
}

// heard gives the events of the world's Member once so many are shown.
func (w *world) heard(many int) []domain.Event {
	w.Helper()
	var events []domain.Event
	Soon(w.T, func() string {
		events = must[[]domain.Event](w)(w.store.MemberEvents(w.ctx, w.member.ID, 0, many+1))
		return short(len(events), many)
	})
	return events
}

func short(got, want int) string {
	if got < want {
		return fmt.Sprintf("%d of %d are shown", got, want)
	}
	return ""
}
