package engine_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
)

var reminderID = regexp.MustCompile(`ntc_[0-9a-f]{32}`)

// reminded sets a reminder in a Turn of its own and gives its ID.
func (w *world) reminded(chat domain.ChatID, arguments string) domain.ReminderID {
	w.t.Helper()
	turn := w.say(chat, "/call openbot_remind "+arguments)
	w.run()
	call := w.wantStatus(turn, domain.TurnCompleted).Calls[0]
	if call.Status != domain.CallSucceeded {
		w.t.Fatalf("the call is %s: %s", call.Status, call.Result)
	}
	return domain.ReminderID(reminderID.FindString(call.Result))
}

// open counts the open reminders of a Chat.
func (w *world) open(chat domain.ChatID) int {
	w.t.Helper()
	n, err := w.store.OpenReminders(w.t.Context(), chat)
	w.must(err)
	return n
}

func (w *world) chat(id domain.ChatID) domain.Chat {
	w.t.Helper()
	c, err := w.engine.Chat(w.t.Context(), w.me, id)
	w.must(err)
	return c
}

// fired counts the reminders in the history of a Chat.
func (w *world) fired(chat domain.ChatID) int {
	w.t.Helper()
	return strings.Count(w.texts(chat), "reminder:[OpenBot] Reminder: ")
}

func TestAReminderStartsATurnAtItsTime(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	id := w.reminded(chat, `{"text":"water the plants","afterMs":60000}`)
	before := w.chat(chat).LastTurn
	if w.open(chat) != 1 {
		t.Fatalf("%d reminders are open", w.open(chat))
	}
	w.clock.forward(time.Minute - time.Microsecond)
	w.must(w.engine.FireReminder(t.Context(), id)) // rung early
	w.run()
	if w.sweep(); w.fired(chat) != 0 {
		t.Fatal("it came early")
	}
	w.clock.forward(time.Microsecond)
	w.run() // the timer that the commit rang
	c := w.chat(chat)
	v := w.wantStatus(c.LastTurn, domain.TurnCompleted)
	if c.LastTurn == before || w.fired(chat) != 1 || !strings.Contains(w.texts(chat), "reminder:[OpenBot] Reminder: water the plants\n") {
		t.Fatalf("the history is\n%s", w.texts(chat))
	}
	if len(v.Turn.Authority) != 1 || v.Turn.Authority[0] != (domain.Authority{Member: w.me.Member.ID, Token: w.me.Token.ID}) {
		t.Errorf("it works on the rights of %+v", v.Turn.Authority)
	}
	w.must(w.engine.FireReminder(t.Context(), id))
	w.sweepFor(time.Minute)
	if w.fired(chat) != 1 || w.open(chat) != 0 {
		t.Errorf("it came %d times, and %d are open", w.fired(chat), w.open(chat))
	}
	events, err := w.store.ChatEvents(t.Context(), chat, 0, 100)
	w.must(err)
	told := 0
	for _, ev := range events {
		if ev.Kind == domain.EventReminder && ev.Subject == string(id) && strings.Contains(string(ev.Data), string(c.LastTurn)) {
			told++
		}
	}
	if told != 1 {
		t.Errorf("readers heard of it %d times", told)
	}
}

// Far ahead nothing is rung: the sweep finds it, however late.
func TestAReminderComesLateWhenEverythingWasDown(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	at := w.clock.now().Add(300 * 24 * time.Hour)
	w.reminded(chat, fmt.Sprintf(`{"text":"renew the contract","at":%d}`, at.UnixMilli()))
	for _, task := range w.rings.tasks {
		if task.Kind == domain.TaskReminderFire {
			t.Errorf("a reminder of next year was rung: %+v", task)
		}
	}
	w.restart()
	w.clock.forward(330 * 24 * time.Hour)
	w.sweepFor(15 * time.Second)
	if w.fired(chat) != 1 || w.open(chat) != 0 {
		t.Fatalf("it came %d times, and %d are open", w.fired(chat), w.open(chat))
	}
	w.wantStatus(w.chat(chat).LastTurn, domain.TurnCompleted)
}

