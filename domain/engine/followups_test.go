package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
)

// asking makes a Request of the main Bot and gives it.
func (w *world) asking() (domain.TurnID, domain.Request) {
	w.t.Helper()
	turn := w.say(w.newChat(), `/call mail__send {"to":"hidden@example.com","openbot_reason":"hush"}`)
	w.run()
	return turn, w.onlyPending()
}

func (w *world) setting(change func(*domain.Settings)) {
	w.t.Helper()
	_, err := w.engine.ChangeSettings(w.t.Context(), w.me, func(s *domain.Settings) error {
		change(s)
		return nil
	})
	w.must(err)
}

// sweepAll works off everything that is due, as after a sweep.
func (w *world) sweepAll() {
	w.t.Helper()
	w.sweep()
	w.run()
}

func (w *world) count(kind string) int {
	n := 0
	for _, got := range w.types() {
		if got == kind {
			n++
		}
	}
	return n
}

// A person is reminded once, shortly before the time is up, however often it is looked
// for; nobody is reminded of a Request that was answered, or while the setting is off.
func TestAPersonIsRemindedOnce(t *testing.T) {
	w := newWorld(t)
	w.hook(w.me, false)
	_, off := w.asking()
	if off.RemindAt != nil {
		t.Error("a reminder is due that nobody wants")
	}
	w.mustAnswer(off, domain.DecisionDeny, "")
	w.setting(func(s *domain.Settings) { s.RemindBeforeMs = ptr(int64(3600_000)) })
	turn, r := w.asking()
	if r.RemindAt == nil || !r.RemindAt.Equal(r.ExpiresAt.Add(-time.Hour)) {
		t.Fatalf("the reminder is due at %v, the end at %v", r.RemindAt, r.ExpiresAt)
	}
	w.must(w.engine.FollowUpRequest(t.Context(), r.ID)) // too early
	w.clock.forward(23*time.Hour - time.Second)
	w.sweepAll()
	if n := w.count(domain.HookRequestExpiring); n != 0 {
		t.Fatalf("reminded %d times before it was due", n)
	}
	w.clock.forward(time.Second)
	for range 3 {
		w.must(w.engine.FollowUpRequest(t.Context(), r.ID))
		w.sweepAll()
	}
	if n := w.count(domain.HookRequestExpiring); n != 1 {
		t.Fatalf("reminded %d times", n)
	}
	after, err := w.engine.Request(t.Context(), w.me, r.ID)
	w.must(err)
	if after.Revision != r.Revision || after.RemindAt != nil || after.Status != domain.RequestPending {
		t.Errorf("the Request is %+v", after)
	}
	w.mustAnswer(r, domain.DecisionAllow, "") // with the revision that was read before
	w.run()
	w.wantStatus(turn, domain.TurnCompleted)

	_, answered := w.asking()
	w.mustAnswer(answered, domain.DecisionDeny, "")
	w.clock.forward(23 * time.Hour)
	w.sweepAll()
	if n := w.count(domain.HookRequestExpiring); n != 1 {
		t.Errorf("reminded %d times of what was answered", n-1)
	}
}

// A crash in the commit of a reminder loses nothing and tells nothing twice.
func TestAReminderSurvivesACrash(t *testing.T) {
	w := newWorld(t)
	w.hook(w.me, false, domain.HookRequestExpiring)
	w.setting(func(s *domain.Settings) { s.RemindBeforeMs = ptr(int64(3600_000)) })
	_, r := w.asking()
	w.clock.forward(23 * time.Hour)
	crash := errors.New("the process died")
	w.store.before = func(int, domain.Commit) error { return crash }
	if err := w.engine.FollowUpRequest(t.Context(), r.ID); !errors.Is(err, crash) {
		t.Fatalf("it gave %v", err)
	}
	w.store.before = nil
	w.rings.lose() // also the rings are lost
	w.sweepAll()
	w.sweepAll()
	if n := w.count(domain.HookRequestExpiring); n != 1 {
		t.Errorf("reminded %d times", n)
	}
}

