//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"
)

// zero is when the stories of the tests begin.
var zero = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(seconds float64) time.Time {
	return zero.Add(time.Duration(seconds * float64(time.Second)))
}

// scene is a record and the server's word, made to agree.
type scene struct {
	r *record
	s *seen
}

func text(s string) *string { return &s }

// mail is a call of send_email as the server shows it.
func mail(p part, status string) call {
	c := call{ID: fmt.Sprintf("call_%d_%d", p.story, p.number), Name: "desk__send_email", Status: status,
		Arguments: json.RawMessage(fmt.Sprintf(`{"to":%q}`, p.address())), Result: text("sent to " + p.address())}
	c.DecidedBy = &struct{ Step, Request, Grant, Rule string }{Step: "decider"}
	return c
}

// chatOf gives a Chat with its items numbered.
func chatOf(turns []turn, items ...item) *chatSeen {
	for i := range items {
		items[i].Sequence = int64(i + 1)
	}
	return &chatSeen{Turns: turns, Items: items}
}

func (s scene) story(kind string, said ...string) *story {
	one := s.r.begin(kind)
	one.chat, one.said, one.begun = fmt.Sprint("chat_", one.number), said, zero
	return one
}

// asks adds a Request about a call and the answer that it took.
func (s scene) asks(p part, decision, scope string, asked float64) string {
	id := fmt.Sprintf("req_%d_%d_%d", p.story, p.number, len(s.s.requests))
	r := asking{ID: id, Status: map[string]string{"allow": "allowed", "deny": "denied"}[decision], Chat: fmt.Sprint("chat_", p.story),
		CreatedAt: at(asked - 0.5).UnixMilli(), ExpiresAt: at(asked + 20).UnixMilli()}
	s.s.requests[id], s.s.receipts[id] = r, true
	s.r.heard[id] = 1
	s.r.answers = append(s.r.answers, answer{request: id, chat: r.Chat, part: p, story: p.story, decision: decision, scope: scope,
		asked: at(asked), expires: at(asked + 20), outcome: taken})
	return id
}

func (s scene) came(p part, when float64) {
	s.r.arrivals = append(s.r.arrivals, arrival{p, at(when)})
}

// Parts of the scene.
var (
	roundOne, roundTwo = part{1, 1}, part{1, 2}
	keptOne, keptTwo   = part{2, 1}, part{2, 2}
	judgedCall         = part{3, 1}
	lateCall           = part{4, 1}
	workOne, workTwo   = part{6, 1}, part{6, 2}
	stoppedCall        = part{7, 1}
)

