package repositorytest

import (
	"encoding/json"
	"strings"

	"openbot/domain"
)

var pages = []promise{
	{"the heads of Requests are those of the list, without their payloads", func(w *world) {
		w.settle()
		turn := w.newTurn(w.newChat())
		long := strings.Repeat("ü", 5000)
		r := w.newRequest(w.newCall(turn, 1, 0))
		r.Arguments, r.Reason, r.Plan = json.RawMessage(`{"text":"`+long+`"}`), long, "a plan"
		r.Code = &domain.SavedCode{Program: "a program"}
		short := w.newRequest(w.newCall(turn, 1, 1))
		short.Arguments = json.RawMessage(`{}`)
		decided := w.newRequest(w.newCall(turn, 1, 2))
		decided.Status = domain.RequestDenied
		w.commit(r, short, decided)
		filter := domain.RequestFilter{Approver: w.member.ID, Status: domain.RequestPending}
		heads := must[[]domain.Request](w)(w.store.RequestHeads(w.ctx, w.org.ID, filter, domain.Page{Limit: 9}))
		w.same("the heads", ids(heads), []string{string(short.ID), string(r.ID)})
		w.same("short arguments", string(heads[0].Arguments), "{}")
		if n := len([]rune(string(heads[1].Arguments))); n > 1000 || n < 100 {
			w.Fatalf("the arguments of the head have %d characters", n)
		}
		if n := len([]rune(heads[1].Reason)); n > 1000 || n < 100 || heads[1].Plan != "" || heads[1].Code != nil {
			w.Fatalf("the head is %+v", heads[1])
		}
		w.same("the rest of the head", heads[1].ExpiresAt, r.ExpiresAt)
		count := func(filter domain.RequestFilter, atMost int) int {
			return must[int](w)(w.store.CountRequests(w.ctx, w.org.ID, filter, atMost))
		}
		w.same("the count", count(filter, 9), 2)
		w.same("the count up to a bound", count(filter, 1), 1)
	}},
	{"a search finds targets and Bots, and takes no text for a pattern", func(w *world) {
		w.settle()
		turn := w.newTurn(w.newChat())
		add := func(target string, bot domain.BotID) string {
			r := w.newRequest(w.newCall(turn, 1, 0))
			r.Capability.Target, r.Bot = target, bot
			w.commit(r)
			return string(r.ID)
		}
		mail, odd, other := add("con_1/Send_Email", "bot_a"), add(`con_1/100%\_off`, "bot_b"), add("con_1/read", "bot_c")
		search := func(text string, bots ...domain.BotID) []string {
			return ids(must[[]domain.Request](w)(w.store.Requests(w.ctx, w.org.ID, domain.RequestFilter{Search: text, Bots: bots}, domain.Page{Limit: 9})))
		}
		w.same("without case", search("send_e"), []string{mail})
		w.same("a percent sign", search("100%"), []string{odd})
		w.same("a percent sign alone", search("%"), []string{odd})
		w.same("a backslash", search(`\_`), []string{odd})
		w.same("an underscore", search("nd_e"), []string{mail})
		w.same("an underscore for any letter", search("c_n"), []string{})
		w.same("by the Bot", search("nothing", "bot_c"), []string{other})
		w.same("by target or Bot", search("send", "bot_c"), []string{other, mail})
	}},
	{"equal Requests that were allowed are found", func(w *world) {
		w.settle()
		turn := w.newTurn(w.newChat())
		add := func(change func(*domain.Request)) string {
			r := w.newRequest(w.newCall(turn, 1, 0))
			r.Status = domain.RequestAllowed
			change(r)
			w.commit(r)
			return string(r.ID)
		}
		first := add(func(*domain.Request) {})
		add(func(r *domain.Request) { r.Status = domain.RequestDenied })
		add(func(r *domain.Request) { r.Bot = "bot_other" })
		add(func(r *domain.Request) { r.Member = "mem_other" })
		add(func(r *domain.Request) { r.Capability.Target = "con_1/other" })
		add(func(r *domain.Request) { r.Capability.Action = domain.ActionToolsCall })
		second := add(func(*domain.Request) {})
		now := w.newRequest(w.newCall(turn, 1, 0))
		w.commit(now)
		add(func(*domain.Request) {})
		like := func(limit int) []string {
			return ids(must[[]domain.Request](w)(w.store.AllowedLike(w.ctx, *now, limit)))
		}
		w.same("equal ones before it", like(9), []string{second, first})
		w.same("the last of them", like(1), []string{second})
	}},
	{"names are those of the organization", func(w *world) {
		w.settle()
		mine := w.newConnection()
		mine.Name, mine.DeletedAt = "mail", ptr(w.now)
		foreign := w.newConnection()
		foreign.Organization = "org_other"
		w.commit(mine, foreign)
		got := must[domain.Names](w)(w.store.Names(w.ctx, w.org.ID, []domain.BotID{w.bot.ID, "bot_none"}, []domain.ConnectionID{mine.ID, foreign.ID}))
		w.same("the names", got, domain.Names{Bots: map[domain.BotID]string{w.bot.ID: w.bot.Name},
			Connections: map[domain.ConnectionID]string{mine.ID: "mail"}})
		got = must[domain.Names](w)(w.store.Names(w.ctx, w.org.ID, nil, nil))
		w.same("no names", len(got.Bots)+len(got.Connections), 0)
	}},
}
