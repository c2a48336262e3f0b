package repository_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
	"openbot/repository"
	"openbot/repository/repositorytest"
)

// plainSealer is a Sealer for tests that look at no secret.
type plainSealer struct{}

func (plainSealer) Seal(text []byte, _ domain.OrganizationID, _ string) ([]byte, error) {
	return text, nil
}

func (plainSealer) Open(text []byte, _ domain.OrganizationID, _ string) ([]byte, error) {
	return text, nil
}

type silence struct{}

func (silence) Ring(context.Context, ...domain.Task)       {}
func (silence) Publish(context.Context, ...string)         {}
func (silence) Subscribe(string) (<-chan struct{}, func()) { return nil, func() {} }

const logged = domain.OrganizationID("org_1")

// withLog gives a store with an organization whose ten entries are chained, and an
// engine on it.
func withLog(t *testing.T, o repository.Options) (*repository.Store, *engine.Engine) {
	t.Helper()
	store := migrated(t, o)
	e := engine.New(engine.Options{Store: store, Ringer: silence{}, Live: silence{}, Sealer: plainSealer{}})
	must(t, e.PrepareKeys(t.Context()))
	must(t, store.Commit(t.Context(), domain.Commit{Rows: []domain.Row{&domain.Organization{ID: logged}}}))
	for i := range 10 {
		must(t, store.Commit(t.Context(), domain.Commit{Audit: []domain.AuditEntry{{Organization: logged, At: time.UnixMilli(int64(1767323045000 + i)).UTC(),
			Kind: domain.AuditGrantCreated, Subject: fmt.Sprintf("grt_%d", i+1), Actor: domain.Person("mem_1"), Token: "tok_1", Address: "203.0.113.7", Data: []byte(`{"n":1}`)}}}))
	}
	chained(t, e, 10)
	return store, e
}

// chained chains the log until it holds so many entries.
func chained(t *testing.T, e *engine.Engine, entries int64) {
	t.Helper()
	repositorytest.Soon(t, func() string {
		must(t, e.ChainAudit(t.Context()))
		report, err := e.CheckAudit(t.Context(), logged, nil)
		must(t, err)
		if report.Fault != nil || report.Count != entries {
			return fmt.Sprintf("%d of %d entries are chained, fault %v", report.Count, entries, report.Fault)
		}
		return ""
	})
}

func checked(t *testing.T, e *engine.Engine) string {
	t.Helper()
	report, err := e.CheckAudit(t.Context(), logged, nil)
	must(t, err)
	if report.Fault == nil {
		return ""
	}
	return report.Fault.Error()
}

// whoCan is somebody who may do anything in the database: the guards of the log do not
// stop them, its chain shows what they did.
func whoCan(t *testing.T, o repository.Options, store *repository.Store, query string, args ...any) {
	t.Helper()
	guards := []string{"DROP TRIGGER IF EXISTS audit_entries_unchanged", "DROP TRIGGER IF EXISTS audit_entries_kept",
		"DROP TRIGGER IF EXISTS audit_links_unchanged", "DROP TRIGGER IF EXISTS audit_links_kept"}
	if o.URL != "" {
		guards = []string{"ALTER TABLE audit_entries DISABLE TRIGGER ALL", "ALTER TABLE audit_links DISABLE TRIGGER ALL"}
	}
	for _, guard := range guards {
		must(t, store.Exec(t.Context(), guard))
	}
	must(t, store.Exec(t.Context(), query, args...))
}

func positionOf(t *testing.T, store *repository.Store, number int) int64 {
	t.Helper()
	entries, err := store.AuditAfter(t.Context(), logged, domain.AuditFilter{}, 0, 100)
	must(t, err)
	return entries[number-1].Position
}

func TestTheDatabaseItselfRefusesToChangeTheLog(t *testing.T) {
	both(t, func(t *testing.T, o repository.Options) {
		store, e := withLog(t, o)
		statements := []string{"UPDATE audit_entries SET kind = 'x'", "DELETE FROM audit_entries", "UPDATE audit_links SET hash = ''", "DELETE FROM audit_links"}
		if o.URL != "" {
			statements = append(statements, "TRUNCATE audit_entries", "TRUNCATE audit_links")
		}
		for _, statement := range statements {
			if err := store.Exec(t.Context(), statement); err == nil || !strings.Contains(err.Error(), "append-only") {
				t.Errorf("%s gave %v", statement, err)
			}
		}
		if fault := checked(t, e); fault != "" {
			t.Error(fault)
		}
	})
}