// A Request that the person left open may be seen and answered by the second Member, who
// is told; before that it is not there for that Member. The work stays the person's.
func TestAnOpenRequestGoesToASecondMember(t *testing.T) {
	w := newWorld(t)
	bob := w.person("Bob", "write", "*")
	eve := w.person("Eve", "write", "*")
	w.hook(w.me, false, domain.HookRequestPending, domain.HookRequestEscalated)
	theirs := w.hook(bob, false, domain.HookRequestEscalated)
	w.hook(eve, false)
	w.setting(func(s *domain.Settings) { s.Escalation = &domain.Escalation{AfterMs: 600_000, Member: bob.Member.ID} })
	turn, r := w.asking()
	waiting := func(p domain.Principal) int {
		list, err := w.engine.Requests(t.Context(), p, domain.RequestFilter{Status: domain.RequestPending}, domain.Page{Limit: 9})
		w.must(err)
		n, err := w.engine.CountRequests(t.Context(), p, domain.RequestFilter{Status: domain.RequestPending}, 9)
		w.must(err)
		if n != len(list) {
			t.Errorf("%d are counted and %d listed", n, len(list))
		}
		return n
	}
	hidden := func(p domain.Principal) {
		t.Helper()
		_, err := w.engine.Request(t.Context(), p, r.ID)
		_, answering := w.engine.AnswerRequest(t.Context(), p, r.ID, engine.Answer{Expected: r.Revision, Decision: domain.DecisionAllow})
		if !domain.IsCode(err, domain.CodeNotFound) || !domain.IsCode(answering, domain.CodeNotFound) || waiting(p) != 0 {
			t.Errorf("%s may see it: %v, %v", p.Member.Name, err, answering)
		}
	}
	w.clock.forward(10*time.Minute - time.Second)
	w.sweepAll()
	hidden(bob)
	w.clock.forward(time.Second)
	w.sweepAll()
	w.sweepAll()
	hidden(eve)
	if waiting(bob) != 1 || waiting(w.me) != 1 {
		t.Fatalf("it waits for %d and %d", waiting(bob), waiting(w.me))
	}
	if got := w.types(); !slices.Equal(got, []string{domain.HookRequestPending, domain.HookRequestEscalated}) {
		t.Fatalf("told %v", got)
	}
	if list, err := w.engine.Deliveries(t.Context(), bob, theirs.ID, "", domain.Page{Limit: 9}); err != nil || len(list) != 1 {
		t.Errorf("the second Member was told %v %v", list, err)
	}
	next, err := w.engine.AnswerRequest(t.Context(), bob, r.ID, engine.Answer{Expected: r.Revision, Decision: domain.DecisionAllow, Scope: domain.ScopeLifetime})
	w.must(err)
	if next.Decision.By != domain.Person(bob.Member.ID) {
		t.Errorf("decided by %v", next.Decision.By)
	}
	w.run()
	w.wantStatus(turn, domain.TurnCompleted)
	grants, err := w.engine.Grants(t.Context(), w.me, domain.GrantFilter{}, domain.Page{Limit: 9})
	w.must(err)
	if len(grants) != 1 || grants[0].Member != w.me.Member.ID {
		t.Errorf("kept %v", grants)
	}
	if _, err := w.engine.AnswerRequest(t.Context(), w.me, r.ID, engine.Answer{Expected: r.Revision, Decision: domain.DecisionDeny}); !domain.IsCode(err, domain.CodeConflict) {
		t.Errorf("a second answer gave %v", err)
	}
	// Both hear of its end, and the Chat once.
	ends := func(name string, observe func(ctx context.Context, send func([]domain.Event) error) error) {
		t.Helper()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		n := 0
		w.must(observe(ctx, func(events []domain.Event) error {
			for _, ev := range events {
				if ev.Kind == domain.EventRequestDecided {
					n++
				}
			}
			stop()
			return nil
		}))
		if n != 1 {
			t.Errorf("%s tells %d times of the end", name, n)
		}
	}
	quiet := func() error { return nil }
	ends("the Chat", func(ctx context.Context, send func([]domain.Event) error) error {
		return w.engine.ObserveChat(ctx, w.me, r.Chat, 0, send, quiet)
	})
	for _, p := range []domain.Principal{w.me, bob} {
		ends("the stream of "+p.Member.Name, func(ctx context.Context, send func([]domain.Event) error) error {
			return w.engine.ObserveMember(ctx, p, 0, send, quiet)
		})
	}
	entries, err := w.engine.AuditLog(t.Context(), w.me, domain.AuditFilter{Kind: domain.AuditRequestEscalated}, 0, 9)
	w.must(err)
	if len(entries) != 1 || entries[0].Subject != string(r.ID) || !strings.Contains(string(entries[0].Data), string(bob.Member.ID)) {
		t.Errorf("the audit log holds %v", entries)
	}
}

// Nobody stands in who cannot: a Member that is disabled, may not write, or is the person.
func TestNobodyStandsInWhoCannot(t *testing.T) {
	for name, second := range map[string]func(w *world) domain.MemberID{
		"reads only": func(w *world) domain.MemberID { return w.person("Bob", "read").Member.ID },
		"the person": func(w *world) domain.MemberID { return w.me.Member.ID },
		"disabled": func(w *world) domain.MemberID {
			bob := w.person("Bob", "write", "*").Member.ID
			_, err := w.engine.ChangeMember(w.t.Context(), w.me, bob, engine.MemberFields{Disabled: ptr(true)})
			w.must(err)
			return bob
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.hook(w.me, true, domain.HookRequestEscalated)
			member := second(w)
			w.setting(func(s *domain.Settings) { s.Escalation = &domain.Escalation{AfterMs: 60_000, Member: member} })
			_, r := w.asking()
			w.clock.forward(time.Minute)
			w.sweepAll()
			now, err := w.engine.Request(t.Context(), w.me, r.ID)
			w.must(err)
			if now.Second != "" || now.EscalateAt != nil || w.count(domain.HookRequestEscalated) != 0 {
				t.Errorf("the Request is %+v", now)
			}
		})
	}
}