// soundScene is one story of most kinds, in which nothing is wrong.
func soundScene() scene {
	s := scene{newRecord(), &seen{stories: map[int]*chatSeen{}, requests: map[string]asking{}, receipts: map[string]bool{}}}
	s.r.heard = map[string]int{}
	ended := func(id string, calls ...call) turn {
		s.r.heard[id] = 1
		return turn{ID: id, Status: "Completed", Calls: calls}
	}
	s.story(kindRound, "one", "two")
	s.asks(roundOne, "allow", "once", 1)
	s.asks(roundTwo, "allow", "once", 3)
	s.came(roundOne, 1.1)
	s.came(roundTwo, 3.1)
	s.s.stories[1] = chatOf([]turn{ended("turn_1", mail(roundOne, "succeeded")), ended("turn_2", mail(roundTwo, "succeeded"))},
		item{Kind: "message", Text: "one"}, item{Kind: "answer", Text: "first"}, item{Kind: "message", Text: "two"}, item{Kind: "answer", Text: "second"})

	s.story(kindKept, "keep")
	s.asks(keptOne, "allow", "chat", 1)
	s.came(keptOne, 1.1)
	s.came(keptTwo, 1.3)
	s.s.stories[2] = chatOf([]turn{ended("turn_3", mail(keptOne, "succeeded"), mail(keptTwo, "succeeded"))}, item{Kind: "message", Text: "keep"})

	s.story(kindJudged, "judge")
	s.r.advice = append(s.r.advice, advice{role: "judge", story: 3, part: judgedCall, said: "allow", at: at(1)})
	s.came(judgedCall, 1.2)
	s.s.stories[3] = chatOf([]turn{ended("turn_4", mail(judgedCall, "succeeded"))}, item{Kind: "message", Text: "judge"})

	s.story(kindLate, "late")
	id := s.asks(lateCall, "allow", "once", 1)
	s.r.answers[len(s.r.answers)-1].outcome, s.r.answers[len(s.r.answers)-1].asked = refused, at(21.1)
	expired := s.s.requests[id]
	expired.Status = "denied"
	expired.Decision = decision("Expiry", at(22))
	s.s.requests[id] = expired
	s.s.stories[4] = chatOf([]turn{ended("turn_5", mail(lateCall, "denied"))}, item{Kind: "message", Text: "late"})

	reminded := s.story(kindReminder, "remind")
	reminded.remind = at(4)
	s.s.stories[5] = chatOf([]turn{ended("turn_6", call{ID: "call_r", Name: "openbot_remind", Status: "succeeded"}), ended("turn_7")},
		item{Kind: "message", Text: "remind"}, item{Kind: "reminder", CreatedAt: at(5).UnixMilli()})

	s.story(kindWork, "work").limit = "steps"
	s.asks(workOne, "allow", "once", 1)
	let := s.asks(part{}, "allow", "once", 2)
	s.r.answers[len(s.r.answers)-1].work, s.r.answers[len(s.r.answers)-1].story = "dlg_1", 6
	s.asks(workTwo, "allow", "once", 3)
	s.came(workOne, 1.1)
	s.came(workTwo, 3.1)
	done := &workSeen{work: work{ID: "dlg_1", ExecutionStatus: "completed", Chat: text("chat_task")}, Events: []int64{1, 2, 3},
		Task: chatOf([]turn{ended("turn_9", mail(workOne, "succeeded"), mail(workTwo, "succeeded"))}, item{Kind: "notice", Text: "do it"})}
	done.Limits.Steps, done.Usage.Steps = 1, 2
	s.s.stories[6] = chatOf([]turn{ended("turn_8")}, item{Kind: "message", Text: "work"}, item{Kind: "notice", Text: "[OpenBot] The work dlg_1 that you gave is done."})
	s.s.stories[6].Given = []*workSeen{done}
	_ = let

	s.story(kindStopped, "stop")
	s.r.stops = append(s.r.stops, stopping{story: 7, chat: "chat_7", at: at(2)})
	s.r.heard["turn_10"] = 1
	s.s.stories[7] = chatOf([]turn{{ID: "turn_10", Status: "Interrupted", Calls: []call{mail(stoppedCall, "cancelled")}}}, item{Kind: "message", Text: "stop"})
	return s
}

// decision is what the server says of the end of a Request.
func decision(by string, when time.Time) *struct {
	Decision, Scope string
	By              struct {
		Tag string `json:"_tag"`
	}
	At int64
} {
	raw := fmt.Sprintf(`{"decision":{"decision":"deny","by":{"_tag":%q},"at":%d}}`, by, when.UnixMilli())
	var r asking
	if err := json.Unmarshal([]byte(raw), &r); err != nil {
		panic(err)
	}
	return r.Decision
}

func TestASoundRecordHasNoBreach(t *testing.T) {
	s := soundScene()
	if found := newChecker(s.r, s.s).check(); len(found) > 0 {
		t.Errorf("found %v", found)
	}
}

