package repository_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
	"openbot/domain/evidence"
	"openbot/model"
	"openbot/repository"
	"openbot/repository/repositorytest"
)

// steps keeps the model steps that were rung.
type steps struct {
	silence
	mu    sync.Mutex
	tasks []domain.Task
}

func (s *steps) Ring(_ context.Context, tasks ...domain.Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, task := range tasks {
		if task.Kind == domain.TaskTurnStep {
			s.tasks = append(s.tasks, task)
		}
	}
}

// tenant is an organization with a person who has Requests to answer.
type tenant struct {
	me       domain.Principal
	requests []domain.RequestID
}

// newTenant makes an organization whose Bot asks n times.
func newTenant(t *testing.T, store *repository.Store, e *engine.Engine, rung *steps, name string, n int) tenant {
	t.Helper()
	ctx, at := t.Context(), time.Now().UTC().Truncate(time.Microsecond)
	id := func(prefix string) string { return prefix + strings.Repeat("0", 31-len(name)) + name + "1" }
	org, member, bot := domain.OrganizationID(id("org_")), domain.MemberID(id("mem_")), domain.BotID(id("bot_"))
	secret := "a secret of tests, long enough: " + name
	connection := domain.Connection{ID: domain.ConnectionID(id("con_")), Organization: org, Member: member, Name: "mail", Transport: domain.TransportHTTP,
		Revision: 1, Health: domain.HealthOK, LookedAt: &at, CreatedAt: at, UpdatedAt: at}
	connection.Look = domain.AppLook{Digest: "d", Tools: []domain.AppTool{{Name: "send", Schema: json.RawMessage(`{"type":"object"}`)}}}
	must(t, store.Commit(ctx, domain.Commit{At: at, Rows: []domain.Row{
		&domain.Organization{ID: org, Settings: domain.DefaultSettings(), CreatedAt: at, UpdatedAt: at},
		&domain.Member{ID: member, Organization: org, Name: name, Permissions: domain.Permissions{"admin", "*"}, MainBot: bot, CreatedAt: at, UpdatedAt: at},
		&domain.Bot{ID: bot, Organization: org, Kind: domain.BotMain, Member: member, CreatedAt: at, UpdatedAt: at},
		&domain.Token{ID: domain.TokenID(id("tok_")), Organization: org, Member: member, Hash: engine.HashSecret(secret), Scopes: domain.Permissions{"admin", "*"}, CreatedAt: at},
		&connection}}))
	me, err := e.Authenticate(ctx, secret)
	must(t, err)
	for range n {
		chat, err := e.CreateChat(ctx, me, engine.NewChat{})
		must(t, err)
		_, err = e.PostMessage(ctx, me, chat.ID, `/call mail__send {"to":"a"}`)
		must(t, err)
	}
	for len(rung.tasks) > 0 {
		task := rung.tasks[0]
		rung.tasks = rung.tasks[1:]
		step, err := e.PrepareStep(ctx, domain.TurnID(task.Subject), task.Revision)
		must(t, err)
		reply, err := e.Models.Call(ctx, step.Request)
		must(t, err)
		must(t, e.CommitStep(ctx, step, reply))
	}
	list, err := e.Requests(ctx, me, domain.RequestFilter{Status: domain.RequestPending}, domain.Page{Limit: 100})
	must(t, err)
	out := tenant{me: me}
	for _, r := range list {
		out.requests = append(out.requests, r.ID)
	}
	if len(out.requests) != n {
		t.Fatalf("%d Requests wait, want %d", len(out.requests), n)
	}
	return out
}

