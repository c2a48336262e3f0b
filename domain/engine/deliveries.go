package engine

import (
	"context"
	"time"

	"openbot/domain"
)

// Deliveries lists those of a webhook that the caller can see, newest first; of one status
// when it is named.
func (e *Engine) Deliveries(ctx context.Context, p domain.Principal, webhook domain.WebhookID, status domain.DeliveryStatus, page domain.Page) ([]domain.Delivery, error) {
	if _, err := e.Webhook(ctx, p, webhook); err != nil {
		return nil, err
	}
	return e.Store.Deliveries(ctx, webhook, status, page)
}

// ResendDelivery sends a dead message again, with all its tries before it and the same ID.
func (e *Engine) ResendDelivery(ctx context.Context, p domain.Principal, webhook domain.WebhookID, id domain.DeliveryID) (domain.Delivery, error) {
	if _, err := e.Webhook(ctx, p, webhook); err != nil {
		return domain.Delivery{}, err
	}
	return e.resend(ctx, id, func(v domain.Delivery) bool { return v.Webhook == webhook })
}

func (e *Engine) resend(ctx context.Context, id domain.DeliveryID, owned func(domain.Delivery) bool) (domain.Delivery, error) {
	var v domain.Delivery
	err := e.decide(ctx, string(id), func(d *draft) error {
		var err error
		if v, err = e.Store.Delivery(ctx, id); err == nil && !owned(v) {
			err = domain.Errorf(domain.CodeNotFound, "", "")
		}
		if err != nil {
			return asNotFound(err, "DeliveryNotFound", "There is no delivery with this ID here.")
		}
		if v, err = domain.DecideDelivery(v, domain.DeliveryResent{At: d.at}); err != nil {
			return domain.Errorf(domain.CodeConflict, "DeliveryConflict", "The delivery is %s. Only a dead one is sent again.", v.Status)
		}
		d.put(&v)
		d.result = v
		return nil
	})
	return v, err
}

// Outgoing is one try of a delivery that its worker has taken.
type Outgoing struct {
	Message domain.HookMessage
	Event   string
	row     domain.Delivery
	webhook domain.WebhookID
}

// TakeDelivery looks at a delivery and commits that it is going out. It gives nil when
// that is not wanted any more, or its time has not come.
func (e *Engine) TakeDelivery(ctx context.Context, id domain.DeliveryID, version int64) (*Outgoing, error) {
	var out *Outgoing
	var row *domain.Delivery
	err := e.decide(ctx, string(id), func(d *draft) error {
		out, row = nil, nil
		v, err := e.Store.Delivery(ctx, id)
		if err != nil || v.Version != version || v.DueAt == nil {
			return gone(err)
		}
		if v.Tries > 0 && domain.Before(d.at, *v.DueAt) {
			return nil // rung early; the timer or the sweep comes back
		}
		to, why, err := e.receiver(ctx, v)
		if err != nil {
			return err
		}
		var ev domain.DeliveryEvent = domain.DeliveryTaken{At: d.at}
		switch {
		case why != "":
			ev = domain.DeliveryDropped{At: d.at, Why: why}
		case v.Tries >= domain.MaxDeliveryTries:
			ev = domain.DeliveryMissed{At: d.at, Outcome: "The worker that sent it ended before the answer came."}
		}
		next, err := domain.DecideDelivery(v, ev)
		if err != nil {
			return err
		}
		row = &next
		d.put(row)
		if next.Status == domain.DeliverySending {
			out = to
		}
		return nil
	})
	if err != nil || out == nil {
		return nil, err
	}
	out.row = *row
	return out, nil
}

// receiver says where a delivery goes, or why it is not wanted any more.
func (e *Engine) receiver(ctx context.Context, v domain.Delivery) (*Outgoing, string, error) {
	if v.Channel != "" {
		return e.outside(ctx, v)
	}
	w, err := e.Store.Webhook(ctx, v.Webhook)
	if domain.IsCode(err, domain.CodeNotFound) {
		return nil, "The webhook is not there any more.", nil
	}
	if err != nil {
		return nil, "", err
	}
	maker, err := e.Store.Member(ctx, w.Member)
	if err != nil {
		return nil, "", err
	}
	out := &Outgoing{Event: v.Event, webhook: w.ID, Message: domain.HookMessage{ID: v.ID, Organization: w.Organization, Owner: string(w.ID),
		Sealed: w.Sealed, URL: w.URL, Payload: v.Payload}}
	why := w.Hears(maker, v.Member)
	if why == "" && w.Format.ForPeople() {
		why, err = e.forPeople(ctx, &out.Message, w, v)
	}
	return out, why, err
}

// statusGone is how a receiver says that it wants no more.
const statusGone = 410

// SettleDelivery saves what became of a try: status is what the receiver answered, failure
// says that there was no answer. A try that another worker took over meanwhile counts for
// nothing.
func (e *Engine) SettleDelivery(ctx context.Context, out *Outgoing, status int, failure *domain.AppError) error {
	return e.decide(ctx, string(out.row.ID), func(d *draft) error {
		v, err := e.Store.Delivery(ctx, out.row.ID)
		if err != nil || v.Version != out.row.Version {
			return gone(err)
		}
		var ev domain.DeliveryEvent
		switch {
		case failure != nil:
			ev = domain.DeliveryMissed{At: d.at, Outcome: safeText(cut(failure.Message, domain.MaxOutcome))}
		case out.Message.Mail != nil && status/100 == 2:
			ev = domain.DeliveryAccepted{At: d.at, Outcome: domain.TextMailed(status)}
		case out.Message.Mail != nil: // 5xx: it is never going to take this
			ev = domain.DeliveryMissed{At: d.at, Outcome: domain.TextMailed(status), Gone: status/100 == 5}
		case status/100 == 2:
			ev = domain.DeliveryAccepted{At: d.at, Outcome: domain.TextDelivered(status)}
		default:
			ev = domain.DeliveryMissed{At: d.at, Outcome: domain.TextDelivered(status), Gone: status == statusGone}
		}
		next, err := domain.DecideDelivery(v, ev)
		if err != nil {
			return err
		}
		d.put(&next)
		if failure == nil && status == statusGone && out.Message.Mail == nil {
			return e.disableReceiver(ctx, d, out)
		}
		return nil
	})
}

// disableReceiver stops telling a receiver that wants no more.
func (e *Engine) disableReceiver(ctx context.Context, d *draft, out *Outgoing) error {
	if out.row.Channel != "" {
		return e.disableChannel(ctx, d, out)
	}
	w, err := e.Store.Webhook(ctx, out.webhook)
	if err != nil || !w.Enabled || w.DeletedAt != nil || w.URL != out.Message.URL {
		return gone(err)
	}
	w.Enabled, w.DisabledWhy, w.UpdatedAt = false, domain.TextDelivered(statusGone), d.at
	d.put(&w)
	return nil
}

// ForgetDeliveries deletes deliveries that ended long ago.
func (e *Engine) ForgetDeliveries(ctx context.Context) error {
	now := e.now()
	for status, before := range map[domain.DeliveryStatus]time.Time{
		domain.DeliveryDelivered: now.Add(-domain.KeepDelivered), domain.DeliveryDead: now.Add(-domain.KeepDead)} {
		for {
			n, err := e.Store.ForgetDeliveries(ctx, status, before, 1000)
			if err != nil {
				return err
			}
			if n < 1000 {
				break
			}
		}
	}
	return nil
}
