//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kinds of breaches.
const (
	lost       = "lost"        // what was taken or allowed has left no trace
	doubled    = "doubled"     // it came more often than it was allowed
	undecided  = "undecided"   // it ran without a decision, or before it
	wrongOrder = "wrong order" // answers or calls of a Chat are not in the order of what was said
	late       = "late"        // an answer counted after its time, or an expiry came far too late
	stopless   = "not stopped" // what was interrupted or cancelled went on
	limitless  = "limit"       // work went past its limit without a decision
	tooWide    = "too wide"    // a decision was kept that nobody gave
	stuck      = "stuck"       // it never came to its end
	failed     = "failed"      // it ended as failed without a reason outside
	staleTaken = "stale answer"
	noReceipt  = "receipt"
	noAudit    = "audit"
	// wrongAnswer is a failure that the API does not explain: what it cannot do now is 503.
	wrongAnswer = "wrong answer"
)

var breachKinds = []string{lost, doubled, undecided, wrongOrder, late, stopless, limitless, tooWide, stuck, failed, staleTaken, noReceipt, noAudit, wrongAnswer, "strike"}

const (
	// outLag is how long after a stop a call may still arrive whose sending was committed
	// before it.
	outLag = 2 * time.Second
	// timeSlack is how long past its limit of time work may run when a strike came between.
	timeSlack = 30 * time.Second
	// tooLate is how long after its time an expiry or a reminder may come while strikes
	// go on.
	tooLate = 60 * time.Second
)

// checker compares a record with the server's word. It calls nobody.
type checker struct {
	r        *record
	s        *seen
	arrivals map[part][]time.Time
	answers  map[string][]answer // by Request
	parts    map[part][]answer   // about the call itself
	found    []breach
	compared int           // calls
	latest   time.Duration // of an expiry or reminder after its time
}

func newChecker(r *record, s *seen) *checker {
	c := &checker{r: r, s: s, arrivals: map[part][]time.Time{}, answers: map[string][]answer{}, parts: map[part][]answer{}, found: slices.Clone(r.breaches)}
	for _, a := range byTime(r.arrivals, func(a arrival) time.Time { return a.at }) {
		c.arrivals[a.part] = append(c.arrivals[a.part], a.at)
	}
	for _, a := range byTime(r.answers, func(a answer) time.Time { return a.asked }) {
		c.answers[a.request] = append(c.answers[a.request], a)
		if a.part.story != 0 {
			c.parts[a.part] = append(c.parts[a.part], a)
		}
	}
	return c
}

func (c *checker) breach(kind, form string, values ...any) {
	c.found = append(c.found, breach{kind, fmt.Sprintf(form, values...)})
}

// check looks at everything and gives what is broken.
func (c *checker) check() []breach {
	for _, s := range c.r.stories {
		if len(s.said) == 0 {
			continue
		}
		if chat := c.s.stories[s.number]; chat != nil {
			c.messages(s, chat)
			c.chat(s, chat)
			c.order(s, chat)
			c.reminders(s, chat)
			c.given(s, chat, true, true)
		}
	}
	for p := range c.arrivals {
		c.permitted(p)
	}
	c.requests()
	c.stops()
	c.kept()
	if c.s.verify != "" {
		c.breach(noReceipt, "%s", c.s.verify)
	}
	if c.s.audit != "" {
		c.breach(noAudit, "openbot audit verify: %s", c.s.audit)
	}
	return c.found
}

// messages finds each accepted message once, in the order in which it was said.
func (c *checker) messages(s *story, chat *chatSeen) {
	var heard []string
	for _, i := range chat.Items {
		if i.Kind == "message" {
			heard = append(heard, i.Text)
		}
	}
	for n, text := range s.said {
		times := 0
		for _, h := range heard {
			if h == text {
				times++
			}
		}
		switch {
		case times == 0:
			c.breach(lost, "message %d of story %d was accepted and is not in Chat %s", n+1, s.number, s.chat)
		case times > 1:
			c.breach(doubled, "message %d of story %d stands %d times in Chat %s", n+1, s.number, times, s.chat)
		}
	}
	if len(heard) == len(s.said) && !slices.Equal(heard, s.said) {
		c.breach(wrongOrder, "the messages of Chat %s stand in another order than they were said", s.chat)
	}
	if n := len(chat.Turns); n == 0 {
		c.breach(lost, "Chat %s took a message and has no Turn", s.chat)
	} else if n > len(s.said) && s.kind != kindReminder && s.kind != kindWork && s.kind != kindTree && s.kind != kindForeign {
		c.breach(doubled, "Chat %s has %d Turns for %d messages", s.chat, n, len(s.said))
	}
}

