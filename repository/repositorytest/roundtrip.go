package repositorytest

import (
	"strings"

	"openbot/domain"
)

var roundTrips = []promise{
	{"every field of a new row comes back", func(w *world) {
		w.settle()
		for _, k := range kinds {
			row := k.fresh(w, 1)
			want := copyOf(row)
			w.commit(row)
			setVersion(want, 1)
			if k.read != nil {
				w.same(k.name, w.readAll(k, row), want)
			}
		}
	}},
	{"every field that may change is written by an update", func(w *world) {
		w.settle()
		for _, k := range kinds {
			row := k.fresh(w, 1)
			w.commit(row)
			next := k.changed(row, 2)
			want := copyOf(next)
			w.commit(next)
			setVersion(want, 2)
			if k.read != nil {
				w.same(k.name, w.readAll(k, row), want)
			}
		}
	}},
	{"a field that is emptied is written as empty", func(w *world) {
		w.settle()
		chat := w.newChat()
		turn := w.newTurn(chat)
		turn.Answer, turn.Steps, turn.CostNanos = "answer", 3, 9
		chat.Turn, chat.Taint, chat.Title = turn.ID, domain.Taint{{Kind: domain.SourceApp, Connection: "con_1"}}, "title"
		w.commit(chat, turn)
		turn.Answer, turn.Steps, turn.CostNanos, turn.DueAt, turn.Authority = "", 0, 0, nil, nil
		chat.Turn, chat.Taint, chat.Title = "", nil, ""
		w.commit(chat, turn)
		w.same("turn", must[domain.Turn](w)(w.store.Turn(w.ctx, turn.ID)), *turn)
		w.same("chat", must[domain.Chat](w)(w.store.Chat(w.ctx, chat.ID)), *chat)
	}},
	{"what was asked and decided on cannot be written over", func(w *world) {
		w.settle()
		for _, k := range kinds {
			if k.read == nil {
				continue
			}
			row := k.fresh(w, 1)
			w.commit(row)
			other := k.fresh(w, 2)
			forged := copyOf(other)
			// Same row, but every field is another's, also those that are written once.
			forged = withIdentity(forged, row)
			w.commit(forged)
			want := k.changed(row, 2)
			setVersion(want, 2)
			w.same(k.name, w.readAll(k, row), want)
		}
	}},
	{"items, inputs, events and kept answers come back whole", func(w *world) {
		w.settle()
		var item domain.Item
		var input domain.Input
		var event domain.Event
		var kept domain.KeptAnswer
		fill(&item, 1)
		fill(&input, 2)
		fill(&event, 3)
		fill(&kept, 4)
		w.ok(w.store.Commit(w.ctx, domain.Commit{Items: []domain.Item{item}, Inputs: []domain.Input{input}, Events: []domain.Event{event}, Kept: &kept}))
		w.same("items", must[[]domain.Item](w)(w.store.Items(w.ctx, item.Chat, item.Sequence-1, 9)), []domain.Item{item})
		w.same("inbox", must[[]domain.Input](w)(w.store.Inbox(w.ctx, input.Chat)), []domain.Input{input})
		got := must[[]domain.Event](w)(w.store.ChatEvents(w.ctx, event.Chat, 0, 9))
		if len(got) != 1 || got[0].Position <= 0 {
			w.Fatalf("events: got %+v, want one with a position", got)
		}
		event.Position = got[0].Position
		w.same("events", got, []domain.Event{event})
		w.same("kept answer", must[domain.KeptAnswer](w)(w.store.KeptAnswer(w.ctx, kept.Member, kept.Key)), kept)
	}},
	{"what is absent is not found", func(w *world) {
		w.settle()
		for _, k := range kinds {
			if k.read == nil {
				continue
			}
			_, err := k.read(w.ctx, w.store, "absent")
			w.code(err, domain.CodeNotFound)
		}
		_, err := w.store.Principal(w.ctx, "absent")
		w.code(err, domain.CodeNotFound)
		_, err = w.store.StepFacts(w.ctx, "absent")
		w.code(err, domain.CodeNotFound)
		_, err = w.store.CallFacts(w.ctx, "absent")
		w.code(err, domain.CodeNotFound)
		_, err = w.store.TurnFacts(w.ctx, "absent")
		w.code(err, domain.CodeNotFound)
		_, err = w.store.KeptAnswer(w.ctx, w.member.ID, "absent")
		w.code(err, domain.CodeNotFound)
	}},
	{"a principal is the token of a hash with its Member, dead tokens included", func(w *world) {
		w.settle()
		w.token.RevokedAt = ptr(w.now)
		w.commit(w.token)
		w.same("principal", must[domain.Principal](w)(w.store.Principal(w.ctx, w.token.Hash)),
			domain.Principal{Organization: w.org.ID, Member: *w.member, Token: *w.token})
		_, err := w.store.Principal(w.ctx, strings.ToUpper(w.token.Hash))
		w.code(err, domain.CodeNotFound)
	}},
}

