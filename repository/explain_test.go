package repository_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"openbot/domain"
	"openbot/repository"
)

// largeTables are those that grow with use; a statement that reads one of them from
// end to end is a fault.
var largeTables = []string{"rules", "previews", "turns", "calls", "requests", "events", "items", "inputs", "chats", "grants", "kept_answers", "tokens", "members",
	"bots", "connections", "reminders", "usage", "delegations", "audit_entries", "audit_links", "webhooks", "deliveries", "channels"}

// rows of each large table, spread over many Members, Chats and Turns.
const plentyRows = "WITH RECURSIVE g (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM g WHERE i < 20000) "

var plenty = []string{
	`INSERT INTO organizations VALUES ('org_1', '', '', 0, 0, 1)`,
	`INSERT INTO members (id, organization_id, name, permissions, main_bot_id, created_at, updated_at, version) ` + plentyRows +
		`SELECT 'mem_' || i, 'org_1', '', '', 'bot_' || i, 0, 0, 1 FROM g`,
	`INSERT INTO tokens (id, organization_id, member_id, name, hash, scopes, created_at, version) ` + plentyRows +
		`SELECT 'tok_' || i, 'org_1', 'mem_' || i, '', 'hash_' || i, '', 0, 1 FROM g`,
	`INSERT INTO bots (id, organization_id, kind, member_id, owner_id, chat_id, shared, name, role, instructions, model, memory, created_at, updated_at, version) ` +
		plentyRows + `SELECT 'bot_' || i, 'org_1', 'main', 'mem_' || i, '', '', i < 0, '', '', '', '', '', 0, 0, 1 FROM g`,
	`INSERT INTO connections (id, organization_id, member_id, shared, name, transport, url, command, args, header_names, env_names, revision, look, health,
		health_why, created_at, updated_at, version) ` +
		plentyRows + `SELECT 'con_' || i, 'org_1', 'mem_' || i, i < 0, '', '', '', '', '', '', '', 1, '', '', '', 0, 0, 1 FROM g`,
	`INSERT INTO chats (id, organization_id, member_id, bot_id, kind, mode, title, status, parent, tainted, turn_id, last_turn_id, last_item, last_event,
		last_input, created_at, updated_at, version) ` +
		plentyRows + `SELECT 'chat_' || i, 'org_1', 'mem_' || (i % 500), 'bot_1', '', '', '', '', '', i < 0, '', '', 0, 0, 0, 0, 0, 1 FROM g`,
	`INSERT INTO turns (id, organization_id, chat_id, bot_id, member_id, authority, status, steps, open_calls, tries, answer, error, input_tokens,
		output_tokens, cost_nanos, due_at, created_at, updated_at, version) ` +
		plentyRows + `SELECT 'turn_' || i, 'org_1', 'chat_' || (i % 2000), 'bot_1', 'mem_1', '[{"member":"mem_1","token":"tok_1"}]',
		CASE WHEN i % 4 = 0 THEN 'Queued' ELSE 'Completed' END, 0, 0, 0, '', '', 0, 0, 0, CASE WHEN i % 4 = 0 THEN 9000000000000000 + i END, 0, 0, 1 FROM g`,
	`INSERT INTO calls (id, organization_id, member_id, chat_id, turn_id, step, "position", model_id, name, kind, action, target, connection_id, revision,
		tool, arguments, digest, reason, repeatable, waited, status, decided, request_id, result, sends, lease, ended_at, due_at, created_at, updated_at, version) ` +
		plentyRows + `SELECT 'call_' || i, 'org_1', 'mem_1', 'chat_' || (i % 2000), 'turn_' || (i % 4000), 1, i, '', '', 'app', '', '', 'con_1', 1, '', '{}', '', '',
		i < 0, i < 0, CASE i % 4 WHEN 0 THEN 'allowed' WHEN 1 THEN 'sending' ELSE 'succeeded' END, '', 'req_' || i, '', 0, '',
		CASE WHEN i % 4 > 1 THEN 0 END, CASE WHEN i % 4 < 2 THEN 9000000000000000 + i END, 0, 0, 1 FROM g`,
	`INSERT INTO requests (id, organization_id, member_id, bot_id, action, target, reason, approver_tag, approver_user, approver_bot, approver_grant,
		approver_rule, chain, chat_id, turn_id, call_id, delegation_id, arguments, app, unknown, endorsements, tags, review_verdict, status, decision,
		revision, created_at, expires_at, updated_at, version) ` +
		plentyRows + `SELECT 'req_' || i, 'org_1', 'mem_' || (i % 500), 'bot_' || (i % 500), '', '', '', 'Person', 'mem_' || (i % 500), '', '', '', '',
		'chat_' || (i % 2000), 'turn_' || (i % 4000), 'call_' || i, '', '', '', '', '', '', '', CASE WHEN i % 20 = 0 THEN 'pending' ELSE 'denied' END, '',
		1, 0, 9000000000000000 + i, 0, 1 FROM g`,
	`INSERT INTO grants (id, organization_id, member_id, bot_id, action, target, decision, scope, chat_id, revision, source, request_id, created_at, version) ` +
		plentyRows + `SELECT 'grt_' || i, 'org_1', 'mem_' || (i % 500), 'bot_' || (i % 500), '', '', '', '', '', 1, '', '', 0, 1 FROM g`,
	`INSERT INTO rules (id, organization_id, member_id, bot_id, text, effect, enabled, source, request_id, created_at, version) ` + plentyRows +
		`SELECT 'rul_' || i, 'org_' || (i % 500), 'mem_' || (i % 500), CASE WHEN i % 2 = 0 THEN 'bot_' || (i % 500) ELSE '' END, 'Never.', 'deny', i > 0, '', '', 0, 1 FROM g`,
	`INSERT INTO previews (id, organization_id, member_id, bot_id, text, effect, number, results, tries, created_at, version) ` + plentyRows +
		`SELECT 'prv_' || i, 'org_1', 'mem_1', '', 'Never.', 'deny', 1, '', 0, 9000000000000000 + i, 1 FROM g`,
	// Ten pieces of work in each chain, and as many given by each of 2,000 Chats; each fifth is open.
	`INSERT INTO delegations (id, organization_id, member_id, execution_id, above_id, parent_chat_id, parent_turn_id, parent_call_id, trigger_id, giver_id,
		bot_id, chat_id, status, task, reason, result, limits, authority, steps, cost_nanos, clock, pause, call_id, gate, stop_why, notice, first_event,
		last_event, notice_due_at, closing_due_at, resume_due_at, due_at, parked_by, ended_at, created_at, updated_at, version) ` + plentyRows +
		`SELECT 'dlg_' || i, 'org_1', 'mem_1', 'run_' || i, CASE WHEN i % 10 = 0 THEN '' ELSE 'dlg_' || (i - 1) END, 'chat_' || (i % 2000), '', '', '', '',
		'bot_1', 'chat_' || i, CASE WHEN i % 5 = 0 THEN 'running' ELSE 'completed' END, 'some task', '', '', '', '', 0, 0, '', '', '', 0, '', '', 0,
		0, CASE WHEN i % 50 = 1 THEN 9000000000000000 + i END, CASE WHEN i % 50 = 5 THEN 9000000000000000 + i END, CASE WHEN i % 50 = 10 THEN 9000000000000000 + i END,
		CASE WHEN i % 5 = 0 THEN 9000000000000000 + i END, CASE WHEN i % 50 = 15 THEN 'dlg_' || (i - 5) ELSE '' END, CASE WHEN i % 5 > 0 THEN 0 END, 0, 0, 1 FROM g`,
	`UPDATE chats SET kind = 'task', parent = '{"chat":"chat_9","delegation":"dlg_1"}', delegation_id = 'dlg_9', last_turn_id = 'turn_1' WHERE id = 'chat_1'`,
	`INSERT INTO webhooks (id, organization_id, member_id, whole, url, events, enabled, disabled_why, created_at, updated_at, version) ` + plentyRows +
		`SELECT 'hook_' || i, 'org_' || (i % 500), 'mem_' || (i % 500), i % 100 = 0, '', '["request.pending"]', i > 0, '', 0, 0, 1 FROM g`,
	`INSERT INTO channels (id, organization_id, member_id, name, bot_id, url, actors, enabled, disabled_why, created_at, updated_at, version) ` + plentyRows +
		`SELECT 'chn_' || i, 'org_' || (i % 500), 'mem_' || (i % 500), '', '', '', '', i > 0, '', 0, 0, 1 FROM g`,
	`INSERT INTO deliveries (id, organization_id, webhook_id, member_id, event, payload, status, tries, outcome, due_at, ended_at, created_at, updated_at, version) ` +
		plentyRows + `SELECT 'dlv_' || i, 'org_1', 'hook_' || (i % 500), 'mem_1', '', '{}', CASE WHEN i % 4 = 0 THEN 'pending' ELSE 'delivered' END, 1, '',
		CASE WHEN i % 4 = 0 THEN 9000000000000000 + i END, CASE WHEN i % 4 > 0 THEN 9000000000000000 + i END, 0, 0, 1 FROM g`,
	`INSERT INTO items (chat_id, sequence, turn_id, step, kind, author, text, call_id, created_at) ` + plentyRows +
		`SELECT 'chat_' || (i % 500), i, '', 0, '', '', 'some text of a message', '', 0 FROM g`,
	`INSERT INTO inputs (id, chat_id, sequence, kind, author, text, authority, created_at) ` + plentyRows +
		`SELECT 'ntc_' || i, 'chat_' || (i % 500), i, '', '', '', '', 0 FROM g`,
	`INSERT INTO kept_answers (member_id, key, fingerprint, status, chat_id, until, created_at) ` + plentyRows +
		`SELECT 'mem_' || (i % 500), 'key_' || i, '', 0, CASE WHEN i % 2 = 0 THEN 'chat_' || i ELSE '' END, CASE WHEN i % 2 = 1 THEN 9000000000000000 + i END, 0 FROM g`,
	`INSERT INTO events (organization_id, member_id, chat_id, sequence, "position", kind, subject, data, created_at) ` + plentyRows +
		`SELECT 'org_1', 'mem_' || (i % 500), 'chat_' || (i % 500), i, i, '', '', '', 0 FROM g`,
	`INSERT INTO reminders (id, organization_id, member_id, chat_id, bot_id, text, authority, due_at, created_at, version) ` + plentyRows +
		`SELECT 'ntc_' || i, 'org_1', 'mem_' || (i % 500), 'chat_' || (i % 500), '', '', '', 9000000000000000 + i, 0, 1 FROM g`,
	`INSERT INTO usage (member_id, used_at, id, organization_id, bot_id, chat_id, delegation_id, model, purpose, steps, input_tokens, output_tokens, cost_nanos) ` +
		plentyRows + `SELECT 'mem_' || (i % 500), i, 'use_' || i, 'org_1', 'bot_' || (i % 500), 'chat_' || i, '', 'playbook', 'turn', 1, 1, 1, 1 FROM g`,
	// A small organization beside the large one.
	`INSERT INTO organizations VALUES ('org_2', '', '', 0, 0, 1)`,
	`INSERT INTO members (id, organization_id, name, permissions, main_bot_id, created_at, updated_at, version) VALUES ('mem_small', 'org_2', '', '', '', 0, 0, 1)`,
	`INSERT INTO audit_entries (organization_id, "position", kind, subject, actor_tag, actor_id, token_id, address, data, created_at) ` + plentyRows +
		`SELECT 'org_' || (i % 4), i, 'kind_' || (i % 20), 'sub_' || i, 'Person', 'mem_' || (i % 500), '', '', '{}', i FROM g`,
	`INSERT INTO audit_links (organization_id, "position", number, previous, hash) ` + plentyRows +
		`SELECT 'org_' || (i % 4), i, i, '', '' FROM g`,
	`INSERT INTO audit_heads (id, entries, hash, "position", signed, linked_at, version) VALUES ('org_1', 5000, '', 20000, '', 0, 1)`,
}

