//go:build linux

package main

import (
	"slices"
	"strings"
	"time"
)

// given looks at the work that a Chat gave away, and at all work below it. told says
// that the Chat must have heard of each end.
func (c *checker) given(s *story, chat *chatSeen, told, top bool) {
	for _, w := range chat.Given {
		if !w.over() {
			c.breach(stuck, "work %s of story %d is %s at the end", w.ID, s.number, w.ExecutionStatus)
			continue
		}
		times := 0
		for _, i := range chat.Items {
			if i.Kind == "notice" && strings.Contains(i.Text, "The work "+w.ID) {
				times++
			}
		}
		switch {
		case times > 1:
			c.breach(doubled, "the giver of work %s heard of its end %d times", w.ID, times)
		case times == 0 && told:
			c.breach(lost, "work %s is %s, and its giver never heard of it", w.ID, w.ExecutionStatus)
		}
		if w.ExecutionStatus == "failed" && !c.modelFailed(s) && w.Task != nil {
			c.breach(failed, "work %s of story %d failed", w.ID, s.number)
		}
		if lets := c.lets(w.ID); w.Limits.Steps > 0 && w.Usage.Steps > w.Limits.Steps*int64(1+len(lets)) {
			c.breach(limitless, "work %s took %d steps with a limit of %d and %d decisions that let it go on", w.ID, w.Usage.Steps, w.Limits.Steps, len(lets))
		}
		for i, n := range w.Events {
			if i > 0 && n != w.Events[i-1]+1 {
				c.breach(wrongOrder, "in the log of work %s event %d follows %d", w.ID, n, w.Events[i-1])
				break
			}
		}
		if w.Task != nil {
			c.chat(s, w.Task)
			// What was stopped hears of nothing more.
			c.given(s, w.Task, w.ExecutionStatus == "completed", false)
		}
		if top {
			c.limits(s, w)
		}
	}
}

// lets gives when the person let paused work go on.
func (c *checker) lets(work string) []time.Time {
	var at []time.Time
	counted := map[string]bool{}
	for _, a := range c.works[work] {
		if a.decision == "allow" && a.may() && !counted[a.request] {
			counted[a.request] = true
			at = append(at, a.asked)
		}
	}
	return at
}

// limits sees that no call of work past its limit arrived before the person had let it
// go on.
func (c *checker) limits(s *story, w *workSeen) {
	// The first call that needs it: work with one step, or money for one, stands before
	// its second step; work whose first step takes longer than it has stands before any.
	first := map[string]int{"steps": 2, "budget": 2, "time": 1}[s.limit]
	if first == 0 {
		return
	}
	lets := c.lets(w.ID)
	for p, came := range c.arrivals {
		if p.story != s.number || p.number < first || p.number > 2 {
			continue
		}
		if s.limit == "time" && struck(c.r.windows, "", s.begun, came[0]) > 0 && came[0].Before(s.begun.Add(limitTime+timeSlack)) {
			continue // who looks at the time may have been away
		}
		if len(lets) == 0 || came[0].Before(lets[0]) {
			c.breach(limitless, "the call to %s went out past the limit of %s of work %s, and nobody had let it go on", p.address(), s.limit, w.ID)
		}
	}
}

// stops sees that nothing went on that was stopped.
func (c *checker) stops() {
	for _, stop := range c.r.stops {
		s := c.r.story(stop.story)
		chat := c.s.stories[stop.story]
		if s == nil || chat == nil {
			continue
		}
		of := []string{stop.chat}
		for _, w := range chat.Given {
			if w.ID == stop.work {
				of = chatsOf(w)
				if w.ExecutionStatus != "cancelled" {
					c.breach(stopless, "work %s took a cancel and is %s", w.ID, w.ExecutionStatus)
				}
			}
		}
		for _, a := range c.r.answers {
			if a.outcome != taken || a.decision != "allow" || a.stale || !a.asked.After(stop.at) || !slices.Contains(of, a.chat) || c.heardBefore(a, stop.at) {
				continue
			}
			// A cancel holds everything below at once and closes its Requests a moment later:
			// until then one may take an answer, which must lead to nothing.
			if came := c.arrivals[a.part]; stop.chat != "" || len(came) > 0 && came[len(came)-1].After(a.asked) {
				c.breach(stopless, "Request %s of story %d took an allow %s after it was stopped", a.request, s.number, a.asked.Sub(stop.at).Round(time.Millisecond))
			}
		}
		for p, came := range c.arrivals {
			if p.story != s.number {
				continue
			}
			lag := outLag
			// A worker that was stopped between its last look and its first byte sends late.
			if from, to := stop.at.Add(-stoppedFor), came[len(came)-1]; struck(c.r.windows, nameStopped, from, to)+struck(c.r.windows, nameMute, from, to) > 0 {
				lag += stoppedFor
			}
			if last := came[len(came)-1]; last.After(stop.at.Add(lag)) {
				c.breach(stopless, "the call to %s reached the App %s after its work was stopped", p.address(), last.Sub(stop.at).Round(time.Millisecond))
			}
		}
	}
}

// heardBefore reports whether an answer repeats one that may have counted before.
func (c *checker) heardBefore(a answer, at time.Time) bool {
	return slices.ContainsFunc(c.answers[a.request], func(b answer) bool { return b.may() && b.asked.Before(at) })
}

func chatsOf(w *workSeen) []string {
	var list []string
	if w.Chat != nil {
		list = append(list, *w.Chat)
	}
	if w.Task != nil {
		for _, below := range w.Task.Given {
			list = append(list, chatsOf(below)...)
		}
	}
	return list
}

// reminders sees that a reminder that was taken comes once, and not early.
func (c *checker) reminders(s *story, chat *chatSeen) {
	if s.kind != kindReminder {
		return
	}
	set := slices.ContainsFunc(chat.Turns, func(t turn) bool {
		return slices.ContainsFunc(t.Calls, func(c call) bool { return c.Name == "openbot_remind" && c.Status == "succeeded" })
	})
	times := 0
	for _, i := range chat.Items {
		if i.Kind != "reminder" {
			continue
		}
		times++
		after := time.UnixMilli(i.CreatedAt).Sub(s.remind)
		c.latest = max(c.latest, after)
		if after < -time.Millisecond || after > tooLate {
			c.breach(late, "the reminder of story %d came %s after its time", s.number, after)
		}
	}
	switch {
	case set && times == 0:
		c.breach(lost, "the reminder of story %d never came", s.number)
	case times > 1:
		c.breach(doubled, "the reminder of story %d came %d times", s.number, times)
	}
}