// What has passed comes at once, into the very Turn that asked.
func TestAReminderOfThePastComesAtOnce(t *testing.T) {
	w := newWorld(t)
	for _, arguments := range []string{`{"text":"now","at":1000}`, `{"text":"now","afterMs":0}`, `{"text":"now","at":1e3}`} {
		chat := w.newChat()
		turn := w.say(chat, "/call openbot_remind "+arguments)
		w.run()
		v := w.wantStatus(turn, domain.TurnCompleted)
		if w.fired(chat) != 1 || w.open(chat) != 0 || v.Calls[0].Status != domain.CallSucceeded {
			t.Errorf("%s came %d times: %s", arguments, w.fired(chat), v.Calls[0].Result)
		}
	}
}

// A Turn under way reads it at its next step.
func TestAReminderGoesToTheTurnUnderWay(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	w.reminded(chat, `{"text":"water the plants","afterMs":1000}`)
	turn := w.say(chat, roundScript)
	w.run()
	w.clock.forward(time.Second)
	w.run()
	w.wantStatus(turn, domain.TurnWaiting)
	inbox, err := w.store.Inbox(t.Context(), chat)
	w.must(err)
	if len(inbox) != 1 || inbox[0].Kind != domain.ItemReminder || len(inbox[0].Authority) != 1 {
		t.Fatalf("the inbox holds %+v", inbox)
	}
	w.mustAnswer(w.onlyPending(), domain.DecisionAllow, "")
	w.run()
	w.wantStatus(turn, domain.TurnCompleted)
	if w.chat(chat).LastTurn != turn || w.fired(chat) != 1 {
		t.Errorf("the history is\n%s", w.texts(chat))
	}
}

// The rights behind a reminder are those of the Turn that set it, not of who is there
// when it comes: what they lost meanwhile is lost.
func TestAReminderCarriesTheRightsOfItsTurn(t *testing.T) {
	w := newWorld(t)
	token, _, err := w.engine.CreateToken(t.Context(), w.me, engine.NewToken{Name: "script", Scopes: domain.Permissions{"write"}})
	w.must(err)
	chat := w.newChat()
	script := w.me
	script.Token = token
	if _, err := w.engine.PostMessage(t.Context(), script, chat, `/call openbot_remind {"text":"later","afterMs":60000}`); err != nil {
		t.Fatal(err)
	}
	w.run()
	w.clock.forward(time.Minute)
	w.run()
	c := w.chat(chat)
	if got := w.view(c.LastTurn).Turn.Authority; len(got) != 1 || got[0].Token != token.ID {
		t.Errorf("the Turn works on %+v, not on the token that set the reminder", got)
	}
}

func TestRemindersThatDoNotFitCreateNothing(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	next := w.clock.now().AddDate(1, 0, 0)
	for name, arguments := range map[string]string{
		"no time":         `{"text":"x"}`,
		"two times":       `{"text":"x","at":1,"afterMs":1}`,
		"no text":         `{"afterMs":1}`,
		"an empty text":   `{"text":"","afterMs":1}`,
		"a long text":     `{"text":"` + strings.Repeat("é", 2001) + `","afterMs":1}`,
		"too far ahead":   `{"text":"x","at":` + strconv.FormatInt(next.UnixMilli()+1, 10) + `}`,
		"for ever":        `{"text":"x","afterMs":9223372036854775807}`,
		"beyond numbers":  `{"text":"x","at":1e300}`,
		"backwards":       `{"text":"x","afterMs":-1}`,
		"half a moment":   `{"text":"x","afterMs":1.5}`,
		"a time in words": `{"text":"x","at":"tomorrow"}`,
		"a time of null":  `{"text":"x","at":null,"afterMs":1}`,
		"an extra field":  `{"text":"x","afterMs":1,"chat":"chat_1"}`,
	} {
		turn := w.say(chat, "/call openbot_remind "+arguments)
		w.run()
		call := w.wantStatus(turn, domain.TurnCompleted).Calls[0]
		if call.Status != domain.CallFailed || !strings.Contains(call.Result, "do not fit") || w.open(chat) != 0 || w.fired(chat) != 0 {
			t.Errorf("%s: the call is %s: %s", name, call.Status, call.Result)
		}
	}
}

