package repositorytest

import (
	"time"

	"openbot/domain"
)

var keys = []promise{
	{"an input is taken once", func(w *world) {
		w.settle()
		chat := w.newChat()
		a, b := w.newInput(chat), w.newInput(chat)
		w.ok(w.store.Commit(w.ctx, domain.Commit{Rows: []domain.Row{chat}, Inputs: []domain.Input{a, b}}))
		w.ok(w.store.Commit(w.ctx, domain.Commit{Taken: []domain.InputID{a.ID}}))
		w.code(w.store.Commit(w.ctx, domain.Commit{Taken: []domain.InputID{a.ID}}), domain.CodeConflict)
		w.code(w.store.Commit(w.ctx, domain.Commit{Taken: []domain.InputID{b.ID, a.ID}}), domain.CodeConflict)
		w.same("inbox", ids(must[[]domain.Input](w)(w.store.Inbox(w.ctx, chat.ID))), []string{string(b.ID)})
		won := w.race(10, func(int) error { return w.store.Commit(w.ctx, domain.Commit{Taken: []domain.InputID{b.ID}}) })
		w.same("takers that won", won, 1)
	}},
	{"a key is kept once for a Member, and its case matters", func(w *world) {
		w.settle()
		other := w.newMember(w.org.ID)
		w.commit(other)
		keep := func(member domain.MemberID, key string) error {
			return w.store.Commit(w.ctx, domain.Commit{Kept: &domain.KeptAnswer{Member: member, Key: key, Fingerprint: "f" + key, CreatedAt: w.now}})
		}
		w.ok(keep(w.member.ID, "key"))
		w.code(keep(w.member.ID, "key"), domain.CodeConflict)
		w.ok(keep(w.member.ID, "KEY"))
		w.ok(keep(other.ID, "key"))
		w.same("fingerprint", must[domain.KeptAnswer](w)(w.store.KeptAnswer(w.ctx, w.member.ID, "key")).Fingerprint, "fkey")
		won := w.race(10, func(int) error { return keep(w.member.ID, "raced") })
		w.same("racers that kept their answer", won, 1)
	}},
	{"a key whose time is up makes room, and not a moment before", func(w *world) {
		w.settle()
		until := w.now.Add(time.Minute)
		keep := func(at time.Time, print string) error {
			return w.store.Commit(w.ctx, domain.Commit{Kept: &domain.KeptAnswer{Member: w.member.ID, Key: "k", Fingerprint: print,
				Until: ptr(at.Add(time.Minute)), CreatedAt: at}})
		}
		w.ok(keep(w.now, "first"))
		w.code(keep(until.Add(-time.Microsecond), "early"), domain.CodeConflict)
		w.ok(keep(until, "second"))
		w.same("fingerprint", must[domain.KeptAnswer](w)(w.store.KeptAnswer(w.ctx, w.member.ID, "k")).Fingerprint, "second")
	}},
	{"forgetting deletes what is up, no more than asked, and nothing else", func(w *world) {
		w.settle()
		keep := func(key string, until *time.Time) {
			w.ok(w.store.Commit(w.ctx, domain.Commit{Kept: &domain.KeptAnswer{Member: w.member.ID, Key: key, Until: until, CreatedAt: w.now}}))
		}
		keep("a", ptr(w.now))
		keep("b", ptr(w.now.Add(-time.Second)))
		keep("c", ptr(w.now.Add(-time.Minute)))
		keep("later", ptr(w.now.Add(time.Microsecond)))
		keep("with its Chat", nil)
		w.same("first batch", must[int](w)(w.store.ForgetAnswers(w.ctx, w.now, 2)), 2)
		w.same("second batch", must[int](w)(w.store.ForgetAnswers(w.ctx, w.now, 2)), 1)
		w.same("third batch", must[int](w)(w.store.ForgetAnswers(w.ctx, w.now, 2)), 0)
		for _, key := range []string{"later", "with its Chat"} {
			must[domain.KeptAnswer](w)(w.store.KeptAnswer(w.ctx, w.member.ID, key))
		}
	}},
	{"closing a Chat drops its inbox and its keys, and no others", func(w *world) {
		w.settle()
		gone, stays := w.newChat(), w.newChat()
		inputs := []domain.Input{w.newInput(gone), w.newInput(gone), w.newInput(stays)}
		w.ok(w.store.Commit(w.ctx, domain.Commit{Rows: []domain.Row{gone, stays}, Inputs: inputs}))
		for key, chat := range map[string]domain.ChatID{"gone": gone.ID, "stays": stays.ID, "plain": ""} {
			w.ok(w.store.Commit(w.ctx, domain.Commit{Kept: &domain.KeptAnswer{Member: w.member.ID, Key: key, Chat: chat, CreatedAt: w.now}}))
		}
		w.ok(w.store.Commit(w.ctx, domain.Commit{CloseChats: []domain.ChatID{gone.ID}}))
		w.same("inbox", len(must[[]domain.Input](w)(w.store.Inbox(w.ctx, gone.ID))), 0)
		w.same("other inbox", len(must[[]domain.Input](w)(w.store.Inbox(w.ctx, stays.ID))), 1)
		_, err := w.store.KeptAnswer(w.ctx, w.member.ID, "gone")
		w.code(err, domain.CodeNotFound)
		for _, key := range []string{"stays", "plain"} {
			must[domain.KeptAnswer](w)(w.store.KeptAnswer(w.ctx, w.member.ID, key))
		}
	}},
	{"the last use of a token only moves ahead, and a commit does not set it back", func(w *world) {
		w.settle()
		later := w.now.Add(time.Hour)
		w.ok(w.store.TouchToken(w.ctx, w.token.ID, later))
		w.ok(w.store.TouchToken(w.ctx, w.token.ID, w.now))
		w.token.RevokedAt = ptr(w.now)
		w.commit(w.token)
		got := must[domain.Token](w)(w.store.Token(w.ctx, w.token.ID))
		w.same("last use", got.LastUsedAt, ptr(later))
		w.same("revoked", got.RevokedAt, ptr(w.now))
		w.same("version", got.Version, int64(2))
	}},
}
