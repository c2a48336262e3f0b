package repositorytest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
)

// world is a fresh store with one organization, its Member, the Member's token and
// Main Bot.
type world struct {
	*testing.T
	ctx    context.Context
	store  engine.Store
	now    time.Time
	org    *domain.Organization
	member *domain.Member
	token  *domain.Token
	bot    *domain.Bot
}

func newWorld(t *testing.T, store engine.Store) *world {
	w := &world{T: t, ctx: t.Context(), store: store, now: start}
	w.org = &domain.Organization{ID: newID[domain.OrganizationID](domain.PrefixOrganization), Name: "Ours",
		Settings: domain.DefaultSettings(), CreatedAt: w.now, UpdatedAt: w.now}
	w.member = w.newMember(w.org.ID)
	w.token = w.newToken(w.member)
	w.bot = &domain.Bot{ID: w.member.MainBot, Organization: w.org.ID, Kind: domain.BotMain, Member: w.member.ID, CreatedAt: w.now, UpdatedAt: w.now}
	return w
}

// start is the time at which every world begins, to the microsecond.
var start = time.Date(2031, 4, 5, 6, 7, 8, 123456000, time.UTC)

var counter atomic.Int64

// newID makes IDs that rise.
func newID[T ~string](prefix string) T {
	return T(fmt.Sprintf("%s%032x", prefix, counter.Add(1)))
}

func (w *world) newMember(org domain.OrganizationID) *domain.Member {
	return &domain.Member{ID: newID[domain.MemberID](domain.PrefixMember), Organization: org, Name: "Ann",
		Permissions: domain.Permissions{"admin", "*"}, MainBot: newID[domain.BotID](domain.PrefixBot), CreatedAt: w.now, UpdatedAt: w.now}
}

func (w *world) newToken(m *domain.Member) *domain.Token {
	id := newID[domain.TokenID](domain.PrefixToken)
	return &domain.Token{ID: id, Organization: m.Organization, Member: m.ID, Name: "laptop", Hash: "hash of " + string(id),
		Scopes: domain.Permissions{"admin", "*"}, CreatedAt: w.now}
}

// settle saves the world's own rows.
func (w *world) settle() {
	w.Helper()
	w.commit(w.org, w.member, w.token, w.bot)
}

func (w *world) newChat() *domain.Chat {
	return &domain.Chat{ID: newID[domain.ChatID](domain.PrefixChat), Organization: w.org.ID, Member: w.member.ID, Bot: w.bot.ID,
		Kind: domain.ChatPlain, Status: domain.ChatIdle, CreatedAt: w.now, UpdatedAt: w.now}
}

func (w *world) newTurn(chat *domain.Chat) *domain.Turn {
	return &domain.Turn{ID: newID[domain.TurnID](domain.PrefixTurn), Organization: chat.Organization, Chat: chat.ID, Bot: chat.Bot,
		Member: chat.Member, Status: domain.TurnQueued, DueAt: ptr(w.now),
		Authority: []domain.Authority{{Member: w.member.ID, Token: w.token.ID}}, CreatedAt: w.now, UpdatedAt: w.now}
}

func (w *world) newCall(turn *domain.Turn, step, position int) *domain.Call {
	return &domain.Call{ID: newID[domain.CallID](domain.PrefixCall), Organization: turn.Organization, Member: turn.Member, Chat: turn.Chat,
		Turn: turn.ID, Step: step, Position: position, Kind: domain.CallApp, Status: domain.CallWaiting,
		Capability: domain.Capability{Action: "apps.call", Target: "con_1/send"}, Arguments: []byte(`{}`), CreatedAt: w.now, UpdatedAt: w.now}
}

func (w *world) newRequest(call *domain.Call) *domain.Request {
	return &domain.Request{ID: newID[domain.RequestID](domain.PrefixRequest), Organization: call.Organization, Member: call.Member,
		Bot: w.bot.ID, Capability: call.Capability, Approver: domain.Person(call.Member), Chat: call.Chat, Turn: call.Turn, Call: call.ID,
		Arguments: []byte(`{}`), Status: domain.RequestPending, CreatedAt: w.now, ExpiresAt: w.now.Add(time.Hour), UpdatedAt: w.now}
}