func TestEveryHotStatementReadsAnIndex(t *testing.T) {
	both(t, func(t *testing.T, o repository.Options) {
		store := migrated(t, o)
		for _, query := range plenty {
			if o.URL == "" {
				// SQLite chooses its plans without looking at the rows.
				query = fewer(query)
			}
			must(t, store.Exec(t.Context(), query))
		}
		if o.URL != "" {
			must(t, store.Exec(t.Context(), "VACUUM ANALYZE"))
		}
		var statements []string
		store.Watch(func(query string) { statements = append(statements, query) })
		useEverything(t, store)
		watched := statements
		store.Watch(func(string) {})
		if len(watched) < 60 {
			t.Fatalf("only %d statements were seen", len(watched))
		}
		scan := regexp.MustCompile(`Seq Scan on (\w+)`)
		if o.URL == "" {
			scan = regexp.MustCompile(`^SCAN (\w+)( [^U].*)?$`)
		}
		for _, query := range watched {
			if strings.HasPrefix(query, "INSERT INTO") && !strings.Contains(query, "SELECT") {
				continue
			}
			plan, err := store.Plans(t.Context(), query)
			if err != nil {
				t.Fatalf("%s: %v", query, err)
			}
			for _, line := range plan {
				found := scan.FindStringSubmatch(line)
				if len(found) > 1 && isLarge(found[1]) {
					t.Errorf("%s reads %s from end to end:\n%s", query, found[1], strings.Join(plan, "\n"))
				}
			}
		}
	})
}

