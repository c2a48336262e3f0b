package api

import (
	"context"
	"encoding/json"
	"net/http"

	"openbot/domain"
	"openbot/domain/engine"
)

// Webhook is an address that is told what happens.
type Webhook struct {
	ID           domain.WebhookID `json:"id" example:"hook_018f6b1c2d3e7a4b8c9d0e1f2a3b4c5d"`
	Member       domain.MemberID  `json:"member" doc:"Who made it."`
	Organization bool             `json:"organization" doc:"It hears of the work of the whole organization, not of its Member's alone."`
	Format       string           `json:"format" enum:"standard,email,slack,ntfy" doc:"standard: for programs, signed as Standard Webhooks says. The others are for people."`
	URL          string           `json:"url" doc:"The messages go there; for email a mailto: link."`
	Events       []string         `json:"events" enum:"request.pending,request.decided,request.expiring,request.escalated,delegation.paused,delegation.ended"`
	Enabled      bool             `json:"enabled"`
	DisabledWhy  *string          `json:"disabledWhy" doc:"Why the server disabled it, or null."`
	CreatedAt    int64            `json:"createdAt"`
	UpdatedAt    int64            `json:"updatedAt"`
	Secret       string           `json:"secret,omitempty" doc:"The signing secret of a standard one, shown this once, in the answer that makes the webhook."`
}

func wireWebhook(w domain.Webhook) Webhook {
	return Webhook{ID: w.ID, Member: w.Member, Organization: w.Whole, Format: string(w.Format), URL: w.URL, Events: nonNil(w.Events), Enabled: w.Enabled,
		DisabledWhy: orNull(w.DisabledWhy), CreatedAt: ms(w.CreatedAt), UpdatedAt: ms(w.UpdatedAt)}
}

// NewWebhook is the body that makes a webhook.
type NewWebhook struct {
	Format       string   `json:"format,omitempty" enum:"standard,email,slack,ntfy" doc:"Left out: standard. The others are for people: they hear of a Request when a person must decide it. It cannot be changed."`
	URL          string   `json:"url" minLength:"1" maxLength:"2048" doc:"An https or http address; for email mailto: and one address, for ntfy that of the topic."`
	Events       []string `json:"events" minItems:"1" maxItems:"20" enum:"request.pending,request.decided,request.expiring,request.escalated,delegation.paused,delegation.ended"`
	Enabled      *bool    `json:"enabled,omitempty" doc:"Left out: true."`
	Organization *bool    `json:"organization,omitempty" doc:"true: of the work of the whole organization; for admins. Left out: of your work."`
	Secret       *string  `json:"secret,omitempty" maxLength:"200" doc:"whsec_ and base64; made when left out."`
}

// WebhookChange is the body that changes a webhook. What waits to be sent goes to the new
// address.
type WebhookChange struct {
	URL          *string   `json:"url,omitempty" minLength:"1" maxLength:"2048"`
	Events       *[]string `json:"events,omitempty" minItems:"1" maxItems:"20" enum:"request.pending,request.decided,request.expiring,request.escalated,delegation.paused,delegation.ended" doc:"Replaces all of them."`
	Enabled      *bool     `json:"enabled,omitempty"`
	Organization *bool     `json:"organization,omitempty"`
	Secret       *string   `json:"secret,omitempty" maxLength:"200" doc:"Signs every message from now on."`
}

// Delivery is one message to a receiver.
type Delivery struct {
	ID        domain.DeliveryID `json:"id" example:"dlv_018f6b1c2d3e7a4b8c9d0e1f2a3b4c5d" doc:"The webhook-id of every try."`
	Event     string            `json:"event"`
	Status    string            `json:"status" enum:"pending,sending,delivered,dead" doc:"dead: not tried again by itself."`
	Tries     int               `json:"tries" doc:"Since it was made, or sent again."`
	Outcome   *string           `json:"outcome" doc:"What became of the last try."`
	NextTryAt *int64            `json:"nextTryAt" doc:"Of a pending one: when it is tried at the latest."`
	Payload   json.RawMessage   `json:"payload" doc:"What is sent."`
	EndedAt   *int64            `json:"endedAt"`
	CreatedAt int64             `json:"createdAt"`
	UpdatedAt int64             `json:"updatedAt"`
}

func wireDelivery(d domain.Delivery) Delivery {
	out := Delivery{ID: d.ID, Event: d.Event, Status: string(d.Status), Tries: d.Tries, Outcome: orNull(d.Outcome), Payload: rawJSON(d.Payload),
		EndedAt: msOrNull(d.EndedAt), CreatedAt: ms(d.CreatedAt), UpdatedAt: ms(d.UpdatedAt)}
	if d.Status == domain.DeliveryPending {
		out.NextTryAt = msOrNull(d.DueAt)
	}
	return out
}

// WebhookPath names a webhook in an address.
type WebhookPath struct {
	Webhook string `path:"webhook" doc:"The ID of the webhook."`
}

func (p WebhookPath) id() (domain.WebhookID, error) {
	if !domain.ValidID(p.Webhook, domain.PrefixWebhook) {
		return "", newProblem(http.StatusNotFound, "WebhookNotFound", "There is no webhook with this ID.")
	}
	return domain.WebhookID(p.Webhook), nil
}

// DeliveryName names a delivery in an address.
type DeliveryName struct {
	Delivery string `path:"delivery" doc:"The ID of the delivery."`
}

func (n DeliveryName) id() (domain.DeliveryID, error) {
	if !domain.ValidID(n.Delivery, domain.PrefixDelivery) {
		return "", newProblem(http.StatusNotFound, "DeliveryNotFound", "There is no delivery with this ID here.")
	}
	return domain.DeliveryID(n.Delivery), nil
}

