package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
)

// receiver is the outside that is told.
type receiver struct {
	mu     sync.Mutex
	got    []domain.HookMessage
	status int // of its answers; 0 gives none
}

func (r *receiver) Deliver(_ context.Context, m domain.HookMessage) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, m)
	if r.status == 0 {
		return 0, &domain.AppError{NoAnswer: true, Message: "The receiver did not answer in time"}
	}
	return r.status, nil
}

// deliver is what a worker does with a delivery.
func (w *world) deliver(task domain.Task) {
	w.t.Helper()
	ctx := context.WithoutCancel(w.t.Context())
	out, err := w.engine.TakeDelivery(ctx, domain.DeliveryID(task.Subject), task.Revision)
	w.must(err)
	if out == nil {
		return
	}
	status, err := w.receiver.Deliver(ctx, out.Message)
	var failure *domain.AppError
	errors.As(err, &failure)
	w.must(w.engine.SettleDelivery(ctx, out, status, failure))
}

// heard is a message as its receiver reads it.
type heard struct {
	Type      string
	Timestamp time.Time
	Data      map[string]any
}

func (w *world) heard() []heard {
	w.t.Helper()
	w.receiver.mu.Lock()
	defer w.receiver.mu.Unlock()
	list := make([]heard, len(w.receiver.got))
	for i, m := range w.receiver.got {
		w.must(json.Unmarshal(m.Payload, &list[i]))
	}
	return list
}

func (w *world) types() []string {
	w.t.Helper()
	list := []string{}
	for _, h := range w.heard() {
		list = append(list, h.Type)
	}
	return list
}

// hook makes a webhook that hears of everything, unless events are named.
func (w *world) hook(p domain.Principal, whole bool, events ...string) domain.Webhook {
	w.t.Helper()
	if len(events) == 0 {
		events = domain.HookEvents()
	}
	made, secret, err := w.engine.CreateWebhook(w.t.Context(), p, engine.WebhookFields{URL: ptr("https://hooks.example/in"), Events: events, Organization: &whole})
	w.must(err)
	if !strings.HasPrefix(secret, "whsec_") {
		w.t.Fatalf("the secret is %q", secret)
	}
	return made
}

func (w *world) deliveries(hook domain.WebhookID, status domain.DeliveryStatus) []domain.Delivery {
	w.t.Helper()
	list, err := w.engine.Deliveries(w.t.Context(), w.me, hook, status, domain.Page{Limit: 100})
	w.must(err)
	return list
}

// person makes another Member of the organization.
func (w *world) person(name string, permissions ...string) domain.Principal {
	w.t.Helper()
	m, err := w.engine.CreateMember(w.t.Context(), w.me, engine.MemberFields{Name: &name, Permissions: permissions})
	w.must(err)
	return w.tokenOf(m.ID, permissions...)
}

func (w *world) tokenOf(m domain.MemberID, scopes ...string) domain.Principal {
	w.t.Helper()
	_, secret, err := w.engine.CreateToken(w.t.Context(), w.me, engine.NewToken{Member: m, Name: "theirs", Scopes: scopes})
	w.must(err)
	p, err := w.engine.Authenticate(w.t.Context(), secret)
	w.must(err)
	return p
}

