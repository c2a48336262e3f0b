package engine_test

import (
	"strings"
	"testing"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
)

// as makes a token of the same Member with these scopes and gives who calls by it.
func (w *world) as(name string, scopes ...string) domain.Principal {
	w.t.Helper()
	_, secret, err := w.engine.CreateToken(w.t.Context(), w.me, engine.NewToken{Name: name, Scopes: scopes})
	w.must(err)
	p, err := w.engine.Authenticate(w.t.Context(), secret)
	w.must(err)
	return p
}

func (w *world) reads(tool string) {
	w.t.Helper()
	_, err := w.engine.ChangeSettings(w.t.Context(), w.me, func(s *domain.Settings) error {
		s.AppReadRules = []string{string(w.mail.ID) + "/" + tool}
		return nil
	})
	w.must(err)
}

func TestWhatATokenMayNotDoNobodyIsAsked(t *testing.T) {
	w := newWorld(t)
	narrow := w.as("narrow", "write", "apps.call:"+string(w.mail.ID)+"/list")
	chat := w.newChat()
	posted, err := w.engine.PostMessage(t.Context(), narrow, chat, roundScript)
	w.must(err)
	w.run()
	v := w.wantStatus(posted.Turn, domain.TurnCompleted)
	if len(w.pending()) != 0 || v.Calls[0].Status != domain.CallDenied || v.Calls[0].Decided.Step != domain.StepPolicy || v.Calls[0].Decided.Pattern == "" {
		t.Errorf("the call is %s by %+v", v.Calls[0].Status, v.Calls[0].Decided)
	}
}

// A Turn's rights are the intersection of all whose input it took, from the step on
// that reads it.
func TestInputOfANarrowerTokenNarrowsTheStepThatReadsIt(t *testing.T) {
	w := newWorld(t)
	narrow := w.as("narrow", "write")
	chat := w.newChat()
	turn := w.say(chat, `/call mail__list {}`)
	w.run()
	r := w.onlyPending()
	_, err := w.engine.PostMessage(t.Context(), narrow, chat, "/then\n/call mail__send {}")
	w.must(err)
	w.mustAnswer(r, domain.DecisionDeny, "")
	w.run()
	if list := w.pending(); len(list) != 0 {
		t.Fatalf("a person is asked about %s, which the token may not do", list[0].Capability)
	}
	v := w.wantStatus(turn, domain.TurnCompleted)
	if c := v.Calls[1]; c.Status != domain.CallDenied || c.Decided.Step != domain.StepPolicy {
		t.Errorf("the call is %s by %+v", c.Status, c.Decided)
	}
	if len(v.Turn.Authority) != 2 {
		t.Errorf("the Turn stands on %v", v.Turn.Authority)
	}
}

func TestARevokedTokenClosesItsRequestsAndDeniesLaterCalls(t *testing.T) {
	w := newWorld(t)
	w.reads("list")
	token := w.as("script", "write", "*")
	chat := w.newChat()
	posted, err := w.engine.PostMessage(t.Context(), token, chat, roundScript+"\n/then\n/call mail__list {}\n/call openbot_read_app_resource {\"connection\":\""+string(w.mail.ID)+"\",\"uri\":\"x\"}")
	w.must(err)
	w.run()
	r := w.onlyPending()
	mine := w.say(w.newChat(), roundScript)
	w.run()
	w.must(w.engine.RevokeToken(t.Context(), w.me, token.Token.ID))
	w.run()
	if got := w.request(r.ID); got.Status != domain.RequestCancelled {
		t.Fatalf("the Request is %s", got.Status)
	}
	_, err = w.answer(r, domain.DecisionAllow, "")
	w.wantCode(err, domain.CodeConflict)
	v := w.wantStatus(posted.Turn, domain.TurnCompleted)
	for _, c := range v.Calls {
		if c.Status != domain.CallDenied || !strings.Contains(c.Result, "not executed") {
			t.Errorf("%s is %s: %s", c.Name, c.Status, c.Result)
		}
	}
	if w.apps.total() != 0 {
		t.Errorf("%d calls of a revoked token went out", w.apps.total())
	}
	w.wantStatus(mine, domain.TurnWaiting) // the work of another token goes on
	if _, err := w.engine.CreateChat(t.Context(), token, engine.NewChat{}); err != nil {
		t.Logf("a principal that was read before: %v", err)
	}
}

