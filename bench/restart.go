//go:build linux

package main

import (
	"context"
	"errors"
	"time"
)

// member is one process of the product that can be started again.
type member struct {
	name, role string
	env        []string
	failed     context.CancelCauseFunc
	process    *process
}

func (b *bench) startMember(m *member) (err error) {
	m.process, err = b.startProcess(m.name, m.role, m.env, m.failed)
	return err
}

// restart stops all processes of the product, starts them again and tells how long it
// takes until the API is ready, and until it has given a page and one round has ended.
func (b *bench) restart(ctx context.Context, s *subject, to *section) error {
	b.say("%s: starting again", to.Workload)
	for _, m := range s.members {
		if err := m.process.stop(); err != nil {
			return err
		}
	}
	start := time.Now()
	for i, m := range s.members {
		if err := b.startMember(m); err != nil {
			return err
		}
		for j := range s.watched {
			if s.watched[j].name == m.name {
				s.watched[j].pid = s.members[i].process.cmd.Process.Pid
			}
		}
	}
	if err := s.client.awaitReady(ctx); err != nil {
		return err
	}
	to.add("start to ready", "s", time.Since(start).Seconds())
	var page []waitingRequest
	if _, err := s.client.page(ctx, "/v1/requests?status=pending&limit=50", &page); err != nil {
		return err
	}
	if len(page) == 0 {
		return errors.New("the API gives no Request after a start")
	}
	to.add("start to a page of Requests", "s", time.Since(start).Seconds())
	c := caller{subject: s}
	defer c.close()
	if _, err := c.round(ctx); err != nil {
		return err
	}
	to.add("start to the end of a round", "s", time.Since(start).Seconds())
	return nil
}