// A Request and its answer are told, each once, with what they are about and nothing of
// what is in them.
func TestARequestAndItsAnswerAreTold(t *testing.T) {
	w := newWorld(t)
	w.hook(w.me, false)
	turn := w.say(w.newChat(), `/call mail__send {"to":"hidden@example.com","openbot_reason":"hush"}`)
	w.run()
	r := w.onlyPending()
	w.mustAnswer(r, domain.DecisionAllow, "")
	w.run()
	w.wantStatus(turn, domain.TurnCompleted)
	list := w.heard()
	if !slices.Equal(w.types(), []string{"request.pending", "request.decided"}) {
		t.Fatalf("heard %v", w.types())
	}
	for i, status := range []string{"pending", "allowed"} {
		d := list[i].Data
		if d["request"] != string(r.ID) || d["status"] != status || d["turn"] != string(turn) || d["link"] != "/v1/requests/"+string(r.ID) ||
			d["member"] != string(w.me.Member.ID) || !list[i].Timestamp.Equal(w.clock.now()) {
			t.Errorf("heard %v", list[i])
		}
	}
	by := list[1].Data["decision"].(map[string]any)
	if by["decision"] != "allow" || by["by"].(map[string]any)["userId"] != string(w.me.Member.ID) {
		t.Errorf("the decision is %v", by)
	}
	for _, m := range w.receiver.got {
		if s := string(m.Payload); strings.Contains(s, "hidden@") || strings.Contains(s, "hush") {
			t.Errorf("the message tells too much: %s", s)
		}
		if !domain.ValidID(string(m.ID), domain.PrefixDelivery) {
			t.Errorf("the ID is %s", m.ID)
		}
	}
	if w.receiver.got[0].ID == w.receiver.got[1].ID {
		t.Error("two messages have one ID")
	}
}

// A cancelled Request and one that nobody answered are decided as well.
func TestHowRequestsEndIsTold(t *testing.T) {
	w := newWorld(t)
	w.hook(w.me, false, domain.HookRequestDecided)
	chat := w.newChat()
	w.say(chat, roundScript)
	w.say(w.newChat(), roundScript)
	w.run()
	_, err := w.engine.Interrupt(t.Context(), w.me, chat, false)
	w.must(err)
	w.clock.forward(25 * time.Hour)
	w.sweepFor(10 * time.Second)
	var statuses []any
	for _, h := range w.heard() {
		statuses = append(statuses, h.Data["status"])
	}
	if !slices.Equal(statuses, []any{"cancelled", "denied"}) {
		t.Errorf("heard %v", statuses)
	}
}

// Work is told of where it pauses at a limit of its own and where it ends, each once.
func TestWorkIsToldOf(t *testing.T) {
	w := newWorld(t)
	w.hook(w.me, false, domain.HookDelegationPaused, domain.HookDelegationEnded)
	w.say(w.newChat(), `/call openbot_delegate {"task":"/call openbot_list_bots {}\n/then\n/call openbot_list_bots {}\n/then\n/say done","limits":{"timeMs":600000,"steps":1}}`)
	w.run()
	if !slices.Equal(w.types(), []string{"delegation.paused"}) {
		t.Fatalf("heard %v", w.types())
	}
	w.mustAnswer(w.onlyPending(), domain.DecisionDeny, "")
	w.run()
	w.sweepFor(20 * time.Second)
	if !slices.Equal(w.types(), []string{"delegation.paused", "delegation.ended"}) {
		t.Fatalf("heard %v", w.types())
	}
	paused, ended := w.heard()[0].Data, w.heard()[1].Data
	if paused["status"] != "paused" || paused["limit"] != "steps" || ended["status"] != "cancelled" || paused["delegation"] != ended["delegation"] ||
		ended["link"] != "/v1/delegations/"+ended["delegation"].(string) || ended["executionId"] == "" {
		t.Errorf("heard %v and %v", paused, ended)
	}
	for _, m := range w.receiver.got {
		if strings.Contains(string(m.Payload), "openbot_list_bots") {
			t.Errorf("the message tells the task: %s", m.Payload)
		}
	}
}