func TestACancelledReminderNeverComes(t *testing.T) {
	w := newWorld(t)
	chat, other := w.newChat(), w.newChat()
	kept := w.reminded(chat, `{"text":"kept","afterMs":60000}`)
	cancelled := w.reminded(chat, `{"text":"cancelled","afterMs":60000}`)
	elsewhere := w.reminded(other, `{"text":"elsewhere","afterMs":60000}`)
	cancel := func(id string) domain.Call {
		t.Helper()
		turn := w.say(chat, `/call openbot_cancel_reminder {"reminder":"`+id+`"}`)
		w.run()
		return w.wantStatus(turn, domain.TurnCompleted).Calls[0]
	}
	for _, id := range []string{string(elsewhere), "ntc_00000000000000000000000000000001", "ntc_1", "", strings.ToUpper(string(kept))} {
		if call := cancel(id); call.Status != domain.CallFailed {
			t.Errorf("cancelling %q: %s", id, call.Result)
		}
	}
	if call := cancel(string(cancelled)); call.Status != domain.CallSucceeded || !strings.Contains(call.Result, string(cancelled)) {
		t.Fatalf("the call is %s: %s", call.Status, call.Result)
	}
	if call := cancel(string(cancelled)); call.Status != domain.CallFailed {
		t.Errorf("it was cancelled twice: %s", call.Result)
	}
	w.must(w.engine.FireReminder(t.Context(), cancelled))
	w.clock.forward(time.Minute)
	w.run()
	w.sweepFor(15 * time.Second)
	if text := w.texts(chat); w.fired(chat) != 1 || !strings.Contains(text, "Reminder: kept") || w.fired(other) != 1 {
		t.Errorf("the history is\n%s", text)
	}
	if call := cancel(string(kept)); call.Status != domain.CallFailed || !strings.Contains(call.Result, "may have come already") {
		t.Errorf("cancelling what has come: %s", call.Result)
	}
}

// In one step a reminder is cancelled once.
func TestOneStepCancelsOnce(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	id := w.reminded(chat, `{"text":"tea","afterMs":60000}`)
	line := `/call openbot_cancel_reminder {"reminder":"` + string(id) + `"}`
	turn := w.say(chat, line, line)
	w.run()
	calls := w.wantStatus(turn, domain.TurnCompleted).Calls
	if calls[0].Status != domain.CallSucceeded || calls[1].Status != domain.CallFailed {
		t.Errorf("the calls are %s and %s", calls[0].Status, calls[1].Status)
	}
}

func TestAChatHasAtMostAHundredOpenReminders(t *testing.T) {
	w := newWorld(t)
	chat, other := w.newChat(), w.newChat()
	lines := make([]string, 102)
	for i := range lines {
		lines[i] = `/call openbot_remind {"text":"x","afterMs":60000}`
	}
	turn := w.say(chat, lines...)
	w.run()
	var ids []string
	failed := 0
	for _, call := range w.wantStatus(turn, domain.TurnCompleted).Calls {
		if call.Status == domain.CallSucceeded {
			ids = append(ids, reminderID.FindString(call.Result))
		} else if failed++; !strings.Contains(call.Result, "100 reminders") {
			t.Errorf("the call says: %s", call.Result)
		}
	}
	if len(ids) != 100 || failed != 2 || w.open(chat) != 100 {
		t.Fatalf("%d were set and %d were not, %d are open", len(ids), failed, w.open(chat))
	}
	w.reminded(other, `{"text":"another Chat","afterMs":60000}`)
	// One goes and one comes, in the same step.
	turn = w.say(chat, `/call openbot_cancel_reminder {"reminder":"`+ids[0]+`"}`, lines[0], lines[0])
	w.run()
	calls := w.wantStatus(turn, domain.TurnCompleted).Calls
	if calls[1].Status != domain.CallSucceeded || calls[2].Status != domain.CallFailed || w.open(chat) != 100 {
		t.Errorf("the calls are %s and %s, %d are open", calls[1].Status, calls[2].Status, w.open(chat))
	}
}

