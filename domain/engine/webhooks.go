package engine

import (
	"context"
	"slices"
	"strings"

	"openbot/domain"
)

// WebhookFields is what a Member sets of a webhook; nil leaves a field as it is.
type WebhookFields struct {
	Format       domain.HookFormat // "" is standard; it is given once, when the webhook is made
	URL          *string
	Events       []string
	Enabled      *bool
	Organization *bool   // it hears of the work of the whole organization; for admins
	Secret       *string // signs the messages; made when left out, and shown once
}

// CreateWebhook makes a webhook of the caller. It gives the signing secret this once, and
// "" for a format that knows none.
func (e *Engine) CreateWebhook(ctx context.Context, p domain.Principal, in WebhookFields) (domain.Webhook, string, error) {
	if in.Format == "" {
		in.Format = domain.FormatStandard
	}
	secret := ""
	if !in.Format.ForPeople() {
		if in.Secret == nil {
			made := newSigningSecret()
			in.Secret = &made
		}
		secret = *in.Secret
	}
	var w domain.Webhook
	err := e.decide(ctx, string(p.Member.ID), func(d *draft) error {
		w = domain.Webhook{ID: newID[domain.WebhookID](domain.PrefixWebhook), Organization: p.Organization, Member: p.Member.ID,
			Format: in.Format, Enabled: true, CreatedAt: d.at, UpdatedAt: d.at}
		if in.URL == nil || len(in.Events) == 0 {
			return invalid("url", "and events are required")
		}
		if err := e.setWebhook(ctx, &w, p, in); err != nil {
			return err
		}
		d.put(&w)
		d.result = w
		return nil
	})
	return w, secret, err
}

// ChangeWebhook sets fields of a webhook. What waits to be sent goes to the new address,
// signed with the new secret.
func (e *Engine) ChangeWebhook(ctx context.Context, p domain.Principal, id domain.WebhookID, in WebhookFields) (domain.Webhook, error) {
	var w domain.Webhook
	err := e.decide(ctx, string(id), func(d *draft) error {
		var err error
		if w, err = e.Webhook(ctx, p, id); err != nil {
			return err
		}
		if err := e.setWebhook(ctx, &w, p, in); err != nil {
			return err
		}
		w.UpdatedAt = d.at
		d.put(&w)
		return nil
	})
	return w, err
}

// DeleteWebhook takes a webhook away. What waits to be sent is dropped.
func (e *Engine) DeleteWebhook(ctx context.Context, p domain.Principal, id domain.WebhookID) error {
	return e.decide(ctx, string(id), func(d *draft) error {
		w, err := e.Webhook(ctx, p, id)
		if err != nil {
			return err
		}
		at := d.at
		w.DeletedAt, w.UpdatedAt, w.Sealed = &at, at, nil
		d.put(&w)
		return nil
	})
}

// Webhook reads a webhook of the caller, or for admins one of the organization.
func (e *Engine) Webhook(ctx context.Context, p domain.Principal, id domain.WebhookID) (domain.Webhook, error) {
	w, err := e.Store.Webhook(ctx, id)
	if err == nil && (w.Organization != p.Organization || w.DeletedAt != nil || !w.Whole && w.Member != p.Member.ID || w.Whole && !p.HasRole(domain.RoleAdmin)) {
		err = domain.Errorf(domain.CodeNotFound, "", "")
	}
	if err != nil {
		return domain.Webhook{}, asNotFound(err, "WebhookNotFound", "There is no webhook with this ID.")
	}
	return w, nil
}

// Webhooks lists those of the caller, and for admins those of the organization.
func (e *Engine) Webhooks(ctx context.Context, p domain.Principal, page domain.Page) ([]domain.Webhook, error) {
	return e.Store.Webhooks(ctx, p.Organization, p.Member.ID, p.HasRole(domain.RoleAdmin), page)
}

func (e *Engine) setWebhook(ctx context.Context, w *domain.Webhook, p domain.Principal, in WebhookFields) error {
	set(&w.URL, in.URL)
	if in.Organization != nil {
		if *in.Organization && !p.HasRole(domain.RoleAdmin) {
			return domain.Errorf(domain.CodeForbidden, "Forbidden", "Only an admin may hear of the work of the whole organization.")
		}
		w.Whole = *in.Organization
	}
	if in.Enabled != nil {
		w.Enabled, w.DisabledWhy = *in.Enabled, ""
	}
	if in.URL != nil || w.Version == 0 {
		if err := e.checkHook(*w, p); err != nil {
			return err
		}
	}
	if in.Events != nil {
		if len(in.Events) == 0 {
			return invalid("events", "must name at least one event")
		}
		for _, event := range in.Events {
			if !slices.Contains(domain.HookEvents(), event) {
				return invalid("events", "must be of: "+strings.Join(domain.HookEvents(), ", "))
			}
		}
		w.Events = slices.Compact(slices.Sorted(slices.Values(in.Events)))
	}
	if w.Version == 0 || in.Organization != nil {
		if err := e.roomForWebhook(ctx, w, p); err != nil {
			return err
		}
	}
	if in.Secret == nil {
		return nil
	}
	if w.Format.ForPeople() {
		return invalid("secret", "is for the format standard alone")
	}
	var err error
	w.Sealed, err = e.sealSigning(*in.Secret, w.Organization, string(w.ID))
	return err
}

// checkReceiver says what is wrong with the address of an outside receiver.
func (e *Engine) checkReceiver(address string) error {
	if e.CheckURL != nil {
		if err := e.CheckURL(address); err != nil {
			return invalid("url", err.Error())
		}
	}
	return nil
}

// sealSigning seals a secret that signs what goes out.
func (e *Engine) sealSigning(secret string, organization domain.OrganizationID, owner string) ([]byte, error) {
	if !validSigningSecret(secret) {
		return nil, invalid("secret", "must be whsec_ and the base64 of 24 to 64 bytes")
	}
	return e.Sealer.Seal([]byte(secret), organization, owner)
}

// roomForWebhook bounds how many receivers one commit may have to tell.
func (e *Engine) roomForWebhook(ctx context.Context, w *domain.Webhook, p domain.Principal) error {
	others, err := e.Store.Webhooks(ctx, w.Organization, p.Member.ID, w.Whole, domain.Page{Limit: 2*domain.MaxWebhooks + 1})
	if err != nil {
		return err
	}
	number := 0
	for _, o := range others {
		if o.Whole == w.Whole && o.ID != w.ID {
			number++
		}
	}
	if number >= domain.MaxWebhooks {
		return domain.Errorf(domain.CodeConflict, "WebhookConflict", "There are %d webhooks already. Delete one first.", number)
	}
	return nil
}
