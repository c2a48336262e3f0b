//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

type object = map[string]any

// client calls one api process.
type client struct {
	base, token string
	record      *record
	http        *http.Client
}

func newClient(base, token string, record *record) *client {
	return &client{base, token, record, &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
}

// try makes one call; status 0 is no answer.
func (c *client) try(ctx context.Context, method, path string, body any) (int, []byte) {
	raw, err := json.Marshal(body)
	if err != nil {
		return 0, nil
	}
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(raw)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, reader)
	if err != nil {
		return 0, nil
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return 0, nil
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, nil
	}
	if response.StatusCode >= 500 && response.StatusCode != http.StatusServiceUnavailable {
		c.record.breach(wrongAnswer, "%s %s gave %d: %.200s", method, path, response.StatusCode, answer)
	}
	return response.StatusCode, answer
}

// follow reads a stream of events to its end and gives their sequences.
func (c *client) follow(ctx context.Context, path string) ([]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, "GET", c.base+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var list []int64
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data:")
		if !ok {
			continue
		}
		var event struct{ Sequence int64 }
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			return nil, err
		}
		list = append(list, event.Sequence)
	}
	return list, lines.Err()
}

// insist makes a call until it succeeds, is refused, or the limit is over.
func (c *client) insist(ctx context.Context, limit time.Duration, method, path string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		status, raw := c.try(ctx, method, path, body)
		switch {
		case status >= 200 && status < 300:
			if into == nil {
				return nil
			}
			return json.Unmarshal(raw, into)
		case status != 0 && status < 500 && status != http.StatusTooManyRequests && status != http.StatusUnauthorized:
			return fmt.Errorf("%s %s gave %d: %.200s", method, path, status, raw)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s %s was not taken within %s (last %d: %.200s)", method, path, limit, status, raw)
		}
	}
}
