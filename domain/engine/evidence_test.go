package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
	"openbot/domain/evidence"
)

// Whoever changes a decided row later gets the receipt of what was decided then.
func TestAReceiptIsThatOfTheDecision(t *testing.T) {
	w := newWorld(t)
	w.say(w.newChat(), `/call mail__send {"to":"a","n":1.0}`)
	w.run()
	r := w.onlyPending()
	_, err := w.engine.Receipt(t.Context(), w.me, r.ID)
	w.wantCode(err, domain.CodeNotFound)
	decided := w.mustAnswer(r, "deny", "")
	text, err := w.engine.Receipt(t.Context(), w.me, r.ID)
	w.must(err)
	keys, err := w.engine.OwnKeys(t.Context())
	w.must(err)
	signed, err := evidence.Open(text, keys)
	w.must(err)
	got := *signed.Receipt
	want := domain.Receipt{Organization: w.me.Organization, Request: r.ID, Revision: 1, Decision: "deny", Scope: "once", By: domain.Person(w.me.Member.ID),
		Capability: r.Capability, Bot: r.Bot, Call: r.Call, ArgumentsSHA256: r.App.SHA256, Connection: w.mail.ID, ConnectionRevision: 1, AtMs: decided.Decision.AtMs}
	if got != want {
		t.Errorf("the receipt says %+v, want %+v", got, want)
	}
	forged := w.request(r.ID)
	forged.Decision.Decision, forged.Status = "allow", domain.RequestAllowed
	w.must(w.store.Commit(t.Context(), domain.Commit{Rows: []domain.Row{&forged}}))
	if again, err := w.engine.Receipt(t.Context(), w.me, r.ID); err != nil || again != text {
		t.Errorf("after the row was changed the receipt is another: %v", err)
	}
	forged.Decision.Decision, forged.Status = "deny", domain.RequestDenied
	w.must(w.store.Commit(t.Context(), domain.Commit{Rows: []domain.Row{&forged}}))

	chat := w.newChat()
	w.say(chat, `/call mail__send {"to":"b"}`)
	w.run()
	cancelled := w.onlyPending()
	_, err = w.engine.Interrupt(t.Context(), w.me, chat, false)
	w.must(err)
	_, err = w.engine.Receipt(t.Context(), w.me, cancelled.ID)
	w.wantCode(err, domain.CodeNotFound)
	_, err = w.engine.Receipt(t.Context(), domain.Principal{Organization: w.me.Organization, Member: domain.Member{ID: "mem_other"}}, r.ID)
	w.wantCode(err, domain.CodeNotFound)
}

