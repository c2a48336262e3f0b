package repositorytest

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"openbot/domain"
	"openbot/domain/evidence"
)

var audits = []promise{
	{"entries and links come back whole, an entry with its link", func(w *world) {
		w.settle()
		entry := w.newEntry("grt_1")
		entry.Actor, entry.Token, entry.Address = domain.Person("mem_7"), "tok_7", "2001:db8::7"
		w.audit(entry)
		got := w.logged(w.org.ID, 1)
		if len(got) != 1 || got[0].Position <= 0 || got[0].Link != nil {
			w.Fatalf("got %+v, want one entry with a position and no link", got)
		}
		entry.Position = got[0].Position
		w.same("entry", got[0], entry)
		link := domain.AuditLink{Organization: w.org.ID, Position: entry.Position, Number: 7, Previous: "before", Hash: "hash"}
		w.ok(w.store.Commit(w.ctx, domain.Commit{Links: []domain.AuditLink{link}}))
		entry.Link = &link
		w.same("chained entry", w.log(w.org.ID), []domain.AuditEntry{entry})
		w.same("links", must[[]domain.AuditLink](w)(w.store.AuditLinks(w.ctx, w.org.ID, 0, 9)), []domain.AuditLink{link})
		w.code(w.store.Commit(w.ctx, domain.Commit{Links: []domain.AuditLink{link}}), domain.CodeConflict)
	}},
	{"every actor comes back as it was", func(w *world) {
		w.settle()
		actors := []domain.Actor{domain.Person("mem_1"), domain.ByBot("bot_1"), domain.ByGrant("grt_1"), {Tag: domain.TagRule, Rule: "rul_1"},
			{Tag: domain.TagExpiry}, {Tag: domain.TagPolicy}, {Tag: domain.TagExemption}, {Tag: domain.TagServer}, {Tag: domain.TagOperator, User: "mem_2"}}
		if len(actors) != len(domain.ActorTags()) {
			w.Fatalf("%d actors are tried, there are %d tags", len(actors), len(domain.ActorTags()))
		}
		for _, a := range actors {
			entry := w.newEntry("x")
			entry.Actor = a
			w.audit(entry)
		}
		for i, e := range w.logged(w.org.ID, len(actors)) {
			w.same("actor", e.Actor, actors[i])
		}
	}},
	{"an entry stands or falls with its commit", func(w *world) {
		w.settle()
		stale := *w.member
		stale.Version = 9
		w.code(w.store.Commit(w.ctx, domain.Commit{Rows: []domain.Row{&stale}, Audit: []domain.AuditEntry{w.newEntry("x")}}), domain.CodeConflict)
		w.same("entries", len(w.log(w.org.ID)), 0)
	}},
	{"many entries of one commit keep their order", func(w *world) {
		w.settle()
		var c domain.Commit
		for i := range 1234 {
			c.Audit = append(c.Audit, w.newEntry(fmt.Sprint(i)))
		}
		w.ok(w.store.Commit(w.ctx, c))
		got := w.logged(w.org.ID, 1234)
		w.same("number", len(got), 1234)
		for i, e := range got {
			if e.Subject != fmt.Sprint(i) || i > 0 && e.Position <= got[i-1].Position {
				w.Fatalf("entry %d is %+v", i, e)
			}
		}
	}},
	{"the log is listed by what was asked for, of one organization alone", func(w *world) {
		w.settle()
		other := w.newEntry("grt_1")
		other.Organization = "org_other"
		w.audit(other)
		for i := range 6 {
			e := w.newEntry(fmt.Sprintf("grt_%d", i%3))
			e.At = w.now.Truncate(time.Millisecond).Add(time.Duration(i) * time.Second)
			e.Kind = []string{domain.AuditGrantCreated, domain.AuditGrantRevoked}[i%2]
			e.Actor = []domain.Actor{domain.Person("mem_1"), {Tag: domain.TagExpiry}}[i%2]
			w.audit(e)
		}
		w.logged(w.org.ID, 6)
		at := func(i int) time.Time { return w.now.Truncate(time.Millisecond).Add(time.Duration(i) * time.Second) }
		for name, c := range map[string]struct {
			filter domain.AuditFilter
			want   []int // seconds, newest first
		}{
			"everything":      {domain.AuditFilter{}, []int{5, 4, 3, 2, 1, 0}},
			"a kind":          {domain.AuditFilter{Kind: domain.AuditGrantRevoked}, []int{5, 3, 1}},
			"a subject":       {domain.AuditFilter{Subject: "grt_2"}, []int{5, 2}},
			"an actor":        {domain.AuditFilter{Actor: "mem_1"}, []int{4, 2, 0}},
			"an actor's tag":  {domain.AuditFilter{Actor: domain.TagExpiry}, []int{5, 3, 1}},
			"from":            {domain.AuditFilter{From: at(4)}, []int{5, 4}},
			"to":              {domain.AuditFilter{To: at(2)}, []int{1, 0}},
			"all of them":     {domain.AuditFilter{Kind: domain.AuditGrantCreated, Subject: "grt_1", Actor: "mem_1", From: at(1), To: at(5)}, []int{4}},
			"nothing of that": {domain.AuditFilter{Subject: "'; DROP TABLE audit_entries; --\x00"}, nil},
		} {
			got := must[[]domain.AuditEntry](w)(w.store.Audit(w.ctx, w.org.ID, c.filter, 0, 9))
			forward := must[[]domain.AuditEntry](w)(w.store.AuditAfter(w.ctx, w.org.ID, c.filter, 0, 9))
			if len(got) != len(c.want) || len(forward) != len(c.want) {
				w.Fatalf("%s: %d and %d entries, want %d", name, len(got), len(forward), len(c.want))
			}
			for i, seconds := range c.want {
				if !got[i].At.Equal(at(seconds)) || !forward[len(forward)-1-i].At.Equal(at(seconds)) {
					w.Fatalf("%s: entry %d is %+v", name, i, got[i])
				}
			}
		}
		first := must[[]domain.AuditEntry](w)(w.store.Audit(w.ctx, w.org.ID, domain.AuditFilter{}, 0, 4))
		rest := must[[]domain.AuditEntry](w)(w.store.Audit(w.ctx, w.org.ID, domain.AuditFilter{}, first[3].Position, 4))
		if len(first) != 4 || len(rest) != 2 || !rest[0].At.Equal(at(1)) {
			w.Fatalf("the second page is %+v", rest)
		}
	}},
	{"organizations with entries after the end of their chain are found", func(w *world) {
		w.settle()
		second := &domain.Organization{ID: newID[domain.OrganizationID](domain.PrefixOrganization), CreatedAt: w.now, UpdatedAt: w.now}
		w.commit(second)
		unchained := func() []domain.OrganizationID {
			return must[[]domain.OrganizationID](w)(w.store.Unchained(w.ctx, "", 9))
		}
		w.same("nothing", len(unchained()), 0)
		w.audit(w.newEntry("x"))
		w.same("one", unchained(), []domain.OrganizationID{w.org.ID})
		w.same("after it", len(must[[]domain.OrganizationID](w)(w.store.Unchained(w.ctx, w.org.ID, 9))), 0)
		w.logged(w.org.ID, 1)
		w.ok(chain(w.ctx, w, w.org.ID))
		w.same("chained", len(unchained()), 0)
		later := w.newEntry("y")
		later.Organization = second.ID
		w.audit(w.newEntry("z"))
		w.audit(later)
		w.same("both", unchained(), []domain.OrganizationID{w.org.ID, second.ID})
		w.same("all organizations", must[[]domain.OrganizationID](w)(w.store.Organizations(w.ctx, "", 9)), []domain.OrganizationID{w.org.ID, second.ID})
	}},
	{"the first signing key is made once, and keys come in their order", func(w *world) {
		key := func(number int64) *domain.SigningKey {
			return &domain.SigningKey{ID: newID[domain.SigningKeyID](domain.PrefixSigningKey), Number: number, Public: "x", Sealed: []byte{1}, ActiveAt: w.now, CreatedAt: w.now}
		}
		w.commit(key(2))
		w.commit(key(1))
		w.code(w.store.Commit(w.ctx, domain.Commit{Rows: []domain.Row{key(1)}}), domain.CodeConflict)
		keys := must[[]domain.SigningKey](w)(w.store.SigningKeys(w.ctx))
		if len(keys) != 2 || keys[0].Number != 1 || keys[1].Number != 2 {
			w.Fatalf("got %+v", keys)
		}
	}},
	{"many writers of several organizations and several that chain leave whole chains", func(w *world) {
		w.settle()
		orgs := []domain.OrganizationID{w.org.ID}
		for range 3 {
			org := &domain.Organization{ID: newID[domain.OrganizationID](domain.PrefixOrganization), CreatedAt: w.now, UpdatedAt: w.now}
			w.commit(org)
			orgs = append(orgs, org.ID)
		}
		const writers, rounds = 8, 20
		var writing, chaining sync.WaitGroup
		failed := make(chan error, writers+3)
		var done atomic.Bool
		for i := range writers {
			writing.Go(func() {
				for n := range rounds {
					e := w.newEntry(fmt.Sprintf("%d/%d", i, n))
					e.Organization = orgs[(i+n)%len(orgs)]
					if err := w.store.Commit(w.ctx, domain.Commit{Audit: []domain.AuditEntry{e, e}}); err != nil {
						failed <- err
						return
					}
				}
			})
		}
		for range 3 {
			chaining.Go(func() {
				for last := false; ; {
					for _, org := range orgs {
						if err := chain(w.ctx, w, org); err != nil && !domain.IsCode(err, domain.CodeConflict) {
							failed <- err
							return
						}
					}
					if last {
						return
					}
					last = done.Load()
				}
			})
		}
		writing.Wait()
		done.Store(true)
		chaining.Wait()
		select {
		case err := <-failed:
			w.Fatal(err)
		default:
		}
		total := int64(0)
		for _, org := range orgs {
			w.logged(org, writers*rounds*2/len(orgs))
			w.ok(chain(w.ctx, w, org)) // whoever lost the last race
			head := must[domain.AuditHead](w)(w.store.AuditHead(w.ctx, org))
			report, err := evidence.Check(&head, seq(must[[]domain.AuditEntry](w)(w.store.AuditAfter(w.ctx, org, domain.AuditFilter{}, 0, 9999))),
				seq(must[[]domain.AuditLink](w)(w.store.AuditLinks(w.ctx, org, 0, 9999))), nil)
			w.ok(err)
			if report.Fault != nil || report.Waiting != 0 {
				w.Fatalf("the chain of %s: %+v", org, report)
			}
			total += report.Count
		}
		w.same("entries in all chains", total, int64(writers*rounds*2))
	}},
}

