package repositorytest

import (
	"slices"

	"openbot/domain"
)

var facts = []promise{
	{"a step gets all of its Chat, its owners, rights, Apps, tools and Grants, and nothing of others", func(w *world) {
		w.settle()
		other := w.newMember(w.org.ID)
		otherToken := w.newToken(other)
		second := w.newToken(w.member)
		w.commit(other, otherToken, second)
		owner := &domain.Bot{ID: newID[domain.BotID](domain.PrefixBot), Organization: w.org.ID, Kind: domain.BotLasting, Member: w.member.ID, ArchivedAt: ptr(w.now)}
		bot := &domain.Bot{ID: newID[domain.BotID](domain.PrefixBot), Organization: w.org.ID, Kind: domain.BotLasting, Member: w.member.ID, Owner: owner.ID}
		chat, elsewhere := w.newChat(), w.newChat()
		chat.Bot = bot.ID
		turn, earlier := w.newTurn(chat), w.newTurn(chat)
		turn.Authority = []domain.Authority{{Member: other.ID, Token: otherToken.ID}, {Member: w.member.ID, Token: w.token.ID},
			{Member: w.member.ID, Token: second.ID}}
		a, b, c := w.newCall(turn, 1, 1), w.newCall(turn, 1, 0), w.newCall(earlier, 5, 0)
		own, shared, foreign, gone := w.newConnection(), w.newConnection(), w.newConnection(), w.newConnection()
		shared.Member, shared.Shared = other.ID, true
		foreign.Member = other.ID
		gone.DeletedAt = ptr(w.now)
		tool, goneTool := w.newHostTool(), w.newHostTool()
		goneTool.DeletedAt = ptr(w.now)
		grant, revoked, ofOther := w.newGrant(), w.newGrant(), w.newGrant()
		grant.Bot, revoked.Bot, ofOther.Bot = bot.ID, bot.ID, bot.ID
		revoked.RevokedAt, ofOther.Member = ptr(w.now), other.ID
		rule, everywhere, off, deleted, ofOthers, elsewhereOnly := w.newRule(bot.ID), w.newRule(""), w.newRule(bot.ID), w.newRule(""), w.newRule(bot.ID), w.newRule("")
		off.Enabled, deleted.DeletedAt, ofOthers.Member, elsewhereOnly.Organization = false, ptr(w.now), other.ID, "org_other"
		commit := domain.Commit{Rows: []domain.Row{rule, everywhere, off, deleted, ofOthers, elsewhereOnly, owner, bot, chat, elsewhere, turn, earlier, a, b, c, w.newCall(w.newTurn(elsewhere), 1, 0),
			own, shared, foreign, gone, tool, goneTool, grant, revoked, ofOther, w.newGrant()}}
		commit.Inputs = []domain.Input{w.newInput(chat), w.newInput(chat), w.newInput(elsewhere)}
		for i := range 3 {
			commit.Items = append(commit.Items, domain.Item{Chat: chat.ID, Sequence: int64(3 - i), CreatedAt: w.now})
		}
		commit.Items = append(commit.Items, domain.Item{Chat: elsewhere.ID, Sequence: 1, CreatedAt: w.now})
		w.ok(w.store.Commit(w.ctx, commit))

		items := []domain.Item{commit.Items[2], commit.Items[1], commit.Items[0]}
		w.same("facts", must[domain.StepFacts](w)(w.store.StepFacts(w.ctx, turn.ID)), domain.StepFacts{
			Organization: *w.org, Chat: *chat, Turn: *turn, Bot: *bot, MainBot: w.bot.ID,
			Owners: map[domain.BotID]domain.Bot{owner.ID: *owner, w.bot.ID: *w.bot},
			Rights: []domain.Rights{{Member: *other, Token: *otherToken}, {Member: *w.member, Token: *w.token}, {Member: *w.member, Token: *second}},
			Items:  items, Calls: []domain.AskedCall{asked(b), asked(a), asked(c)}, Inbox: commit.Inputs[:2],
			Connections: []domain.Connection{*own, *shared}, HostTools: []domain.HostTool{*tool}, Grants: []domain.Grant{*grant},
			Rules: []domain.Rule{*rule, *everywhere}})
	}},
	{"a Main Bot has nobody above it, and a ring of owners ends", func(w *world) {
		w.settle()
		chat := w.newChat()
		turn := w.newTurn(chat)
		a := &domain.Bot{ID: newID[domain.BotID](domain.PrefixBot), Organization: w.org.ID, Kind: domain.BotLasting}
		b := &domain.Bot{ID: newID[domain.BotID](domain.PrefixBot), Organization: w.org.ID, Kind: domain.BotLasting, Owner: a.ID}
		a.Owner = b.ID
		ringChat := w.newChat()
		ringChat.Bot = a.ID
		ring := w.newTurn(ringChat)
		w.commit(chat, turn, a, b, ringChat, ring)
		w.same("owners of the Main Bot", must[domain.StepFacts](w)(w.store.StepFacts(w.ctx, turn.ID)).Owners, map[domain.BotID]domain.Bot{})
		w.same("owners in a ring", must[domain.StepFacts](w)(w.store.StepFacts(w.ctx, ring.ID)).Owners, map[domain.BotID]domain.Bot{b.ID: *b})
	}},
	{"facts of many calls are those of each", func(w *world) {
		w.settle()
		var ids []domain.CallID
		var want []domain.CallFacts
		for i := range 3 {
			chat := w.newChat()
			turn := w.newTurn(chat)
			call := w.newCall(turn, 1, i)
			request := w.newRequest(call)
			call.Request = request.ID
			w.commit(chat, turn, call, request)
			ids = append(ids, call.ID)
			want = append(want, must[domain.CallFacts](w)(w.store.CallFacts(w.ctx, call.ID)))
		}
		slices.Reverse(ids)
		slices.Reverse(want)
		w.same("facts of many", must[[]domain.CallFacts](w)(w.store.CallsFacts(w.ctx, ids)), want)
		_, err := w.store.CallsFacts(w.ctx, append(ids, "call_absent"))
		w.code(err, domain.CodeNotFound)
	}},
	{"an authority that is missing or mixed up is an error, never fewer rights", func(w *world) {
		w.settle()
		other := w.newMember(w.org.ID)
		w.commit(other)
		for _, bad := range []domain.Authority{{Member: w.member.ID, Token: "tok_absent"}, {Member: other.ID, Token: w.token.ID}} {
			chat := w.newChat()
			turn := w.newTurn(chat)
			turn.Authority = append(turn.Authority, bad)
			call := w.newCall(turn, 1, 0)
			w.commit(chat, turn, call)
			_, err := w.store.StepFacts(w.ctx, turn.ID)
			w.code(err, domain.CodeInternal)
			_, err = w.store.CallFacts(w.ctx, call.ID)
			w.code(err, domain.CodeInternal)
		}
	}},
	{"a call gets its Turn, Request, Grants, App and the calls beside it", func(w *world) {
		w.settle()
		chat := w.newChat()
		turn := w.newTurn(chat)
		connection := w.newConnection()
		connection.DeletedAt = ptr(w.now)
		call, beside, later := w.newCall(turn, 1, 1), w.newCall(turn, 1, 0), w.newCall(turn, 2, 0)
		call.Connection = connection.ID
		beside.Status, beside.EndedAt = domain.CallDenied, ptr(w.now)
		request := w.newRequest(call)
		call.Request = request.ID
		grant, otherTarget, revoked, otherBot := w.newGrant(), w.newGrant(), w.newGrant(), w.newGrant()
		otherTarget.Capability.Target = "con_1/other"
		revoked.RevokedAt, otherBot.Bot = ptr(w.now), "bot_other"
		w.commit(chat, turn, connection, call, beside, later, request, grant, otherTarget, revoked, otherBot)
		w.same("facts", must[domain.CallFacts](w)(w.store.CallFacts(w.ctx, call.ID)), domain.CallFacts{
			Organization: *w.org, Chat: *chat, Turn: *turn, Call: *call, Request: request, Connection: connection,
			Rights: []domain.Rights{{Member: *w.member, Token: *w.token}}, Grants: []domain.Grant{*grant},
			Siblings: []domain.CallStanding{{ID: beside.ID, Status: domain.CallDenied, Ended: true}, {ID: call.ID, Status: domain.CallWaiting}}})
	}},
	{"a call in checking gets its Bot, owners and Rules; one that rests on others gets those", func(w *world) {
		w.settle()
		chat := w.newChat()
		turn := w.newTurn(chat)
		call, allowed := w.newCall(turn, 1, 0), w.newCall(turn, 1, 1)
		rule, grant := w.newRule(w.bot.ID), w.newGrant()
		grant.Bot, grant.RevokedAt = "bot_above", ptr(w.now)
		rule.DeletedAt = ptr(w.now)
		inForce := w.newRule("")
		call.Status = domain.CallChecking
		allowed.Decided = &domain.DecidedBy{Step: domain.StepDecider, By: domain.ByBot("bot_above"), Grant: grant.ID, Rule: rule.ID}
		w.commit(chat, turn, call, allowed, rule, inForce, grant)
		got := must[domain.CallFacts](w)(w.store.CallFacts(w.ctx, call.ID))
		w.same("judging", got.Judging, &domain.JudgeFacts{Bot: *w.bot, MainBot: w.bot.ID, Owners: map[domain.BotID]domain.Bot{}, Rules: []domain.Rule{*inForce}})
		got = must[domain.CallFacts](w)(w.store.CallFacts(w.ctx, allowed.ID))
		w.same("strength", got.Strength, domain.Strength{Grant: grant, Rule: rule})
		if got.Judging != nil {
			w.Fatal("a call that is not in checking was loaded for the judge")
		}
	}},
	{"a program gets its calls, a call its program, and a step neither", func(w *world) {
		w.settle()
		chat := w.newChat()
		turn := w.newTurn(chat)
		program, other, beside := w.newCall(turn, 1, 0), w.newCall(turn, 1, 1), w.newCall(turn, 1, 2)
		program.Kind, other.Kind = domain.CallProgram, domain.CallProgram
		program.Program = &domain.ProgramState{Seed: 1 << 63, StartedAtMs: 5, Trace: domain.ProgramTrace{
			Calls: []domain.ProgramAsked{{Connection: "mail", Tool: "send", Arguments: []byte(`{"n":1}`)}}, Given: []int{0}}}
		child := func(of *domain.Call, index int) *domain.Call {
			c := w.newCall(turn, 1, domain.ProgramPlace(of.Position, index))
			c.Parent, c.Code = of.ID, &domain.ProgramPosition{Index: index, Line: 3, Column: 7}
			return c
		}
		second, first, foreign := child(program, 1), child(program, 0), child(other, 0)
		w.commit(chat, turn, program, other, beside, second, first, foreign)
		got := must[domain.CallFacts](w)(w.store.CallFacts(w.ctx, program.ID))
		w.same("calls of the program", got.Children, []domain.Call{*first, *second})
		w.same("program", got.Call, *program)
		if got.Parent != nil || len(got.Siblings) != 6 {
			w.Fatalf("a program has the program %v and %d calls in its step", got.Parent, len(got.Siblings))
		}
		got = must[domain.CallFacts](w)(w.store.CallFacts(w.ctx, second.ID))
		w.same("program of the call", got.Parent, program)
		if len(got.Children) != 0 {
			w.Fatalf("a call that is no program has the calls %v", got.Children)
		}
		w.same("calls of the step", must[domain.StepFacts](w)(w.store.StepFacts(w.ctx, turn.ID)).Calls, []domain.AskedCall{asked(program), asked(other), asked(beside)})
		w.same("calls of the Turn", must[[]domain.Call](w)(w.store.TurnCalls(w.ctx, turn.ID)),
			[]domain.Call{*program, *other, *beside, *first, *second, *foreign})
	}},
	{"a call of a host tool gets the tool of its organization that is not deleted", func(w *world) {
		w.settle()
		chat := w.newChat()
		turn := w.newTurn(chat)
		tool, gone, foreign := w.newHostTool(), w.newHostTool(), w.newHostTool()
		gone.Name, foreign.Name = tool.Name, tool.Name
		gone.DeletedAt, foreign.Organization = ptr(w.now), "org_other"
		call, app := w.newCall(turn, 1, 0), w.newCall(turn, 1, 1)
		call.Kind, call.Tool, app.Tool = domain.CallHost, tool.Name, tool.Name
		w.commit(chat, turn, tool, gone, foreign, call, app)
		got := must[domain.CallFacts](w)(w.store.CallFacts(w.ctx, call.ID))
		w.same("tool", got.HostTool, tool)
		if got.Request != nil || got.Connection != nil {
			w.Fatalf("got a Request %v and a Connection %v, want neither", got.Request, got.Connection)
		}
		if must[domain.CallFacts](w)(w.store.CallFacts(w.ctx, app.ID)).HostTool != nil {
			w.Fatal("a call of an App got a host tool of the same name")
		}
	}},
	{"stopping a Turn gets its open calls and pending Requests", func(w *world) {
		w.settle()
		chat := w.newChat()
		turn, other := w.newTurn(chat), w.newTurn(chat)
		late, first, ended := w.newCall(turn, 2, 0), w.newCall(turn, 1, 1), w.newCall(turn, 1, 0)
		ended.EndedAt = ptr(w.now)
		pending, decided, elsewhere := w.newRequest(first), w.newRequest(first), w.newRequest(w.newCall(other, 1, 0))
		decided.Status = domain.RequestAllowed
		// What belongs to work of the Chat, whichever Turn made it, and survives a stop.
		work, done := w.newCall(other, domain.WorkStep, 0), w.newCall(turn, domain.WorkStep, 1)
		done.EndedAt = ptr(w.now)
		asked := w.newRequest(work)
		asked.Capability.Action = domain.ActionDelegationsContinue
		w.commit(chat, turn, other, late, first, ended, pending, decided, elsewhere, work, done, asked)
		w.same("facts", must[domain.TurnFacts](w)(w.store.TurnFacts(w.ctx, turn.ID)), domain.TurnFacts{
			Chat: *chat, Turn: *turn, Open: []domain.Call{*first, *late}, Requests: []domain.Request{*pending},
			WorkCalls: []domain.Call{*work}, WorkRequests: []domain.Request{*asked}})
		w.same("calls of the Turn", ids(must[[]domain.Call](w)(w.store.TurnCalls(w.ctx, turn.ID))), ids([]domain.Call{*ended, *first, *late}))
	}},
	{"facts that are mixed of old and new hold the old version of the Chat", func(w *world) {
		w.settle()
		chat := w.newChat()
		turn := w.newTurn(chat)
		w.commit(chat, turn)
		writer := make(chan error, 1)
		go func() {
			moving := *chat
			for range 60 {
				moving.LastItem++
				if err := w.store.Commit(w.ctx, domain.Commit{Rows: []domain.Row{&moving},
					Items: []domain.Item{{Chat: chat.ID, Sequence: moving.LastItem, CreatedAt: w.now}}}); err != nil {
					writer <- err
					return
				}
			}
			writer <- nil
		}()
		for running := true; running; {
			select {
			case err := <-writer:
				w.ok(err)
				running = false
			default:
			}
			f := must[domain.StepFacts](w)(w.store.StepFacts(w.ctx, turn.ID))
			if int64(len(f.Items)) < f.Chat.LastItem {
				w.Fatalf("the Chat is at item %d, but only %d were read", f.Chat.LastItem, len(f.Items))
			}
		}
	}},
}

func asked(c *domain.Call) domain.AskedCall {
	return domain.AskedCall{ID: c.ID, Turn: c.Turn, Step: c.Step, Name: c.Name, Arguments: c.Arguments, Status: c.Status,
		Result: c.Result, EndedAt: c.EndedAt}
}
