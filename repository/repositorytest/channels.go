package repositorytest

import (
	"time"

	"openbot/domain"
)

func (w *world) newChannel(m *domain.Member) *domain.Channel {
	return &domain.Channel{ID: newID[domain.ChannelID](domain.PrefixChannel), Organization: m.Organization, Member: m.ID, Name: "team", Bot: w.bot.ID,
		URL: "https://x.example", Enabled: true, CreatedAt: w.now, UpdatedAt: w.now}
}

var channels = []promise{
	{"an outside chat is one Chat at a time", func(w *world) {
		w.settle()
		channel := w.newChannel(w.member)
		outside := func(name string) *domain.Chat {
			chat := w.newChat()
			chat.Channel, chat.Outside = channel.ID, name
			return chat
		}
		main, side := outside("main"), outside("side")
		w.commit(channel, main, side, w.newChat(), w.newChat()) // Chats of no Channel share no name
		w.same("main", must[domain.Chat](w)(w.store.ChannelChat(w.ctx, channel.ID, "main")), *main)
		w.same("side", must[domain.Chat](w)(w.store.ChannelChat(w.ctx, channel.ID, "side")).ID, side.ID)
		w.code(w.store.Commit(w.ctx, domain.Commit{At: w.now, Rows: []domain.Row{outside("main")}}), domain.CodeConflict)
		for _, absent := range []struct {
			channel domain.ChannelID
			name    string
		}{{channel.ID, "Main"}, {channel.ID, ""}, {"chn_other", "main"}, {"", ""}} {
			_, err := w.store.ChannelChat(w.ctx, absent.channel, absent.name)
			w.code(err, domain.CodeNotFound)
		}
		main.DeletedAt = ptr(w.now)
		w.commit(main)
		_, err := w.store.ChannelChat(w.ctx, channel.ID, "main")
		w.code(err, domain.CodeNotFound)
		again := outside("main")
		w.commit(again)
		w.same("again", must[domain.Chat](w)(w.store.ChannelChat(w.ctx, channel.ID, "main")).ID, again.ID)
	}},
	{"Channels are listed by whom they belong to, newest first", func(w *world) {
		w.settle()
		other := w.newMember(w.org.ID)
		first, second, theirs, deleted := w.newChannel(w.member), w.newChannel(w.member), w.newChannel(other), w.newChannel(w.member)
		deleted.DeletedAt = ptr(w.now)
		w.commit(other, first, second, theirs, deleted)
		list := func(all bool, page domain.Page) []string {
			return ids(must[[]domain.Channel](w)(w.store.Channels(w.ctx, w.org.ID, w.member.ID, all, page)))
		}
		w.same("own", list(false, domain.Page{Limit: 9}), []string{string(second.ID), string(first.ID)})
		w.same("all", list(true, domain.Page{Limit: 9}), []string{string(theirs.ID), string(second.ID), string(first.ID)})
		w.same("page", list(false, domain.Page{Limit: 1, Before: string(second.ID)}), []string{string(first.ID)})
	}},
	{"what goes out through a Channel is listed by it alone", func(w *world) {
		w.settle()
		channel, hook := w.newChannel(w.member), w.newWebhook(w.member)
		out := w.newDelivery(hook, domain.DeliveryDead, nil, ptr(w.now))
		out.Webhook, out.Channel = "", channel.ID
		told := w.newDelivery(hook, domain.DeliveryDead, nil, ptr(w.now))
		w.commit(channel, hook, out, told)
		w.same("out", ids(must[[]domain.Delivery](w)(w.store.ChannelDeliveries(w.ctx, channel.ID, domain.DeliveryDead, domain.Page{Limit: 9}))), []string{string(out.ID)})
		w.same("told", ids(must[[]domain.Delivery](w)(w.store.Deliveries(w.ctx, hook.ID, "", domain.Page{Limit: 9}))), []string{string(told.ID)})
		w.same("of none", len(must[[]domain.Delivery](w)(w.store.ChannelDeliveries(w.ctx, "", "", domain.Page{Limit: 9}))), 0)
		w.same("of none", len(must[[]domain.Delivery](w)(w.store.Deliveries(w.ctx, "", "", domain.Page{Limit: 9}))), 0)
	}},
	{"the rights of an author are its Member's by the token of another", func(w *world) {
		w.settle()
		author, bearer := w.newMember(w.org.ID), w.newMember(w.org.ID)
		bearer.DisabledAt = ptr(w.now)
		token := w.newToken(bearer)
		w.commit(author, bearer, token)
		load := func(authority ...domain.Authority) (domain.StepFacts, error) {
			chat := w.newChat()
			turn := w.newTurn(chat)
			turn.Authority = authority
			w.commit(chat, turn)
			return w.store.StepFacts(w.ctx, turn.ID)
		}
		known := domain.Authority{Member: author.ID, Token: token.ID, Via: bearer.ID}
		nobody := domain.Authority{Token: token.ID, Via: bearer.ID}
		own := domain.Authority{Member: w.member.ID, Token: w.token.ID}
		f, err := load(nobody, own, known)
		w.ok(err)
		w.same("rights", f.Rights, []domain.Rights{{Token: *token, Via: bearer}, {Member: *w.member, Token: *w.token}, {Member: *author, Token: *token, Via: bearer}})
		for _, bad := range []domain.Authority{
			{Member: author.ID, Token: token.ID},                    // the token is not the author's
			{Member: author.ID, Token: token.ID, Via: author.ID},    // nor whose it is said to be
			{Member: "mem_absent", Token: token.ID, Via: bearer.ID}, // the author is not there
			{Member: author.ID, Token: "tok_absent", Via: bearer.ID}, {Token: token.ID}, {Member: author.ID, Token: w.token.ID, Via: bearer.ID}} {
			_, err := load(own, known, bad)
			w.code(err, domain.CodeInternal)
		}
	}},
	{"pending Requests of what came in by a Member's token are found", func(w *world) {
		w.settle()
		bearer := w.newMember(w.org.ID)
		token := w.newToken(bearer)
		w.commit(bearer, token)
		request := func(status domain.RequestStatus, authority ...domain.Authority) *domain.Request {
			chat := w.newChat()
			turn := w.newTurn(chat)
			turn.Authority = authority
			call := w.newCall(turn, 1, 0)
			r := w.newRequest(call)
			r.Status, r.ExpiresAt = status, w.now.Add(time.Hour)
			w.commit(chat, turn, call, r)
			return r
		}
		via := domain.Authority{Member: w.member.ID, Token: token.ID, Via: bearer.ID}
		own := domain.Authority{Member: bearer.ID, Token: token.ID}
		first := request(domain.RequestPending, via)
		request(domain.RequestPending, own)
		request(domain.RequestDenied, via)
		second := request(domain.RequestPending, own, via)
		find := func(org domain.OrganizationID, after domain.RequestID, limit int) []domain.RequestID {
			return must[[]domain.RequestID](w)(w.store.PendingVia(w.ctx, org, bearer.ID, after, limit))
		}
		w.same("all", find(w.org.ID, "", 9), []domain.RequestID{first.ID, second.ID})
		w.same("one", find(w.org.ID, "", 1), []domain.RequestID{first.ID})
		w.same("after", find(w.org.ID, first.ID, 9), []domain.RequestID{second.ID})
		w.same("elsewhere", len(find("org_other", "", 9)), 0)
	}},
}
