//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"slices"
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
	slow       = "slow"        // it went on only when the sweep found it
	failed     = "failed"      // it ended as failed without a reason outside
	staleTaken = "stale answer"
	noReceipt  = "receipt"
	noAudit    = "audit"
	// wrongAnswer is a failure that the API does not explain: what it cannot do now is 503.
	wrongAnswer = "wrong answer"
)

var breachKinds = []string{lost, doubled, undecided, wrongOrder, late, stopless, limitless, tooWide, stuck, slow, failed, staleTaken, noReceipt, noAudit, wrongAnswer, "strike"}

const (
	// outLag is how long after a stop a call may still arrive whose sending was committed
	// before it.
	outLag = 2 * time.Second
	// usualWait is how long an allowed call may take to the App in half of all cases. The
	// sweep finds what no ring brought after four seconds.
	usualWait = 3 * time.Second
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
	works    map[string][]answer // about the limits of a piece of work
	found    []breach
	compared int            // calls
	decided  map[string]int // calls by their end and the step of the check that decided them
	latest   time.Duration  // of an expiry or reminder after its time
	usual    time.Duration  // from an answer that allows a call to the call, in half of all cases
}

func newChecker(r *record, s *seen) *checker {
	c := &checker{r: r, s: s, arrivals: map[part][]time.Time{}, answers: map[string][]answer{}, parts: map[part][]answer{}, works: map[string][]answer{}, decided: map[string]int{}, found: slices.Clone(r.breaches)}
	for _, a := range byTime(r.arrivals, func(a arrival) time.Time { return a.at }) {
		c.arrivals[a.part] = append(c.arrivals[a.part], a.at)
	}
	for _, a := range byTime(r.answers, func(a answer) time.Time { return a.asked }) {
		c.answers[a.request] = append(c.answers[a.request], a)
		if a.part.story != 0 {
			c.parts[a.part] = append(c.parts[a.part], a)
		}
		if a.work != "" {
			c.works[a.work] = append(c.works[a.work], a)
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
	c.promptness()
	if c.s.verify != "" {
		c.breach(noReceipt, "%s", c.s.verify)
	}
	if c.s.audit != "" {
		c.breach(noAudit, "openbot audit verify: %s", c.s.audit)
	}
	return c.found
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