func TestATokenRevokedAfterTheAllowDeniesAtTheLastLook(t *testing.T) {
	w := newWorld(t)
	token := w.as("script", "write", "*")
	posted, err := w.engine.PostMessage(t.Context(), token, w.newChat(), roundScript)
	w.must(err)
	w.run()
	w.mustAnswer(w.onlyPending(), domain.DecisionAllow, "")
	w.must(w.engine.RevokeToken(t.Context(), w.me, token.Token.ID))
	w.run()
	v := w.wantStatus(posted.Turn, domain.TurnCompleted)
	if w.apps.total() != 0 || v.Calls[0].Status != domain.CallDenied || v.Calls[0].Decided.Step != domain.StepPolicy {
		t.Errorf("%d sends, the call is %s by %+v", w.apps.total(), v.Calls[0].Status, v.Calls[0].Decided)
	}
}

func TestAnExpiredTokenGoesOnNarrowing(t *testing.T) {
	w := newWorld(t)
	end := w.clock.now().Add(time.Minute)
	_, secret, err := w.engine.CreateToken(t.Context(), w.me, engine.NewToken{Name: "short", Scopes: domain.Permissions{"write", "apps.call:*"}, ExpiresAt: &end})
	w.must(err)
	short, err := w.engine.Authenticate(t.Context(), secret)
	w.must(err)
	posted, err := w.engine.PostMessage(t.Context(), short, w.newChat(), roundScript)
	w.must(err)
	w.run()
	w.clock.forward(time.Minute)
	_, err = w.engine.Authenticate(t.Context(), secret)
	w.wantCode(err, domain.CodeUnauthenticated)
	w.mustAnswer(w.onlyPending(), domain.DecisionAllow, "")
	w.run()
	w.wantStatus(posted.Turn, domain.TurnCompleted)
	if w.apps.total() != 1 {
		t.Error("expiry closes the door to new work; it does not stop what runs")
	}
}

func TestADisabledMemberStops(t *testing.T) {
	w := newWorld(t)
	other, err := w.engine.CreateMember(t.Context(), w.me, engine.MemberFields{Name: ptr("Bob")})
	w.must(err)
	_, secret, err := w.engine.CreateToken(t.Context(), w.me, engine.NewToken{Member: other.ID, Name: "bob", Scopes: domain.Permissions{"write", "*"}})
	w.must(err)
	bob, err := w.engine.Authenticate(t.Context(), secret)
	w.must(err)
	mail := w.mail
	mail.Shared = true
	w.must(w.store.Commit(t.Context(), domain.Commit{At: w.clock.now(), Rows: []domain.Row{&mail}}))
	chat, err := w.engine.CreateChat(t.Context(), bob, engine.NewChat{})
	w.must(err)
	posted, err := w.engine.PostMessage(t.Context(), bob, chat.ID, roundScript+"\n/then\n"+roundScript)
	w.must(err)
	w.run()
	_, err = w.engine.ChangeMember(t.Context(), w.me, other.ID, engine.MemberFields{Disabled: ptr(true)})
	w.must(err)
	_, err = w.engine.Authenticate(t.Context(), secret)
	w.wantCode(err, domain.CodeUnauthenticated)
	w.run()
	turn, err := w.store.Turn(t.Context(), posted.Turn)
	w.must(err)
	calls, err := w.store.TurnCalls(t.Context(), posted.Turn)
	w.must(err)
	if turn.Status != domain.TurnCompleted || len(calls) != 2 || w.apps.total() != 0 {
		t.Fatalf("the Turn is %s with %d calls", turn.Status, len(calls))
	}
	for _, c := range calls {
		if c.Status != domain.CallDenied {
			t.Errorf("a call is %s", c.Status)
		}
	}
}

func TestABuiltinOfRevokedWorkChangesNothing(t *testing.T) {
	w := newWorld(t)
	token := w.as("script", "write", "*")
	posted, err := w.engine.PostMessage(t.Context(), token, w.newChat(), `/call openbot_remember {"memory":"evil"}`)
	w.must(err)
	w.must(w.engine.RevokeToken(t.Context(), w.me, token.Token.ID))
	w.run()
	v := w.wantStatus(posted.Turn, domain.TurnCompleted)
	bot, err := w.engine.Bot(t.Context(), w.me, w.me.Member.MainBot)
	w.must(err)
	if bot.Memory != "" || v.Calls[0].Status != domain.CallDenied {
		t.Errorf("the memory is %q, the call %s", bot.Memory, v.Calls[0].Status)
	}
}