// Many organizations answer at once, on servers of their own, while several schedulers
// chain: each decision has exactly one entry and one receipt, each chain is whole.
func TestManyOrganizationsAnswerAtOnce(t *testing.T) {
	const organizations, asked, servers, chainers = 5, 8, 3, 3
	both(t, func(t *testing.T, o repository.Options) {
		store := migrated(t, o)
		models := model.New(model.Options{})
		t.Cleanup(models.Close)
		rung := &steps{}
		with := func(s *repository.Store) *engine.Engine {
			return engine.New(engine.Options{Store: s, Ringer: rung, Live: silence{}, Models: models, Sealer: plainSealer{}, DefaultModel: "playbook"})
		}
		first := with(store)
		must(t, first.PrepareKeys(t.Context()))
		var tenants []tenant
		for i := range organizations {
			tenants = append(tenants, newTenant(t, store, first, rung, fmt.Sprint(i), asked))
		}
		engines := []*engine.Engine{first}
		for range servers - 1 {
			other := store // SQLite is one process
			if o.URL != "" {
				other = opened(t, o)
			}
			engines = append(engines, with(other))
		}

		var answering, chaining sync.WaitGroup
		stop := make(chan struct{})
		for i := range chainers {
			chaining.Go(func() {
				for {
					if err := engines[i%servers].ChainAudit(t.Context()); err != nil {
						t.Error(err)
					}
					select {
					case <-stop:
						return
					default:
					}
				}
			})
		}
		for _, tenant := range tenants {
			for n, id := range tenant.requests {
				for i, e := range engines { // on each server somebody says something else
					answering.Go(func() {
						decision := []string{"allow", "deny"}[(n+i)%2]
						reason := fmt.Sprint(i)
						_, err := e.AnswerRequest(t.Context(), tenant.me, id, engine.Answer{Decision: decision, Reason: &reason})
						if err != nil && !domain.IsCode(err, domain.CodeConflict) {
							t.Error(err)
						}
					})
				}
			}
		}
		answering.Wait()
		close(stop)
		chaining.Wait()
		repositorytest.Soon(t, func() string {
			must(t, first.ChainAudit(t.Context()))
			for _, tenant := range tenants {
				report, err := first.CheckAudit(t.Context(), tenant.me.Organization, nil)
				must(t, err)
				if report.Waiting != 0 {
					return fmt.Sprintf("the log of %s is %+v", tenant.me.Organization, report)
				}
			}
			return ""
		})

		keys, err := first.OwnKeys(t.Context())
		must(t, err)
		for _, tenant := range tenants {
			org := tenant.me.Organization
			report, err := first.CheckAudit(t.Context(), org, nil)
			if err != nil || report.Fault != nil || report.Waiting != 0 {
				t.Errorf("the log of %s: %+v, %v", org, report, err)
			}
			for _, id := range tenant.requests {
				entries, err := store.Audit(t.Context(), org, domain.AuditFilter{Subject: string(id)}, 0, 10)
				must(t, err)
				r, err := store.Request(t.Context(), id)
				must(t, err)
				if len(entries) != 1 || entries[0].Kind != domain.AuditRequestDecided || r.Decision == nil {
					t.Errorf("%s is %s and has %d entries", id, r.Status, len(entries))
					continue
				}
				signed, err := evidence.Open(r.Receipt, keys)
				if err != nil || signed.Receipt.Decision != r.Decision.Decision || !strings.Contains(string(entries[0].Data), `"decision":"`+r.Decision.Decision+`"`) {
					t.Errorf("%s was decided %s; its receipt: %+v, %v; its entry: %s", id, r.Decision.Decision, signed.Receipt, err, entries[0].Data)
				}
			}
			if all, err := store.Audit(t.Context(), org, domain.AuditFilter{}, 0, 1000); err != nil || len(all) != asked {
				t.Errorf("the log of %s has %d entries, want %d: %v", org, len(all), asked, err)
			}
		}
	})
}

// Servers that start at the same time on an empty database make one key.
func TestOneFirstKeyIsMade(t *testing.T) {
	both(t, func(t *testing.T, o repository.Options) {
		store := migrated(t, o)
		var all sync.WaitGroup
		for range 6 {
			other := store
			if o.URL != "" {
				other = opened(t, o)
			}
			all.Go(func() {
				e := engine.New(engine.Options{Store: other, Ringer: silence{}, Live: silence{}, Sealer: plainSealer{}})
				if err := e.PrepareKeys(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		keys, err := store.SigningKeys(t.Context())
		if err != nil || len(keys) != 1 {
			t.Errorf("%d keys were made: %v", len(keys), err)
		}
	})
}
