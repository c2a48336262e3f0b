//go:build linux

package main

import (
	"slices"
	"strings"
)

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
	if one.DecidedBy != nil {
		c.decided[one.Status+" by "+one.DecidedBy.Step]++
	}
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
