package engine_test

import (
	"context"
	"encoding/json"
	"openbot/domain/engine"
	"strings"
	"testing"
	"time"

	"slices"

	"openbot/domain"

	"openbot/domain/evidence"
)

// log gives the whole audit log, oldest first.
func (w *world) log() []domain.AuditEntry {
	w.t.Helper()
	var all []domain.AuditEntry
	w.must(w.engine.ExportAudit(context.Background(), w.me, domain.AuditFilter{}, func(batch []domain.AuditEntry) error {
		all = append(all, batch...)
		return nil
	}))
	return all
}

// accounted holds the audit log against everything that was decided in this world: each
// decision has one entry, each decided Request a receipt, and the chain is whole. It
// runs at the end of every test with a world.
func (w *world) accounted() {
	w.t.Helper()
	ctx := context.Background()
	w.store.before, w.store.after = nil, nil
	bySubject := map[string][]domain.AuditEntry{}
	for _, e := range w.log() {
		bySubject[e.Subject] = append(bySubject[e.Subject], e)
		if e.Organization != w.me.Organization || e.Actor.Tag == "" || !slices.Contains(domain.AuditKinds(), e.Kind) {
			w.t.Errorf("an entry is not whole: %+v", e)
		}
	}
	ofKind := func(subject, kind string) int {
		n := 0
		for _, e := range bySubject[subject] {
			if e.Kind == kind {
				n++
			}
		}
		return n
	}
	keys, err := w.engine.OwnKeys(ctx)
	w.must(err)
	requests, err := w.store.Requests(ctx, w.me.Organization, domain.RequestFilter{Member: w.me.Member.ID}, domain.Page{Limit: 10_000})
	w.must(err)
	for _, r := range requests {
		decided, cancelled := 0, 0
		switch {
		case r.Decision != nil:
			decided = 1
			signed, err := evidence.Open(r.Receipt, keys)
			if err != nil || signed.Receipt.Request != r.ID || signed.Receipt.Decision != r.Decision.Decision || signed.Receipt.Revision != r.Revision || signed.Receipt.By != r.Decision.By {
				w.t.Errorf("the receipt of %s says %+v (%v), the Request %+v", r.ID, signed.Receipt, err, r.Decision)
			}
		case r.Status == domain.RequestCancelled:
			cancelled = 1
		}
		if got := ofKind(string(r.ID), domain.AuditRequestDecided); got != decided {
			w.t.Errorf("%s is %s and has %d entries of its decision", r.ID, r.Status, got)
		}
		if got := ofKind(string(r.ID), domain.AuditRequestEndorsed); got != len(r.Endorsements) {
			w.t.Errorf("%s has %d endorsements and %d entries of them", r.ID, len(r.Endorsements), got)
		}
		if got := ofKind(string(r.ID), domain.AuditRequestCancelled); got != cancelled {
			w.t.Errorf("%s is %s and has %d entries of its end", r.ID, r.Status, got)
		}
	}
	chats, err := w.store.Chats(ctx, w.me.Member.ID, domain.Page{Limit: 10_000})
	w.must(err)
	for _, chat := range chats {
		turns, err := w.store.Turns(ctx, chat.ID, domain.Page{Limit: 10_000})
		w.must(err)
		for _, turn := range turns {
			calls, err := w.store.TurnCalls(ctx, turn.ID)
			w.must(err)
			for _, c := range calls {
				w.callAccounted(c, bySubject[string(c.ID)])
			}
		}
	}
	w.must(w.engine.ChainAudit(ctx))
	report, err := w.engine.CheckAudit(ctx, w.me.Organization, nil)
	if err != nil || report.Fault != nil || report.Waiting != 0 {
		w.t.Errorf("the audit log: %+v, %v", report, err)
	}
}

// callAccounted: one entry for each decision that no Request took. A call that its check
// allowed and its last look refused was decided twice.
func (w *world) callAccounted(c domain.Call, entries []domain.AuditEntry) {
	w.t.Helper()
	own := c.Kind == domain.CallDecide || c.Kind == domain.CallProgram
	if c.Decided == nil || c.Decided.Step == domain.StepDecider || own && c.Decided.Step == domain.StepExemption {
		looks := 0
		for _, f := range c.Evidence {
			if f.Step == domain.StepPolicy {
				looks++
			}
		}
		// One that its check allowed and its last look doubted was decided once before.
		if len(entries) > max(looks-1, 0) {
			w.t.Errorf("the %s call %s, decided by %+v, has %d entries", c.Kind, c.ID, c.Decided, len(entries))
		}
		return
	}
	most := 1
	if c.Status == domain.CallDenied && c.Version > 1 {
		most = 2
	}
	if len(entries) < 1 || len(entries) > most {
		w.t.Errorf("the call %s, %s by %+v, has %d entries", c.ID, c.Status, c.Decided, len(entries))
		return
	}
	last := entries[len(entries)-1]
	var data struct{ Step domain.Step }
	w.must(json.Unmarshal(last.Data, &data))
	if last.Actor != c.Decided.By || data.Step != c.Decided.Step {
		w.t.Errorf("the call %s was decided by %+v, its entry says %+v %s", c.ID, c.Decided, last.Actor, last.Data)
	}
}

