package repositorytest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"openbot/domain"
)

func (w *world) newWebhook(m *domain.Member, events ...string) *domain.Webhook {
	return &domain.Webhook{ID: newID[domain.WebhookID](domain.PrefixWebhook), Organization: m.Organization, Member: m.ID, Format: domain.FormatStandard, URL: "https://x.example",
		Events: events, Enabled: true, Sealed: []byte("sealed"), CreatedAt: w.now, UpdatedAt: w.now}
}

func (w *world) newDelivery(hook *domain.Webhook, status domain.DeliveryStatus, dueAt, endedAt *time.Time) *domain.Delivery {
	return &domain.Delivery{ID: newID[domain.DeliveryID](domain.PrefixDelivery), Organization: hook.Organization, Webhook: hook.ID, Member: hook.Member,
		Event: domain.HookRequestPending, Payload: []byte(`{}`), Status: status, DueAt: dueAt, EndedAt: endedAt, CreatedAt: w.now, UpdatedAt: w.now}
}

func (w *world) news(events ...string) *domain.Deliveries {
	set := &domain.Deliveries{Organization: w.org.ID, Prefix: fmt.Sprintf("%s%028x", domain.PrefixDelivery, counter.Add(1))}
	for i, event := range events {
		set.News = append(set.News, domain.News{Member: w.member.ID, Event: event, Payload: fmt.Sprintf(`{"n":%d,"text":"<é?>"}`, i)})
	}
	return set
}

// told gives the deliveries of webhooks as "webhook event payload", by ID.
func (w *world) told(names map[domain.WebhookID]string) []string {
	w.Helper()
	byID := map[string]string{}
	for id, name := range names {
		for _, d := range must[[]domain.Delivery](w)(w.store.Deliveries(w.ctx, id, "", domain.Page{Limit: 99})) {
			byID[string(d.ID)] = name + " " + d.Event + " " + string(d.Payload)
		}
	}
	out := []string{}
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		out = append(out, byID[id])
	}
	return out
}