func (w *world) newGrant() *domain.Grant {
	return &domain.Grant{ID: newID[domain.GrantID](domain.PrefixGrant), Organization: w.org.ID, Member: w.member.ID, Bot: w.bot.ID,
		Capability: domain.Capability{Action: "apps.call", Target: "con_1/send"}, Decision: domain.DecisionAllow,
		Scope: domain.ScopeLifetime, CreatedAt: w.now}
}

func (w *world) newRule(bot domain.BotID) *domain.Rule {
	return &domain.Rule{ID: newID[domain.RuleID](domain.PrefixRule), Organization: w.org.ID, Member: w.member.ID, Bot: bot,
		Text: "Never.", Effect: domain.DecisionDeny, Enabled: true, CreatedAt: w.now}
}

func (w *world) newConnection() *domain.Connection {
	return &domain.Connection{ID: newID[domain.ConnectionID](domain.PrefixConnection), Organization: w.org.ID, Member: w.member.ID,
		Name: "mail", Transport: domain.TransportHTTP, Revision: 1, CreatedAt: w.now, UpdatedAt: w.now}
}

func (w *world) newHostTool() *domain.HostTool {
	id := newID[domain.HostToolID](domain.PrefixHostTool)
	return &domain.HostTool{ID: id, Organization: w.org.ID, Name: "tool " + string(id), Revision: 1, CreatedAt: w.now, UpdatedAt: w.now}
}

// newWork is work that runs, given by a Chat, in a task Chat that is not saved.
func (w *world) newWork(from *domain.Chat, above domain.DelegationID) *domain.Delegation {
	id := newID[domain.DelegationID](domain.PrefixDelegation)
	return &domain.Delegation{ID: id, Organization: w.org.ID, Member: w.member.ID, Execution: domain.ExecutionID("run of " + string(id)), Above: above,
		Parent: domain.WorkParent{Chat: from.ID}, Bot: w.bot.ID, Chat: newID[domain.ChatID](domain.PrefixChat), Status: domain.DelegationRunning,
		Task: "task", Reason: "reason", Limits: domain.Limits{TimeMs: 1000}, StartedAt: ptr(w.now), CreatedAt: w.now, UpdatedAt: w.now}
}

func (w *world) newInput(chat *domain.Chat) domain.Input {
	chat.LastInput++
	return domain.Input{ID: newID[domain.InputID](domain.PrefixInput), Chat: chat.ID, Sequence: chat.LastInput, Kind: domain.ItemMessage,
		From: string(w.member.ID), Text: "hello", CreatedAt: w.now}
}

func (w *world) newReminder(chat *domain.Chat) *domain.Reminder {
	return &domain.Reminder{ID: newID[domain.ReminderID](domain.PrefixReminder), Organization: chat.Organization, Member: chat.Member,
		Chat: chat.ID, Bot: chat.Bot, Text: "tea", DueAt: w.now.Add(time.Hour), CreatedAt: w.now}
}

func (w *world) newEvent(chat *domain.Chat) domain.Event {
	chat.LastEvent++
	return domain.Event{Organization: chat.Organization, Member: chat.Member, Chat: chat.ID, Sequence: chat.LastEvent,
		Kind: domain.EventMessage, Subject: string(chat.ID), Data: []byte(`{}`), At: w.now}
}

// commit saves rows and must succeed.
func (w *world) commit(rows ...domain.Row) {
	w.Helper()
	w.ok(w.store.Commit(w.ctx, domain.Commit{At: w.now, Rows: rows}))
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatalf("unexpected error: %v", err)
	}
}

// code requires an *Error of this code.
func (w *world) code(err error, code domain.Code) {
	w.Helper()
	var ours *domain.Error
	if !errors.As(err, &ours) || ours.Code != code {
		w.Fatalf("got error %v (code %q), want code %q", err, domain.CodeOf(err), code)
	}
}

func (w *world) same(what string, got, want any) {
	w.Helper()
	if !reflect.DeepEqual(got, want) {
		w.Fatalf("%s:\n got %+v\nwant %+v", what, got, want)
	}
}

func ptr[T any](v T) *T { return &v }

// must gives the value of a call that must succeed.
func must[T any](w *world) func(T, error) T {
	return func(v T, err error) T {
		w.Helper()
		w.ok(err)
		return v
	}
}

// ids gives the IDs of rows, in their order.
func ids[T any](list []T) []string {
	out := []string{}
	for _, v := range list {
		out = append(out, reflect.ValueOf(v).FieldByName("ID").String())
	}
	return out
}
