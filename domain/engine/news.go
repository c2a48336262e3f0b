package engine

import (
	"encoding/json"
	"time"

	"openbot/domain"
)

// message is what a webhook gets. It names things and says how they stand; what they hold
// is read by whoever may read it.
type message struct {
	Type      string `json:"type"`
	Timestamp string `json:"timestamp"` // ISO 8601, of what it tells of
	Data      any    `json:"data"`
}

func messageOfNews(event string, at time.Time, data any) string {
	text, err := json.Marshal(message{event, at.UTC().Format(time.RFC3339Nano), data})
	if err != nil {
		return "{}" // texts and numbers always marshal
	}
	return string(text)
}

type requestNews struct {
	Request    domain.RequestID     `json:"request"`
	Member     domain.MemberID      `json:"member"`
	Bot        domain.BotID         `json:"bot"`
	Chat       domain.ChatID        `json:"chat"`
	Turn       domain.TurnID        `json:"turn"`
	ToolCallID domain.CallID        `json:"toolCallId"`
	Delegation domain.DelegationID  `json:"delegation,omitempty"`
	Capability domain.Capability    `json:"capability"`
	Status     domain.RequestStatus `json:"status"`
	Revision   int64                `json:"revision"`
	Approver   domain.Actor         `json:"approver"`
	Decision   *decisionNews        `json:"decision,omitempty"`
	ExpiresAt  int64                `json:"expiresAt"`
	Link       string               `json:"link"`
}

type decisionNews struct {
	Decision string       `json:"decision"`
	Scope    string       `json:"scope"`
	By       domain.Actor `json:"by"`
	At       int64        `json:"at"`
}

type workNews struct {
	Delegation  domain.DelegationID     `json:"delegation"`
	ExecutionID domain.ExecutionID      `json:"executionId"`
	Member      domain.MemberID         `json:"member"`
	Bot         domain.BotID            `json:"bot"`
	Chat        domain.ChatID           `json:"chat"`
	Parent      parentNews              `json:"parent"`
	Status      domain.DelegationStatus `json:"status"`
	Limit       string                  `json:"limit,omitempty"`
	Link        string                  `json:"link"`
}

type parentNews struct {
	Chat domain.ChatID `json:"chat"`
	Turn domain.TurnID `json:"turn,omitempty"`
}

// tellWebhooks puts into the commit what webhooks hear of it. It follows from the events
// that readers get and from the rows that they are about, so that no place that changes
// a row can forget it.
func (d *draft) tellWebhooks() {
	var news []domain.News
	organization := domain.OrganizationID("")
	tell := func(org domain.OrganizationID, member domain.MemberID, event string, quiet bool, data any) {
		organization = org // nothing crosses it: a commit is about one
		news = append(news, domain.News{Member: member, Event: event, Payload: messageOfNews(event, d.at, data), Quiet: quiet})
	}
	told := map[string]bool{}
	for _, ev := range d.commit.Events {
		if told[ev.Subject] || ev.Subject == "" {
			continue // the row stands as the commit leaves it: it is told of once
		}
		switch ev.Kind {
		case domain.EventRequestPending, domain.EventRequestDecided:
			if r := rowIn[*domain.Request](d, ev.Subject); r != nil {
				told[ev.Subject] = true
				if r.Second != "" && ev.Member == r.Second {
					tell(r.Organization, r.Second, domain.HookRequestEscalated, false, newsOfRequest(r))
					continue
				}
				tell(r.Organization, r.Member, ev.Kind, r.Status == domain.RequestPending && r.Approver.Tag != domain.TagPerson, newsOfRequest(r))
			}
		case domain.EventDelegation:
			g := rowIn[*domain.Delegation](d, ev.Subject)
			if g == nil || g.Chat != ev.Chat {
				continue // the giving Chat hears of the same end later
			}
			switch {
			case !g.Open():
				told[ev.Subject] = true
				tell(g.Organization, g.Member, domain.HookDelegationEnded, false, newsOfWork(g))
			case g.Status == domain.DelegationPaused && g.StoppingAt == nil:
				told[ev.Subject] = true
				tell(g.Organization, g.Member, domain.HookDelegationPaused, false, newsOfWork(g))
			}
		}
	}
	for _, row := range d.commit.Rows {
		if r, ok := row.(*domain.Request); ok && d.reminded {
			tell(r.Organization, r.Member, domain.HookRequestExpiring, r.Approver.Tag != domain.TagPerson, newsOfRequest(r))
		}
	}
	d.commit.Deliveries = nil
	for start := 0; start < len(news); start += domain.MaxNews {
		id := newID[string](domain.PrefixDelivery)
		d.commit.Deliveries = append(d.commit.Deliveries, &domain.Deliveries{Organization: organization,
			Prefix: id[:len(id)-domain.DeliveryDigits], News: news[start:min(start+domain.MaxNews, len(news))]})
	}
}

// rowIn gives a row that the draft writes, or nil.
func rowIn[R interface {
	comparable
	domain.Row
}](d *draft, id string) R {
	var none R
	for _, row := range d.commit.Rows {
		if r, ok := row.(R); ok && domain.RowID(r) == id {
			return r
		}
	}
	return none
}

func newsOfRequest(r *domain.Request) requestNews {
	n := requestNews{Request: r.ID, Member: r.Member, Bot: r.Bot, Chat: r.Chat, Turn: r.Turn, ToolCallID: r.Call, Delegation: r.Delegation,
		Capability: r.Capability, Status: r.Status, Revision: r.Revision, Approver: r.Approver, ExpiresAt: r.ExpiresAt.UnixMilli(),
		Link: "/v1/requests/" + string(r.ID)}
	if by := r.Decision; by != nil {
		n.Decision = &decisionNews{Decision: by.Decision, Scope: by.Scope, By: by.By, At: by.AtMs}
	}
	return n
}

func newsOfWork(g *domain.Delegation) workNews {
	n := workNews{Delegation: g.ID, ExecutionID: g.Execution, Member: g.Member, Bot: g.Bot, Chat: g.Chat,
		Parent: parentNews{Chat: g.Parent.Chat, Turn: g.Parent.Turn}, Status: g.Status, Link: "/v1/delegations/" + string(g.ID)}
	if g.Pause != nil {
		n.Limit = g.Pause.Limit
	}
	return n
}

// deliveryRings gives the tasks for what the commit told webhooks.
func (d *draft) deliveryRings() []domain.Task {
	var tasks []domain.Task
	for _, set := range d.commit.Deliveries {
		for n := range set.Made {
			tasks = append(tasks, domain.Task{Kind: domain.TaskWebhookDeliver, Subject: string(set.ID(n + 1)), Revision: 1,
				Urgency: domain.UrgencyDelivery, Trace: d.trace})
		}
	}
	return tasks
}