// aliases are the short names that joined statements give to tables.
var aliases = map[string]string{"t": "turns", "c": "chats", "d": "delegations", "k": "calls", "r": "requests", "b": "bots", "n": "connections", "m": "members", "w": "webhooks"}

func isLarge(name string) bool {
	if full, ok := aliases[name]; ok {
		name = full
	}
	for _, large := range largeTables {
		if name == large {
			return true
		}
	}
	return false
}

// useEverything calls each method of the port once.
func useEverything(t *testing.T, s *repository.Store) {
	ctx, now := t.Context(), time.UnixMicro(8_000_000_000_000_000)
	page := domain.Page{Limit: 20, Before: "zzz"}
	use := func(_ any, err error) {
		t.Helper()
		must(t, err)
	}
	use(s.Principal(ctx, "hash_1"))
	must(t, s.TouchToken(ctx, "tok_1", now))
	use(s.Members(ctx, "org_1", page))
	use(s.Tokens(ctx, "org_1", page))
	use(s.Token(ctx, "tok_1"))
	use(s.Member(ctx, "mem_1"))
	use(s.Bot(ctx, "bot_1"))
	use(s.Bots(ctx, "org_1", "mem_1", page))
	use(s.Chat(ctx, "chat_1"))
	use(s.Chats(ctx, "mem_1", page))
	use(s.Items(ctx, "chat_1", 1, 20))
	use(s.ItemCalls(ctx, []domain.Item{{Call: "call_1"}, {Call: "call_2"}}))
	use(s.Turn(ctx, "turn_1"))
	use(s.Turns(ctx, "chat_1", page))
	use(s.TurnCalls(ctx, "turn_1", "turn_2"))
	use(s.Request(ctx, "req_1"))
	for _, filter := range []domain.RequestFilter{
		{}, {Approver: "mem_1"}, {Approver: "mem_1", Status: domain.RequestPending}, {Approver: "mem_1", Status: domain.RequestDenied},
		{Approver: "mem_1", Status: domain.RequestPending, Known: true}, {Chat: "chat_1"}, {Bot: "bot_1"}, {Chat: "chat_1", Status: domain.RequestPending},
	} {
		use(s.Requests(ctx, "org_1", filter, page))
		use(s.Requests(ctx, "org_1", filter, domain.Page{Limit: 20}))
	}
	use(s.PendingLike(ctx, domain.Grant{Bot: "bot_1", Member: "mem_1", Chat: "chat_1"}, "req_1", 20))
	use(s.PendingOfMember(ctx, "mem_1", "req_1", 20))
	use(s.Grant(ctx, "grt_1"))
	use(s.Grants(ctx, "org_1", domain.GrantFilter{Member: "mem_1"}, page))
	use(s.Grants(ctx, "org_1", domain.GrantFilter{Member: "mem_1", Bot: "bot_1", Revoked: true}, page))
	use(s.GrantsBelow(ctx, "grt_1"))
	use(s.GrantsOf(ctx, "bot_1", "mem_1", domain.Capability{Action: "apps.call", Target: "con_1/send"}))
	use(s.Rule(ctx, "rul_1"))
	use(s.Rules(ctx, "org_1", "mem_1", "", page))
	use(s.Rules(ctx, "org_1", "mem_1", "bot_1", page))
	use(s.RulesFor(ctx, "org_1", "bot_1", "mem_1"))
	use(s.Requests(ctx, "org_1", domain.RequestFilter{Member: "mem_1", Decided: true}, page))
	use(s.Requests(ctx, "org_1", domain.RequestFilter{Member: "mem_1", Bot: "bot_1", Decided: true}, page))
	waiting := domain.RequestFilter{Approver: "mem_1", Status: domain.RequestPending}
	use(s.RequestHeads(ctx, "org_1", waiting, page))
	use(s.CountRequests(ctx, "org_1", waiting, 20))
	waiting.Search, waiting.Bots = "mail", []domain.BotID{"bot_1"}
	use(s.RequestHeads(ctx, "org_1", waiting, page))
	use(s.RequestHeads(ctx, "org_1", domain.RequestFilter{Approver: "mem_1", Decided: true}, page))
	use(s.AllowedLike(ctx, domain.Request{ID: "req_9", Bot: "bot_1", Member: "mem_1", Capability: domain.Capability{Action: "apps.call", Target: "con_1/send"}}, 5))
	use(s.Names(ctx, "org_1", []domain.BotID{"bot_1", "bot_2"}, []domain.ConnectionID{"con_1"}))
	use(s.Preview(ctx, "prv_1"))
	use(s.ForgetPreviews(ctx, now, 20))
	use(s.Webhook(ctx, "hook_1"))
	use(s.Webhooks(ctx, "org_1", "mem_1", true, page))
	use(s.Webhooks(ctx, "org_1", "mem_1", false, page))
	use(s.Delivery(ctx, "dlv_1"))
	use(s.Deliveries(ctx, "hook_1", "", page))
	use(s.Deliveries(ctx, "hook_1", domain.DeliveryDead, page))
	use(s.ForgetDeliveries(ctx, domain.DeliveryDelivered, now, 20))
	use(s.Channel(ctx, "chn_1"))
	use(s.Channels(ctx, "org_1", "mem_1", true, page))
	use(s.Channels(ctx, "org_1", "mem_1", false, page))
	_, err := s.ChannelChat(ctx, "chn_1", "main")
	if !domain.IsCode(err, domain.CodeNotFound) {
		t.Fatal(err)
	}
	use(s.ChannelDeliveries(ctx, "chn_1", "", page))
	use(s.ChannelDeliveries(ctx, "chn_1", domain.DeliveryDead, page))
	use(s.PendingVia(ctx, "org_1", "mem_1", "req_1", 20))
	use(s.OpenTurns(ctx, "bot_1", 20))
	use(s.PushCall(ctx, "call_1", 1, now))
	must(t, s.Beat(ctx, now.Add(-time.Hour), time.Minute))
	must(t, s.Beat(ctx, now, time.Minute))
	use(s.Connection(ctx, "con_1"))
	use(s.Connections(ctx, "org_1", "mem_1", page))
	use(s.StepFacts(ctx, "turn_1"))
	use(s.CallFacts(ctx, "call_1"))
	use(s.TurnFacts(ctx, "turn_1"))
	use(s.WorkFacts(ctx, "chat_1"))
	use(s.Delegation(ctx, "dlg_5"))
	use(s.DelegationOf(ctx, "run_5"))
	use(s.Work(ctx, "dlg_9"))
	use(s.Works(ctx, []domain.DelegationID{"dlg_9", "dlg_19"}))
	use(s.Helpers(ctx, "chat_1"))
	use(s.Delegations(ctx, "chat_1", page))
	use(s.WorkViews(ctx, []domain.Delegation{{ID: "dlg_5", Above: "dlg_4", Status: domain.DelegationPaused}, {ID: "dlg_5", Chat: "chat_1", Status: domain.DelegationRunning}}))
	use(s.Untold(ctx, "chat_1", 20))
	use(s.OpenBelow(ctx, "dlg_4", "dlg_1", 20))
	use(s.Unpark(ctx, "dlg_4", now, 20))
	use(s.Inbox(ctx, "chat_1"))
	use(s.RenewLease(ctx, "call_1", "lease", now))
	use(s.PushTurn(ctx, "turn_4", 1, now))
	for _, kind := range domain.TaskKinds() {
		use(s.Due(ctx, kind, now, 20))
	}
	use(s.DueRequests(ctx, now, 1, 20))
	use(s.Reminder(ctx, "ntc_1"))
	use(s.OpenReminders(ctx, "chat_1"))
	for _, group := range domain.UsageGroups() {
		use(s.Usage(ctx, domain.UsageFilter{Organization: "org_1", Member: "mem_1", Group: group, To: now, Limit: 20}))
	}
	use(s.Usage(ctx, domain.UsageFilter{Organization: "org_2", Group: domain.UsageByMember, To: now, Limit: 20}))
	use(s.KeptAnswer(ctx, "mem_1", "key_1"))
	use(s.ForgetAnswers(ctx, now, 20))
	use(s.ChatEvents(ctx, "chat_1", 1, 20))
	use(s.MemberEvents(ctx, "mem_1", 1, 20))
	use(s.LastPosition(ctx, "mem_1"))
	for _, filter := range []domain.AuditFilter{{}, {Kind: "kind_1"}, {Subject: "sub_1"}, {Actor: "mem_1"}, {Actor: domain.TagExpiry}, {From: now}, {To: now}} {
		use(s.Audit(ctx, "org_1", filter, 0, 20))
		use(s.Audit(ctx, "org_1", filter, 5000, 20))
		use(s.AuditAfter(ctx, "org_1", filter, 5000, 20))
	}
	use(s.AuditLinks(ctx, "org_1", 5000, 20))
	use(s.AuditHead(ctx, "org_1"))
	use(s.Unchained(ctx, "", 20))
	use(s.Organizations(ctx, "", 20))
	use(s.SigningKeys(ctx))
	use(s.Standing(ctx, now))

	chat, err := s.Chat(ctx, "chat_1")
	must(t, err)
	turn, err := s.Turn(ctx, "turn_1")
	must(t, err)
	work, err := s.Delegation(ctx, "dlg_5")
	must(t, err)
	must(t, s.Commit(ctx, domain.Commit{Rows: []domain.Row{&work, &chat, &turn}, Gates: []domain.WorkGate{{ID: "dlg_4"}, {ID: "dlg_3"}},
		Cost: &domain.WorkCost{Path: []domain.DelegationID{"dlg_5", "dlg_4"}, Nanos: 1}, StopWork: &domain.StopWork{Chat: "chat_10"}, Taken: []domain.InputID{"ntc_1"},
		CloseChats: []domain.ChatID{"chat_2"}, CloseReminders: []domain.ChatID{"chat_3"}, Reminded: []domain.ReminderID{"ntc_1"},
		Kept:       &domain.KeptAnswer{Member: "mem_1", Key: "new"},
		Deliveries: []*domain.Deliveries{{Organization: "org_1", Prefix: "dlv_x", News: []domain.News{{Member: "mem_1", Event: domain.HookRequestPending, Payload: "{}"}}}}}))
}