// withOrigin is a call over HTTP from this address.
func (w *world) withOrigin(address string) context.Context {
	return engine.WithOrigin(w.t.Context(), &engine.Origin{Member: w.me.Member.ID, Token: w.me.Token.ID, Address: address})
}

// told gives the entries about one row in words: kind, who, and from where.
func (w *world) told(subject string) []string {
	w.t.Helper()
	var out []string
	for _, e := range w.log() {
		if e.Subject == subject {
			who := e.Actor.Tag
			if e.Token != "" || e.Address != "" {
				who += " from " + e.Address
				if e.Token != w.me.Token.ID {
					who += " without the token"
				}
			}
			out = append(out, e.Kind+" by "+who)
		}
	}
	return out
}

func (w *world) wantTold(subject string, want ...string) {
	w.t.Helper()
	if got := w.told(subject); !slices.Equal(got, want) {
		w.t.Errorf("about %s the log says %q, want %q", subject, got, want)
	}
}

// Every change has an entry with who made it and from where; what is no change has none.
func TestTheLogSaysWhoDidWhat(t *testing.T) {
	w := newWorld(t)
	here := w.withOrigin("203.0.113.7")
	const me = " by Person from 203.0.113.7"
	org, member := string(w.me.Organization), string(w.me.Member.ID)
	w.wantTold(org, "organization.created by Server")
	w.wantTold(member, "member.created by Server")
	w.wantTold(string(w.me.Token.ID), "token.created by Server")

	token, _, err := w.engine.CreateToken(here, w.me, engine.NewToken{Name: "script", Scopes: domain.Permissions{"read"}})
	w.must(err)
	w.must(w.engine.RevokeToken(here, w.me, token.ID))
	w.must(w.engine.RevokeToken(here, w.me, token.ID)) // again: nothing changes
	w.sweepFor(time.Minute)                            // closing its Requests is no change
	w.wantTold(string(token.ID), "token.created"+me, "token.revoked"+me)

	name, yes, no := "Else", true, false
	ann, err := w.engine.CreateMember(here, w.me, engine.MemberFields{Name: &name})
	w.must(err)
	_, err = w.engine.ChangeMember(here, w.me, ann.ID, engine.MemberFields{Name: &name}) // the same name
	w.must(err)
	_, err = w.engine.ChangeMember(here, w.me, ann.ID, engine.MemberFields{Disabled: &yes})
	w.must(err)
	w.sweepFor(time.Minute)
	_, err = w.engine.ChangeMember(here, w.me, ann.ID, engine.MemberFields{Disabled: &no, Permissions: domain.Permissions{"read"}})
	w.must(err)
	w.wantTold(string(ann.ID), "member.created"+me, "member.changed"+me, "member.changed"+me)

	for range 2 { // the second time nothing changes
		_, err = w.engine.ChangeSettings(here, w.me, func(s *domain.Settings) error { s.RequestTimeoutMs = 5000; return nil })
		w.must(err)
	}
	w.wantTold(org, "organization.created by Server", "settings.changed"+me)

	text, effect := "Never send.", "deny"
	rule, err := w.engine.CreateRule(here, w.me, engine.RuleFields{Text: &text, Effect: &effect})
	w.must(err)
	_, err = w.engine.ChangeRule(here, w.me, rule.ID, engine.RuleFields{Enabled: &no})
	w.must(err)
	w.must(w.engine.DeleteRule(here, w.me, rule.ID))
	w.wantTold(string(rule.ID), "rule.created"+me, "rule.changed"+me, "rule.deleted"+me)

	grant, err := w.engine.CreateGrant(here, w.me, engine.NewGrant{Bot: w.me.Member.MainBot, Capability: domain.Capability{Action: "bots.spawn", Target: "*"},
		Decision: "deny", Scope: "lifetime"})
	w.must(err)
	w.sweepFor(time.Minute) // settling is no change
	w.must(w.engine.RevokeGrant(here, w.me, grant.ID))
	w.must(w.engine.RevokeGrant(here, w.me, grant.ID))
	w.wantTold(string(grant.ID), "grant.created"+me, "grant.revoked"+me)

	looked := w.mail // the App offers something else, and then nothing new
	for _, digest := range []string{"d2", "d2"} {
		now, err := w.engine.Connection(here, w.me, w.mail.ID)
		w.must(err)
		looked.Revision = now.Revision
		look := looked.Look
		look.Digest = digest
		w.must(w.engine.SaveLook(w.t.Context(), looked, look, nil))
	}
	w.must(w.engine.DeleteConnection(here, w.me, w.mail.ID))
	w.wantTold(string(w.mail.ID), "connection.changed by Server", "connection.deleted"+me)

	endpoint, tool := "https://host.example/deploy", "deploy"
	h, secret, err := w.engine.CreateHostTool(here, w.me, engine.HostToolFields{Name: &tool, Endpoint: &endpoint, Schema: json.RawMessage(`{"type":"object"}`)})
	w.must(err)
	_, err = w.engine.ChangeHostTool(here, w.me, h.ID, engine.HostToolFields{Description: &text})
	w.must(err)
	w.must(w.engine.DeleteHostTool(here, w.me, h.ID))
	w.wantTold(string(h.ID), "tool.created"+me, "tool.changed"+me, "tool.deleted"+me)
	for _, e := range w.log() {
		for _, hidden := range []string{w.secret, secret, "whsec_", "Never send", engine.HashSecret(w.secret)} {
			if strings.Contains(string(e.Data), hidden) {
				t.Errorf("%s of %s holds %q: %s", e.Kind, e.Subject, hidden, e.Data)
			}
		}
	}
}

