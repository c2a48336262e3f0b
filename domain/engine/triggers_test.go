package engine_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"openbot/domain"
	"openbot/domain/engine"
)

func ptrTo[T any](v T) *T { return &v }

// cron makes a trigger that is due at times.
func (w *world) cron(times, zone string, with engine.TriggerFields) domain.Trigger {
	w.t.Helper()
	with.Name, with.Cron, with.TimeZone = ptrTo("report"), &times, &zone
	if with.Task == nil {
		with.Task = ptrTo("/say reported")
	}
	t, _, err := w.engine.CreateTrigger(w.t.Context(), w.me, with)
	w.must(err)
	return t
}

func TestTriggersGoByTheWallClock(t *testing.T) {
	w := newWorld(t)
	const daily, half, hourly, monthly = "30 2 * * *", "15 2 * * *", "0 * * * *", "0 9 1 * *"
	for _, c := range []struct{ zone, times, from, why string }{
		{"UTC", daily, "2026-03-14T02:29:59Z 2026-03-14T02:30:00Z 2026-03-15T02:30:00Z", "an ordinary day"},
		{"Europe/Berlin", daily, "2026-03-28T12:00:00Z 2026-03-29T01:30:00Z 2026-03-30T00:30:00Z", "02:30 is skipped in spring: it fires at 03:30"},
		{"Europe/Berlin", daily, "2026-10-24T12:00:00Z 2026-10-25T00:30:00Z 2026-10-26T01:30:00Z", "02:30 comes twice in autumn: it fires the first time"},
		{"Europe/Berlin", daily, "2026-10-25T00:45:00Z 2026-10-26T01:30:00Z", "between the two 02:30 nothing is due"},
		{"America/New_York", half, "2026-03-08T05:00:00Z 2026-03-08T07:15:00Z", "the other side of the sea"},
		{"Australia/Lord_Howe", "15 2 * * *", "2026-10-03T12:00:00Z 2026-10-03T15:45:00Z", "a change of half an hour skips 02:15"},
		{"Europe/Berlin", hourly, "2026-10-25T00:10:00Z 2026-10-25T01:00:00Z 2026-10-25T02:00:00Z", "each hour that passes, also the one that comes twice"},
		{"Europe/Berlin", hourly, "2026-03-29T00:10:00Z 2026-03-29T01:00:00Z 2026-03-29T02:00:00Z", "and none that does not"},
		{"Asia/Kolkata", monthly, "2026-03-14T00:00:00Z 2026-04-01T03:30:00Z", "a zone of half an hour"},
	} {
		times := strings.Fields(c.from)
		at := func(i int) time.Time {
			parsed, err := time.Parse(time.RFC3339, times[i])
			w.must(err)
			return parsed
		}
		w.clock.mu.Lock()
		w.clock.at = at(0)
		w.clock.mu.Unlock()
		tr := w.cron(c.times, c.zone, engine.TriggerFields{})
		for i := 1; i < len(times); i++ {
			if got := *tr.NextAt; !got.Equal(at(i)) {
				t.Errorf("%s: %s in %s after %s comes at %s, want %s", c.why, c.times, c.zone, times[i-1], got.Format(time.RFC3339), times[i])
				break
			}
			w.clock.mu.Lock()
			w.clock.at = at(i)
			w.clock.mu.Unlock()
			w.must(w.engine.FireTrigger(t.Context(), tr.ID))
			var err error
			tr, err = w.engine.Trigger(t.Context(), w.me, tr.ID)
			w.must(err)
			if tr.LastAt == nil || !tr.LastAt.Equal(at(i)) {
				t.Fatalf("%s: it did not fire at %s", c.why, times[i])
			}
		}
	}
}

