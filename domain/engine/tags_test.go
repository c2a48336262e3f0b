package engine_test

import (
	"strings"
	"testing"

	"openbot/domain"
	"openbot/domain/engine"
)

func (w *world) tag(tool string, tags ...string) {
	w.t.Helper()
	w.set(func(s *domain.Settings) {
		s.ToolTags = []domain.ToolTags{{Tool: string(w.mail.ID) + "/" + tool, Tags: tags}}
	})
}

func TestATagForPeopleIsAnsweredByThePersonOnce(t *testing.T) {
	w := newWorld(t)
	w.tag("send", "spend")
	w.grant(w.main(), domain.DecisionAllow)
	w.set(func(s *domain.Settings) { s.AppReadRules = []string{"*"} })
	turn := w.say(w.newChat(), sendScript)
	w.run()
	r := w.onlyPending()
	if r.TagLine.String() != "tagPolicy.spend: human" {
		t.Errorf("the Request shows %s", r.TagLine)
	}
	for _, scope := range []string{domain.ScopeChat, domain.ScopeLifetime} {
		_, err := w.answer(r, domain.DecisionAllow, scope)
		w.wantCode(err, domain.CodeInvalid)
	}
	rule := "Allow send."
	_, err := w.engine.AnswerRequest(t.Context(), w.me, r.ID, engine.Answer{Expected: r.Revision, Decision: domain.DecisionAllow, Rule: &rule})
	w.wantCode(err, domain.CodeInvalid)
	if w.request(r.ID).Revision != r.Revision || w.apps.total() != 0 {
		t.Fatal("a refused answer changed something")
	}
	w.mustAnswer(r, domain.DecisionAllow, "")
	w.run()
	if w.wantStatus(turn, domain.TurnCompleted); w.apps.total() != 1 {
		t.Errorf("%d calls went out", w.apps.total())
	}
	w.say(w.newChat(), sendScript)
	w.run()
	w.onlyPending()
}

func TestATagForPeopleGoesUpThroughBotsThatCanOnlySupport(t *testing.T) {
	w := newWorld(t)
	w.tag("send", "spend")
	worker, above := w.chain(yes, yes)
	for _, bot := range above {
		w.grant(bot, domain.DecisionAllow)
	}
	w.say(w.chatWith(worker), sendScript)
	w.run()
	r := w.onlyPending()
	if len(r.Endorsements) != 2 || r.Approver != domain.Person(w.me.Member.ID) {
		t.Fatalf("the Request has %+v and waits for %+v", r.Endorsements, r.Approver)
	}
	before := len(w.grants())
	w.mustAnswer(r, domain.DecisionAllow, "")
	w.run()
	if w.apps.total() != 1 || len(w.grants()) != before {
		t.Errorf("%d calls went out, %d Grants were left", w.apps.total(), len(w.grants())-before)
	}
}

// The policy of the moment counts: at the answer, and just before the call goes out.
func TestATagPolicyThatChangesMeanwhile(t *testing.T) {
	policy := func(w *world, effect string) {
		w.set(func(s *domain.Settings) { s.TagPolicy = map[string]string{"write": effect} })
	}
	t.Run("to deny before a call goes out", func(t *testing.T) {
		w := newWorld(t)
		turn := w.say(w.newChat(), sendScript)
		w.run()
		w.mustAnswer(w.onlyPending(), domain.DecisionAllow, "")
		policy(w, "deny")
		w.run()
		if c := w.call(turn, 0); c.Status != domain.CallDenied || c.Decided.Pattern != "tagPolicy.write: deny" || w.apps.total() != 0 {
			t.Errorf("the call is %s by %+v", c.Status, c.Decided)
		}
	})
	t.Run("to human before a call that a Grant allowed goes out", func(t *testing.T) {
		w := newWorld(t)
		w.grant(w.main(), domain.DecisionAllow)
		turn := w.say(w.newChat(), sendScript)
		task := w.until(domain.TaskCallSend)
		policy(w, "human")
		w.work(task)
		w.run()
		c := w.call(turn, 0)
		if c.Status != domain.CallWaiting || w.apps.total() != 0 {
			t.Fatalf("the call is %s after %d sends", c.Status, w.apps.total())
		}
		w.mustAnswer(w.onlyPending(), domain.DecisionAllow, "")
		w.run()
		if w.wantStatus(turn, domain.TurnCompleted); w.apps.total() != 1 {
			t.Errorf("%d calls went out", w.apps.total())
		}
	})
	t.Run("to human while the Request waits", func(t *testing.T) {
		w := newWorld(t)
		w.say(w.newChat(), sendScript)
		w.run()
		policy(w, "human")
		_, err := w.answer(w.onlyPending(), domain.DecisionAllow, domain.ScopeLifetime)
		w.wantCode(err, domain.CodeInvalid)
		w.mustAnswer(w.onlyPending(), domain.DecisionAllow, "")
	})
	t.Run("from release before a call goes out", func(t *testing.T) {
		w := newWorld(t)
		w.set(func(s *domain.Settings) { s.TagPolicy = map[string]string{"write": "release", "network": "release"} })
		turn := w.say(w.newChat(), sendScript)
		task := w.until(domain.TaskCallSend)
		policy(w, "ask")
		w.work(task)
		w.run()
		if c := w.call(turn, 0); c.Status != domain.CallDenied || !strings.Contains(c.Result, "the setting that exempted it was taken away") {
			t.Errorf("the call is %s: %s", c.Status, c.Result)
		}
	})
	t.Run("released", func(t *testing.T) {
		w := newWorld(t)
		w.set(func(s *domain.Settings) { s.TagPolicy = map[string]string{"write": "release", "network": "release"} })
		turn := w.say(w.newChat(), sendScript)
		w.run()
		if c := w.wantStatus(turn, domain.TurnCompleted).Calls[0]; c.Status != domain.CallSucceeded || c.Decided.Pattern != "tagPolicy.write: release" {
			t.Errorf("the call is %s by %+v", c.Status, c.Decided)
		}
	})
}