// A process that dies while it chains leaves everything to the next; several at once
// leave one chain.
func TestTheChainOutlivesItsMakers(t *testing.T) {
	w := newWorld(t)
	for range 3 {
		w.say(w.newChat(), `/call mail__send {"to":"a"}`)
		w.run()
		w.mustAnswer(w.onlyPending(), "deny", "")
		w.run()
	}
	written := len(w.log())
	head := func() int64 {
		h, err := w.store.AuditHead(t.Context(), w.me.Organization)
		w.must(err)
		return h.Count
	}
	w.store.before = func(int, domain.Commit) error { crash(); return nil }
	if !w.die(func() { _ = w.engine.ChainAudit(context.WithoutCancel(t.Context())) }) || head() != 0 {
		t.Fatalf("%d entries are chained by one that died before its commit", head())
	}
	w.restart()
	w.store.after = func(int) { crash() }
	if !w.die(func() { _ = w.engine.ChainAudit(context.WithoutCancel(t.Context())) }) || head() != int64(written) {
		t.Fatalf("%d of %d entries are chained by one that died after its commit", head(), written)
	}
	w.restart()
	w.mustAnswerNew()
	var all sync.WaitGroup
	for range 4 {
		other := engine.New(engine.Options{Store: w.store, Ringer: w.rings, Live: silence{}, Models: w.models, Sealer: sealed{}, Clock: w.clock.now})
		all.Go(func() {
			if err := other.ChainAudit(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := head(); got != int64(len(w.log())) || got == int64(written) {
		t.Errorf("%d of %d entries are chained", got, len(w.log()))
	}
}

func (w *world) mustAnswerNew() {
	w.t.Helper()
	w.say(w.newChat(), `/call mail__send {"to":"a"}`)
	w.run()
	w.mustAnswer(w.onlyPending(), "deny", "")
}

// While the database does not take a commit, nothing is decided and nothing is logged;
// the answer that gets through leaves one entry.
func TestADecisionThatWasNotCommittedIsNotLogged(t *testing.T) {
	w := newWorld(t)
	w.say(w.newChat(), `/call mail__send {"to":"a"}`)
	w.run()
	r := w.onlyPending()
	w.store.before = func(int, domain.Commit) error { return domain.Errorf(domain.CodeUnavailable, "Down", "down") }
	_, err := w.answer(r, "deny", "")
	w.wantCode(err, domain.CodeUnavailable)
	w.store.before = nil
	w.wantTold(string(r.ID))
	tries := 0
	w.store.before = func(int, domain.Commit) error {
		if tries++; tries < 4 {
			return domain.Errorf(domain.CodeConflict, "VersionConflict", "Another was faster.")
		}
		return nil
	}
	w.mustAnswer(r, "deny", "")
	w.wantTold(string(r.ID), "request.decided by Person")
}

// Old receipts stay good when the key is changed, and the new key is known before it
// signs.
func TestKeysAreRotated(t *testing.T) {
	w := newWorld(t)
	decide := func() string {
		t.Helper()
		w.say(w.newChat(), `/call mail__send {"to":"a"}`)
		w.run()
		r := w.mustAnswer(w.onlyPending(), "deny", "")
		text, err := w.engine.Receipt(t.Context(), w.me, r.ID)
		w.must(err)
		return text
	}
	signedBy := func(text string) domain.SigningKeyID {
		t.Helper()
		rows, err := w.engine.SigningKeys(t.Context())
		w.must(err)
		keys := evidence.Keys{}
		for _, row := range rows {
			w.must(keys.Add(row.ID, row.Public))
		}
		signed, err := evidence.Open(text, keys)
		w.must(err)
		return signed.Key
	}
	first := decide()
	made, err := w.engine.RotateKeys(t.Context(), false)
	w.must(err)
	w.restart()
	second := decide()
	w.clock.forward(engine.KeyDelay)
	third := decide()
	if signedBy(first) != signedBy(second) || signedBy(second) == made.ID || signedBy(third) != made.ID {
		t.Errorf("signed by %s, %s and %s; the new key is %s", signedBy(first), signedBy(second), signedBy(third), made.ID)
	}
	now, err := w.engine.RotateKeys(t.Context(), true)
	w.must(err)
	w.restart()
	if fourth := decide(); signedBy(fourth) != now.ID {
		t.Errorf("a key that was to sign at once does not: %s", signedBy(fourth))
	}
	signedBy(first)
}

// strict is a Sealer with a secret of its own.
type strict struct{ secret string }

func (s strict) Seal(plain []byte, org domain.OrganizationID, owner string) ([]byte, error) {
	return fmt.Appendf(nil, "%s|%s|%s|%s", s.secret, org, owner, plain), nil
}

func (s strict) Open(box []byte, org domain.OrganizationID, owner string) ([]byte, error) {
	if plain, ok := strings.CutPrefix(string(box), fmt.Sprintf("%s|%s|%s|", s.secret, org, owner)); ok {
		return []byte(plain), nil
	}
	return nil, errors.New("another secret")
}

// A server with another secret says so before it decides anything; a key that somebody
// put into the database is never taken for the server's own.
func TestKeysOfAnotherSecret(t *testing.T) {
	w := newWorldAlone(t)
	with := func(secret string) *engine.Engine {
		return engine.New(engine.Options{Store: w.store, Ringer: w.rings, Live: silence{}, Models: w.models, Sealer: strict{secret}, Clock: w.clock.now})
	}
	ours, other := with("ours"), with("other")
	_, err := ours.RotateKeys(t.Context(), true) // the first key is of the world's Sealer
	w.must(err)
	w.must(ours.PrepareKeys(t.Context()))
	err = other.PrepareKeys(t.Context())
	w.wantCode(err, domain.CodeInternal)
	if !strings.Contains(err.Error(), "OPENBOT_SECRET_KEY") {
		t.Errorf("the error does not say what to do: %v", err)
	}
	keys, err := ours.OwnKeys(t.Context())
	if err != nil || len(keys) != 1 {
		t.Errorf("%d keys are our own: %v", len(keys), err)
	}
	forged := domain.SigningKey{ID: "key_forged", Number: 99, Public: strings.Repeat("A", 43), Sealed: []byte("sealed:x"), CreatedAt: w.clock.now(), ActiveAt: w.clock.now()}
	w.must(w.store.Commit(t.Context(), domain.Commit{Rows: []domain.Row{&forged}}))
	if keys, err = with("ours").OwnKeys(t.Context()); err != nil || len(keys) != 1 {
		t.Errorf("with a forged one %d keys are our own: %v", len(keys), err)
	}
	_, err = w.engine.RotateKeys(t.Context(), true) // the way out for who lost the secret
	w.must(err)
	w.restart()
	w.must(w.engine.PrepareKeys(t.Context()))
}

// keyless is a store that does not give its keys.
type keyless struct{ *hookedStore }

func (keyless) SigningKeys(context.Context) ([]domain.SigningKey, error) {
	return nil, domain.Errorf(domain.CodeUnavailable, "DatabaseUnavailable", "The database cannot be reached.")
}

// keysLost is a store that gives its keys once.
type keysLost struct {
	*hookedStore
	given bool
}

func (s *keysLost) SigningKeys(ctx context.Context) ([]domain.SigningKey, error) {
	if s.given {
		return keyless{}.SigningKeys(ctx)
	}
	s.given = true
	return s.hookedStore.SigningKeys(ctx)
}

// A process that has read its keys goes on with them; one that has none decides
// nothing, for a decision without a receipt is none.
func TestDecisionsGoOnWhileKeysCannotBeRead(t *testing.T) {
	w := newWorld(t)
	with := func(s engine.Store) *engine.Engine {
		return engine.New(engine.Options{Store: s, Ringer: w.rings, Live: silence{}, Models: w.models, Sealer: sealed{}, Clock: w.clock.now, DefaultModel: "playbook"})
	}
	ask := func() domain.Request {
		t.Helper()
		w.say(w.newChat(), `/call mail__send {"to":"a"}`)
		w.run()
		return w.onlyPending()
	}
	r := ask()
	_, err := with(keyless{w.store}).AnswerRequest(t.Context(), w.me, r.ID, engine.Answer{Decision: "allow"})
	w.wantCode(err, domain.CodeUnavailable)
	if got := w.request(r.ID); got.Status != domain.RequestPending {
		t.Fatalf("the Request is %s", got.Status)
	}
	lost := with(&keysLost{hookedStore: w.store})
	for range 2 {
		_, err = lost.AnswerRequest(t.Context(), w.me, r.ID, engine.Answer{Decision: "deny"})
		w.must(err)
		w.clock.forward(time.Minute)
		r = ask()
	}
	w.mustAnswer(r, "deny", "")
}
