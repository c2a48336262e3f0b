package domain

import (
	"fmt"
	"time"
)

// What a webhook can hear of, as its messages name it.
const (
	// HookRequestPending is a Request that waits for its decider: a new one, and one that
	// went on to the next decider.
	HookRequestPending = EventRequestPending
	// HookRequestDecided is a Request that was allowed, denied or cancelled.
	HookRequestDecided = EventRequestDecided
	// HookRequestExpiring is a Request whose time is nearly up, with nobody's answer.
	HookRequestExpiring = "request.expiring"
	// HookRequestEscalated is a Request that a second Member may answer from now on. It is
	// that Member who hears of it.
	HookRequestEscalated = "request.escalated"
	// HookDelegationPaused is work that reached a limit of its own.
	HookDelegationPaused = "delegation.paused"
	// HookDelegationEnded is work that completed, failed or was cancelled.
	HookDelegationEnded = "delegation.ended"
)

// HookEvents lists everything that a webhook can hear of.
func HookEvents() []string {
	return []string{HookRequestPending, HookRequestDecided, HookRequestExpiring, HookRequestEscalated, HookDelegationPaused, HookDelegationEnded}
}

// Webhook is an address of a Member that is told what happens in its work, by messages
// signed as Standard Webhooks says.
type Webhook struct {
	ID           WebhookID
	Organization OrganizationID
	Member       MemberID // who made it
	Whole        bool     // it hears of the work of the whole organization
	Format       HookFormat
	URL          string // a mailto: link for e-mail
	Events       []string
	Enabled      bool
	DisabledWhy  string // why the server disabled it, or ""
	Sealed       []byte // the signing secret, encrypted for this organization and webhook; nil for people
	DeletedAt    *time.Time
	CreatedAt    time.Time
	UpdatedAt    time.Time
	Version      int64
}

// Hears says why the webhook is told nothing about the work of a Member any more; "" when
// it still is. maker is the Member that made it, as it stands now.
func (w Webhook) Hears(maker Member, work MemberID) (why string) {
	switch {
	case w.DeletedAt != nil:
		return "The webhook was deleted."
	case !w.Enabled:
		return "The webhook is disabled."
	case maker.DisabledAt != nil:
		return "The Member that made the webhook is disabled."
	case work == w.Member:
		return ""
	case !w.Whole:
		return "The webhook hears of its own Member's work alone."
	case !maker.Permissions.HasRole(RoleAdmin):
		return "The Member that made the webhook is no admin any more."
	}
	return ""
}

// News is one thing that webhooks may want to hear of. Its payload is the same for all of
// them.
type News struct {
	Member  MemberID // whose work it is about
	Event   string   // one of HookEvents
	Payload string   // the message as JSON
	// Quiet news is for programs: no person has anything to do.
	Quiet bool
}

// MaxNews is how much news one set of Deliveries holds, so that a number of four hex
// digits is enough for each delivery that comes of it.
const MaxNews = 256

// MaxWebhooks is how many webhooks a Member may have, and how many an organization may
// have beside those.
const MaxWebhooks = 50

// Deliveries tells the webhooks of an organization, in the commit that it is part of. The
// database looks up who hears of what, so that nothing is missed and nothing is read
// before.
type Deliveries struct {
	Organization OrganizationID
	// Prefix is what the IDs of these deliveries begin with: the prefix of their kind and
	// 28 hex digits. Their number follows, from 1, as four hex digits.
	Prefix string
	News   []News // at most MaxNews
	// Made is how many deliveries the commit made; it is set by the commit.
	Made int
}

// DeliveryDigits are the last digits of a delivery's ID: its number in its set.
const DeliveryDigits = 4

// ID gives the ID of the delivery with this number, from 1.
func (d Deliveries) ID(number int) DeliveryID {
	return DeliveryID(fmt.Sprintf("%s%0*x", d.Prefix, DeliveryDigits, number))
}