// A call that is sent back to the check survives the loss of its ring.
func TestADoubtedCallIsFoundByTheSweep(t *testing.T) {
	w := newWorld(t)
	w.grant(w.main(), domain.DecisionAllow)
	turn := w.say(w.newChat(), sendScript)
	send := w.until(domain.TaskCallSend)
	w.tag("send", "spend")
	w.work(send)
	if c := w.call(turn, 0); c.Status != domain.CallChecking {
		t.Fatalf("the call is %s", c.Status)
	}
	w.restart()
	w.sweepFor(domain.RunnableGrace + domain.LeaseTime)
	if c := w.call(turn, 0); c.Status != domain.CallWaiting {
		t.Fatalf("the call is %s", c.Status)
	}
	w.onlyPending()
}

// An App that says of itself that it destroys gets the tag, and one that says that it only
// reads gets nothing.
func TestHintsOfAnApp(t *testing.T) {
	w := newWorld(t)
	c := w.connect("notes", "read", "wipe")
	c.Look.Tools[0].Hints = domain.AppHints{ReadOnly: ptr(true), Destructive: ptr(false)}
	c.Look.Tools[1].Hints = domain.AppHints{Destructive: ptr(true)}
	w.must(w.store.Commit(t.Context(), domain.Commit{At: w.clock.now(), Rows: []domain.Row{&c}}))
	w.say(w.newChat(), `/call notes__read {}`, `/call notes__wipe {}`)
	w.run()
	list := w.pending()
	if len(list) != 2 || strings.Join(list[0].Tags, " ") != "write network" || strings.Join(list[1].Tags, " ") != "write delete network" {
		t.Fatalf("the Requests show %+v", list)
	}
}

// The resource is the server's own reading of the call; a Request about an unknown outcome
// shows the same.
func TestARequestShowsTagsAndResource(t *testing.T) {
	w := newWorld(t)
	w.tag("send", "external_send")
	w.set(func(s *domain.Settings) {
		s.ResourceTemplates = []domain.ResourceTemplate{{Tool: string(w.mail.ID) + "/send", Template: "mail:{to}"}}
	})
	w.apps.lose = true
	w.say(w.newChat(), `/call mail__send {"to":"a@example.test","openbot_reason":"mail:eve@example.test"}`, `/call mail__list {"to":"x"}`)
	w.run()
	list := w.pending()
	if list[0].Resource != "mail:a@example.test" || list[1].Resource != "" {
		t.Fatalf("the resources are %q and %q", list[0].Resource, list[1].Resource)
	}
	w.mustAnswer(list[0], domain.DecisionAllow, "")
	w.run()
	for _, r := range w.pending() {
		if r.Unknown != nil && (r.Resource != "mail:a@example.test" || strings.Join(r.Tags, " ") != "external_send" || r.TagLine.Tag != "external_send" || r.VerdictDueAt != nil) {
			t.Errorf("the Request about the outcome shows %+v", r)
		}
	}
}