// chat looks at what any Chat must show: items without gap or repeat, Turns that ended,
// and calls that agree with the App.
func (c *checker) chat(s *story, chat *chatSeen) {
	for i, item := range chat.Items {
		if item.Sequence != int64(i+1) {
			c.breach(wrongOrder, "item %d of a Chat of story %d has the sequence %d", i+1, s.number, item.Sequence)
			break
		}
	}
	for _, t := range chat.Turns {
		if !t.ended() {
			c.breach(stuck, "Turn %s of story %d is %s at the end", t.ID, s.number, t.Status)
		}
		c.told("Turn", t.ID)
		if t.Status == "Failed" && !c.modelFailed(s) {
			c.breach(failed, "Turn %s of story %d failed: %s", t.ID, s.number, orEmpty(t.Error))
		}
		for _, one := range t.Calls {
			c.call(s, t, one)
		}
	}
}

// told sees that whoever followed the stream of events heard of an end once.
func (c *checker) told(what, id string) {
	if c.r.heard == nil {
		return
	}
	switch n := c.r.heard[id]; {
	case n == 0:
		c.breach(lost, "the stream of events never told of the end of %s %s", what, id)
	case n > 1:
		c.breach(doubled, "the stream of events told %d times of the end of %s %s", n, what, id)
	}
}

// modelFailed says whether a model of the story had been failing.
func (c *checker) modelFailed(s *story) bool {
	return slices.ContainsFunc(c.r.advice, func(a advice) bool { return a.story == s.number && a.said == "" })
}

func orEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func (c *checker) call(s *story, t turn, one call) {
	if !strings.HasSuffix(one.Name, "send_email") {
		return
	}
	p, ok := partIn(one.Arguments)
	if !ok || p.story != s.number {
		c.breach(lost, "call %s of story %d has the arguments %s", one.ID, s.number, one.Arguments)
		return
	}
	c.compared++
	came := len(c.arrivals[p])
	switch one.Status {
	case "succeeded":
		if came == 0 {
			c.breach(lost, "call %s succeeded and never reached the App", one.ID)
		}
		if one.DecidedBy == nil {
			c.breach(undecided, "call %s succeeded and nothing decided it", one.ID)
		}
		if want := "sent to " + p.address(); !strings.Contains(orEmpty(one.Result), want) {
			c.breach(lost, "call %s succeeded with the result %.80q, the App said %q", one.ID, orEmpty(one.Result), want)
		}
	case "denied", "cancelled":
		if came > 0 && !c.wasUnknown(p) {
			c.breach(undecided, "call %s is %s and reached the App", one.ID, one.Status)
		}
	case "failed", "unknown":
	default:
		if t.ended() {
			c.breach(stuck, "call %s is %s in a Turn that is %s", one.ID, one.Status, t.Status)
		}
	}
}

func (c *checker) wasUnknown(p part) bool {
	return slices.ContainsFunc(c.parts[p], func(a answer) bool { return a.unknown })
}

// order sees that the calls of a Chat reached the App in the order of its script, and
// that its answers follow its messages.
func (c *checker) order(s *story, chat *chatSeen) {
	if first, second := c.arrivals[part{s.number, 1}], c.arrivals[part{s.number, 2}]; len(first) > 0 && len(second) > 0 && second[0].Before(first[len(first)-1]) {
		c.breach(wrongOrder, "the second call of story %d reached the App before the first had been answered", s.number)
	}
	if s.kind != kindRound || len(s.said) < 2 || len(chat.Turns) < 2 {
		return
	}
	var answers []string
	for _, i := range chat.Items {
		if i.Kind == "answer" {
			answers = append(answers, i.Text)
		}
	}
	if !slices.Equal(answers, []string{"first", "second"}) && !c.anyFailed(chat) {
		c.breach(wrongOrder, "the answers of Chat %s are %q", s.chat, answers)
	}
}

func (c *checker) anyFailed(chat *chatSeen) bool {
	return slices.ContainsFunc(chat.Turns, func(t turn) bool { return t.Status != "Completed" })
}

