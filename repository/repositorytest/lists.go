package repositorytest

import (
	"slices"
	"time"

	"openbot/domain"
)

// paging is one list: how to add a row that it shows, and how to read a page.
type paging struct {
	name string
	add  func(w *world) string
	page func(w *world, page domain.Page) ([]string, error)
}

func listed[T any](list []T, err error) ([]string, error) { return ids(list), err }

// pagings lists every list by key. Each world has a chat and a turn to hang rows on.
func pagings(w *world) []paging {
	chat := w.newChat()
	turn := w.newTurn(chat)
	position := 0
	return []paging{
		{"Members", func(w *world) string {
			m := w.newMember(w.org.ID)
			w.commit(m)
			return string(m.ID)
		}, func(w *world, p domain.Page) ([]string, error) { return listed(w.store.Members(w.ctx, w.org.ID, p)) }},
		{"Tokens", func(w *world) string {
			t := w.newToken(w.member)
			w.commit(t)
			return string(t.ID)
		}, func(w *world, p domain.Page) ([]string, error) { return listed(w.store.Tokens(w.ctx, w.org.ID, p)) }},
		{"Bots", func(w *world) string {
			b := domain.Bot{ID: newID[domain.BotID](domain.PrefixBot), Organization: w.org.ID, Kind: domain.BotLasting}
			if counter.Load()%2 == 0 {
				b.Shared = true
			} else {
				b.Member = w.member.ID
			}
			w.commit(&b)
			return string(b.ID)
		}, func(w *world, p domain.Page) ([]string, error) {
			return listed(w.store.Bots(w.ctx, w.org.ID, w.member.ID, p))
		}},
		{"Connections", func(w *world) string {
			c := w.newConnection()
			c.Shared = counter.Load()%2 == 0
			w.commit(c)
			return string(c.ID)
		}, func(w *world, p domain.Page) ([]string, error) {
			return listed(w.store.Connections(w.ctx, w.org.ID, w.member.ID, p))
		}},
		{"HostTools", func(w *world) string {
			h := w.newHostTool()
			w.commit(h)
			return string(h.ID)
		}, func(w *world, p domain.Page) ([]string, error) { return listed(w.store.HostTools(w.ctx, w.org.ID, p)) }},
		{"Chats", func(w *world) string {
			c := w.newChat()
			w.commit(c)
			return string(c.ID)
		}, func(w *world, p domain.Page) ([]string, error) { return listed(w.store.Chats(w.ctx, w.member.ID, p)) }},
		{"Turns", func(w *world) string {
			t := w.newTurn(chat)
			w.commit(t)
			return string(t.ID)
		}, func(w *world, p domain.Page) ([]string, error) { return listed(w.store.Turns(w.ctx, chat.ID, p)) }},
		{"Requests", func(w *world) string {
			r := w.newRequest(w.newCall(turn, 1, position))
			position++
			w.commit(r)
			return string(r.ID)
		}, func(w *world, p domain.Page) ([]string, error) {
			return listed(w.store.Requests(w.ctx, w.org.ID, domain.RequestFilter{Approver: w.member.ID, Status: domain.RequestPending}, p))
		}},
	}
}