// Each case breaks one thing of a sound record; the checker must say so.
func TestTheCheckerFindsABrokenRecord(t *testing.T) {
	change := func(s scene, id string, how func(*asking)) {
		for name, r := range s.s.requests {
			if name == id {
				how(&r)
				s.s.requests[name] = r
			}
		}
	}
	requestOf := func(s scene, p part) string {
		return s.r.answers[slices.IndexFunc(s.r.answers, func(a answer) bool { return a.part == p })].request
	}
	cases := []struct {
		name, kind string
		breaks     func(s scene)
	}{
		{"a call came twice", doubled, func(s scene) { s.came(roundOne, 1.5) }},
		{"a call came twice on a kept answer", doubled, func(s scene) { s.came(keptTwo, 1.5) }},
		{"a call that succeeded never came", lost, func(s scene) { s.r.arrivals = s.r.arrivals[1:] }},
		{"a call came before its allow", undecided, func(s scene) { s.r.arrivals[0].at = at(0.9) }},
		{"a call came that nobody allowed", undecided, func(s scene) { s.came(stoppedCall, 1) }},
		{"a call came that no story has", undecided, func(s scene) { s.came(part{99, 1}, 1) }},
		{"the call of a Request came that expired", undecided, func(s scene) { s.came(lateCall, 23) }},
		{"the judge had not spoken", undecided, func(s scene) { s.r.advice[0].said = readsNone }},
		{"the judge spoke later", undecided, func(s scene) { s.r.advice[0].at = at(2) }},
		{"what the person kept was for once", undecided, func(s scene) { s.r.answers[2].scope = "once" }},
		{"the denied call came", undecided, func(s scene) {
			s.r.answers[0].decision = "deny"
			change(s, requestOf(s, roundOne), func(r *asking) { r.Status = "denied" })
		}},
		{"a call succeeded without a decision", undecided, func(s scene) { s.s.stories[1].Turns[0].Calls[0].DecidedBy = nil }},
		{"the second call came first", wrongOrder, func(s scene) {
			s.r.answers[0].asked, s.r.answers[1].asked = at(3), at(1)
			s.r.arrivals[0].at, s.r.arrivals[1].at = at(3.1), at(1.1)
		}},
		{"the messages stand in another order", wrongOrder, func(s scene) {
			s.s.stories[1].Items[0].Text, s.s.stories[1].Items[2].Text = "two", "one"
		}},
		{"the answers stand in another order", wrongOrder, func(s scene) {
			s.s.stories[1].Items[1].Text, s.s.stories[1].Items[3].Text = "second", "first"
		}},
		{"an item is missing", wrongOrder, func(s scene) { s.s.stories[1].Items[3].Sequence = 5 }},
		{"an event of work is missing", wrongOrder, func(s scene) { s.s.stories[6].Given[0].Events[2] = 4 }},
		{"a message is gone", lost, func(s scene) { s.s.stories[1].Items[2].Kind = "notice" }},
		{"a message stands twice", doubled, func(s scene) { s.s.stories[1].Items[2].Text = "one" }},
		{"a message made two Turns", doubled, func(s scene) { s.s.stories[2].Turns = append(s.s.stories[2].Turns, s.s.stories[2].Turns[0]) }},
		{"the Turn is gone", lost, func(s scene) { s.s.stories[2].Turns = nil }},
		{"the result is another's", lost, func(s scene) { s.s.stories[1].Turns[0].Calls[0].Result = text("sent to mail-9-9@example.test") }},
		{"the arguments are another's", lost, func(s scene) {
			s.s.stories[1].Turns[0].Calls[0].Arguments = json.RawMessage(`{"to":"mail-9-9@example.test"}`)
		}},
		{"a Turn runs at the end", stuck, func(s scene) { s.s.stories[1].Turns[0].Status = "Running" }},
		{"a call is out at the end", stuck, func(s scene) { s.s.stories[1].Turns[0].Calls[0].Status = "sending" }},
		{"a Request waits at the end", stuck, func(s scene) { change(s, requestOf(s, roundOne), func(r *asking) { r.Status = "pending" }) }},
		{"work runs at the end", stuck, func(s scene) { s.s.stories[6].Given[0].ExecutionStatus = "running" }},
		{"a Turn failed", failed, func(s scene) { s.s.stories[1].Turns[0].Status = "Failed" }},
		{"two answers were taken", doubled, func(s scene) {
			again := s.r.answers[0]
			again.decision, again.asked = "deny", at(1.2)
			s.r.answers = append(s.r.answers, again)
		}},
		{"an answer that was taken is forgotten", lost, func(s scene) { change(s, requestOf(s, roundOne), func(r *asking) { r.Status = "denied" }) }},
		{"an answer came too late and was taken", late, func(s scene) {
			for i := range s.r.answers {
				if s.r.answers[i].part == lateCall {
					s.r.answers[i].outcome = taken
				}
			}
			change(s, requestOf(s, lateCall), func(r *asking) { r.Status, r.Decision = "allowed", nil })
		}},
		{"a Request expired early", late, func(s scene) {
			change(s, requestOf(s, lateCall), func(r *asking) { r.Decision.At = at(20.9).UnixMilli() })
		}},
		{"a Request expired far too late", late, func(s scene) {
			change(s, requestOf(s, lateCall), func(r *asking) { r.Decision.At = at(90).UnixMilli() })
		}},
		{"an expiry allowed", undecided, func(s scene) { change(s, requestOf(s, lateCall), func(r *asking) { r.Status = "allowed" }) }},
		{"a reminder came twice", doubled, func(s scene) {
			s.s.stories[5].Items = append(s.s.stories[5].Items, item{Sequence: 3, Kind: "reminder", CreatedAt: at(6).UnixMilli()})
		}},
		{"a reminder never came", lost, func(s scene) { s.s.stories[5].Items = s.s.stories[5].Items[:1] }},
		{"a reminder came early", late, func(s scene) { s.s.stories[5].Items[1].CreatedAt = at(3).UnixMilli() }},
		{"the giver heard twice of the end", doubled, func(s scene) {
			chat := s.s.stories[6]
			chat.Items = append(chat.Items, item{Sequence: 3, Kind: "notice", Text: chat.Items[1].Text})
		}},
		{"the giver never heard of the end", lost, func(s scene) { s.s.stories[6].Items[1].Text = "[OpenBot] Something else." }},
		{"work took more steps than it may", limitless, func(s scene) { s.s.stories[6].Given[0].Usage.Steps = 3 }},
		{"work went on before it was let", limitless, func(s scene) {
			for i := range s.r.answers {
				if s.r.answers[i].work != "" {
					s.r.answers[i].asked = at(4)
				}
			}
		}},
		{"an allow was taken after the interrupt", stopless, func(s scene) { s.asks(stoppedCall, "allow", "once", 3) }},
		{"a call came long after the interrupt", stopless, func(s scene) {
			s.asks(stoppedCall, "allow", "once", 1)
			s.came(stoppedCall, 10)
		}},
		{"an allow of cancelled work let its call out", stopless, func(s scene) {
			s.r.stops = append(s.r.stops, stopping{story: 6, work: "dlg_1", at: at(2.9)})
			for i := range s.r.answers {
				if s.r.answers[i].part == workTwo {
					s.r.answers[i].chat = "chat_task"
				}
			}
			s.s.stories[6].Given[0].ExecutionStatus = "cancelled"
		}},
		{"cancelled work completed", stopless, func(s scene) {
			s.r.stops = append(s.r.stops, stopping{story: 6, work: "dlg_1", at: at(9)})
		}},
		{"a Grant is wider than the answer", tooWide, func(s scene) {
			s.s.grants = append(s.s.grants, grant{ID: "grt_1", Scope: "lifetime", Source: json.RawMessage(`{"kind":"endorsement","request":"` + requestOf(s, roundOne) + `"}`)})
		}},
		{"an outcome is unknown without a cause", lost, func(s scene) {
			change(s, requestOf(s, roundTwo), func(r *asking) { r.Unknown = &struct{ SentAt int64 }{at(2).UnixMilli()} })
		}},
		{"a call came after its lease was over", doubled, func(s scene) {
			s.asks(workTwo, "deny", "once", 2.9)
			change(s, s.r.answers[len(s.r.answers)-1].request, func(r *asking) { r.Unknown = &struct{ SentAt int64 }{at(2).UnixMilli()} })
		}},
		{"half of all calls waited for the sweep", slow, func(s scene) {
			for i := range s.r.arrivals {
				s.r.arrivals[i].at = s.r.arrivals[i].at.Add(4 * time.Second)
			}
		}},
		{"the stream never told of a Turn", lost, func(s scene) { delete(s.r.heard, "turn_1") }},
		{"the stream told twice of a Request", doubled, func(s scene) { s.r.heard[requestOf(s, roundOne)] = 2 }},
		{"a receipt is missing", noReceipt, func(s scene) { s.s.receipts[requestOf(s, roundOne)] = false }},
		{"a receipt does not verify", noReceipt, func(s scene) { s.s.verify = "the signature is wrong" }},
		{"the audit log does not verify", noAudit, func(s scene) { s.s.audit = "entry 7 was changed" }},
		{"a breach was seen on the way", staleTaken, func(s scene) { s.r.breach(staleTaken, "it took revision 1000") }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := soundScene()
			c.breaks(s)
			found := newChecker(s.r, s.s).check()
			if !slices.ContainsFunc(found, func(b breach) bool { return b.kind == c.kind }) {
				t.Errorf("found %v, want a breach %q", found, c.kind)
			}
		})
	}
}