// Every column of every row of the log: a change is found, and the entry is named.
func TestEveryColumnOfTheLogIsCovered(t *testing.T) {
	text := func(column string) string { return column + " = " + column + " || 'x'" }
	number := func(column string) string { return column + " = " + column + " + 1" }
	const moved = `"position" = "position" + 10000000`
	both(t, func(t *testing.T, o repository.Options) {
		store, e := withLog(t, o)
		fifth := positionOf(t, store, 5)
		tables := map[string][]string{
			"audit_entries": {text("organization_id"), moved, text("kind"), text("subject"), text("actor_tag"), text("actor_id"), text("token_id"),
				text("address"), text("data"), "data = '{\"n\": 1}'", number("created_at"), "created_at = created_at + 1000", "actor_id = ''", "token_id = ''"},
			"audit_links": {text("organization_id"), moved, number("number"), text("previous"), text("hash"), "hash = upper(hash)"},
		}
		tried := 0
		for table, changes := range tables {
			for _, change := range changes {
				tried++
				whoCan(t, o, store, "CREATE TABLE kept AS SELECT * FROM "+table)
				whoCan(t, o, store, "UPDATE "+table+" SET "+change+` WHERE organization_id = ? AND "position" = ?`, logged, fifth)
				if fault := checked(t, e); !strings.Contains(fault, "entry 5 ") {
					t.Errorf("%s of %s: got %q", change, table, fault)
				}
				whoCan(t, o, store, "DELETE FROM "+table)
				whoCan(t, o, store, "INSERT INTO "+table+" SELECT * FROM kept")
				whoCan(t, o, store, "DROP TABLE kept")
				if fault := checked(t, e); fault != "" {
					t.Fatalf("after %s of %s was undone: %s", change, table, fault)
				}
			}
		}
		head := []string{text("id"), number("entries"), "entries = entries - 1", text("hash"), number(`"position"`), `"position" = 0`, text("signed"), "signed = ''",
			number("linked_at") + "000", "entries = 0, hash = '', \"position\" = 0, signed = ''"}
		for _, change := range head {
			tried++
			whoCan(t, o, store, "CREATE TABLE kept AS SELECT * FROM audit_heads")
			whoCan(t, o, store, "UPDATE audit_heads SET "+change)
			if fault := checked(t, e); !strings.Contains(fault, "head") && !strings.Contains(fault, "removed") {
				t.Errorf("%s of audit_heads: got %q", change, fault)
			}
			whoCan(t, o, store, "DELETE FROM audit_heads")
			whoCan(t, o, store, "INSERT INTO audit_heads SELECT * FROM kept")
			whoCan(t, o, store, "DROP TABLE kept")
		}
		if fault := checked(t, e); fault != "" || tried < 28 {
			t.Fatalf("%d changes were tried; in the end: %s", tried, fault)
		}
	})
}

func TestRowsTakenOutOfTheLogAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		do    []string
		fault string
	}{
		"an entry":              {[]string{`DELETE FROM audit_entries WHERE subject = 'grt_5'`}, "entry 5 was removed"},
		"an entry and its link": {[]string{`DELETE FROM audit_links WHERE number = 5`, `DELETE FROM audit_entries WHERE subject = 'grt_5'`}, "entry 5 was removed"},
		"a link":                {[]string{`DELETE FROM audit_links WHERE number = 5`}, "the link of entry 5 was removed"},
		"the last two":          {[]string{`DELETE FROM audit_links WHERE number > 8`, `DELETE FROM audit_entries WHERE subject IN ('grt_9', 'grt_10')`}, "entry 9 was removed"},
		"the last two, and the head follows": {[]string{`DELETE FROM audit_links WHERE number > 8`, `DELETE FROM audit_entries WHERE subject IN ('grt_9', 'grt_10')`,
			`UPDATE audit_heads SET entries = 8, hash = (SELECT hash FROM audit_links WHERE number = 8), "position" = (SELECT "position" FROM audit_links WHERE number = 8)`},
			"the head of the chain was changed: its signature is for another one"},
		"the head":  {[]string{`DELETE FROM audit_heads`}, "the head of the chain was removed"},
		"all of it": {[]string{`DELETE FROM audit_links`, `DELETE FROM audit_entries`, `DELETE FROM audit_heads`}, "the head of the chain was removed"},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, o repository.Options) {
				store, e := withLog(t, o)
				for _, statement := range c.do {
					whoCan(t, o, store, statement)
				}
				if got := checked(t, e); !strings.HasPrefix(got, c.fault) {
					t.Errorf("got %q, want %q", got, c.fault)
				}
			})
		})
	}
}

