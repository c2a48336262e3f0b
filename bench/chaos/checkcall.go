//go:build linux

package main

import (
	"slices"
	"time"
)

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
	c.givenUp(p)
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

// givenUp sees that no call arrives after the server had given it up, unless the person
// let it go out again.
func (c *checker) givenUp(p part) {
	for _, a := range c.parts[p] {
		r, ok := c.s.requests[a.request]
		if !ok || r.Unknown == nil {
			continue
		}
		from := time.UnixMilli(r.CreatedAt + 1)
		for _, at := range c.arrivals[p] {
			again := slices.ContainsFunc(c.parts[p], func(b answer) bool {
				return b.unknown && b.decision == "allow" && b.may() && !b.asked.Before(from) && !b.asked.After(at)
			})
			if at.After(from) && !again {
				c.breach(doubled, "the call to %s reached the App %s after its lease was over", p.address(), at.Sub(from).Round(time.Millisecond))
			}
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