func TestAConnectionThatChangedFailsTheSavedCall(t *testing.T) {
	w := newWorld(t)
	turn := w.say(w.newChat(), roundScript)
	w.run()
	w.mustAnswer(w.onlyPending(), domain.DecisionAllow, domain.ScopeLifetime)
	changed := w.mail
	changed.Revision, changed.Look.Digest = 2, "d2"
	w.must(w.store.Commit(t.Context(), domain.Commit{At: w.clock.now(), Rows: []domain.Row{&changed}}))
	w.run()
	v := w.wantStatus(turn, domain.TurnCompleted)
	if w.apps.total() != 0 || v.Calls[0].Status != domain.CallFailed || v.Calls[0].Result != domain.TextRevisionChanged() {
		t.Errorf("%d sends, the call is %s: %s", w.apps.total(), v.Calls[0].Status, v.Calls[0].Result)
	}
	next := w.say(w.newChat(), roundScript)
	w.run()
	w.wantStatus(next, domain.TurnWaiting) // a new revision uses no old decision
}

func TestALookBeforeASendFindsTheChange(t *testing.T) {
	w := newWorld(t)
	turn := w.say(w.newChat(), roundScript)
	w.run()
	w.clock.forward(11 * time.Second)
	w.mustAnswer(w.onlyPending(), domain.DecisionAllow, "")
	task, _ := w.rings.next(w.clock.now())
	taking, err := w.engine.TakeCall(t.Context(), domain.CallID(task.Subject), task.Revision, false)
	w.must(err)
	if taking.Look == nil || taking.Sending != nil {
		t.Fatal("a call that waited goes out on a look older than ten seconds")
	}
	w.must(w.engine.SaveLook(t.Context(), *taking.Look, domain.AppLook{Digest: "d2"}, nil))
	taking, err = w.engine.TakeCall(t.Context(), domain.CallID(task.Subject), task.Revision, true)
	w.must(err)
	w.run()
	if v := w.wantStatus(turn, domain.TurnCompleted); taking.Sending != nil || v.Calls[0].Result != domain.TextRevisionChanged() {
		t.Errorf("the call is %s: %s", v.Calls[0].Status, v.Calls[0].Result)
	}
}

func TestADeletedConnectionIsOutOfSight(t *testing.T) {
	w := newWorld(t)
	turn := w.say(w.newChat(), roundScript)
	w.run()
	w.mustAnswer(w.onlyPending(), domain.DecisionAllow, "")
	w.must(w.engine.DeleteConnection(t.Context(), w.me, w.mail.ID))
	w.run()
	if v := w.wantStatus(turn, domain.TurnCompleted); w.apps.total() != 0 || v.Calls[0].Status != domain.CallDenied {
		t.Errorf("the call is %s: %s", v.Calls[0].Status, v.Calls[0].Result)
	}
}

func TestAnExemptionThatIsTakenAwayMeanwhileDenies(t *testing.T) {
	w := newWorld(t)
	w.reads("send")
	turn := w.say(w.newChat(), roundScript)
	task, _ := w.rings.next(w.clock.now())
	w.work(task)
	w.reads("list")
	w.run()
	if v := w.wantStatus(turn, domain.TurnCompleted); w.apps.total() != 0 || v.Calls[0].Status != domain.CallDenied {
		t.Errorf("the call is %s", v.Calls[0].Status)
	}
}

func TestTokensAndPermissionsOnlyNarrow(t *testing.T) {
	w := newWorld(t)
	narrow := w.as("narrow", "admin", "apps.call:con_7/*")
	for _, scope := range []string{"*", "apps.call:*", "apps.call:con_*", "tools.call:x"} {
		_, _, err := w.engine.CreateToken(t.Context(), narrow, engine.NewToken{Name: "x", Scopes: domain.Permissions{scope}})
		w.wantCode(err, domain.CodeForbidden)
		_, err = w.engine.ChangeMember(t.Context(), narrow, w.me.Member.ID, engine.MemberFields{Permissions: domain.Permissions{"admin", scope}})
		w.wantCode(err, domain.CodeForbidden)
	}
	_, _, err := w.engine.CreateToken(t.Context(), narrow, engine.NewToken{Name: "x", Scopes: domain.Permissions{"read", "apps.call:con_7/list"}})
	w.must(err)
	past := w.clock.now()
	_, _, err = w.engine.CreateToken(t.Context(), w.me, engine.NewToken{Name: "x", Scopes: domain.Permissions{"read"}, ExpiresAt: &past})
	w.wantCode(err, domain.CodeInvalid)
	_, err = w.engine.ChangeMember(t.Context(), w.me, w.me.Member.ID, engine.MemberFields{Disabled: ptr(true)})
	w.wantCode(err, domain.CodeConflict)
}
