//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// client calls the API as a program of its users would.
type client struct {
	base  string
	token string
	http  *http.Client
}

func newClient(base, token string) *client {
	transport := &http.Transport{MaxIdleConnsPerHost: 256, IdleConnTimeout: time.Minute}
	return &client{base: base, token: token, http: &http.Client{Transport: transport}}
}

type object = map[string]any

// call makes one call that must have the wanted status; into may be nil.
func (c *client) call(ctx context.Context, method, path string, body any, want int, into any) error {
	response, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if response.StatusCode != want {
		return fmt.Errorf("%s %s gave %d, want %d: %.300s", method, path, response.StatusCode, want, raw)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(raw, into)
}

// page reads one page of a list and gives the path of the next, "" after the last.
func (c *client) page(ctx context.Context, path string, into any) (next string, err error) {
	response, err := c.send(ctx, "GET", path, nil)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != 200 {
		return "", fmt.Errorf("GET %s gave %d", path, response.StatusCode)
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		return "", err
	}
	// <path?cursor=...>; rel="next"
	_, rest, _ := strings.Cut(response.Header.Get("Link"), "<")
	target, _, _ := strings.Cut(rest, ">")
	if target == "" {
		return "", nil
	}
	u, err := url.Parse(target)
	if err != nil {
		return "", err
	}
	return u.RequestURI(), nil
}

func (c *client) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var reader io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(raw)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, reader)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return c.http.Do(request)
}

// awaitReady returns when the server has its first token and answers.
func (c *client) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("the server was not ready within a minute"))
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		if c.call(ctx, "GET", "/v1/me", nil, 200, nil) == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// connect makes the Connection that the rounds call.
func (c *client) connect(ctx context.Context, url string) error {
	var made struct {
		Health struct{ Status string }
	}
	err := c.call(ctx, "POST", "/v1/connections", object{"name": connection, "transport": "http", "url": url}, 201, &made)
	if err == nil && made.Health.Status != "ok" {
		err = fmt.Errorf("the App is not reached: its health is %q", made.Health.Status)
	}
	return err
}

func (c *client) newChat(ctx context.Context) (string, error) {
	var chat struct{ ID string }
	err := c.call(ctx, "POST", "/v1/chats", object{}, 201, &chat)
	return chat.ID, err
}

// say posts a message and gives the Turn that takes it.
func (c *client) say(ctx context.Context, chat, text string) (string, error) {
	var posted struct{ Turn string }
	err := c.call(ctx, "POST", "/v1/chats/"+chat+"/messages", object{"text": text}, 202, &posted)
	return posted.Turn, err
}

func (c *client) allow(ctx context.Context, request string, revision int64) error {
	return c.call(ctx, "POST", "/v1/requests/"+request, object{"expected": revision, "decision": "allow"}, 200, nil)
}

// event is what a round needs of one event, and when its last byte arrived.
type event struct {
	Kind     string
	Turn     string
	Status   string
	Request  string
	Revision int64
	Notices  int // how many ends of given work a Turn was told of
	Error    string
	At       int64 // when the server decided it, ms since the epoch
	at       time.Time
}

// stream follows the events of one Chat.
type stream struct {
	events chan event
	err    error // why events was closed
	cancel context.CancelFunc
}

// observe follows a Chat from its first event. The stream must be closed.
func (c *client) observe(ctx context.Context, chat string) (*stream, error) {
	ctx, cancel := context.WithCancel(ctx)
	response, err := c.send(ctx, "GET", "/v1/chats/"+chat+"/observe", nil)
	return begin(ctx, cancel, "observing a Chat", response, err)
}

// begin reads the stream of a response; cancel ends it, and is called when there is none.
func begin(ctx context.Context, cancel context.CancelFunc, what string, response *http.Response, err error) (*stream, error) {
	if err == nil && response.StatusCode != 200 {
		_ = response.Body.Close()
		err = fmt.Errorf("%s gave %d", what, response.StatusCode)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	s := &stream{events: make(chan event, 64), cancel: cancel}
	go s.read(ctx, response.Body)
	return s, nil
}

func (s *stream) read(ctx context.Context, body io.ReadCloser) {
	defer close(s.events)
	defer body.Close()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:"))
		if !ok {
			continue
		}
		e := event{at: time.Now()}
		if s.err = json.Unmarshal(data, &e); s.err != nil {
			return
		}
		select {
		case s.events <- e:
		case <-ctx.Done():
			s.err = ctx.Err()
			return
		}
	}
	s.err = lines.Err()
}

// next gives the next event.
func (s *stream) next(ctx context.Context) (event, error) {
	select {
	case e, ok := <-s.events:
		if !ok {
			return e, fmt.Errorf("the stream of events ended: %w", errors.Join(s.err, io.EOF))
		}
		return e, nil
	case <-ctx.Done():
		return event{}, context.Cause(ctx)
	}
}

func (s *stream) close() { s.cancel() }
