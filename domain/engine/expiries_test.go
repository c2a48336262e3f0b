package engine_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
)

// Many Requests whose time is up at once end in a few commits, and each as it would alone:
// denied by the expiry, its call not sent, its Turn gone on with, its receipt signed. What
// has no place in such a commit ends on its own.
func TestManyRequestsExpireTogether(t *testing.T) {
	w := newWorld(t)
	const many = 3 * domain.ExpiryShares * 5
	var chats []domain.ChatID
	for i := range many {
		chat := w.newChat()
		chats = append(chats, chat)
		call := fmt.Sprintf("/call mail__send {\"n\":%d}\n", i)
		if i == 0 {
			call += call // one step asks for both, so that two Requests have one Chat
		}
		w.say(chat, call+fmt.Sprintf("/say done %d", i))
		w.run()
		w.clock.forward(time.Millisecond + time.Microsecond) // so that all shares have some
	}
	// Work ends otherwise: its giver hears of it.
	giver := w.newChat()
	w.say(giver, delegate(nil, `/call mail__send {"work":1}`))
	w.run()

	sent := w.apps.total()
	w.rings.lose()
	w.clock.forward(25 * time.Hour)
	before := w.store.count()
	for share := range domain.ExpiryShares {
		w.must(w.engine.ElapseRequests(t.Context(), share))
	}
	if commits := w.store.count() - before; commits > 2*domain.ExpiryShares+4 {
		t.Errorf("%d Requests took %d commits", many+2, commits)
	}
	left, err := w.engine.Requests(t.Context(), w.me, domain.RequestFilter{Status: domain.RequestPending}, domain.Page{Limit: 200})
	w.must(err)
	if len(left) != 0 {
		t.Fatalf("%d still wait", len(left))
	}
	for _, task := range w.rings.tasks {
		if task.Kind == domain.TaskTurnStep && task.Urgency != domain.UrgencyRest && task.Urgency != domain.UrgencyAnswer {
			t.Errorf("%+v was rung", task)
		}
	}
	w.run()
	w.sweepFor(30 * time.Second)
	for i, chat := range chats {
		turn := w.turns(chat)[0]
		call := turn.Calls[0]
		if turn.Turn.Status != domain.TurnCompleted || call.Status != domain.CallDenied || call.Sends != 0 {
			t.Fatalf("the Turn of Chat %d is %s and its call %s, sent %d times", i, turn.Turn.Status, call.Status, call.Sends)
		}
		w.wantText(chat, fmt.Sprintf("done %d", i))
		r := w.request(call.Request)
		if r.Status != domain.RequestDenied || r.Decision == nil || r.Decision.By.Tag != domain.TagExpiry || r.Receipt == "" {
			t.Fatalf("the Request of Chat %d is %s by %+v with the receipt %q", i, r.Status, r.Decision, r.Receipt)
		}
	}
	if n := w.apps.total(); n != sent {
		t.Errorf("%d calls reached the App", n-sent)
	}
	w.wantText(giver, "Not answered in time")

	// A plan may be let run by the same expiry.
	w.must(w.engine.Beat(t.Context()))
	plan, err := w.engine.CreateChat(t.Context(), w.me, engine.NewChat{Mode: domain.ModePlan,
		Plan: domain.PlanTerms{TimeoutMs: time.Minute.Milliseconds(), OnExpire: domain.DecisionAllow}})
	w.must(err)
	w.say(plan.ID, `/call openbot_plan {"plan":"Send it."}`)
	w.run()
	w.rings.lose()
	for range 15 {
		w.clock.forward(5 * time.Second)
		w.must(w.engine.Beat(t.Context()))
	}
	for share := range domain.ExpiryShares {
		w.must(w.engine.ElapseRequests(t.Context(), share))
	}
	w.run()
	if chat, err := w.engine.Chat(t.Context(), w.me, plan.ID); err != nil || chat.Mode != "" {
		t.Errorf("the plan was not let run: the mode is %q (%v)", chat.Mode, err)
	}
}

// Somebody who answers at the same moment wins or loses for that one Request, and the
// others end all the same; a commit that fails leaves none of them half ended.
func TestAnAnswerAmongManyThatExpire(t *testing.T) {
	w := newWorld(t)
	for i := range 6 {
		w.say(w.newChat(), fmt.Sprintf("/call mail__send {\"n\":%d}\n/say done", i))
		w.run()
		w.clock.forward(4 * time.Microsecond) // one share
	}
	list, err := w.engine.Requests(t.Context(), w.me, domain.RequestFilter{Status: domain.RequestPending}, domain.Page{Limit: 10})
	w.must(err)
	w.rings.lose()
	w.clock.forward(24*time.Hour - time.Second)
	answered := false
	w.store.before = func(_ int, c domain.Commit) error {
		if answered || len(c.Rows) < 10 {
			return nil
		}
		answered = true
		w.clock.forward(-2 * time.Second)
		_, err := w.engine.AnswerRequest(t.Context(), w.me, list[2].ID, engine.Answer{Expected: list[2].Revision, Decision: domain.DecisionAllow})
		w.clock.forward(2 * time.Second)
		w.must(err)
		return nil
	}
	w.clock.forward(2 * time.Second)
	for share := range domain.ExpiryShares {
		w.must(w.engine.ElapseRequests(t.Context(), share))
	}
	if !answered {
		t.Fatal("no commit held many")
	}
	for i, r := range list {
		want := domain.RequestDenied
		if i == 2 {
			want = domain.RequestAllowed
		}
		if now := w.request(r.ID); now.Status != want {
			t.Errorf("Request %d is %s, want %s", i, now.Status, want)
		}
	}

	// A database that fails ends nothing, and the next sweep ends it.
	w.store.before = nil
	w.run()
	w.say(w.newChat(), "/call mail__send {}\n/say done")
	w.run()
	open := w.onlyPending()
	w.rings.lose()
	w.clock.forward(25 * time.Hour)
	broken := errors.New("broken")
	w.store.before = func(int, domain.Commit) error { return broken }
	failed := 0
	for share := range domain.ExpiryShares {
		if err := w.engine.ElapseRequests(t.Context(), share); errors.Is(err, broken) {
			failed++
		}
	}
	w.store.before = nil
	if now := w.request(open.ID); failed != 1 || now.Status != domain.RequestPending {
		t.Errorf("%d shares failed, and the Request is %s", failed, now.Status)
	}
	for share := range domain.ExpiryShares {
		w.must(w.engine.ElapseRequests(t.Context(), share))
	}
	if now := w.request(open.ID); now.Status != domain.RequestDenied {
		t.Errorf("the Request is %s", now.Status)
	}
}
