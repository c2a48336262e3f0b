package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
)

// group is a Channel with the people that the tests speak of: bob and ann are Members, eve
// is none.
type group struct {
	*world
	channel  domain.Channel
	bob, ann domain.Principal
}

func newGroup(t *testing.T) *group {
	t.Helper()
	t.Parallel()
	return newGroupAlone(t)
}

func newGroupAlone(t *testing.T) *group {
	t.Helper()
	w := newWorldAlone(t)
	g := &group{world: w, bob: w.person("Bob", "write", "*"), ann: w.person("Ann", "write", "*")}
	mail := w.mail
	mail.Shared = true
	w.must(w.store.Commit(t.Context(), domain.Commit{At: w.clock.now(), Rows: []domain.Row{&mail}}))
	var err error
	g.channel, _, err = w.engine.CreateChannel(t.Context(), w.me, engine.ChannelFields{Name: ptr("team"), URL: ptr("https://chat.example/out"),
		Actors: map[string]domain.MemberID{"bob": g.bob.Member.ID, "ann": g.ann.Member.ID}})
	w.must(err)
	return g
}

// posts brings a message in by the maker's token.
func (g *group) posts(author, text string) engine.Posted { return g.postsIn("", author, text) }

func (g *group) postsIn(chat, author, text string) engine.Posted {
	g.t.Helper()
	posted, err := g.engine.PostToChannel(context.WithoutCancel(g.t.Context()), g.me, g.channel.ID, engine.ChannelMessage{Author: author, Text: text, Chat: chat})
	g.must(err)
	return posted
}

// out gives what went out, as "chat: text".
func (g *group) out() []string {
	g.t.Helper()
	list := []string{}
	for _, h := range g.heard() {
		if h.Type == domain.HookChannelMessage {
			list = append(list, fmt.Sprintf("%v: %v", h.Data["chat"], h.Data["text"]))
		}
	}
	return list
}

func (g *group) turnsOf(chat domain.ChatID) []domain.Turn {
	g.t.Helper()
	list, err := g.store.Turns(g.t.Context(), chat, domain.Page{Limit: 100})
	g.must(err)
	slices.Reverse(list)
	return list
}

func (g *group) pendingOf(p domain.Principal) []domain.Request {
	g.t.Helper()
	list, err := g.engine.Requests(g.t.Context(), p, domain.RequestFilter{Status: domain.RequestPending}, domain.Page{Limit: 100})
	g.must(err)
	return list
}

// Every outside chat is one Chat of the Bot, and its answers go out to it.
func TestAnOutsideChatIsAChat(t *testing.T) {
	g := newGroup(t)
	first := g.posts("bob", "/say Hello Bob")
	g.run()
	second := g.posts("ann", "/say Hello Ann")
	g.run()
	other := g.postsIn("side", "bob", "/say Elsewhere")
	g.run()
	if first.Chat != second.Chat || first.Chat == other.Chat || first.Turn == "" {
		t.Errorf("the Chats are %s, %s and %s", first.Chat, second.Chat, other.Chat)
	}
	if got := g.out(); !slices.Equal(got, []string{"main: Hello Bob", "main: Hello Ann", "side: Elsewhere"}) {
		t.Errorf("%v went out", got)
	}
	said := g.heard()[0].Data
	if said["channel"] != string(g.channel.ID) || said["turn"] != string(first.Turn) || said["author"] != "bob" || said["sequence"] != 2.0 {
		t.Errorf("the answer is %v", said)
	}
	chat, err := g.engine.Chat(t.Context(), g.me, first.Chat)
	g.must(err)
	if chat.Channel != g.channel.ID || chat.Outside != "main" || chat.Bot != g.me.Member.MainBot || chat.Tainted() {
		t.Errorf("the Chat is %+v", chat)
	}
	items, err := g.store.Items(t.Context(), first.Chat, 0, 9)
	g.must(err)
	if items[0].From != "author:bob" || items[0].Text != "/say Hello Bob" {
		t.Errorf("the message is kept as %+v", items[0])
	}
	_, err = g.engine.PostMessage(t.Context(), g.me, first.Chat, "as nobody")
	g.wantCode(err, domain.CodeConflict)
	g.must(g.engine.DeleteChat(t.Context(), g.me, first.Chat))
	if again := g.posts("bob", "x"); again.Chat == first.Chat {
		t.Error("a deleted Chat takes messages")
	}
}

