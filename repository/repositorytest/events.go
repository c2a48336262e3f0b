package repositorytest

import (
	"slices"
	"sync"

	"openbot/domain"
)

var events = []promise{
	{"a Chat's events come in order after a sequence", func(w *world) {
		w.settle()
		chat, other := w.newChat(), w.newChat()
		c := domain.Commit{Rows: []domain.Row{chat, other}}
		for range 5 {
			c.Events = append(c.Events, w.newEvent(chat), w.newEvent(other))
		}
		slices.Reverse(c.Events)
		w.ok(w.store.Commit(w.ctx, c))
		w.same("after the second", sequences(must[[]domain.Event](w)(w.store.ChatEvents(w.ctx, chat.ID, 2, 2))), []int64{3, 4})
		w.same("all", sequences(must[[]domain.Event](w)(w.store.ChatEvents(w.ctx, chat.ID, 0, 9))), []int64{1, 2, 3, 4, 5})
	}},
	{"a Member gets the events of all its Chats in the order of the commits, and of nobody else", func(w *world) {
		w.settle()
		a, b, foreign := w.newChat(), w.newChat(), w.newChat()
		foreign.Member = "mem_other"
		w.commit(a, b, foreign)
		w.same("newest position of none", must[int64](w)(w.store.LastPosition(w.ctx, w.member.ID)), int64(0))
		var want []domain.ChatID
		for _, chat := range []*domain.Chat{b, a, foreign, b, a} {
			w.ok(w.store.Commit(w.ctx, domain.Commit{Rows: []domain.Row{chat}, Events: []domain.Event{w.newEvent(chat), w.newEvent(chat)}}))
			if chat != foreign {
				want = append(want, chat.ID, chat.ID)
			}
		}
		got := w.heard(len(want))
		var chats []domain.ChatID
		for i, e := range got {
			chats = append(chats, e.Chat)
			if i > 0 && e.Position <= got[i-1].Position {
				w.Fatalf("position %d comes after %d", e.Position, got[i-1].Position)
			}
		}
		w.same("chats", chats, want)
		w.same("the rest after a position", must[[]domain.Event](w)(w.store.MemberEvents(w.ctx, w.member.ID, got[2].Position, 3)), got[3:6])
		w.same("newest position", must[int64](w)(w.store.LastPosition(w.ctx, w.member.ID)), got[7].Position)
	}},
	{"a reader beside many writers misses no event and sees none twice", func(w *world) {
		w.settle()
		const writers, rounds, each = 8, 15, 2
		chats := make([]*domain.Chat, writers)
		for i := range chats {
			chats[i] = w.newChat()
			w.commit(chats[i])
		}
		var all sync.WaitGroup
		failed := make(chan error, writers)
		for _, chat := range chats {
			all.Go(func() {
				for range rounds {
					c := domain.Commit{Rows: []domain.Row{chat}}
					for range each {
						c.Events = append(c.Events, w.newEvent(chat))
					}
					if err := w.store.Commit(w.ctx, c); err != nil {
						failed <- err
						return
					}
				}
			})
		}
		done := make(chan struct{})
		go func() { all.Wait(); close(done) }()

		// The reader goes on from the last position that it saw, as a stream does.
		next := map[domain.ChatID]int64{}
		position, seen := int64(0), 0
		Soon(w.T, func() string {
			for finished := false; !finished; {
				select {
				case err := <-failed:
					w.Fatalf("a writer failed: %v", err)
				case <-done:
					finished = true
				default:
				}
				for _, e := range must[[]domain.Event](w)(w.store.MemberEvents(w.ctx, w.member.ID, position, 7)) {
					if e.Position <= position {
						w.Fatalf("position %d was seen after %d", e.Position, position)
					}
					if e.Sequence != next[e.Chat]+1 {
						w.Fatalf("event %d of a Chat was seen after %d", e.Sequence, next[e.Chat])
					}
					position, next[e.Chat], finished = e.Position, e.Sequence, false
					seen++
				}
			}
			return short(seen, writers*rounds*each)
		})
		<-done
	}},
}

func sequences(events []domain.Event) []int64 {
	out := []int64{}
	for _, e := range events {
		out = append(out, e.Sequence)
	}
	return out
}