var texts = []promise{
	{"IDs are told apart by case", func(w *world) {
		w.settle()
		lower, upper := w.newChat(), w.newChat()
		lower.ID, upper.ID = "chat_abc", "chat_ABC"
		w.commit(lower)
		_, err := w.store.Chat(w.ctx, upper.ID)
		w.code(err, domain.CodeNotFound)
		w.commit(upper)
		w.same("list", ids(must[[]domain.Chat](w)(w.store.Chats(w.ctx, w.member.ID, domain.Page{Limit: 9}))), []string{"chat_abc", "chat_ABC"})
	}},
	{"NUL bytes and broken UTF-8 are kept as U+FFFD", func(w *world) {
		w.settle()
		chat := w.newChat()
		chat.Title = "a\x00b\xffc"
		c := domain.Commit{Rows: []domain.Row{chat}, Items: []domain.Item{{Chat: chat.ID, Sequence: 1, Text: "\x00", From: "\xc3", CreatedAt: w.now}},
			Events: []domain.Event{{Member: w.member.ID, Chat: chat.ID, Sequence: 1, Data: []byte("\"\x00\""), At: w.now}},
			Kept:   &domain.KeptAnswer{Member: w.member.ID, Key: "k\x00", Body: []byte("\x00\xff"), CreatedAt: w.now}}
		w.ok(w.store.Commit(w.ctx, c))
		w.same("title", must[domain.Chat](w)(w.store.Chat(w.ctx, chat.ID)).Title, "a\uFFFDb\uFFFDc")
		item := must[[]domain.Item](w)(w.store.Items(w.ctx, chat.ID, 0, 9))[0]
		w.same("text", item.Text, "\uFFFD")
		w.same("author", item.From, "\uFFFD")
		w.same("data", string(must[[]domain.Event](w)(w.store.ChatEvents(w.ctx, chat.ID, 0, 9))[0].Data), "\"\uFFFD\"")
		w.same("body", must[domain.KeptAnswer](w)(w.store.KeptAnswer(w.ctx, w.member.ID, "k\x00")).Body, []byte("\x00\xff"))
		chat.Title = "\x00"
		w.commit(chat)
		w.same("title", must[domain.Chat](w)(w.store.Chat(w.ctx, chat.ID)).Title, "\uFFFD")
	}},
	{"an ID that no row can have is not found", func(w *world) {
		w.settle()
		for _, id := range []domain.ChatID{"chat_\x00", "chat_\xff", "", "'; DROP TABLE chats; --", domain.ChatID(strings.Repeat("x", 100_000))} {
			_, err := w.store.Chat(w.ctx, id)
			w.code(err, domain.CodeNotFound)
		}
	}},
	{"arguments of a mebibyte come back byte for byte", func(w *world) {
		w.settle()
		chat := w.newChat()
		turn := w.newTurn(chat)
		call := w.newCall(turn, 1, 0)
		call.Arguments = []byte(`{ "text" : "` + strings.Repeat(`é<\u0000> `, 1<<17) + `", "n":1.0,"n":2 }`)
		w.commit(chat, turn, call)
		got := must[[]domain.Call](w)(w.store.TurnCalls(w.ctx, turn.ID))
		if len(got) != 1 || string(got[0].Arguments) != string(call.Arguments) {
			w.Fatal("the arguments changed on the way")
		}
	}},
}