// Each way in which a call or a Request is decided names its decider.
func TestEveryDeciderIsNamed(t *testing.T) {
	w := newWorld(t)
	here := w.withOrigin("203.0.113.7")
	answer := func(decision, scope, reason, rule string) (domain.Request, domain.TurnID) {
		t.Helper()
		turn := w.say(w.newChat(), `/call mail__send {"to":"secret@example.com"}`)
		w.run()
		in := engine.Answer{Expected: 0, Decision: decision, Scope: scope, Reason: &reason}
		if rule != "" {
			in.Rule = &rule
		}
		r, err := w.engine.AnswerRequest(here, w.me, w.onlyPending().ID, in)
		w.must(err)
		_, err = w.engine.AnswerRequest(here, w.me, r.ID, in) // the same answer again is no second decision
		w.must(err)
		w.run()
		return r, turn
	}
	r, _ := answer("deny", "once", "It is secret@example.com.", "Deny list_secrets at night.")
	w.wantTold(string(r.ID), "request.decided by Person from 203.0.113.7")

	// Nobody answers in time.
	w.say(w.newChat(), `/call mail__send {"to":"b"}`)
	w.run()
	expired := w.onlyPending()
	w.clock.forward(25 * time.Hour)
	w.sweepFor(10 * time.Second)
	w.wantTold(string(expired.ID), "request.decided by Expiry")

	// An answer for a lifetime settles another Request, and decides later calls.
	w.say(w.newChat(), `/call mail__send {"to":"c"}`)
	w.run()
	settled := w.onlyPending()
	kept, err := w.engine.CreateGrant(here, w.me, engine.NewGrant{Bot: w.me.Member.MainBot, Capability: settled.Capability, Decision: "allow", Scope: "lifetime"})
	w.must(err)
	w.run()
	w.wantTold(string(settled.ID), "request.decided by Grant")
	turn := w.say(w.newChat(), `/call mail__send {"to":"d"}`)
	w.run()
	w.wantTold(string(w.view(turn).Calls[0].ID), "call.decided by Grant")

	// A read needs no decision; taking the Grant away denies at the last look.
	w.must(w.engine.RevokeGrant(here, w.me, kept.ID))
	_, err = w.engine.ChangeSettings(here, w.me, func(s *domain.Settings) error {
		s.AppReadRules = []string{string(w.mail.ID) + "/list"}
		return nil
	})
	w.must(err)
	turn = w.say(w.newChat(), `/call mail__list {}`)
	w.run()
	w.wantTold(string(w.view(turn).Calls[0].ID), "call.decided by Exemption")

	// A Rule that the judge quotes.
	text, effect := "Always send.", "allow"
	_, err = w.engine.CreateRule(here, w.me, engine.RuleFields{Text: &text, Effect: &effect})
	w.must(err)
	turn = w.say(w.newChat(), `/call mail__send {"to":"e"}`)
	w.run()
	w.wantTold(string(w.view(turn).Calls[0].ID), "call.decided by Rule")

	// Policy, and a stop.
	turn = w.say(w.newChat(), `/call mail__missing {}`)
	w.run()
	w.wantTold(string(w.view(turn).Calls[0].ID)) // a tool that there is not is no attempt
	chat := w.newChat()
	w.say(chat, `/call openbot_spawn {"name":"H","role":"r","instructions":"i","reason":"why"}`)
	w.run()
	stopped := w.onlyPending()
	_, err = w.engine.Interrupt(here, w.me, chat, false)
	w.must(err)
	w.wantTold(string(stopped.ID), "request.cancelled by Person from 203.0.113.7")

	for _, e := range w.log() {
		if strings.Contains(string(e.Data), "secret@example.com") || strings.Contains(string(e.Data), "at night") {
			t.Errorf("%s holds what a person wrote or a call holds: %s", e.Kind, e.Data)
		}
	}
}
