//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"time"
)

// What the server says, as far as the checker reads it.
type (
	turn struct {
		ID, Status    string
		Answer, Error *string
		Calls         []call
	}
	call struct {
		ID, Name, Status string
		Arguments        json.RawMessage
		Result           *string
		DecidedBy        *struct {
			Step, Request, Grant, Rule string
		}
	}
	item struct {
		Sequence   int64
		Turn, Kind string
		From, Text string
		CreatedAt  int64
	}
	work struct {
		ID, ExecutionID, ExecutionStatus string
		Chat                             *string
		Status, Task                     string
		Limits, Usage                    struct{ Steps int64 }
	}
	asking struct {
		ID, Status string
		Chat       string
		Capability struct{ Action string }
		Arguments  json.RawMessage
		Delegation string
		CreatedAt  int64
		ExpiresAt  int64
		Unknown    *struct{ SentAt int64 }
		Decision   *struct {
			Decision, Scope string
			By              struct {
				Tag string `json:"_tag"`
			}
			At int64
		}
	}
	grant struct {
		ID, Bot, Scope, Chat string
		Source               json.RawMessage
	}
)

func (t turn) ended() bool {
	return t.Status == "Completed" || t.Status == "Failed" || t.Status == "Interrupted"
}

// chatSeen is one Chat with the work that it gave away.
type chatSeen struct {
	Turns []turn
	Items []item
	Given []*workSeen
}

type workSeen struct {
	work
	Task   *chatSeen // nil when it never started
	Events []int64   // sequences of its log, nil when that was not read
}

// seen is the server's word at the end.
type seen struct {
	stories  map[int]*chatSeen
	requests map[string]asking
	receipts map[string]bool // by Request
	grants   []grant
	audit    string // what was wrong with the audit log
	verify   string // what was wrong with a receipt
}

const readers = 4

// look reads everything that the stories left.
func (l *load) look(ctx context.Context) *seen {
	s := &seen{stories: map[int]*chatSeen{}, requests: map[string]asking{}, receipts: map[string]bool{}}
	var mu sync.Mutex
	var group sync.WaitGroup
	stories := make(chan *story)
	for i := range readers {
		c := l.w.clients[i%len(l.w.clients)]
		group.Go(func() {
			for one := range stories {
				chat, err := l.lookAt(ctx, c, one.chat, one.number%5 == 0)
				if err != nil {
					l.record.breach("lost", "story %d: %v", one.number, err)
					continue
				}
				mu.Lock()
				s.stories[one.number] = chat
				mu.Unlock()
			}
		})
	}
	for _, one := range l.record.told() {
		stories <- one
	}
	close(stories)
	group.Wait()
	l.record.mu.Lock()
	var ids []string
	for id := range l.record.requests {
		ids = append(ids, id)
	}
	l.record.mu.Unlock()
	slices.Sort(ids)
	asked := make(chan string)
	for i := range readers {
		c := l.w.clients[i%len(l.w.clients)]
		group.Go(func() {
			for id := range asked {
				var r asking
				if err := c.insist(ctx, 20*time.Second, "GET", "/v1/requests/"+id, nil, &r); err != nil {
					l.record.breach("lost", "Request %s: %v", id, err)
					continue
				}
				status, raw := 0, []byte(nil)
				for try := 0; try < 5 && (r.Status == "allowed" || r.Status == "denied") && (status == 0 || status == 503); try++ {
					status, raw = c.try(ctx, "GET", "/v1/requests/"+id+"/receipt", nil)
				}
				mu.Lock()
				s.requests[id], s.receipts[id] = r, status == 200
				first := status == 200 && len(s.receipts) <= 5 // a process for each is dear
				mu.Unlock()
				if first {
					if fault := l.verify(ctx, id, raw); fault != "" {
						mu.Lock()
						s.verify = fault
						mu.Unlock()
					}
				}
			}
		})
	}
	for _, id := range ids {
		asked <- id
	}
	close(asked)
	group.Wait()
	for _, bot := range []string{l.cast.endorser, l.cast.main, l.cast.chained, l.cast.hand, l.cast.foreign} {
		var page []grant
		if err := l.w.clients[0].insist(ctx, 20*time.Second, "GET", "/v1/grants?bot="+url.QueryEscape(bot)+"&limit=200", nil, &page); err != nil {
			l.record.breach("lost", "the Grants: %v", err)
		}
		s.grants = append(s.grants, page...)
	}
	s.audit = l.auditFault(ctx)
	return s
}

func (l *load) lookAt(ctx context.Context, c *client, id string, events bool) (*chatSeen, error) {
	chat := &chatSeen{}
	path := "/v1/chats/" + id
	err := c.insist(ctx, 20*time.Second, "GET", path+"/turns?limit=200", nil, &chat.Turns)
	if err == nil {
		err = c.insist(ctx, 20*time.Second, "GET", path+"/items?limit=200", nil, &chat.Items)
	}
	var given []work
	if err == nil {
		err = c.insist(ctx, 20*time.Second, "GET", path+"/delegations?limit=200", nil, &given)
	}
	if err != nil {
		return nil, err
	}
	slices.Reverse(chat.Turns) // oldest first
	for _, g := range given {
		w := &workSeen{work: g}
		if g.Chat != nil {
			if w.Task, err = l.lookAt(ctx, c, *g.Chat, events); err != nil {
				return nil, err
			}
		}
		if events && w.over() {
			if w.Events, err = c.follow(ctx, "/v1/executions/"+g.ExecutionID+"/observe?afterSequence=0"); err != nil {
				return nil, fmt.Errorf("the log of work %s: %w", g.ID, err)
			}
		}
		chat.Given = append(chat.Given, w)
	}
	return chat, nil
}

func (w *workSeen) over() bool {
	return w.ExecutionStatus == "completed" || w.ExecutionStatus == "failed" || w.ExecutionStatus == "cancelled"
}
