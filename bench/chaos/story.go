//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"
)

// Kinds of stories.
const (
	kindRound    = "approval rounds"         // two messages, a call each, a person decides
	kindStopped  = "interrupted rounds"      // the person stops the Turn
	kindKept     = "answers for a Chat"      // the answer to the first call decides the second
	kindChain    = "chains of deciders"      // a Bot reads it, then its owner, then the person
	kindHeld     = "decisions of Bots"       // a Bot that holds a Grant decides alone
	kindJudged   = "judged calls"            // a judge reads a Rule first
	kindLate     = "Requests left to expire" // the person answers when it is too late
	kindReminder = "reminders"
	kindWork     = "pieces of work"
	kindTree     = "work with work below"
	kindForeign  = "work for another's Bot" // which itself needs a decision
)

// kinds are drawn from, so that what costs little comes more often.
var kinds = []string{kindRound, kindRound, kindRound, kindStopped, kindKept, kindChain, kindChain, kindHeld, kindJudged, kindJudged,
	kindLate, kindReminder, kindWork, kindWork, kindWork, kindTree, kindForeign}

func kindNames() []string { return slices.Compact(slices.Sorted(slices.Values(kinds))) }

const (
	// limitTime is the time limit of work that is to run into it.
	limitTime = 2 * time.Second
	// aLot is a time limit that no story reaches.
	aLot = 10 * time.Minute
)

// cast are the Bots that play in the stories.
type cast struct {
	connection            string
	main                  string
	chained, held, judged string
	hand, foreign         string
	endorser, holder      string
}

// setUp makes the Bots, the Rule, the Grant and the settings.
func setUp(ctx context.Context, w *world, expiry time.Duration) (*cast, error) {
	c := w.clients[0]
	var fault error
	call := func(method, path string, body object, into any) {
		if fault == nil {
			fault = c.insist(ctx, time.Minute, method, path, body, into)
		}
	}
	bot := func(name, model, owner string) string {
		body := object{"name": name, "role": "Works.", "instructions": "Work."}
		if model != "" {
			body["model"] = model
		}
		if owner != "" {
			body["owner"] = owner
		}
		var made struct{ ID string }
		call("POST", "/v1/bots", body, &made)
		return made.ID
	}
	var me struct{ MainBot json.RawMessage }
	call("GET", "/v1/me", nil, &me)
	if fault != nil {
		return nil, fault
	}
	all := &cast{main: idOf(me.MainBot), connection: w.connection}
	all.endorser = bot("Endorser", deciderModel, "")
	all.chained = bot("Chained", "", all.endorser)
	all.foreign = bot("Foreign", handModel, all.endorser)
	all.holder = bot("Holder", deciderModel, "")
	all.held = bot("Held", "", all.holder)
	all.judged = bot("Judged", "", "")
	all.hand = bot("Hand", handModel, all.main)
	call("POST", "/v1/rules", object{"text": ruleText, "bot": all.judged}, nil)
	call("POST", "/v1/grants", object{"bot": all.holder, "decision": "allow", "scope": "lifetime",
		"capability": object{"action": "apps.call", "target": all.connection + "/send_email"}}, nil)
	call("PATCH", "/v1/settings", object{"requestTimeoutMs": expiry.Milliseconds(), "judgeModel": judgeModel,
		"modelPrices": object{handModel: object{"inputMicrosPerToken": 1, "outputMicrosPerToken": 1}}}, nil)
	return all, fault
}

// idOf reads an ID that stands alone or in an object.
func idOf(raw json.RawMessage) string {
	var id string
	if json.Unmarshal(raw, &id) == nil {
		return id
	}
	var whole struct{ ID string }
	_ = json.Unmarshal(raw, &whole)
	return whole.ID
}