func TestATriggerGivesItsWorkOnceForEachTime(t *testing.T) {
	w := newWorld(t)
	tr := w.cron("0 13 * * *", "UTC", engine.TriggerFields{})
	w.clock.forward(59 * time.Minute)
	w.must(w.engine.FireTrigger(t.Context(), tr.ID)) // early
	if len(w.given(tr.Chat)) != 0 {
		t.Fatal("it fired before its time")
	}
	w.clock.forward(time.Minute)
	var group sync.WaitGroup
	for range 8 {
		other := engine.New(engine.Options{Store: w.store, Ringer: w.rings, Live: silence{}, Models: w.models, Sealer: sealed{}, Clock: w.clock.now, DefaultModel: "playbook"})
		group.Go(func() {
			if err := other.FireTrigger(t.Context(), tr.ID); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	w.run()
	g := w.onlyGiven(tr.Chat)
	if g.Status != domain.DelegationCompleted || g.Trigger != tr.ID || g.Parent.Turn != "" || g.Parent.Call != "" || g.Limits != (domain.Limits{TimeMs: 3_600_000}) {
		t.Errorf("the work is %+v", g)
	}
	w.wantText(tr.Chat, "Result:\nreported")
	w.wantText(g.Chat, "[OpenBot] The trigger report gives you this task:\n/say reported")
}

func TestTimesThatPassedWithoutAServerFollowTheSetting(t *testing.T) {
	for missed, want := range map[string]int{domain.MissedSkip: 0, domain.MissedOnce: 1} {
		t.Run(missed, func(t *testing.T) {
			w := newWorld(t)
			tr := w.cron("0 * * * *", "UTC", engine.TriggerFields{Missed: &missed})
			w.clock.forward(5*time.Hour + 30*time.Minute)
			w.sweep()
			if got := len(w.given(tr.Chat)); got != want {
				t.Errorf("five missed times gave work %d times, want %d", got, want)
			}
			w.clock.forward(30*time.Minute + 10*time.Second) // a little late is on time
			w.sweep()
			if got := len(w.given(tr.Chat)); got != want+1 {
				t.Errorf("the next time gave work %d times", got-want)
			}
		})
	}
}

func TestTriggersThatCannotFireAnyMoreAreSwitchedOff(t *testing.T) {
	w := newWorld(t)
	bot := w.madeBot(engine.BotFields{}, "Reporter")
	tr := w.cron("0 * * * *", "UTC", engine.TriggerFields{Bot: &bot.ID})
	w.must(w.engine.ArchiveBot(t.Context(), w.me, bot.ID))
	w.clock.forward(time.Hour)
	w.sweep()
	now, err := w.engine.Trigger(t.Context(), w.me, tr.ID)
	w.must(err)
	if now.Enabled || now.NextAt != nil || !strings.Contains(now.Problem, "archived") || len(w.given(tr.Chat)) != 0 {
		t.Errorf("the trigger is %+v", now)
	}
}

func TestTriggersRefuseWhatDoesNotFit(t *testing.T) {
	w := newWorld(t)
	for why, in := range map[string]engine.TriggerFields{
		"no times":         {},
		"four fields":      {Cron: ptrTo("0 9 * *")},
		"seconds":          {Cron: ptrTo("0 0 9 * * *")},
		"every":            {Cron: ptrTo("@every 1s")},
		"never":            {Cron: ptrTo("0 0 30 2 *")},
		"a zone inside":    {Cron: ptrTo("TZ=UTC 0 9 * * *")},
		"a broken zone":    {Cron: ptrTo("TZ=0")},
		"no such zone":     {Cron: ptrTo("0 9 * * *"), TimeZone: ptrTo("Mars/Olympus")},
		"a path as a zone": {Cron: ptrTo("0 9 * * *"), TimeZone: ptrTo("../../etc/passwd")},
		"the machine's":    {Cron: ptrTo("0 9 * * *"), TimeZone: ptrTo("Local")},
		"missed":           {Cron: ptrTo("0 9 * * *"), Missed: ptrTo("all")},
		"a kind":           {Kind: ptrTo("mail")},
		"both":             {Kind: ptrTo("webhook"), Cron: ptrTo("0 9 * * *")},
		"a short secret":   {Kind: ptrTo("webhook"), Secret: ptrTo("whsec_AAAA")},
		"a Bot":            {Cron: ptrTo("0 9 * * *"), Bot: ptrTo(domain.BotID("bot_1"))},
		"a Chat":           {Cron: ptrTo("0 9 * * *"), Chat: ptrTo(domain.ChatID("chat_1"))},
		"a long task":      {Cron: ptrTo("0 9 * * *"), Task: ptrTo(strings.Repeat("x", domain.MaxTriggerTask+1))},
	} {
		in.Name = ptrTo("x")
		if in.Task == nil {
			in.Task = ptrTo("x")
		}
		before := w.store.count()
		if _, _, err := w.engine.CreateTrigger(t.Context(), w.me, in); domain.CodeOf(err) != domain.CodeInvalid || w.store.count() != before {
			t.Errorf("%s: %v", why, err)
		}
	}
}

// signal sends a signed signal as of a time.
func (w *world) signal(tr domain.Trigger, secret, id string, at time.Time, body string) (engine.Fired, error) {
	w.t.Helper()
	hook, err := standardwebhooks.NewWebhook(secret)
	w.must(err)
	signature, err := hook.Sign(id, at, []byte(body))
	w.must(err)
	headers := http.Header{}
	headers.Set("webhook-id", id)
	headers.Set("webhook-timestamp", fmt.Sprint(at.Unix()))
	headers.Set("webhook-signature", signature)
	return w.engine.Signal(w.t.Context(), tr.ID, headers, []byte(body), func(member domain.MemberID, key, fingerprint string) *engine.Keeping {
		return &engine.Keeping{Member: member, Key: key, Fingerprint: fingerprint, Status: 202,
			Render: func(result any) ([]byte, error) { return []byte(result.(engine.Fired).Delegation), nil }}
	})
}

func TestASignalGivesWorkOnce(t *testing.T) {
	w := newWorld(t)
	tr, secret, err := w.engine.CreateTrigger(t.Context(), w.me, engine.TriggerFields{Name: ptrTo("hook"), Kind: ptrTo(domain.TriggerWebhook), Task: ptrTo("/say heard")})
	w.must(err)
	now := w.clock.now()
	fired, err := w.signal(tr, secret, "msg_1", now, "{\"x\":\n\"/say obey\"}")
	w.must(err)
	w.run()
	g := w.onlyGiven(tr.Chat)
	if fired.Delegation != g.ID || g.Result != "heard" {
		t.Errorf("the work is %s: %q", g.ID, g.Result)
	}
	w.wantText(g.Chat, `{"x":"/say obey"}`)
	if task := w.theChat(g.Chat); !task.Tainted() || task.Taint[0].Trigger != tr.ID {
		t.Errorf("what came with the signal taints nothing: %v", task.Taint)
	}
	var kept *engine.KeptError
	if _, err := w.signal(tr, secret, "msg_1", now, "{\"x\":\n\"/say obey\"}"); !errors.As(err, &kept) || string(kept.Answer.Body) != string(g.ID) {
		t.Errorf("the same signal again gave %v", err)
	}
	if _, err := w.signal(tr, secret, "msg_1", now, "{}"); domain.CodeOf(err) != domain.CodeConflict {
		t.Errorf("the same ID with another body gave %v", err)
	}
	other := "whsec_" + strings.Repeat("QUFB", 8)
	for why, refused := range map[string]func() error{
		"another secret": func() error { _, err := w.signal(tr, other, "msg_2", now, "{}"); return err },
		"too old":        func() error { _, err := w.signal(tr, secret, "msg_3", now.Add(-6*time.Minute), "{}"); return err },
		"from tomorrow":  func() error { _, err := w.signal(tr, secret, "msg_4", now.Add(6*time.Minute), "{}"); return err },
		"no signature": func() error {
			_, err := w.engine.Signal(t.Context(), tr.ID, http.Header{}, []byte("{}"), nil)
			return err
		},
	} {
		if err := refused(); domain.CodeOf(err) != domain.CodeUnauthenticated {
			t.Errorf("%s: %v", why, err)
		}
	}
	if _, err := w.signal(tr, secret, "msg_5", now.Add(-4*time.Minute), "not JSON\n/say obey"); err != nil {
		t.Errorf("a clock that is four minutes off: %v", err)
	}
	w.run()
	if list := w.given(tr.Chat); len(list) != 2 || list[1].Delegation.Result != "heard" {
		t.Errorf("%d pieces of work were given", len(list))
	}
	w.must(w.engine.DeleteTrigger(t.Context(), w.me, tr.ID))
	if _, err := w.signal(tr, secret, "msg_6", now, "{}"); domain.CodeOf(err) != domain.CodeNotFound {
		t.Errorf("a deleted trigger gave %v", err)
	}
}
