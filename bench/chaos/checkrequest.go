//go:build linux

package main

import (
	"slices"
	"strings"
	"time"
)

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
		c.unknown(id, r)
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

// unknown sees that no outcome is unknown without a cause: a worker that lives keeps its
// call however slow the App is, and whatever becomes of Redis and the models.
func (c *checker) unknown(id string, r asking) {
	if r.Unknown == nil {
		return
	}
	for _, w := range c.r.windows {
		innocent := w.name == nameSlow || w.name == nameSlower || strings.HasPrefix(w.name, "Redis") || strings.HasPrefix(w.name, "model")
		if !innocent && w.to.After(time.UnixMilli(r.Unknown.SentAt).Add(-time.Second)) && w.from.Before(time.UnixMilli(r.CreatedAt)) {
			return
		}
	}
	c.breach(lost, "Request %s says that an outcome is unknown, and nothing was struck that could have hidden it", id)
}

// promptness sees that work goes on at once after an answer, as long as nothing is
// broken: half of all calls that were allowed are out within usualWait.
func (c *checker) promptness() {
	var waits []time.Duration
	for p, came := range c.arrivals {
		for _, a := range c.parts[p] {
			if a.decision == "allow" && a.outcome == taken && !a.unknown && !a.asked.After(came[0]) {
				waits = append(waits, came[0].Sub(a.asked))
				break
			}
		}
	}
	if len(waits) == 0 {
		return
	}
	slices.Sort(waits)
	c.usual = waits[len(waits)/2]
	if c.usual > usualWait {
		c.breach(slow, "half of %d allowed calls took longer than %s to reach the App", len(waits), c.usual.Round(time.Millisecond))
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