func TestFactsTakeFewStatements(t *testing.T) {
	both(t, func(t *testing.T, o repository.Options) {
		store := migrated(t, o)
		for _, query := range plenty {
			must(t, store.Exec(t.Context(), fewer(query)))
		}
		number := 0
		store.Watch(func(string) { number++ })
		for _, c := range []struct {
			name string
			most int
			load func() error
		}{
			{"StepFacts", 10, func() error { _, err := store.StepFacts(t.Context(), "turn_2"); return err }},
			{"StepFacts of a task Chat", 12, func() error { _, err := store.StepFacts(t.Context(), "turn_1"); return err }},
			{"CallFacts", 4, func() error { _, err := store.CallFacts(t.Context(), "call_2"); return err }},
			{"CallFacts of a task Chat", 5, func() error { _, err := store.CallFacts(t.Context(), "call_1"); return err }},
			{"WorkFacts", 5, func() error { _, err := store.WorkFacts(t.Context(), "chat_1"); return err }},
			{"Work", 1, func() error { _, err := store.Work(t.Context(), "dlg_9"); return err }},
			{"TurnFacts", 5, func() error { _, err := store.TurnFacts(t.Context(), "turn_1"); return err }},
		} {
			number = 0
			must(t, c.load())
			if number == 0 || number > c.most {
				t.Errorf("%s took %d statements, at most %d are allowed", c.name, number, c.most)
			}
		}
	})
}

// fewer makes a statement of plenty add few rows.
func fewer(query string) string { return strings.Replace(query, "i < 20000", "i < 20", 1) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