func TestPlanModeSetsNoReminder(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	id := w.reminded(chat, `{"text":"tea","afterMs":60000}`)
	_, err := w.engine.ChangeChat(t.Context(), w.me, chat, engine.ChatFields{Mode: ptr(domain.ModePlan)})
	w.must(err)
	turn := w.say(chat, `/call openbot_remind {"text":"x","afterMs":1}`, `/call openbot_cancel_reminder {"reminder":"`+string(id)+`"}`)
	w.run()
	for _, call := range w.wantStatus(turn, domain.TurnCompleted).Calls {
		if call.Status != domain.CallDenied {
			t.Errorf("%s is %s: %s", call.Name, call.Status, call.Result)
		}
	}
	if w.open(chat) != 1 {
		t.Errorf("%d are open", w.open(chat))
	}
}

func TestADeletedChatTakesItsReminders(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	id := w.reminded(chat, `{"text":"tea","afterMs":60000}`)
	w.must(w.engine.DeleteChat(t.Context(), w.me, chat))
	if w.open(chat) != 0 {
		t.Error("its reminder is still open")
	}
	w.clock.forward(time.Minute)
	w.must(w.engine.FireReminder(t.Context(), id))
	w.sweepFor(15 * time.Second)
	items, err := w.store.Items(t.Context(), chat, 0, 100)
	w.must(err)
	for _, item := range items {
		if item.Kind == domain.ItemReminder {
			t.Error("it came into a deleted Chat")
		}
	}
}

// Two workers hold the same reminder, each with what it loaded: one input comes of it.
func TestAReminderFiredByTwoWorkersComesOnce(t *testing.T) {
	for name, busy := range map[string]bool{"into an idle Chat": false, "into a Turn": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			chat := w.newChat()
			id := w.reminded(chat, `{"text":"tea","afterMs":60000}`)
			if busy {
				w.say(chat, roundScript)
				w.run()
			}
			w.clock.forward(time.Minute)
			w.rings.lose()
			other := engine.New(engine.Options{Store: w.store.Store, Ringer: w.rings, Live: silence{}, Models: w.models, Clock: w.clock.now, DefaultModel: "playbook"})
			raced := false
			w.store.before = func(int, domain.Commit) error {
				w.store.before, raced = nil, true
				return other.FireReminder(context.WithoutCancel(t.Context()), id)
			}
			w.must(w.engine.FireReminder(t.Context(), id))
			if busy {
				w.mustAnswer(w.onlyPending(), domain.DecisionDeny, "")
			}
			w.run()
			if !raced || w.fired(chat) != 1 || w.open(chat) != 0 {
				t.Fatalf("it came %d times:\n%s", w.fired(chat), w.texts(chat))
			}
			w.wantStatus(w.chat(chat).LastTurn, domain.TurnCompleted)
		})
	}
}

