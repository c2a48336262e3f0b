//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// pageLoads is how often each page of the inbox is read.
const pageLoads = 100

// olderPage is the link to the next page of the list.
var olderPage = regexp.MustCompile(`<a rel="next" href="([^"]+)"`)

// inbox measures the inbox of a Member for whom very many Requests wait.
func (b *bench) inbox(ctx context.Context, s *subject, to *section) error {
	if err := b.keepFloor(ctx, s, to); err != nil {
		return err
	}
	chat, err := b.parkCopies(ctx, s, inboxPages, b.pending)
	if err != nil {
		return err
	}
	p, err := newReader(ctx, s.client)
	if err != nil {
		return err
	}
	first, next, err := p.get(ctx, "/")
	if err != nil {
		return err
	}
	if next == "" {
		return errors.New("the inbox has no second page")
	}
	to.add("first page", "bytes", float64(first))
	for name, path := range map[string]string{"first page": "/", "next page": next} {
		var took []float64
		for range pageLoads {
			start := time.Now()
			if _, _, err := p.get(ctx, path); err != nil {
				return err
			}
			took = append(took, milliseconds(time.Since(start)))
		}
		to.add(name+", p50", "ms", percentile(took, 50))
		to.add(name+", p99", "ms", percentile(took, 99))
	}
	if err := b.liveEvents(ctx, s, p, to); err != nil {
		return err
	}
	// What is copied would make the end of the measuring wait for its answers.
	_, err = s.database.Exec(ctx, "DELETE FROM requests WHERE status = 'pending' AND chat_id <> $1", chat)
	if err == nil {
		_, err = s.database.Exec(ctx, "DELETE FROM turns WHERE status = 'Waiting' AND chat_id <> $1", chat)
	}
	if err == nil {
		err = s.finishOne(ctx, chat)
	}
	if err != nil {
		return err
	}
	return s.awaitStatus(ctx, "true", 0)
}

// reader reads pages as a browser does that is signed in.
type reader struct {
	base string
	http http.Client
}

func newReader(ctx context.Context, c *client) (*reader, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	r := &reader{base: c.base, http: http.Client{Jar: jar, Timeout: roundTimeout}}
	request, err := http.NewRequestWithContext(ctx, "POST", c.base+"/login", strings.NewReader(url.Values{"token": {c.token}}.Encode()))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Origin", c.base)
	response, err := r.http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != 200 {
		err = fmt.Errorf("signing in gave %d", response.StatusCode)
	}
	return r, errors.Join(err, response.Body.Close())
}

// get reads one page whole, and gives its length and the path of the next.
func (r *reader) get(ctx context.Context, path string) (length int, next string, err error) {
	request, err := http.NewRequestWithContext(ctx, "GET", r.base+path, nil)
	if err != nil {
		return 0, "", err
	}
	response, err := r.http.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != 200 {
		err = fmt.Errorf("%s gave %d", path, response.StatusCode)
	}
	if found := olderPage.FindSubmatch(body); found != nil {
		next = strings.ReplaceAll(string(found[1]), "&amp;", "&")
	}
	return len(body), next, err
}