// The Member of a Turn is the author of its message: the Request goes to the author, who
// alone answers it, reads its Turn and hears of it.
func TestARequestInAChannelIsTheAuthors(t *testing.T) {
	g := newGroup(t)
	hook := g.hook(g.bob, false, domain.HookRequestPending)
	posted := g.posts("bob", roundScript)
	g.run()
	mine, theirs := g.pendingOf(g.me), g.pendingOf(g.bob)
	if len(mine) != 0 || len(theirs) != 1 || len(g.pendingOf(g.ann)) != 0 {
		t.Fatalf("the Request waits for %d, %d", len(mine), len(theirs))
	}
	r := theirs[0]
	if r.Member != g.bob.Member.ID || r.Approver != domain.Person(g.bob.Member.ID) {
		t.Errorf("the Request is %+v", r)
	}
	_, err := g.answer(r, domain.DecisionAllow, "")
	g.wantCode(err, domain.CodeNotFound) // not the maker of the Channel
	_, err = g.engine.AnswerRequest(t.Context(), g.bob, r.ID, engine.Answer{Expected: r.Revision, Decision: domain.DecisionAllow})
	g.must(err)
	g.run()
	v, err := g.engine.Turn(t.Context(), g.bob, posted.Turn)
	g.must(err)
	if v.Turn.Status != domain.TurnCompleted || v.Calls[0].Status != domain.CallSucceeded || g.apps.total() != 1 {
		t.Errorf("the Turn is %s, the call %s", v.Turn.Status, v.Calls[0].Status)
	}
	_, err = g.engine.Turn(t.Context(), g.ann, posted.Turn)
	g.wantCode(err, domain.CodeNotFound)
	events, err := g.store.MemberEvents(t.Context(), g.bob.Member.ID, 0, 99)
	g.must(err)
	var kinds []string
	for _, ev := range events {
		kinds = append(kinds, ev.Kind)
	}
	if !slices.Equal(kinds, []string{domain.EventRequestPending, domain.EventRequestDecided}) {
		t.Errorf("Bob hears of %v", kinds)
	}
	if got := g.receiver.got; len(got) != 2 || got[0].Owner != string(hook.ID) {
		t.Errorf("his webhook and the Channel were told %d times", len(got))
	}
}

// The rights of a Turn are those of its author, narrowed by the token that posted.
func TestTheRightsOfAMessageAreTheAuthorsByThePostingToken(t *testing.T) {
	for name, c := range map[string]struct {
		author, token []string
		asks          bool
	}{
		"both may":                {[]string{"write", "*"}, []string{"write", "*"}, true},
		"the author may not":      {[]string{"write"}, []string{"write", "*"}, false},
		"the token may not":       {[]string{"write", "*"}, []string{"write"}, false},
		"each may something else": {[]string{"write", "apps.call:con_1/*"}, []string{"write", "apps.call:*/send"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGroup(t)
			_, err := g.engine.ChangeMember(t.Context(), g.me, g.bob.Member.ID, engine.MemberFields{Permissions: c.author})
			g.must(err)
			bridge := g.as("bridge", c.token...)
			posted, err := g.engine.PostToChannel(t.Context(), bridge, g.channel.ID, engine.ChannelMessage{Author: "bob", Text: roundScript})
			g.must(err)
			g.run()
			if got := len(g.pendingOf(g.bob)); got != boolToInt(c.asks) || len(g.pendingOf(g.me)) != 0 {
				t.Fatalf("%d Requests wait for Bob", got)
			}
			calls, err := g.store.TurnCalls(t.Context(), posted.Turn)
			g.must(err)
			if !c.asks && (calls[0].Status != domain.CallDenied || calls[0].Decided.Step != domain.StepPolicy) {
				t.Errorf("the call is %s by %+v", calls[0].Status, calls[0].Decided)
			}
		})
	}
}

