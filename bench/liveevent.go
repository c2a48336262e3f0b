//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	// liveRounds is how many Requests come and go while the inbox is open.
	liveRounds = 200
	// liveLimit bounds them; a slow machine does fewer.
	liveLimit = 60 * time.Second
)

// liveEvents measures how soon an open inbox learns of a new Request and of an answer, one
// at a time: the event at the stream of the pages, and the list that a page then reads. The
// rest of the way to the screen is the browser's.
func (b *bench) liveEvents(ctx context.Context, s *subject, r *reader, to *section) error {
	chat, err := s.client.newChat(ctx)
	if err != nil {
		return err
	}
	live, err := r.live(ctx)
	if err != nil {
		return err
	}
	defer live.close()
	var news, listed, settled []float64
	for start := time.Now(); len(news) < min(b.rounds, liveRounds) && (len(news) == 0 || time.Since(start) < liveLimit); {
		one, err := liveRound(ctx, s, r, live, chat)
		if err != nil {
			return err
		}
		news, listed, settled = append(news, milliseconds(one.news)), append(listed, milliseconds(one.listed)), append(settled, milliseconds(one.settled))
	}
	for _, figure := range []struct {
		name string
		took []float64
	}{{"new Request decided to its live event", news}, {"new Request decided to the list read anew", listed}, {"answer sent to its live event", settled}} {
		to.add(figure.name+", p50", "ms", percentile(figure.took, 50))
		to.add(figure.name+", p99", "ms", percentile(figure.took, 99))
	}
	to.add("live events of the run", "", float64(len(news)))
	return nil
}

// liveTimes are those of one Request that came and went.
type liveTimes struct{ news, listed, settled time.Duration }

// liveRound brings one Request about and allows it. When the server decided that it waits is
// told in whole milliseconds, cut off: what is measured from then is up to one too long.
func liveRound(ctx context.Context, s *subject, r *reader, live *stream, chat string) (took liveTimes, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, roundTimeout, fmt.Errorf("a live round took longer than %s", roundTimeout))
	defer cancel()
	turn, err := s.client.say(ctx, chat, message)
	if err != nil {
		return took, err
	}
	var answered time.Time
	for {
		e, err := live.next(ctx)
		if err != nil {
			return took, err
		}
		if e.Turn != turn {
			continue
		}
		switch e.Kind {
		case "request.pending":
			decided := time.UnixMilli(e.At)
			took.news = e.at.Sub(decided)
			if err := r.list(ctx); err != nil {
				return took, err
			}
			took.listed = time.Since(decided)
			answered = time.Now()
			if err := s.client.allow(ctx, e.Request, e.Revision); err != nil {
				return took, err
			}
			s.answered.Add(1)
		case "request.decided":
			took.settled = e.at.Sub(answered)
		case "turn.status":
			switch e.Status {
			case "Completed":
				return took, nil
			case "Failed", "Interrupted":
				return took, fmt.Errorf("a Turn ended as %s: %s", e.Status, e.Error)
			}
		}
	}
}

// live follows the events that keep open pages up to date. The stream must be closed.
func (r *reader) live(ctx context.Context) (*stream, error) {
	ctx, cancel := context.WithCancel(ctx)
	request, err := http.NewRequestWithContext(ctx, "GET", r.base+"/live", nil)
	if err != nil {
		cancel()
		return nil, err
	}
	endless := http.Client{Jar: r.http.Jar}
	response, err := endless.Do(request)
	return begin(ctx, cancel, "following the pages", response, err)
}

// list reads the list of Requests alone, as a page does that heard of a new one.
func (r *reader) list(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, "GET", r.base+"/", nil)
	if err != nil {
		return err
	}
	request.Header.Set("HX-Request", "true")
	request.Header.Set("HX-Target", "section#list")
	response, err := r.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && (response.StatusCode != 200 || !bytes.Contains(body, []byte(`class="row`)) || bytes.Contains(body, []byte("<html"))) {
		err = fmt.Errorf("the list of Requests gave %d and no list", response.StatusCode)
	}
	return err
}