var webhooks = []promise{
	{"a commit tells every webhook that hears of its news, and counts them", func(w *world) {
		w.settle()
		other := w.newMember(w.org.ID)
		disabled := w.newMember(w.org.ID)
		disabled.DisabledAt = ptr(w.now)
		const pending, decided = domain.HookRequestPending, domain.HookRequestDecided
		mine, whole, deaf := w.newWebhook(w.member, pending, decided), w.newWebhook(other, decided), w.newWebhook(w.member, domain.HookDelegationEnded)
		whole.Whole = true
		theirs, off, deleted, gone := w.newWebhook(other, pending), w.newWebhook(w.member, pending), w.newWebhook(w.member, pending), w.newWebhook(disabled, pending)
		off.Enabled, deleted.DeletedAt, gone.Whole = false, ptr(w.now), true
		org := &domain.Organization{ID: newID[domain.OrganizationID](domain.PrefixOrganization), Settings: domain.DefaultSettings(), CreatedAt: w.now, UpdatedAt: w.now}
		stranger := w.newMember(org.ID)
		elsewhere := w.newWebhook(stranger, pending, decided)
		elsewhere.Whole = true
		w.commit(org, other, disabled, stranger, mine, whole, deaf, theirs, off, deleted, gone, elsewhere)
		names := map[domain.WebhookID]string{mine.ID: "mine", whole.ID: "whole", deaf.ID: "deaf", theirs.ID: "theirs", off.ID: "off",
			deleted.ID: "deleted", gone.ID: "gone", elsewhere.ID: "elsewhere"}
		set := w.news(pending, decided)
		chat := w.newChat()
		w.ok(w.store.Commit(w.ctx, domain.Commit{At: w.now, Rows: []domain.Row{chat}, Deliveries: []*domain.Deliveries{set}}))
		w.same("made", set.Made, 3)
		w.same("told", w.told(names), []string{`mine request.pending {"n":0,"text":"<é?>"}`, `mine request.decided {"n":1,"text":"<é?>"}`,
			`whole request.decided {"n":1,"text":"<é?>"}`})
		for n := 1; n <= set.Made; n++ {
			d := must[domain.Delivery](w)(w.store.Delivery(w.ctx, set.ID(n)))
			want := domain.Delivery{ID: set.ID(n), Organization: w.org.ID, Webhook: d.Webhook, Member: w.member.ID, Event: d.Event, Payload: d.Payload,
				Status: domain.DeliveryPending, DueAt: ptr(w.now.Add(domain.RunnableGrace)), CreatedAt: w.now, UpdatedAt: w.now, Version: 1}
			w.same("delivery", d, want)
		}
		_, err := w.store.Delivery(w.ctx, set.ID(set.Made+1))
		w.code(err, domain.CodeNotFound)
	}},
	{"a commit that fails tells nobody", func(w *world) {
		w.settle()
		hook := w.newWebhook(w.member, domain.HookRequestPending)
		chat := w.newChat()
		w.commit(hook, chat)
		stale := *chat
		stale.Version = 7
		set := w.news(domain.HookRequestPending)
		w.code(w.store.Commit(w.ctx, domain.Commit{At: w.now, Rows: []domain.Row{&stale}, Deliveries: []*domain.Deliveries{set}}), domain.CodeConflict)
		w.same("told", len(must[[]domain.Delivery](w)(w.store.Deliveries(w.ctx, hook.ID, "", domain.Page{Limit: 9}))), 0)
	}},
	{"a full set of news to many webhooks is told", func(w *world) {
		w.settle()
		rows := []domain.Row{}
		for range 3 {
			rows = append(rows, w.newWebhook(w.member, domain.HookRequestPending))
		}
		w.commit(rows...)
		set := w.news(strings.Fields(strings.Repeat(domain.HookRequestPending+" ", domain.MaxNews))...)
		w.ok(w.store.Commit(w.ctx, domain.Commit{At: w.now, Deliveries: []*domain.Deliveries{set}}))
		w.same("made", set.Made, 3*domain.MaxNews)
		w.same("the last", must[domain.Delivery](w)(w.store.Delivery(w.ctx, set.ID(set.Made))).Status, domain.DeliveryPending)
	}},
	{"webhooks are listed by whom they belong to, newest first", func(w *world) {
		w.settle()
		other := w.newMember(w.org.ID)
		first, second, theirs, whole, deleted := w.newWebhook(w.member), w.newWebhook(w.member), w.newWebhook(other), w.newWebhook(other), w.newWebhook(w.member)
		whole.Whole, deleted.DeletedAt = true, ptr(w.now)
		w.commit(other, first, second, theirs, whole, deleted)
		list := func(whole bool, page domain.Page) []string {
			return ids(must[[]domain.Webhook](w)(w.store.Webhooks(w.ctx, w.org.ID, w.member.ID, whole, page)))
		}
		w.same("own", list(false, domain.Page{Limit: 9}), []string{string(second.ID), string(first.ID)})
		w.same("all", list(true, domain.Page{Limit: 9}), []string{string(whole.ID), string(second.ID), string(first.ID)})
		w.same("page", list(true, domain.Page{Limit: 1, Before: string(whole.ID)}), []string{string(second.ID)})
	}},
	{"deliveries are listed by webhook and status, newest first, and forgotten by status and age", func(w *world) {
		w.settle()
		hook, other := w.newWebhook(w.member), w.newWebhook(w.member)
		old, recent := ptr(w.now.Add(-time.Hour)), ptr(w.now)
		pending := w.newDelivery(hook, domain.DeliveryPending, ptr(w.now), nil)
		dead := w.newDelivery(hook, domain.DeliveryDead, nil, old)
		deadNow := w.newDelivery(hook, domain.DeliveryDead, nil, recent)
		delivered := w.newDelivery(hook, domain.DeliveryDelivered, nil, old)
		theirs := w.newDelivery(other, domain.DeliveryDead, nil, old)
		w.commit(hook, other, pending, dead, deadNow, delivered, theirs)
		list := func(status domain.DeliveryStatus, page domain.Page) []string {
			return ids(must[[]domain.Delivery](w)(w.store.Deliveries(w.ctx, hook.ID, status, page)))
		}
		w.same("all", list("", domain.Page{Limit: 9}), []string{string(delivered.ID), string(deadNow.ID), string(dead.ID), string(pending.ID)})
		w.same("dead", list(domain.DeliveryDead, domain.Page{Limit: 9}), []string{string(deadNow.ID), string(dead.ID)})
		w.same("page", list("", domain.Page{Limit: 1, Before: string(deadNow.ID)}), []string{string(dead.ID)})
		w.same("none", list("no such", domain.Page{Limit: 9}), []string{})
		w.same("forgotten", must[int](w)(w.store.ForgetDeliveries(w.ctx, domain.DeliveryDead, *recent, 1)), 1)
		w.same("forgotten", must[int](w)(w.store.ForgetDeliveries(w.ctx, domain.DeliveryDead, *recent, 9)), 1)
		w.same("left", list("", domain.Page{Limit: 9}), []string{string(delivered.ID), string(deadNow.ID), string(pending.ID)})
	}},
}