// An author who is no Member can talk, and nothing runs for them: no capability, no read,
// no tool of OpenBot itself. What they write taints the Chat.
func TestNothingRunsForAnAuthorWhoIsNoMember(t *testing.T) {
	g := newGroup(t)
	g.reads("list")
	calls := []string{`mail__send {}`, `mail__list {}`, `openbot_remember {"memory":"evil"}`, `openbot_list_bots {}`,
		`openbot_read_app_resource {"connection":"` + string(g.mail.ID) + `","uri":"x"}`, `openbot_run_code {"program":"return 1"}`,
		`openbot_spawn {"name":"x","role":"","instructions":"","reason":"r"}`, `openbot_send {"chat":"side","text":"x","reason":"r"}`,
		`openbot_delegate {"task":"x","limits":{"timeMs":60000}}`, `openbot_bot_details {"bot":"` + string(g.me.Member.MainBot) + `"}`}
	lines := []string{}
	for _, call := range calls {
		lines = append(lines, "/call "+call)
	}
	posted := g.posts("eve", strings.Join(lines, "\n")+"\n/say You asked for a lot.")
	g.run()
	g.sweepFor(10 * time.Second)
	turn, err := g.store.Turn(t.Context(), posted.Turn)
	g.must(err)
	made, err := g.store.TurnCalls(t.Context(), posted.Turn)
	g.must(err)
	if turn.Status != domain.TurnCompleted || turn.Member != "" || len(made) != len(calls) {
		t.Fatalf("the Turn is %s (%s) for %q with %d calls", turn.Status, turn.Error, turn.Member, len(made))
	}
	for _, c := range made {
		if c.Status != domain.CallDenied || c.Decided.Step != domain.StepPolicy || !strings.Contains(c.Result, "no member of the organization") {
			t.Errorf("%s is %s: %s", c.Name, c.Status, c.Result)
		}
	}
	if got := g.out(); !slices.Equal(got, []string{"main: You asked for a lot."}) || g.apps.total() != 0 || len(g.pending()) != 0 {
		t.Errorf("%v went out, %d calls, %d Requests", got, g.apps.total(), len(g.pending()))
	}
	chat, err := g.store.Chat(t.Context(), posted.Chat)
	g.must(err)
	if !chat.Tainted() {
		t.Error("the Chat is not tainted")
	}
}

// What others write waits while a Turn of one author is under way; what the same author
// writes is read at its next step.
func TestATurnTakesTheInputOfOneAuthor(t *testing.T) {
	g := newGroup(t)
	first := g.posts("bob", `/call mail__send {"n":1}`)
	g.run()
	waiting := g.posts("ann", "/say For Ann")
	stranger := g.posts("eve", "/say For Eve")
	more := g.posts("bob", "/say For Bob")
	if waiting.Turn != "" || stranger.Turn != "" || more.Turn != first.Turn {
		t.Errorf("the messages go to %q, %q and %q", waiting.Turn, stranger.Turn, more.Turn)
	}
	again := g.posts("ann", "/say For Ann again")
	r := g.pendingOf(g.bob)[0]
	_, err := g.engine.AnswerRequest(t.Context(), g.bob, r.ID, engine.Answer{Expected: r.Revision, Decision: domain.DecisionDeny})
	g.must(err)
	g.run()
	if got := g.out(); !slices.Equal(got, []string{"main: For Bob", "main: For Ann again", "main: For Eve"}) {
		t.Errorf("%v went out", got)
	}
	turns := g.turnsOf(first.Chat)
	if len(turns) != 3 || again.Turn != "" {
		t.Fatalf("there are %d Turns", len(turns))
	}
	for i, want := range []domain.MemberID{g.bob.Member.ID, g.ann.Member.ID, ""} {
		if turns[i].Member != want || len(turns[i].Authority) != 1 || turns[i].Authority[0].Member != want {
			t.Errorf("Turn %d is for %q with %v, want %q", i, turns[i].Member, turns[i].Authority, want)
		}
	}
}