// Work that completes or is not allowed ends once as well.
func TestEveryEndOfWorkIsToldOnce(t *testing.T) {
	w := newWorld(t)
	w.hook(w.me, false)
	bot, err := w.engine.CreateBot(t.Context(), w.me, engine.BotFields{Name: ptr("Other"), Shared: ptr(true)})
	w.must(err)
	w.say(w.newChat(), `/call openbot_delegate {"task":"/say fine","limits":{"timeMs":600000}}`)
	w.say(w.newChat(), `/call openbot_delegate {"bot":"`+string(bot.ID)+`","reason":"r","task":"/say fine","limits":{"timeMs":600000}}`)
	w.run()
	w.mustAnswer(w.onlyPending(), domain.DecisionDeny, "")
	w.run()
	w.sweepFor(10 * time.Second)
	ends := map[any]int{}
	for _, h := range w.heard() {
		if h.Type == domain.HookDelegationEnded {
			ends[h.Data["status"]]++
		}
	}
	if len(ends) != 2 || ends["completed"] != 1 || ends["failed"] != 1 {
		t.Errorf("the ends are %v", ends)
	}
}

// A Member's webhook hears of its own work; an admin's may hear of everybody's.
func TestWhoIsTold(t *testing.T) {
	w := newWorld(t)
	mail := w.mail
	mail.Shared = true
	w.must(w.store.Commit(t.Context(), domain.Commit{At: w.clock.now(), Rows: []domain.Row{&mail}}))
	bob, ann := w.person("Bob", "write", "*"), w.person("Ann", "write", "*")
	all := w.hook(w.me, true, domain.HookRequestPending)
	mine, annes := w.hook(w.me, false), w.hook(ann, false)
	bobs := []domain.Webhook{w.hook(bob, false), w.hook(bob, false, domain.HookDelegationEnded)}
	chat, err := w.engine.CreateChat(t.Context(), bob, engine.NewChat{})
	w.must(err)
	_, err = w.engine.PostMessage(t.Context(), bob, chat.ID, roundScript)
	w.must(err)
	w.run()
	got := map[string]int{}
	for _, m := range w.receiver.got {
		got[m.Owner]++
	}
	if len(got) != 2 || got[string(all.ID)] != 1 || got[string(bobs[0].ID)] != 1 {
		t.Errorf("told: %v, want %s and %s alone (not %s, %s)", got, all.ID, bobs[0].ID, mine.ID, annes.ID)
	}
	_, _, err = w.engine.CreateWebhook(t.Context(), bob, engine.WebhookFields{URL: ptr("https://x.example"), Events: domain.HookEvents(), Organization: ptr(true)})
	w.wantCode(err, domain.CodeForbidden)
	_, err = w.engine.Webhook(t.Context(), bob, all.ID)
	w.wantCode(err, domain.CodeNotFound)
	_, err = w.engine.Webhook(t.Context(), w.me, bobs[0].ID)
	w.wantCode(err, domain.CodeNotFound)
	_, err = w.engine.Deliveries(t.Context(), ann, bobs[0].ID, "", domain.Page{Limit: 1})
	w.wantCode(err, domain.CodeNotFound)
}

// Whoever may hear no more is not told: not of what comes, and not of what waits.
func TestWhoIsToldNoMore(t *testing.T) {
	for name, end := range map[string]func(w *world, bob domain.Principal, hook domain.Webhook){
		"a disabled webhook": func(w *world, bob domain.Principal, hook domain.Webhook) {
			_, err := w.engine.ChangeWebhook(w.t.Context(), bob, hook.ID, engine.WebhookFields{Enabled: ptr(false)})
			w.must(err)
		},
		"a deleted webhook": func(w *world, bob domain.Principal, hook domain.Webhook) {
			w.must(w.engine.DeleteWebhook(w.t.Context(), bob, hook.ID))
		},
		"a disabled Member": func(w *world, bob domain.Principal, _ domain.Webhook) {
			_, err := w.engine.ChangeMember(w.t.Context(), w.me, bob.Member.ID, engine.MemberFields{Disabled: ptr(true)})
			w.must(err)
		},
		"an admin that is none any more": func(w *world, bob domain.Principal, _ domain.Webhook) {
			_, err := w.engine.ChangeMember(w.t.Context(), w.me, bob.Member.ID, engine.MemberFields{Permissions: domain.Permissions{"write", "*"}})
			w.must(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			bob := w.person("Bob", "admin", "*")
			hook := w.hook(bob, true)
			chat := w.newChat()
			w.say(chat, roundScript)
			task, _ := w.rings.next(w.clock.now())
			w.work(task) // the Request is made, its delivery waits
			end(w, bob, hook)
			w.run()
			_, err := w.engine.Interrupt(t.Context(), w.me, chat, false)
			w.must(err)
			w.run()
			w.sweepFor(10 * time.Second)
			if len(w.receiver.got) != 0 {
				t.Fatalf("told %d times", len(w.receiver.got))
			}
			dead, err := w.store.Deliveries(t.Context(), hook.ID, domain.DeliveryDead, domain.Page{Limit: 9})
			w.must(err)
			if len(dead) == 0 || dead[len(dead)-1].Outcome == "" || dead[len(dead)-1].Tries != 0 {
				t.Errorf("what waited is not dead with a reason: %+v", dead)
			}
		})
	}
}