func (w *world) newEntry(subject string) domain.AuditEntry {
	return domain.AuditEntry{Organization: w.org.ID, At: w.now.Truncate(time.Millisecond), Kind: domain.AuditGrantCreated, Subject: subject,
		Actor: domain.Actor{Tag: domain.TagServer}, Data: []byte(`{}`)}
}

func (w *world) audit(entries ...domain.AuditEntry) {
	w.Helper()
	w.ok(w.store.Commit(w.ctx, domain.Commit{Audit: entries}))
}

func (w *world) log(org domain.OrganizationID) []domain.AuditEntry {
	w.Helper()
	return must[[]domain.AuditEntry](w)(w.store.AuditAfter(w.ctx, org, domain.AuditFilter{}, 0, 9999))
}

// chain extends the chain of an organization, as the engine does: it gives conflict
// when somebody else did meanwhile.
func chain(ctx context.Context, w *world, org domain.OrganizationID) error {
	head, err := w.store.AuditHead(ctx, org)
	if err != nil && !domain.IsCode(err, domain.CodeNotFound) {
		return err
	}
	head.ID = org
	entries, err := w.store.AuditAfter(ctx, org, domain.AuditFilter{}, head.Position, 50)
	if err != nil || len(entries) == 0 {
		return err
	}
	next, links, err := evidence.Chain(head, entries)
	if err != nil {
		return err
	}
	next.LinkedAt = w.now
	if err := w.store.Commit(ctx, domain.Commit{Rows: []domain.Row{&next}, Links: links}); err != nil {
		return err
	}
	return chain(ctx, w, org)
}

func seq[T any](list []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range list {
			if !yield(v, nil) {
				return
			}
		}
	}
}