// A cancel and the moment of firing race: it is cancelled, or it comes; never both.
func TestACancelThatRacesWithTheFiring(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	id := w.reminded(chat, `{"text":"tea","afterMs":1000}`)
	other := engine.New(engine.Options{Store: w.store.Store, Ringer: w.rings, Live: silence{}, Models: w.models, Clock: w.clock.now, DefaultModel: "playbook"})
	turn := w.say(chat, `/call openbot_cancel_reminder {"reminder":"`+string(id)+`"}`)
	w.clock.forward(time.Second)
	w.store.before = func(_ int, c domain.Commit) error {
		if len(c.Reminded) == 0 {
			return nil
		}
		w.store.before = nil
		return other.FireReminder(context.WithoutCancel(t.Context()), id)
	}
	w.run()
	call := w.wantStatus(turn, domain.TurnCompleted).Calls[0]
	if call.Status != domain.CallFailed || w.fired(chat) != 1 {
		t.Errorf("the call is %s and it came %d times", call.Status, w.fired(chat))
	}
}

// A step that is thrown away, because it broke a limit, leaves no reminder behind.
func TestAStepThatFailsSetsNoReminder(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	turn := w.say(chat, `/call openbot_remind {"text":"x","afterMs":60000}`)
	w.store.stepFacts = func(f domain.StepFacts) domain.StepFacts { f.Turn.Steps = domain.MaxTurnSteps - 1; return f }
	w.run()
	w.wantStatus(turn, domain.TurnFailed)
	if w.open(chat) != 0 {
		t.Error("a step that failed set a reminder")
	}
}

// The process dies after each commit in the life of a reminder, and what was rung is
// lost. It comes once all the same.
func TestADeathAroundAReminderLosesAndRepeatsNothing(t *testing.T) {
	for n := 1; ; n++ {
		w := newWorldAlone(t)
		chat := w.newChat()
		start := w.store.count()
		w.store.after = func(at int) {
			if at-start == n {
				crash()
			}
		}
		died := w.die(func() {
			ctx := context.WithoutCancel(t.Context())
			if _, err := w.engine.PostMessage(ctx, w.me, chat, `/call openbot_remind {"text":"tea","afterMs":60000}`); err != nil {
				t.Error(err)
			}
			w.run()
			w.clock.forward(time.Minute)
			w.run()
		})
		w.restart()
		w.sweepFor(15 * time.Second) // until it is set
		w.clock.forward(time.Minute)
		w.sweepFor(15 * time.Second)
		if w.fired(chat) != 1 || w.open(chat) != 0 {
			t.Fatalf("death after commit %d: it came %d times", n, w.fired(chat))
		}
		w.wantStatus(w.chat(chat).LastTurn, domain.TurnCompleted)
		if !died {
			if n < 5 {
				t.Errorf("only %d points of death were found", n-1)
			}
			return
		}
	}
}

// An idle Chat whose inbox still holds something takes all of it, in order.
func TestAReminderTakesWhatWaitedBeforeIt(t *testing.T) {
	w := newWorld(t)
	chat := w.newChat()
	w.reminded(chat, `{"text":"tea","afterMs":60000}`)
	c := w.chat(chat)
	c.LastInput++
	w.must(w.store.Commit(t.Context(), domain.Commit{Rows: []domain.Row{&c}, Inputs: []domain.Input{{ID: "ntc_left", Chat: chat, Sequence: c.LastInput,
		Kind: domain.ItemMessage, From: string(w.me.Member.ID), Text: "left behind", CreatedAt: w.clock.now(),
		Authority: []domain.Authority{{Member: w.me.Member.ID, Token: w.me.Token.ID}}}}}))
	w.clock.forward(time.Minute)
	w.run()
	w.wantStatus(w.chat(chat).LastTurn, domain.TurnCompleted)
	text := w.texts(chat)
	if left, tea := strings.Index(text, "left behind"), strings.Index(text, "Reminder: tea"); left < 0 || tea < left {
		t.Errorf("the history is\n%s", text)
	}
	if inbox, err := w.store.Inbox(t.Context(), chat); err != nil || len(inbox) != 0 {
		t.Errorf("%d inputs are left: %v", len(inbox), err)
	}
}