func TestAnEntryPutInLaterIsNamed(t *testing.T) {
	needPostgres(t) // on SQLite no position is left between two
	o := onPostgres(t)
	store, e := withLog(t, o)
	whoCan(t, o, store, `INSERT INTO audit_entries SELECT organization_id, "position" + 1, kind, 'grt_forged', actor_tag, actor_id, token_id, address, data, created_at
		FROM audit_entries WHERE subject = 'grt_5'`)
	if got := checked(t, e); !strings.HasPrefix(got, "an entry was inserted after entry 5 (grant.created of grt_forged") {
		t.Errorf("got %q", got)
	}
}

// A chain that cannot go on holds up no other, and says which one it is.
func TestABrokenChainHoldsUpNoOther(t *testing.T) {
	both(t, func(t *testing.T, o repository.Options) {
		store, e := withLog(t, o)
		must(t, store.Commit(t.Context(), domain.Commit{Rows: []domain.Row{&domain.Organization{ID: "org_2"}}}))
		whoCan(t, o, store, `UPDATE audit_heads SET "position" = (SELECT MIN("position") FROM audit_links), entries = 1`)
		for _, org := range []domain.OrganizationID{logged, "org_2"} {
			must(t, store.Commit(t.Context(), domain.Commit{Audit: []domain.AuditEntry{{Organization: org, At: time.UnixMilli(5).UTC(), Kind: "x", Data: []byte(`{}`)}}}))
		}
		repositorytest.Soon(t, func() string {
			err := e.ChainAudit(t.Context())
			if err == nil || !strings.Contains(err.Error(), "org_1") || strings.Contains(err.Error(), "org_2") {
				return fmt.Sprintf("chaining says %v", err)
			}
			if head, err := store.AuditHead(t.Context(), "org_2"); err != nil || head.Count != 1 {
				return fmt.Sprintf("the other chain is %+v, %v", head, err)
			}
			return ""
		})
	})
}

// An entry of a transaction that began earlier and ends later comes before the others,
// so nothing after it is chained until it is there.
func TestAnOpenTransactionHoldsTheChainUp(t *testing.T) {
	needPostgres(t)
	o := onPostgres(t)
	store, e := withLog(t, o)
	slow := connect(t, o.URL)
	exec(t, slow, "BEGIN")
	exec(t, slow, `INSERT INTO audit_entries (organization_id, kind, subject, actor_tag, actor_id, token_id, address, data, created_at, "position")
		VALUES ('org_1', 'slow', '', '', '', '', '', '{}', 0, (pg_current_xact_id()::text::bigint + (SELECT value FROM event_offset)) << 16)`)
	must(t, store.Commit(t.Context(), domain.Commit{Audit: []domain.AuditEntry{{Organization: logged, At: time.UnixMilli(5).UTC(), Kind: "quick", Data: []byte(`{}`)}}}))
	count := func() int64 {
		t.Helper()
		must(t, e.ChainAudit(t.Context()))
		head, err := store.AuditHead(t.Context(), logged)
		must(t, err)
		return head.Count
	}
	if got := count(); got != 10 {
		t.Fatalf("%d entries are chained while an older transaction is open", got)
	}
	seen, err := store.Audit(t.Context(), logged, domain.AuditFilter{}, 0, 1)
	if err != nil || seen[0].Kind != "quick" {
		t.Fatalf("the newest entry is %+v, %v", seen, err)
	}
	exec(t, slow, "COMMIT")
	chained(t, e, 12)
	if fault := checked(t, e); fault != "" {
		t.Error(fault)
	}
}

// Positions begin anew in another cluster; the chain must go on all the same.
func TestTheChainGoesOnAfterARestoreElsewhere(t *testing.T) {
	needPostgres(t)
	o := onPostgres(t)
	store, e := withLog(t, o)
	for _, table := range []string{"audit_entries", "audit_links", "audit_heads"} {
		whoCan(t, o, store, `UPDATE `+table+` SET "position" = "position" + (1::bigint << 50)`)
	}
	restored := opened(t, o)
	must(t, restored.Commit(t.Context(), domain.Commit{Audit: []domain.AuditEntry{{Organization: logged, At: time.UnixMilli(5).UTC(), Kind: "new", Data: []byte(`{}`)}}}))
	chained(t, e, 11)
}