// A receiver that does not take a message gets it again under the same ID, at longer and
// longer intervals, until it is dead; a person sends it again from there.
func TestRetriesDeadLettersAndSendingAgain(t *testing.T) {
	w := newWorld(t)
	hook := w.hook(w.me, false, domain.HookRequestPending)
	w.receiver.status = 500
	w.say(w.newChat(), roundScript)
	w.run()
	first := w.deliveries(hook.ID, domain.DeliveryPending)
	if len(first) != 1 || first[0].Tries != 1 || !strings.Contains(first[0].Outcome, "500") {
		t.Fatalf("after the first try: %+v", first)
	}
	tries := 1
	for _, wait := range []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour} {
		w.clock.forward(wait - time.Millisecond)
		w.rings.lose()
		w.sweep()
		if len(w.receiver.got) != tries {
			t.Fatalf("try %d came before its time", tries+1)
		}
		w.receiver.status = 0 // no answer at all counts like a bad one
		w.clock.forward(time.Millisecond)
		w.sweep()
		tries++
		if len(w.receiver.got) != tries {
			t.Fatalf("%d tries after %s, want %d", len(w.receiver.got), wait, tries)
		}
	}
	dead := w.deliveries(hook.ID, domain.DeliveryDead)
	if len(dead) != 1 || dead[0].Tries != domain.MaxDeliveryTries || dead[0].Outcome != "The receiver did not answer in time" {
		t.Fatalf("the dead letters are %+v", dead)
	}
	w.clock.forward(24 * time.Hour)
	w.sweepFor(3 * time.Second)
	if len(w.receiver.got) != tries {
		t.Error("a dead letter was sent by itself")
	}
	w.receiver.status = 204
	_, err := w.engine.ResendDelivery(t.Context(), w.me, hook.ID, dead[0].ID)
	w.must(err)
	w.run()
	for _, m := range w.receiver.got {
		if m.ID != dead[0].ID || string(m.Payload) != string(dead[0].Payload) {
			t.Errorf("a try had the ID %s and the payload %s", m.ID, m.Payload)
		}
	}
	if got := w.deliveries(hook.ID, domain.DeliveryDelivered); len(got) != 1 || len(w.receiver.got) != tries+1 {
		t.Errorf("delivered: %+v after %d tries", got, len(w.receiver.got))
	}
	_, err = w.engine.ResendDelivery(t.Context(), w.me, hook.ID, dead[0].ID)
	w.wantCode(err, domain.CodeConflict)
	_, err = w.engine.ResendDelivery(t.Context(), w.me, w.hook(w.me, false).ID, dead[0].ID)
	w.wantCode(err, domain.CodeNotFound)
}