// permitted sees that each arrival of a call was allowed before, and not more often than
// it was allowed.
func (c *checker) permitted(p part) {
	s := c.r.story(p.story)
	if s == nil {
		c.breach(undecided, "%s reached the App, and no story has it", p.address())
		return
	}
	var allows []time.Time
	counted := map[string]bool{}
	for _, a := range c.parts[p] {
		if a.decision == "allow" && a.may() && !counted[a.request] {
			counted[a.request] = true
			allows = append(allows, a.asked)
		}
	}
	allows = append(allows, c.otherwise(s, p)...)
	slices.SortFunc(allows, time.Time.Compare)
	for i, at := range c.arrivals[p] {
		switch {
		case i >= len(allows) && i == 0:
			c.breach(undecided, "the call to %s reached the App, and nobody allowed it", p.address())
		case i >= len(allows):
			c.breach(doubled, "the call to %s reached the App %d times and was allowed %d times", p.address(), len(c.arrivals[p]), len(allows))
			return
		case at.Before(allows[i]):
			c.breach(undecided, "the call to %s reached the App %s before it was allowed", p.address(), allows[i].Sub(at).Round(time.Millisecond))
		}
	}
}

// otherwise gives when a call was allowed by something else than an answer about it.
func (c *checker) otherwise(s *story, p part) []time.Time {
	switch s.kind {
	case kindKept:
		if p.number != 2 {
			return nil
		}
		for _, a := range c.parts[part{p.story, 1}] {
			if a.decision == "allow" && a.scope == "chat" && a.may() {
				return []time.Time{a.asked}
			}
		}
	case kindHeld, kindJudged:
		for _, a := range byTime(c.r.advice, func(a advice) time.Time { return a.at }) {
			if a.story == p.story && a.said == "allow" {
				return []time.Time{a.at}
			}
		}
	}
	return nil
}

// requests sees that answers and expiries took effect once and in time.
func (c *checker) requests() {
	for id, r := range c.s.requests {
		if r.Status == "pending" {
			c.breach(stuck, "Request %s is pending at the end", id)
			continue
		}
		if (r.Status == "allowed" || r.Status == "denied") && !c.s.receipts[id] {
			c.breach(noReceipt, "Request %s is %s and has no receipt", id, r.Status)
		}
		c.told("Request", id)
		expires := time.UnixMilli(r.ExpiresAt)
		if d := r.Decision; d != nil && d.By.Tag == "Expiry" {
			after := time.UnixMilli(d.At).Sub(expires)
			c.latest = max(c.latest, after)
			if after < 0 || after > tooLate {
				c.breach(late, "Request %s expired %s after its time", id, after)
			}
			if r.Status != "denied" {
				c.breach(undecided, "Request %s is %s because its time was up", id, r.Status)
			}
		}
		c.answered(id, r, expires)
	}
}

func (c *checker) answered(id string, r asking, expires time.Time) {
	took := ""
	heard := false // an earlier answer may have taken effect: this one repeats it
	for _, a := range c.answers[id] {
		if a.stale {
			continue
		}
		if a.outcome == taken {
			switch {
			case took != "" && took != a.decision:
				c.breach(doubled, "Request %s took the answers %s and %s", id, took, a.decision)
			case !heard && !a.asked.Before(expires):
				c.breach(late, "Request %s took an answer %s after its time was up", id, a.asked.Sub(expires).Round(time.Millisecond))
			}
			took = a.decision
		}
		heard = heard || a.may()
	}
	if took == "" {
		return
	}
	want := map[string]string{"allow": "allowed", "deny": "denied"}[took]
	if r.Status != want {
		c.breach(lost, "Request %s took %s and is %s", id, took, r.Status)
	}
}

// kept sees that no decision was kept that nobody gave: the person answers once, but for
// one Chat where a story wants it.
func (c *checker) kept() {
	for _, g := range c.s.grants {
		var source struct{ Kind, Request string }
		_ = json.Unmarshal(g.Source, &source)
		widest := "once"
		for _, a := range c.answers[source.Request] {
			if a.may() && a.scope == "chat" {
				widest = "chat"
			}
		}
		if widest == "once" || g.Scope != "chat" {
			c.breach(tooWide, "Grant %s has scope %s, and the answer to its Request %s was for %s", g.ID, g.Scope, source.Request, widest)
		}
	}
}