// What another author writes while the model thinks is neither shown to it nor obeyed.
func TestInputOfAnotherAuthorDuringAModelCall(t *testing.T) {
	g := newGroup(t)
	g.posts("bob", "/say For Bob")
	task, _ := g.rings.next(g.clock.now())
	g.posts("eve", "/call mail__send {}")
	step, err := g.engine.PrepareStep(t.Context(), domain.TurnID(task.Subject), task.Revision)
	g.must(err)
	if step == nil { // the message moved the Turn's Chat, not the Turn
		t.Fatal("the step is not wanted")
	}
	if n := len(step.Request.Messages); n != 1 || step.Request.Messages[0].Text != "Message of bob in the group chat:\n/say For Bob" || len(step.Request.Script.Inputs) != 1 {
		t.Errorf("the model reads %+v", step.Request.Messages)
	}
	g.posts("ann", "/call mail__send {}")
	g.finish(step)
	g.run()
	turns := g.turnsOf(step.Chat())
	if len(turns) != 3 || turns[0].Answer != "For Bob" || turns[1].Member != "" || turns[2].Member != g.ann.Member.ID {
		t.Errorf("the Turns are %+v", turns)
	}
}

// However messages, answers and ends of work mix: no Turn holds the input of two authors,
// every message is taken once, those of one author in their order, and nothing waits in an
// idle Chat.
func TestAuthorsNeverShareATurn(t *testing.T) {
	t.Parallel()
	g := newGroupAlone(t)
	member := map[string]domain.MemberID{"bob": g.bob.Member.ID, "ann": g.ann.Member.ID}
	shared := 0
	for round := range uint64(30) {
		draw := rand.New(rand.NewPCG(7, round))
		pick := func(from ...string) string { return from[draw.IntN(len(from))] }
		chat := fmt.Sprintf("chat %d", round)
		written := map[string][]string{}
		var id domain.ChatID
		for n := range 1 + draw.IntN(12) {
			author := pick("bob", "ann", "eve", "mallory")
			text := pick("/say ok", `/call openbot_delegate {"task":"/say done","limits":{"timeMs":60000}}`, "/fail no",
				`/call openbot_spawn {"name":"x","role":"","instructions":"","reason":"r"}`)
			text = fmt.Sprintf("%s\n/say %d", text, n)
			written[author] = append(written[author], text)
			id = g.postsIn(chat, author, text).Chat
			for range draw.IntN(7) {
				if task, ok := g.rings.next(g.clock.now()); ok {
					g.work(task)
				}
			}
		}
		g.run()
		for range 40 {
			for _, p := range []domain.Principal{g.bob, g.ann} {
				for _, r := range g.pendingOf(p) {
					_, err := g.engine.AnswerRequest(t.Context(), p, r.ID, engine.Answer{Expected: r.Revision, Decision: domain.DecisionDeny})
					g.must(err)
				}
			}
			g.run()
			if now, err := g.store.Chat(t.Context(), id); err == nil && now.Turn == "" {
				break
			}
		}
		now, err := g.store.Chat(t.Context(), id)
		g.must(err)
		inbox, err := g.store.Inbox(t.Context(), id)
		g.must(err)
		if now.Turn != "" || len(inbox) != 0 {
			t.Fatalf("round %d: the Chat is %s with %d inputs", round, now.Status, len(inbox))
		}
		items, err := g.store.Items(t.Context(), id, 0, 1000)
		g.must(err)
		turns := map[domain.TurnID]domain.Turn{}
		for _, turn := range g.turnsOf(id) {
			turns[turn.ID] = turn
		}
		taken, by := map[string][]string{}, map[domain.TurnID]int{}
		for _, i := range items {
			author, outside := domain.OutsideAuthor(i.From)
			if !outside {
				continue
			}
			turn := turns[i.Turn]
			if turn.Member != member[author] || member[author] == "" && turn.Author != i.From {
				t.Fatalf("round %d: a message of %s is in a Turn of %q for %q", round, author, turn.Author, turn.Member)
			}
			taken[author] = append(taken[author], i.Text)
			if by[i.Turn]++; by[i.Turn] > 1 {
				shared++
			}
		}
		for author, texts := range written {
			if !slices.Equal(taken[author], texts) {
				t.Fatalf("round %d: %s wrote %q, taken were %q", round, author, texts, taken[author])
			}
		}
	}
	if shared == 0 {
		t.Error("no Turn took two messages of one author: the test does not reach it")
	}
}

