//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"openbot/apps/appstest"
)

const (
	connection = "desk"
	tool       = appstest.SendEmail
	// message makes the playbook ask for one call and then say one line.
	message = "/call " + connection + "__" + tool + " {\"to\":\"ops@example.test\"}\n/say Sent."
	// chatRounds is how many rounds one Chat sees.
	chatRounds = 20
	// roundTimeout is far above any round that is worth counting.
	roundTimeout = 30 * time.Second
)

// round says when one approval round came to each of its points.
type round struct {
	said     time.Time // just before the message was sent
	asked    time.Time // the Request arrived
	answered time.Time // just before the answer was sent
	ended    time.Time // the end of the Turn arrived
	// decided is when the server decided each of the steps in between.
	decided [len(stepNames)]time.Time
}

// stepNames are the points between the answer and the arrival of the end, which the
// events tell in milliseconds.
var stepNames = [...]string{"the answer is decided", "the call goes out", "its result is back", "the end is decided"}

// note keeps when the server came to one of the steps.
func (r *round) note(e event) {
	var step int
	switch {
	case e.Kind == "request.decided":
		step = 0
	case e.Kind == "call.status" && e.Status == "sending":
		step = 1
	case e.Kind == "call.status" && e.Status == "succeeded":
		step = 2
	case e.Kind == "turn.status" && e.Status == "Completed":
		step = 3
	default:
		return
	}
	r.decided[step] = time.UnixMilli(e.At)
}

// caller is one client that does rounds, one at a time.
type caller struct {
	subject *subject
	chat    string
	stream  *stream
	rounds  int // in this Chat
}

func (c *caller) close() {
	if c.stream != nil {
		c.stream.close()
		c.stream = nil
	}
}

// round does one round: say, learn of the Request, allow, learn of the end.
func (c *caller) round(ctx context.Context) (r round, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, roundTimeout, fmt.Errorf("a round took longer than %s", roundTimeout))
	defer cancel()
	if err := c.next(ctx); err != nil {
		return r, err
	}
	r.said = time.Now()
	turn, err := c.subject.client.say(ctx, c.chat, message)
	if err != nil {
		return r, err
	}
	return c.answer(ctx, r, turn)
}

// next counts one more round, in a new Chat when this one has seen enough.
func (c *caller) next(ctx context.Context) error {
	if c.stream == nil || c.rounds == chatRounds {
		if err := c.open(ctx); err != nil {
			return err
		}
	}
	c.rounds++
	return nil
}

// open begins a new Chat.
func (c *caller) open(ctx context.Context) (err error) {
	c.close()
	if c.chat, err = c.subject.client.newChat(ctx); err != nil {
		return err
	}
	c.rounds = 0
	// The stream outlives the round that opens it.
	c.stream, err = c.subject.client.observe(context.WithoutCancel(ctx), c.chat)
	return err
}

// answer waits for the Request of a Turn, allows it, and waits for the Turn's end.
func (c *caller) answer(ctx context.Context, r round, turn string) (round, error) {
	err := c.follow(ctx, &r, turn, func(e event) error {
		r.asked, r.answered = e.at, time.Now()
		if err := c.subject.client.allow(ctx, e.Request, e.Revision); err != nil {
			return err
		}
		c.subject.answered.Add(1)
		return nil
	})
	return r, err
}

// follow waits for the end of a Turn; asked is told of its Request.
func (c *caller) follow(ctx context.Context, r *round, turn string, asked func(event) error) error {
	for {
		e, err := c.stream.next(ctx)
		if err != nil {
			return err
		}
		if e.Turn != turn {
			continue
		}
		r.note(e)
		switch e.Kind {
		case "request.pending":
			if err := asked(e); err != nil {
				return err
			}
		case "turn.status":
			switch e.Status {
			case "Completed":
				r.ended = e.at
				return nil
			case "Failed", "Interrupted":
				return fmt.Errorf("a Turn ended as %s: %s", e.Status, e.Error)
			}
		}
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