var lists = []promise{
	{"the helpers of a Chat are its session Bots that are not archived", func(w *world) {
		w.settle()
		bot := func(kind domain.BotKind, chat domain.ChatID, archived bool) *domain.Bot {
			b := &domain.Bot{ID: newID[domain.BotID](domain.PrefixBot), Organization: w.org.ID, Kind: kind, Member: w.member.ID, Chat: chat}
			if archived {
				b.ArchivedAt = ptr(w.now)
			}
			w.commit(b)
			return b
		}
		a, b := bot(domain.BotSession, "chat_1", false), bot(domain.BotSession, "chat_1", false)
		bot(domain.BotSession, "chat_1", true)
		bot(domain.BotSession, "chat_2", false)
		bot(domain.BotLasting, "chat_1", false)
		bot(domain.BotSession, "", false)
		w.same("helpers", ids(must[[]domain.Bot](w)(w.store.Helpers(w.ctx, "chat_1"))), []string{string(a.ID), string(b.ID)})
		w.same("helpers of no Chat", len(must[[]domain.Bot](w)(w.store.Helpers(w.ctx, ""))), 0)
	}},
	{"pages under writes show each row that was there once, newest first", func(w *world) {
		w.settle()
		for _, list := range pagings(w) {
			before := must[[]string](w)(list.page(w, domain.Page{Limit: 100}))
			want := slices.Clone(before)
			for range 10 {
				want = append([]string{list.add(w)}, want...)
			}
			var got []string
			page := domain.Page{Limit: 3}
			for {
				part := must[[]string](w)(list.page(w, page))
				if len(part) > page.Limit {
					w.Fatalf("%s: a page of 3 holds %d", list.name, len(part))
				}
				if len(part) == 0 || len(got) > len(want) {
					break
				}
				got = append(got, part...)
				page.Before = part[len(part)-1]
				list.add(w) // a newer row comes while somebody turns the pages
			}
			w.same(list.name, got, want)
			if len(must[[]string](w)(list.page(w, domain.Page{}))) == 0 {
				w.Fatalf("%s: a page without a limit is empty", list.name)
			}
		}
	}},
	{"a Member sees its own Bots and Connections and the shared ones of its organization", func(w *world) {
		w.settle()
		other := w.newMember(w.org.ID)
		foreign := &domain.Organization{ID: newID[domain.OrganizationID](domain.PrefixOrganization)}
		w.commit(foreign, other)
		bot := func(org domain.OrganizationID, member domain.MemberID, shared bool) domain.BotID {
			b := domain.Bot{ID: newID[domain.BotID](domain.PrefixBot), Organization: org, Kind: domain.BotLasting, Member: member, Shared: shared, ArchivedAt: ptr(w.now)}
			w.commit(&b)
			return b.ID
		}
		mine, shared := bot(w.org.ID, w.member.ID, false), bot(w.org.ID, "", true)
		mineShared := bot(w.org.ID, w.member.ID, true)
		bot(w.org.ID, other.ID, false)
		bot(foreign.ID, "", true)
		bot(foreign.ID, w.member.ID, false)
		w.same("Bots", ids(must[[]domain.Bot](w)(w.store.Bots(w.ctx, w.org.ID, w.member.ID, domain.Page{Limit: 9}))),
			[]string{string(mineShared), string(shared), string(mine), string(w.bot.ID)})

		connection := func(org domain.OrganizationID, member domain.MemberID, shared, deleted bool) string {
			c := w.newConnection()
			c.Organization, c.Member, c.Shared = org, member, shared
			if deleted {
				c.DeletedAt = ptr(w.now)
			}
			w.commit(c)
			return string(c.ID)
		}
		own, both := connection(w.org.ID, w.member.ID, false, false), connection(w.org.ID, other.ID, true, false)
		connection(w.org.ID, other.ID, false, false)
		connection(w.org.ID, w.member.ID, false, true)
		connection(w.org.ID, other.ID, true, true)
		connection(foreign.ID, other.ID, true, false)
		w.same("Connections", ids(must[[]domain.Connection](w)(w.store.Connections(w.ctx, w.org.ID, w.member.ID, domain.Page{Limit: 9}))),
			[]string{both, own})
	}},
	{"deleted Chats and host tools are not listed but can still be read", func(w *world) {
		w.settle()
		chat, tool := w.newChat(), w.newHostTool()
		chat.DeletedAt, tool.DeletedAt = ptr(w.now), ptr(w.now)
		w.commit(chat, tool)
		w.same("Chats", len(must[[]domain.Chat](w)(w.store.Chats(w.ctx, w.member.ID, domain.Page{Limit: 9}))), 0)
		w.same("host tools", len(must[[]domain.HostTool](w)(w.store.HostTools(w.ctx, w.org.ID, domain.Page{Limit: 9}))), 0)
		must[domain.Chat](w)(w.store.Chat(w.ctx, chat.ID))
		must[domain.HostTool](w)(w.store.HostTool(w.ctx, tool.ID))
	}},
	{"each part of a filter narrows the Requests", func(w *world) {
		w.settle()
		chat := w.newChat()
		turn := w.newTurn(chat)
		plain := w.newRequest(w.newCall(turn, 1, 0))
		w.commit(plain)
		list := func(f domain.RequestFilter) []string {
			return ids(must[[]domain.Request](w)(w.store.Requests(w.ctx, w.org.ID, f, domain.Page{Limit: 9})))
		}
		for name, c := range map[string]struct {
			change func(*domain.Request)
			filter domain.RequestFilter
		}{
			"approver": {func(r *domain.Request) { r.Approver = domain.Person("mem_other") }, domain.RequestFilter{Approver: "mem_other"}},
			"second":   {func(r *domain.Request) { r.Approver, r.Second = domain.Person("mem_first"), "mem_second" }, domain.RequestFilter{Approver: "mem_second"}},
			"decided":  {func(r *domain.Request) { r.Status = domain.RequestDenied }, domain.RequestFilter{Status: domain.RequestDenied}},
			"bot":      {func(r *domain.Request) { r.Bot = "bot_other" }, domain.RequestFilter{Bot: "bot_other"}},
			"chat":     {func(r *domain.Request) { r.Chat = "chat_other" }, domain.RequestFilter{Chat: "chat_other"}},
			"action":   {func(r *domain.Request) { r.Capability.Action = "tools.call" }, domain.RequestFilter{Action: "tools.call"}},
		} {
			other := w.newRequest(w.newCall(turn, 1, 0))
			c.change(other)
			w.commit(other)
			w.same(name, list(c.filter), []string{string(other.ID)})
		}
		unknown := w.newRequest(w.newCall(turn, 1, 0))
		unknown.Approver, unknown.Unknown = domain.Person("mem_knows"), &domain.Unknown{SentAtMs: 1}
		known := w.newRequest(w.newCall(turn, 1, 0))
		known.Approver = unknown.Approver
		w.commit(unknown, known)
		w.same("all outcomes", list(domain.RequestFilter{Approver: "mem_knows"}), []string{string(known.ID), string(unknown.ID)})
		w.same("known outcomes", list(domain.RequestFilter{Approver: "mem_knows", Known: true}), []string{string(known.ID)})
		w.same("all of it at once", list(domain.RequestFilter{Approver: w.member.ID, Status: domain.RequestPending, Bot: w.bot.ID, Chat: chat.ID,
			Action: "apps.call"}), []string{string(plain.ID)})
		w.same("nothing", len(list(domain.RequestFilter{})), 9)
		w.same("an action that cannot be", list(domain.RequestFilter{Action: "\x00"}), []string{})
		foreign := must[[]domain.Request](w)(w.store.Requests(w.ctx, "org_other", domain.RequestFilter{}, domain.Page{Limit: 9}))
		w.same("another organization", len(foreign), 0)
	}},
	{"pending Requests like a Grant are of its Bot, Member, capability and Chat", func(w *world) {
		w.settle()
		chat := w.newChat()
		turn := w.newTurn(chat)
		add := func(change func(*domain.Request)) domain.RequestID {
			r := w.newRequest(w.newCall(turn, 1, 0))
			change(r)
			w.commit(r)
			return r.ID
		}
		a := add(func(*domain.Request) {})
		b := add(func(r *domain.Request) { r.Chat = "chat_other" })
		c := add(func(*domain.Request) {})
		d := add(func(r *domain.Request) { r.Bot = "bot_other" })
		e := add(func(r *domain.Request) { r.Capability.Action = "tools.call" })
		f := add(func(r *domain.Request) { r.Capability.Target = "con_1/other" })
		add(func(r *domain.Request) { r.Member = "mem_other" })
		add(func(r *domain.Request) { r.Status = domain.RequestAllowed })
		like := func(g *domain.Grant, after domain.RequestID, limit int) []domain.RequestID {
			return must[[]domain.RequestID](w)(w.store.PendingLike(w.ctx, *g, after, limit))
		}
		grant := w.newGrant()
		w.same("lifetime", like(grant, "", 9), []domain.RequestID{a, b, c})
		w.same("first two", like(grant, "", 2), []domain.RequestID{a, b})
		w.same("the rest", like(grant, b, 2), []domain.RequestID{c})
		grant.Chat = chat.ID
		w.same("of a Chat", like(grant, "", 9), []domain.RequestID{a, c})
		w.same("of a Member", must[[]domain.RequestID](w)(w.store.PendingOfMember(w.ctx, w.member.ID, a, 9)), []domain.RequestID{b, c, d, e, f})
		w.same("of a Member, first", must[[]domain.RequestID](w)(w.store.PendingOfMember(w.ctx, w.member.ID, "", 1)), []domain.RequestID{a})
	}},
	{"the history is read in order after a sequence, with the calls that it speaks of", func(w *world) {
		w.settle()
		chat := w.newChat()
		turn := w.newTurn(chat)
		one, two := w.newCall(turn, 1, 0), w.newCall(turn, 1, 1)
		c := domain.Commit{Rows: []domain.Row{chat, turn, one, two}}
		for i, call := range []domain.CallID{"", one.ID, two.ID, one.ID} {
			c.Items = append(c.Items, domain.Item{Chat: chat.ID, Sequence: int64(i + 1), Turn: turn.ID, Call: call, CreatedAt: w.now})
		}
		c.Items = append(c.Items, domain.Item{Chat: "chat_other", Sequence: 3, CreatedAt: w.now})
		slices.Reverse(c.Items)
		w.ok(w.store.Commit(w.ctx, c))
		items := must[[]domain.Item](w)(w.store.Items(w.ctx, chat.ID, 1, 2))
		w.same("items", []int64{items[0].Sequence, items[1].Sequence}, []int64{2, 3})
		w.same("number of items", len(items), 2)
		w.same("calls", must[map[domain.CallID]domain.Call](w)(w.store.ItemCalls(w.ctx, must[[]domain.Item](w)(w.store.Items(w.ctx, chat.ID, 0, 9)))),
			map[domain.CallID]domain.Call{one.ID: *one, two.ID: *two})
		w.same("no calls", len(must[map[domain.CallID]domain.Call](w)(w.store.ItemCalls(w.ctx, nil))), 0)
	}},
	{"the calls of Turns come by turn, step and position", func(w *world) {
		w.settle()
		chat := w.newChat()
		first, second := w.newTurn(chat), w.newTurn(chat)
		rows := []*domain.Call{w.newCall(second, 1, 0), w.newCall(first, 2, 0), w.newCall(first, 1, 10), w.newCall(first, 1, 2)}
		w.commit(chat, first, second, rows[0], rows[1], rows[2], rows[3], w.newCall(w.newTurn(chat), 1, 0))
		w.same("calls", ids(must[[]domain.Call](w)(w.store.TurnCalls(w.ctx, second.ID, first.ID))),
			[]string{string(rows[3].ID), string(rows[2].ID), string(rows[1].ID), string(rows[0].ID)})
		w.same("no Turns", len(must[[]domain.Call](w)(w.store.TurnCalls(w.ctx))), 0)
	}},
	{"standing counts what is open", func(w *world) {
		w.settle()
		chat := w.newChat()
		old := w.now.Add(-2 * time.Minute)
		queued, waiting, ended := w.newTurn(chat), w.newTurn(chat), w.newTurn(chat)
		queued.DueAt = ptr(old)
		waiting.Status, waiting.DueAt = domain.TurnWaiting, nil
		ended.Status, ended.DueAt = domain.TurnCompleted, nil
		unknown, settled := w.newCall(waiting, 1, 0), w.newCall(waiting, 1, 1)
		unknown.Status, settled.Status, settled.EndedAt = domain.CallUnknown, domain.CallUnknown, ptr(w.now)
		overdue := w.newCall(waiting, 1, 2)
		overdue.Status, overdue.DueAt = domain.CallAllowed, ptr(old)
		pending, older, denied := w.newRequest(unknown), w.newRequest(unknown), w.newRequest(unknown)
		older.CreatedAt, denied.Status = w.now.Add(-time.Hour), domain.RequestDenied
		older.ExpiresAt, denied.ExpiresAt = old, old
		grant, connection := w.newGrant(), w.newConnection()
		grant.SettleDueAt, connection.LookDueAt = ptr(old), ptr(old)
		w.token.ClosingDueAt, w.member.ClosingDueAt = ptr(old), ptr(w.now)
		w.commit(chat, queued, waiting, ended, unknown, settled, overdue, pending, older, denied, grant, connection, w.token, w.member)
		w.same("standing", must[domain.Standing](w)(w.store.Standing(w.ctx, w.now)), domain.Standing{
			RequestsPending: 2, OldestPending: time.Hour, CallsUnknown: 1, Overdue: 6,
			TurnsOpen: map[domain.TurnStatus]int64{domain.TurnQueued: 1, domain.TurnRunning: 0, domain.TurnWaiting: 1}})
	}},
}