// A receiver that says 410 wants no more.
func TestAReceiverThatWantsNoMore(t *testing.T) {
	w := newWorld(t)
	hook := w.hook(w.me, false)
	w.receiver.status = 410
	turn := w.say(w.newChat(), roundScript)
	w.run()
	w.mustAnswer(w.onlyPending(), domain.DecisionDeny, "")
	w.run()
	w.wantStatus(turn, domain.TurnCompleted)
	now, err := w.engine.Webhook(t.Context(), w.me, hook.ID)
	w.must(err)
	if now.Enabled || !strings.Contains(now.DisabledWhy, "410") || len(w.receiver.got) != 1 {
		t.Errorf("%+v after %d messages", now, len(w.receiver.got))
	}
	dead := w.deliveries(hook.ID, "")
	if len(dead) != 1 || dead[0].Status != domain.DeliveryDead {
		t.Errorf("the deliveries are %+v", dead)
	}
	w.receiver.status = 200
	_, err = w.engine.ChangeWebhook(t.Context(), w.me, hook.ID, engine.WebhookFields{Enabled: ptr(true)})
	w.must(err)
	_, err = w.engine.ResendDelivery(t.Context(), w.me, hook.ID, dead[0].ID)
	w.must(err)
	w.run()
	if got := w.deliveries(hook.ID, domain.DeliveryDelivered); len(got) != 1 {
		t.Errorf("delivered: %+v", got)
	}
}