// Only the maker of a Channel and admins bring messages in, and only an admin says that an
// author is somebody else.
func TestWhoMaySpeakInTheNameOfAuthors(t *testing.T) {
	g := newGroup(t)
	_, err := g.engine.PostToChannel(t.Context(), g.bob, g.channel.ID, engine.ChannelMessage{Author: "ann", Text: "x"})
	g.wantCode(err, domain.CodeNotFound)
	own, _, err := g.engine.CreateChannel(t.Context(), g.bob, engine.ChannelFields{Name: ptr("mine"), URL: ptr("https://x.example"),
		Actors: map[string]domain.MemberID{"me": g.bob.Member.ID}})
	g.must(err)
	for name, actors := range map[string]map[string]domain.MemberID{
		"another Member": {"boss": g.me.Member.ID}, "another beside himself": {"me": g.bob.Member.ID, "boss": g.me.Member.ID}} {
		_, err = g.engine.ChangeChannel(t.Context(), g.bob, own.ID, engine.ChannelFields{Actors: actors})
		if domain.CodeOf(err) != domain.CodeForbidden {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = g.engine.ChangeChannel(t.Context(), g.me, own.ID, engine.ChannelFields{Actors: map[string]domain.MemberID{"ann": g.ann.Member.ID}})
	g.must(err) // an admin may
	_, err = g.engine.ChangeChannel(t.Context(), g.bob, own.ID, engine.ChannelFields{Actors: map[string]domain.MemberID{"ann": g.ann.Member.ID, "me": g.bob.Member.ID}})
	g.must(err) // what the admin said may stay
	_, err = g.engine.ChangeChannel(t.Context(), g.me, own.ID, engine.ChannelFields{Actors: map[string]domain.MemberID{"x": "mem_00000000000000000000000000000009"}})
	g.wantCode(err, domain.CodeInvalid)
	posted, err := g.engine.PostToChannel(t.Context(), g.me, own.ID, engine.ChannelMessage{Author: "me", Text: roundScript})
	g.must(err)
	g.run()
	if len(g.pendingOf(g.bob)) != 1 {
		t.Error("a message that an admin brought in is not its author's")
	}
	chat, err := g.store.Chat(t.Context(), posted.Chat)
	g.must(err)
	if chat.Member != g.bob.Member.ID {
		t.Errorf("the Chat belongs to %s", chat.Member)
	}
	for _, in := range []engine.ChannelMessage{{Author: "", Text: "x"}, {Author: "a\nb", Text: "x"}, {Author: " a", Text: "x"}, {Author: "a\u202eb", Text: "x"},
		{Author: strings.Repeat("a", 201), Text: "x"}, {Author: "a", Text: ""}, {Author: "a", Text: "x", Chat: "\x00"}, {Author: "a", Text: strings.Repeat("x", domain.MaxMessage+1)}} {
		if _, err := g.engine.PostToChannel(t.Context(), g.me, own.ID, in); domain.CodeOf(err) != domain.CodeInvalid {
			t.Errorf("%.40q in %q: %v", in.Author, in.Chat, err)
		}
	}
}

// A posting token that is revoked, and a Member whose token it is that is disabled, end the
// work of all authors that came in by it.
func TestRevokingThePostingTokenEndsTheWorkOfAllAuthors(t *testing.T) {
	for name, end := range map[string]func(g *group, token domain.Principal){
		"the token": func(g *group, token domain.Principal) {
			g.must(g.engine.RevokeToken(g.t.Context(), g.me, token.Token.ID))
		},
		"its Member": func(g *group, token domain.Principal) {
			_, err := g.engine.ChangeMember(g.t.Context(), g.me, token.Member.ID, engine.MemberFields{Disabled: ptr(true)})
			g.must(err)
		},
		"the author": func(g *group, _ domain.Principal) {
			_, err := g.engine.ChangeMember(g.t.Context(), g.me, g.bob.Member.ID, engine.MemberFields{Disabled: ptr(true)})
			g.must(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGroup(t)
			bridge := g.person("Bridge", "admin", "*")
			posted, err := g.engine.PostToChannel(t.Context(), bridge, g.channel.ID, engine.ChannelMessage{Author: "bob", Text: roundScript + "\n/then\n" + roundScript})
			g.must(err)
			g.run()
			own := g.say(g.newChat(), roundScript)
			g.run()
			r := g.pendingOf(g.bob)[0]
			end(g, bridge)
			g.run()
			now, err := g.store.Request(t.Context(), r.ID)
			g.must(err)
			turn, err := g.store.Turn(t.Context(), posted.Turn)
			g.must(err)
			calls, err := g.store.TurnCalls(t.Context(), posted.Turn)
			g.must(err)
			if now.Status != domain.RequestCancelled || turn.Status != domain.TurnCompleted || len(calls) != 2 || calls[1].Status != domain.CallDenied || g.apps.total() != 0 {
				t.Errorf("the Request is %s, the Turn %s, calls %d", now.Status, turn.Status, len(calls))
			}
			g.wantStatus(own, domain.TurnWaiting) // other work goes on
		})
	}
}

const sends = `/call openbot_send {"chat":"side","text":"Hi there","reason":"Ann asked"}`

// Writing to another chat of the Channel needs a decision and then goes out once.
func TestWritingToAnotherChatOfTheChannel(t *testing.T) {
	g := newGroup(t)
	side := g.postsIn("side", "ann", "/say Here")
	g.run()
	posted := g.posts("bob", sends+"\n/say Told them.")
	g.run()
	r := g.pendingOf(g.bob)[0]
	if r.Capability != (domain.Capability{Action: domain.ActionChannelsSend, Target: string(g.channel.ID)}) || r.Reason != "Ann asked" ||
		!strings.Contains(string(r.Arguments), `"text":"Hi there"`) || len(g.out()) != 1 {
		t.Fatalf("the Request is %+v after %v", r, g.out())
	}
	_, err := g.engine.AnswerRequest(t.Context(), g.bob, r.ID, engine.Answer{Expected: r.Revision, Decision: domain.DecisionAllow})
	g.must(err)
	g.run()
	g.sweepFor(10 * time.Second)
	if got := g.out(); !slices.Equal(got, []string{"side: Here", "side: Hi there", "main: Told them."}) {
		t.Errorf("%v went out", got)
	}
	items, err := g.store.Items(t.Context(), side.Chat, 0, 99)
	g.must(err)
	if last := items[len(items)-1]; last.Kind != domain.ItemNotice || !strings.Contains(last.Text, "Hi there") || !strings.HasPrefix(last.Text, "[OpenBot]") {
		t.Errorf("the other Chat ends with %+v", last)
	}
	denied := g.posts("bob", sends)
	g.run()
	r = g.pendingOf(g.bob)[0]
	_, err = g.engine.AnswerRequest(t.Context(), g.bob, r.ID, engine.Answer{Expected: r.Revision, Decision: domain.DecisionDeny})
	g.must(err)
	g.run()
	if got := g.out(); slices.Contains(got[3:], "side: Hi there") {
		t.Errorf("%v went out", got)
	}
	calls, err := g.store.TurnCalls(t.Context(), denied.Turn)
	g.must(err)
	if calls[0].Status != domain.CallDenied || denied.Chat != posted.Chat {
		t.Errorf("the call is %s", calls[0].Status)
	}
}

// What cannot be sent creates nothing, and elsewhere the tool is not there.
func TestWhatCannotBeWrittenToAnotherChat(t *testing.T) {
	g := newGroup(t)
	for _, arguments := range []string{`{"chat":"main","text":"x","reason":"r"}`, `{"chat":"a\nb","text":"x","reason":"r"}`, `{"chat":"side","text":"x"}`, `{"chat":"side","text":"","reason":"r"}`} {
		posted := g.posts("bob", "/call openbot_send "+arguments)
		g.run()
		calls, err := g.store.TurnCalls(t.Context(), posted.Turn)
		g.must(err)
		if calls[0].Status != domain.CallFailed || len(g.pendingOf(g.bob)) != 0 {
			t.Errorf("%s is %s", arguments, calls[0].Status)
		}
	}
	turn := g.say(g.newChat(), sends)
	g.run()
	if v := g.wantStatus(turn, domain.TurnCompleted); !strings.Contains(v.Calls[0].Result, "no tool") {
		t.Errorf("outside a Channel: %s", v.Calls[0].Result)
	}
	g.posts("bob", sends)
	g.run()
	r := g.pendingOf(g.bob)[0]
	_, err := g.engine.ChangeChannel(t.Context(), g.me, g.channel.ID, engine.ChannelFields{Enabled: ptr(false)})
	g.must(err)
	_, err = g.engine.AnswerRequest(t.Context(), g.bob, r.ID, engine.Answer{Expected: r.Revision, Decision: domain.DecisionAllow})
	g.must(err)
	before := len(g.out())
	g.run()
	g.sweepFor(10 * time.Second)
	if got := g.out(); len(got) != before {
		t.Errorf("a disabled Channel sent %v", got[before:])
	}
}

// Wherever a process dies between the answer and the message: exactly one message is made.
func TestAMessageToAnotherChatSurvivesEveryCrash(t *testing.T) {
	t.Parallel()
	for point := 1; ; point++ {
		g := newGroupAlone(t)
		g.posts("bob", sends)
		g.run()
		r := g.pendingOf(g.bob)[0]
		begun := g.store.count()
		g.store.after = func(n int) {
			if n == begun+point {
				crash()
			}
		}
		died := g.die(func() {
			ctx := context.WithoutCancel(t.Context())
			_, err := g.engine.AnswerRequest(ctx, g.bob, r.ID, engine.Answer{Expected: r.Revision, Decision: domain.DecisionAllow})
			g.must(err)
			g.run()
		})
		g.restart()
		g.sweepFor(50 * time.Second)
		list, err := g.engine.ChannelDeliveries(t.Context(), g.me, g.channel.ID, "", domain.Page{Limit: 9})
		g.must(err)
		made := 0
		for _, v := range list {
			if strings.Contains(string(v.Payload), "Hi there") {
				made++
			}
			if v.Status != domain.DeliveryDelivered {
				t.Errorf("point %d: a message is %s", point, v.Status)
			}
		}
		if made != 1 {
			t.Errorf("point %d: %d messages were made", point, made)
		}
		if !died {
			if point < 5 {
				t.Errorf("only %d points", point)
			}
			return
		}
	}
}

// Work that is given in a Channel is for the author, and its result comes back as the
// author's, not into a Turn of somebody else.
func TestWorkInAChannelIsForTheAuthor(t *testing.T) {
	g := newGroup(t)
	posted := g.posts("bob", `/call openbot_delegate {"task":"/call mail__send {}\n/say done","limits":{"timeMs":600000}}`+"\n/say Gave it.")
	g.run()
	r := g.pendingOf(g.bob)[0]
	if r.Member != g.bob.Member.ID || r.Chat == posted.Chat {
		t.Fatalf("the Request of the work is %+v", r)
	}
	g.posts("ann", `/call mail__send {"n":2}`)
	g.run() // Ann's Turn waits now
	_, err := g.engine.AnswerRequest(t.Context(), g.bob, r.ID, engine.Answer{Expected: r.Revision, Decision: domain.DecisionAllow})
	g.must(err)
	g.run()
	if turns := g.turnsOf(posted.Chat); len(turns) != 2 {
		t.Fatalf("there are %d Turns while Ann's waits", len(turns))
	}
	r = g.pendingOf(g.ann)[0]
	_, err = g.engine.AnswerRequest(t.Context(), g.ann, r.ID, engine.Answer{Expected: r.Revision, Decision: domain.DecisionDeny})
	g.must(err)
	g.run()
	turns := g.turnsOf(posted.Chat)
	if len(turns) != 3 || turns[2].Member != g.bob.Member.ID || len(turns[1].Authority) != 1 {
		t.Fatalf("the Turns are %+v", turns)
	}
	work, err := g.store.Delegations(t.Context(), posted.Chat, domain.Page{Limit: 9})
	g.must(err)
	chat, err := g.store.Chat(t.Context(), work[0].Chat)
	g.must(err)
	if work[0].Member != g.bob.Member.ID || chat.Member != g.bob.Member.ID || work[0].Status != domain.DelegationCompleted {
		t.Errorf("the work is %+v in a Chat of %s", work[0], chat.Member)
	}
}

// A disabled or deleted Channel takes nothing in and sends nothing out; one whose receiver
// wants no more is disabled.
func TestAChannelThatIsShut(t *testing.T) {
	g := newGroup(t)
	g.receiver.status = 410
	g.posts("bob", "/say One")
	g.run()
	now, err := g.engine.Channel(t.Context(), g.me, g.channel.ID)
	g.must(err)
	if now.Enabled || !strings.Contains(now.DisabledWhy, "410") {
		t.Fatalf("the Channel is %+v", now)
	}
	_, err = g.engine.PostToChannel(t.Context(), g.me, g.channel.ID, engine.ChannelMessage{Author: "bob", Text: "x"})
	g.wantCode(err, domain.CodeConflict)
	g.receiver.status = 200
	_, err = g.engine.ChangeChannel(t.Context(), g.me, g.channel.ID, engine.ChannelFields{Enabled: ptr(true)})
	g.must(err)
	dead, err := g.engine.ChannelDeliveries(t.Context(), g.me, g.channel.ID, domain.DeliveryDead, domain.Page{Limit: 9})
	g.must(err)
	_, err = g.engine.ResendToChannel(t.Context(), g.bob, g.channel.ID, dead[0].ID)
	g.wantCode(err, domain.CodeNotFound)
	_, err = g.engine.ResendToChannel(t.Context(), g.me, g.channel.ID, dead[0].ID)
	g.must(err)
	g.run()
	if got := g.receiver.got; len(got) != 2 || got[0].ID != got[1].ID || got[1].Owner != string(g.channel.ID) {
		t.Errorf("%+v went out", got)
	}
	posted := g.posts("bob", "/say Two")
	g.must(g.engine.DeleteChannel(t.Context(), g.me, g.channel.ID))
	g.run()
	turn, err := g.store.Turn(t.Context(), posted.Turn)
	g.must(err)
	if turn.Status != domain.TurnCompleted || len(g.receiver.got) != 2 {
		t.Errorf("the Turn is %s, %d messages", turn.Status, len(g.receiver.got))
	}
	_, err = g.engine.PostToChannel(t.Context(), g.me, g.channel.ID, engine.ChannelMessage{Author: "bob", Text: "x"})
	g.wantCode(err, domain.CodeNotFound)
}

// Results of the work of two authors that come back at the same moment start two Turns.
func TestResultsOfTwoAuthorsStartTwoTurns(t *testing.T) {
	g := newGroup(t)
	var chat domain.ChatID
	var notify []domain.Task
	for _, author := range []string{"bob", "ann"} {
		chat = g.posts(author, `/call openbot_delegate {"task":"/say done","limits":{"timeMs":600000}}`).Chat
		for {
			task, ok := g.rings.next(g.clock.now())
			if !ok {
				break
			}
			if task.Kind == domain.TaskWorkNotify {
				notify = append(notify, task)
				continue
			}
			g.work(task)
		}
	}
	if now, err := g.store.Chat(t.Context(), chat); err != nil || now.Turn != "" || len(notify) != 2 {
		t.Fatalf("the Chat is %s, %d results wait (%v)", now.Status, len(notify), err)
	}
	g.work(notify[0]) // tells of both in one commit
	g.run()
	turns := g.turnsOf(chat)
	if len(turns) != 4 || turns[2].Member != g.bob.Member.ID || turns[3].Member != g.ann.Member.ID || len(turns[2].Authority) != 1 || len(turns[3].Authority) != 1 {
		t.Errorf("the Turns are %+v", turns)
	}
}