// DeliveryQuery narrows a list of deliveries.
type DeliveryQuery struct {
	Status string `query:"status" enum:"pending,sending,delivered,dead" doc:"Of this status."`
}

type webhookOut = struct{ Body Webhook }

func (s *server) webhookRoutes() {
	const list, tag = "webhooks", "Webhooks"
	register(s, route{id: "listWebhooks", method: http.MethodGet, path: "/v1/webhooks", tag: tag, summary: "List your webhooks, newest first",
		about: "Admins see those of the organization as well.", role: domain.RoleRead, status: 200},
		func(ctx context.Context, p domain.Principal, in *struct{ Paged }) (*listed[Webhook], error) {
			page, err := in.page(list)
			if err != nil {
				return nil, err
			}
			rows, err := s.Engine.Webhooks(ctx, p, page)
			if err != nil {
				return nil, err
			}
			return listOf(ctx, list, in.Paged, rows, func(w domain.Webhook) string { return string(w.ID) }, wireWebhook), nil
		})
	register(s, route{id: "createWebhook", method: http.MethodPost, path: "/v1/webhooks", tag: tag, summary: "Make a webhook",
		about: "It hears of what happens from now on. The signing secret is in this answer alone.", role: domain.RoleWrite, status: 201, errors: []int{409}},
		func(ctx context.Context, p domain.Principal, in *struct {
			Keyed
			Body NewWebhook
		}) (*webhookOut, error) {
			b := in.Body
			w, secret, err := s.Engine.CreateWebhook(keep(ctx, wireWebhook), p, engine.WebhookFields{Format: domain.HookFormat(b.Format), URL: &b.URL, Events: b.Events, Enabled: b.Enabled,
				Organization: b.Organization, Secret: b.Secret})
			if err != nil {
				return nil, err
			}
			out := wireWebhook(w)
			out.Secret = secret
			return &webhookOut{out}, nil
		})
	register(s, route{id: "readWebhook", method: http.MethodGet, path: "/v1/webhooks/{webhook}", tag: tag, summary: "Read a webhook",
		role: domain.RoleRead, status: 200, errors: []int{404}},
		func(ctx context.Context, p domain.Principal, in *WebhookPath) (*webhookOut, error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			w, err := s.Engine.Webhook(ctx, p, id)
			return &webhookOut{wireWebhook(w)}, err
		})
	register(s, route{id: "changeWebhook", method: http.MethodPatch, path: "/v1/webhooks/{webhook}", tag: tag, summary: "Change a webhook",
		about: "What waits to be sent goes to the new address. One that is disabled is told nothing: what waits is dead at its next try.",
		role:  domain.RoleWrite, status: 200, errors: []int{404, 409}},
		func(ctx context.Context, p domain.Principal, in *struct {
			WebhookPath
			Body WebhookChange
		}) (*webhookOut, error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			b := in.Body
			fields := engine.WebhookFields{URL: b.URL, Enabled: b.Enabled, Organization: b.Organization, Secret: b.Secret}
			if b.Events != nil {
				fields.Events = nonNil(*b.Events)
			}
			w, err := s.Engine.ChangeWebhook(ctx, p, id, fields)
			return &webhookOut{wireWebhook(w)}, err
		})
	register(s, route{id: "deleteWebhook", method: http.MethodDelete, path: "/v1/webhooks/{webhook}", tag: tag, summary: "Take a webhook away",
		about: "What waits to be sent is dropped.", role: domain.RoleWrite, status: 204, errors: []int{404, 409}},
		func(ctx context.Context, p domain.Principal, in *WebhookPath) (*none, error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			return nil, s.Engine.DeleteWebhook(ctx, p, id)
		})
	s.webhookDeliveryRoutes(tag)
}

func (s *server) webhookDeliveryRoutes(tag string) {
	const list = "deliveries"
	register(s, route{id: "listDeliveries", method: http.MethodGet, path: "/v1/webhooks/{webhook}/deliveries", tag: tag,
		summary: "List the messages to a webhook, newest first", about: "Those that were taken are kept for 7 days, dead ones for 30.",
		role: domain.RoleRead, status: 200, errors: []int{404}},
		func(ctx context.Context, p domain.Principal, in *struct {
			Paged
			WebhookPath
			DeliveryQuery
		}) (*listed[Delivery], error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			page, err := in.page(list)
			if err != nil {
				return nil, err
			}
			rows, err := s.Engine.Deliveries(ctx, p, id, domain.DeliveryStatus(in.Status), page)
			if err != nil {
				return nil, err
			}
			return listOf(ctx, list, in.Paged, rows, func(d domain.Delivery) string { return string(d.ID) }, wireDelivery), nil
		})
	register(s, route{id: "resendDelivery", method: http.MethodPost, path: "/v1/webhooks/{webhook}/deliveries/{delivery}/resend", tag: tag,
		summary: "Send a dead message again", about: "It goes out under the same webhook-id, with all its tries before it.",
		role: domain.RoleWrite, status: 202, errors: []int{404, 409}, optionalBody: true},
		func(ctx context.Context, p domain.Principal, in *struct {
			Keyed
			WebhookPath
			DeliveryName
			Body *struct{}
		}) (*struct{ Body Delivery }, error) {
			webhook, err := in.WebhookPath.id()
			if err != nil {
				return nil, err
			}
			if _, err := s.Engine.Webhook(ctx, p, webhook); err != nil {
				return nil, err
			}
			id, err := in.DeliveryName.id()
			if err != nil {
				return nil, err
			}
			d, err := s.Engine.ResendDelivery(keep(ctx, wireDelivery), p, webhook, id)
			return &struct{ Body Delivery }{wireDelivery(d)}, err
		})
}
