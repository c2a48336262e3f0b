//go:build linux

package main

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// request is one that the person is shown.
type request struct {
	ID           string
	Chat         string
	Capability   struct{ Action string }
	Delegation   string
	Arguments    json.RawMessage
	Endorsements []json.RawMessage
	Unknown      any
	Revision     int64
	ExpiresAt    int64
}

// person answers what waits. What it once decided about a Request it stands by, since it
// cannot always know whether it was heard.
type person struct {
	l        *load
	random   *rand.Rand
	minds    map[string]string // decision by Request
	works    map[string]int    // story by piece of work
	lingered sync.WaitGroup    // answers that come too late on purpose
}

func newPerson(l *load) *person {
	return &person{l: l, random: seeded(l.o.seed, 2), minds: map[string]string{}, works: map[string]int{}}
}

// live answers until ctx ends.
func (p *person) live(ctx context.Context) {
	for ctx.Err() == nil {
		p.answerAll(ctx)
		wait(ctx, 300*time.Millisecond)
	}
}

// answerAll answers one page of what waits and says how long it was, -1 when that is
// not known.
func (p *person) answerAll(ctx context.Context) int {
	var waiting []request
	c := p.l.w.clients[p.random.IntN(len(p.l.w.clients))]
	if c.insist(ctx, 10*time.Second, "GET", "/v1/requests?status=pending&limit=50", nil, &waiting) != nil {
		return -1
	}
	for _, r := range waiting {
		p.answer(ctx, c, r)
	}
	return len(waiting)
}

func (p *person) answer(ctx context.Context, c *client, r request) {
	p.l.record.mu.Lock()
	p.l.record.requests[r.ID] = true
	p.l.record.mu.Unlock()
	known := answer{request: r.ID, chat: r.Chat, scope: "once", unknown: r.Unknown != nil, expires: time.UnixMilli(r.ExpiresAt), endorsers: len(r.Endorsements)}
	if r.Capability.Action == "apps.call" {
		known.part, _ = partIn(r.Arguments)
		known.story = known.part.story
	} else {
		known.story = p.storyOf(ctx, c, r.Delegation)
		if r.Capability.Action == "delegations.continue" {
			known.work = r.Delegation
		}
	}
	s := p.l.record.story(known.story)
	if s == nil {
		return // its work could not be read; the next look will
	}
	known.decision = p.decide(s, r)
	switch {
	case known.decision == "late":
		return
	case s.kind == kindKept && !known.unknown:
		known.scope = "chat"
	}
	if !known.unknown && p.random.IntN(5) == 0 {
		stale := known
		stale.stale = true
		if p.send(ctx, c, stale, r.Revision+1000) == taken {
			p.l.record.breach("stale answer", "Request %s took an answer to revision %d, which it never had", r.ID, r.Revision+1000)
		}
	}
	if !known.unknown && s.kind == kindRound && p.random.IntN(6) == 0 {
		p.race(ctx, known, r.Revision)
		return
	}
	p.send(ctx, c, known, r.Revision)
}

// decide makes up the person's mind, once for each Request.
func (p *person) decide(s *story, r request) string {
	if mind := p.minds[r.ID]; mind != "" {
		return mind
	}
	mind := "allow"
	switch {
	case s.kind == kindLate && r.Unknown == nil:
		mind = "late"
		p.linger(r)
	case r.Unknown != nil:
		mind = []string{"deny", "deny", "allow"}[p.random.IntN(3)]
	case p.random.IntN(6) == 0:
		mind = "deny"
	}
	p.minds[r.ID] = mind
	return mind
}

// linger answers right after the time is up.
func (p *person) linger(r request) {
	expires := time.UnixMilli(r.ExpiresAt)
	after := time.Duration(1+p.random.IntN(300)) * time.Millisecond
	c := p.l.w.clients[p.random.IntN(len(p.l.w.clients))]
	p.lingered.Go(func() {
		ctx := context.Background() // the load may be over by then
		wait(ctx, time.Until(expires.Add(after)))
		known := answer{request: r.ID, chat: r.Chat, scope: "once", decision: "allow", expires: expires}
		known.part, _ = partIn(r.Arguments)
		known.story = known.part.story
		p.send(ctx, c, known, r.Revision)
	})
}

// race has two answers that differ set out at the same time: one may win.
func (p *person) race(ctx context.Context, known answer, revision int64) {
	other := known
	other.decision = map[string]string{"allow": "deny", "deny": "allow"}[known.decision]
	outcomes := make([]string, 2)
	var both sync.WaitGroup
	for i, a := range []answer{known, other} {
		both.Go(func() { outcomes[i] = p.send(ctx, p.l.w.clients[i%len(p.l.w.clients)], a, revision) })
	}
	both.Wait()
	if outcomes[0] == taken && outcomes[1] == taken {
		p.l.record.breach("doubled", "Request %s took an allow and a deny", known.request)
	}
	if outcomes[1] != refused {
		p.minds[known.request] = "" // whoever won: it is asked anew when it still waits
	}
}

// send gives one answer, notes it and says what came of it.
func (p *person) send(ctx context.Context, c *client, a answer, revision int64) string {
	a.asked = time.Now()
	status, _ := c.try(ctx, "POST", "/v1/requests/"+a.request, object{"expected": revision, "decision": a.decision, "scope": a.scope})
	switch {
	case status == http.StatusOK:
		a.outcome = taken
	case status >= 400 && status < 500:
		a.outcome = refused
	default:
		a.outcome = unheard
	}
	add(p.l.record, &p.l.record.answers, a)
	return a.outcome
}

// storyOf gives the story of a piece of work, 0 when it cannot be read now.
func (p *person) storyOf(ctx context.Context, c *client, id string) int {
	if n := p.works[id]; n > 0 {
		return n
	}
	var g work
	if c.insist(ctx, 5*time.Second, "GET", "/v1/delegations/"+id, nil, &g) != nil {
		return 0
	}
	found := piece.FindStringSubmatch(g.Task)
	if found == nil {
		return 0
	}
	p.works[id] = number([]byte(found[2]))
	return p.works[id]
}