// tell begins a story and says what belongs to it.
func (l *load) tell(ctx context.Context, random *rand.Rand, kind string) {
	c := l.w.clients[random.IntN(len(l.w.clients))]
	s := l.record.begin(kind)
	opening := object{}
	if bot := map[string]string{kindChain: l.cast.chained, kindHeld: l.cast.held, kindJudged: l.cast.judged}[kind]; bot != "" {
		opening["bot"] = bot
	}
	var chat struct{ ID string }
	if c.insist(ctx, l.o.length, "POST", "/v1/chats", opening, &chat) != nil {
		return
	}
	s.chat = chat.ID
	mail := func(n int) string {
		return fmt.Sprintf("/call desk__send_email {\"to\":%q}", part{s.number, n}.address())
	}
	switch kind {
	case kindRound:
		if l.say(ctx, c, s, mail(1)+"\n/say first") && random.IntN(2) == 0 {
			wait(ctx, time.Duration(random.IntN(1000))*time.Millisecond)
			l.say(ctx, c, s, mail(2)+"\n/say second")
		}
	case kindStopped:
		if l.say(ctx, c, s, mail(1)+"\n/then\n"+mail(2)+"\n/say done") {
			wait(ctx, time.Duration(random.IntN(1500))*time.Millisecond)
			l.interrupt(ctx, c, s)
		}
	case kindKept:
		l.say(ctx, c, s, mail(1)+"\n/then\n"+mail(2)+"\n/say done")
	case kindChain, kindHeld, kindJudged, kindLate:
		l.say(ctx, c, s, mail(1)+"\n/say done")
	case kindReminder:
		after := time.Duration(1000+random.IntN(4000)) * time.Millisecond
		s.remind = time.Now().Add(after)
		l.say(ctx, c, s, fmt.Sprintf("/call openbot_remind {\"text\":\"of story %d\",\"afterMs\":%d}\n/say done", s.number, after.Milliseconds()))
	case kindWork, kindTree, kindForeign:
		l.give(ctx, c, s, random)
	}
}

// give has the Main Bot give a piece of work away, and may stop it.
func (l *load) give(ctx context.Context, c *client, s *story, random *rand.Rand) {
	limits := object{"timeMs": aLot.Milliseconds()}
	given := object{"task": fmt.Sprintf("Do piece top of story %d.", s.number), "bot": l.cast.hand, "limits": limits}
	if s.kind == kindForeign {
		given["bot"], given["reason"] = l.cast.foreign, "so it is"
	} else {
		s.limit = []string{"", "steps", "budget", "time"}[random.IntN(4)]
	}
	switch s.limit {
	case "steps":
		limits["steps"] = 1
	case "budget":
		limits["budgetMicros"] = 1
	case "time":
		limits["timeMs"] = limitTime.Milliseconds()
	}
	s.stop = random.IntN(4) == 0
	raw, err := json.Marshal(given)
	if err != nil || !l.say(ctx, c, s, "/call openbot_delegate "+string(raw)+"\n/say given") || !s.stop {
		return
	}
	wait(ctx, time.Duration(500+random.IntN(2500))*time.Millisecond)
	var list []work
	if c.insist(ctx, l.o.length, "GET", "/v1/chats/"+s.chat+"/delegations", nil, &list) != nil {
		return
	}
	for _, g := range list {
		path, body := "/v1/delegations/"+g.ID+"/cancel", object{"commandKey": "stop-" + g.ID}
		first, one := c.try(ctx, "POST", path, body)
		if first == http.StatusAccepted {
			add(l.record, &l.record.stops, stopping{story: s.number, work: g.ID, at: time.Now()})
		}
		second, other := c.try(ctx, "POST", path, body)
		if first == http.StatusAccepted && second == http.StatusAccepted && string(one) != string(other) {
			l.record.breach("doubled", "one cancel of %s gave two receipts: %s and %s", g.ID, one, other)
		}
	}
}

// say says a message twice with one key and notes that the server took it.
func (l *load) say(ctx context.Context, c *client, s *story, text string) bool {
	path := "/v1/chats/" + s.chat + "/messages"
	body := object{"text": text, "commandKey": fmt.Sprintf("say-%d-%d", s.number, len(s.said))}
	var first, second struct{ Turn string }
	if c.insist(ctx, l.o.length, "POST", path, body, &first) != nil {
		return false
	}
	l.record.mu.Lock()
	s.said = append(s.said, text)
	l.record.mu.Unlock()
	other := l.w.clients[s.number%len(l.w.clients)]
	if status, raw := other.try(ctx, "POST", path, body); status == http.StatusAccepted {
		if json.Unmarshal(raw, &second) != nil || first.Turn != second.Turn {
			l.record.breach("doubled", "one message of Chat %s gave the Turns %s and %s", s.chat, first.Turn, second.Turn)
		}
	}
	return true
}

// interrupt stops a Chat and sees that its Turn has ended.
func (l *load) interrupt(ctx context.Context, c *client, s *story) {
	if status, _ := c.try(ctx, "POST", "/v1/chats/"+s.chat+"/interrupt", object{}); status != http.StatusOK {
		return
	}
	add(l.record, &l.record.stops, stopping{story: s.number, chat: s.chat, at: time.Now()})
	var turns []turn
	if c.insist(ctx, l.o.length, "GET", "/v1/chats/"+s.chat+"/turns", nil, &turns) != nil {
		return
	}
	for _, t := range turns {
		if !t.ended() {
			l.record.breach("not stopped", "Turn %s is %s after its Chat was interrupted", t.ID, t.Status)
		}
	}
}