// A worker that dies before, during or after a try loses nothing: the message comes at
// least once, and every time under one ID. A commit that dies tells nothing.
func TestADeliverySurvivesEveryCrash(t *testing.T) {
	t.Parallel()
	const points = 4 // the commit of the Request, taking, sending, settling
	for point := range points {
		w := newWorldAlone(t)
		hook := w.hook(w.me, false, domain.HookRequestPending)
		w.say(w.newChat(), roundScript)
		step, _ := w.rings.next(w.clock.now())
		died := false
		if point == 0 {
			w.store.before = func(int, domain.Commit) error { crash(); return nil }
			died = w.die(func() { w.work(step) })
		} else {
			w.work(step)
			task, ok := w.rings.next(w.clock.now())
			if !ok || task.Kind != domain.TaskWebhookDeliver {
				t.Fatalf("after the step %v is rung", task)
			}
			died = w.die(func() {
				out, err := w.engine.TakeDelivery(context.WithoutCancel(t.Context()), domain.DeliveryID(task.Subject), task.Revision)
				w.must(err)
				if point == 1 {
					crash()
				}
				status, _ := w.receiver.Deliver(t.Context(), out.Message)
				if point == 2 {
					crash()
				}
				w.must(w.engine.SettleDelivery(context.WithoutCancel(t.Context()), out, status, nil))
				crash()
			})
		}
		if !died {
			t.Fatal("nothing died")
		}
		before := len(w.receiver.got)
		if point == 0 && len(w.deliveries(hook.ID, "")) != 0 {
			t.Fatal("a commit that died told of itself")
		}
		w.restart()
		w.sweepFor(40 * time.Second)
		if want := 1 + before - boolToInt(point == 3); len(w.receiver.got) != want {
			t.Errorf("point %d: told %d times, want %d", point, len(w.receiver.got), want)
		}
		for _, m := range w.receiver.got {
			if m.ID != w.receiver.got[0].ID {
				t.Errorf("point %d: a repeat has another ID", point)
			}
		}
		if got := w.deliveries(hook.ID, domain.DeliveryDelivered); len(got) != 1 {
			t.Errorf("point %d: %+v", point, got)
		}
	}
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A worker that dies at every try does not try for ever.
func TestAMessageThatKillsItsWorkerIsDeadInTheEnd(t *testing.T) {
	w := newWorld(t)
	hook := w.hook(w.me, false, domain.HookRequestPending)
	w.say(w.newChat(), roundScript)
	step, _ := w.rings.next(w.clock.now())
	w.work(step)
	taken := 0
	for range 20 {
		w.rings.lose()
		tasks, err := w.engine.DueTasks(t.Context(), domain.TaskWebhookDeliver, 0, 9)
		w.must(err)
		for _, task := range tasks {
			out, err := w.engine.TakeDelivery(t.Context(), domain.DeliveryID(task.Subject), task.Revision)
			w.must(err)
			if out != nil {
				taken++
			}
		}
		w.clock.forward(domain.DeliveryLease)
	}
	if dead := w.deliveries(hook.ID, domain.DeliveryDead); taken != domain.MaxDeliveryTries || len(dead) != 1 {
		t.Errorf("%d tries, dead: %+v", taken, dead)
	}
}

// A result that comes after the lease counts for nothing: another worker has the message.
func TestALateResultOfADeliveryIsDropped(t *testing.T) {
	w := newWorld(t)
	hook := w.hook(w.me, false, domain.HookRequestPending)
	w.say(w.newChat(), roundScript)
	step, _ := w.rings.next(w.clock.now())
	w.work(step)
	task, _ := w.rings.next(w.clock.now())
	take := func() *engine.Outgoing {
		t.Helper()
		now, err := w.store.Delivery(t.Context(), domain.DeliveryID(task.Subject))
		w.must(err)
		out, err := w.engine.TakeDelivery(t.Context(), now.ID, now.Version)
		w.must(err)
		return out
	}
	slow := take()
	if take() != nil {
		t.Fatal("two workers have one message")
	}
	w.clock.forward(domain.DeliveryLease)
	fast := take()
	w.must(w.engine.SettleDelivery(t.Context(), slow, 500, nil))
	w.must(w.engine.SettleDelivery(t.Context(), fast, 200, nil))
	if got := w.deliveries(hook.ID, ""); got[0].Status != domain.DeliveryDelivered || got[0].Tries != 2 {
		t.Errorf("the delivery is %+v", got[0])
	}
}

// Delivered messages are forgotten after a week, dead ones after a month.
func TestDeliveriesAreForgotten(t *testing.T) {
	w := newWorld(t)
	hook := w.hook(w.me, false)
	w.say(w.newChat(), roundScript)
	w.run()
	w.receiver.status = 410
	w.mustAnswer(w.onlyPending(), domain.DecisionDeny, "")
	w.run()
	count := func() int {
		t.Helper()
		w.must(w.engine.ForgetDeliveries(t.Context()))
		return len(w.deliveries(hook.ID, ""))
	}
	if got := count(); got != 2 {
		t.Fatalf("%d deliveries", got)
	}
	w.clock.forward(domain.KeepDelivered + time.Second)
	if got := count(); got != 1 {
		t.Errorf("%d deliveries after a week", got)
	}
	w.clock.forward(domain.KeepDead)
	if got := count(); got != 0 {
		t.Errorf("%d deliveries after a month", got)
	}
}

func TestWebhooksThatDoNotFit(t *testing.T) {
	w := newWorld(t)
	w.engine.CheckURL = func(address string) error {
		if !strings.HasPrefix(address, "https://") {
			return errors.New("is no address")
		}
		return nil
	}
	fits := engine.WebhookFields{URL: ptr("https://x.example"), Events: []string{domain.HookRequestPending}}
	for name, change := range map[string]func(*engine.WebhookFields){
		"no address":    func(f *engine.WebhookFields) { f.URL = nil },
		"a bad address": func(f *engine.WebhookFields) { f.URL = ptr("ftp://x") },
		"no events":     func(f *engine.WebhookFields) { f.Events = nil },
		"another event": func(f *engine.WebhookFields) { f.Events = []string{"turn.status"} },
		"a bad secret":  func(f *engine.WebhookFields) { f.Secret = ptr("whsec_short") },
	} {
		fields := fits
		change(&fields)
		_, _, err := w.engine.CreateWebhook(t.Context(), w.me, fields)
		if domain.CodeOf(err) != domain.CodeInvalid {
			t.Errorf("%s gave %v", name, err)
		}
	}
	for range domain.MaxWebhooks {
		_, _, err := w.engine.CreateWebhook(t.Context(), w.me, fits)
		w.must(err)
	}
	_, _, err := w.engine.CreateWebhook(t.Context(), w.me, fits)
	w.wantCode(err, domain.CodeConflict)
}
