package domain

import (
	"encoding/json"
	"fmt"
	"time"
)

// DeliveryStatus is where one message to an outside receiver stands.
type DeliveryStatus string

const (
	// DeliveryPending waits for its next try, rung by its commit and by the sweep at
	// due_at. A process that dies here has sent nothing.
	DeliveryPending DeliveryStatus = "pending"
	// DeliverySending is out. A worker that dies here leaves it to the sweep at due_at,
	// and it is sent again: the receiver tells a repeat by its ID.
	DeliverySending DeliveryStatus = "sending"
	// DeliveryDelivered was taken by the receiver. End state; it is deleted after some
	// days.
	DeliveryDelivered DeliveryStatus = "delivered"
	// DeliveryDead was not taken, and is not tried again by itself. A person can send it
	// again; it is deleted after some weeks.
	DeliveryDead DeliveryStatus = "dead"
)

// DeliveryStatuses lists every status, for tests over the table.
func DeliveryStatuses() []DeliveryStatus {
	return []DeliveryStatus{DeliveryPending, DeliverySending, DeliveryDelivered, DeliveryDead}
}

// Delivery events, as the table names them.
const (
	DeliveryEventTaken    = "Taken"
	DeliveryEventAccepted = "Accepted"
	DeliveryEventMissed   = "Missed"
	DeliveryEventDropped  = "Dropped"
	DeliveryEventResent   = "Resent"
)

// DeliveryTransitions is the law of a delivery.
var DeliveryTransitions = deliveryTransitions()

func deliveryTransitions() []Transition {
	pending, sending := string(DeliveryPending), string(DeliverySending)
	delivered, dead := string(DeliveryDelivered), string(DeliveryDead)
	return []Transition{
		{pending, DeliveryEventTaken, []string{sending}},
		{pending, DeliveryEventDropped, []string{dead}},
		{sending, DeliveryEventTaken, []string{sending}},
		{sending, DeliveryEventAccepted, []string{delivered}},
		{sending, DeliveryEventMissed, []string{pending, dead}},
		{sending, DeliveryEventDropped, []string{dead}},
		{dead, DeliveryEventResent, []string{pending}},
	}
}

// Delivery is one message to one receiver. Its ID is the webhook-id of every try, so that
// the receiver can drop what it has already.
type Delivery struct {
	ID           DeliveryID
	Organization OrganizationID
	Webhook      WebhookID // that is told, or ""
	Channel      ChannelID // that it goes out through, or ""
	Member       MemberID  // whose work it tells of
	Event        string
	Payload      json.RawMessage // the exact bytes of every try
	Status       DeliveryStatus
	Tries        int        // since it was made, or sent again by a person
	Outcome      string     // what became of the last try, in words; "" before the first
	DueAt        *time.Time // when somebody must look at it; nil at its end
	EndedAt      *time.Time
	CreatedAt    time.Time
	UpdatedAt    time.Time
	Version      int64
}

// Times of deliveries.
const (
	// DeliveryLease is how long a try may be out before another worker may take it.
	DeliveryLease = 30 * time.Second
	// KeepDelivered is how long a delivery that was taken is kept.
	KeepDelivered = 7 * 24 * time.Hour
	// KeepDead is how long a dead one is kept.
	KeepDead = 30 * 24 * time.Hour
)

// MaxOutcome is the longest text about what became of a try, in bytes.
const MaxOutcome = 500

// deliveryWaits are the waits between the tries of a delivery.
var deliveryWaits = [...]time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour}

// MaxDeliveryTries is how often a delivery is tried before it is dead.
const MaxDeliveryTries = len(deliveryWaits) + 1

// DeliveryRetryAfter is the wait after a number of tries that were missed; false when
// there is no other.
func DeliveryRetryAfter(tries int) (time.Duration, bool) {
	if tries < 1 || tries > len(deliveryWaits) {
		return 0, false
	}
	return deliveryWaits[tries-1], true
}

// DeliveryEvent is something that happened to a delivery.
type DeliveryEvent interface{ deliveryEvent() string }

// DeliveryTaken is a try that is about to go out.
type DeliveryTaken struct{ At time.Time }

// DeliveryAccepted is a receiver that took the message.
type DeliveryAccepted struct {
	At      time.Time
	Outcome string
}

// DeliveryMissed is a try that did not reach the receiver, or that it did not take. Gone
// says that the receiver wants no more.
type DeliveryMissed struct {
	At      time.Time
	Outcome string
	Gone    bool
}

// DeliveryDropped is a message that nobody wants to have sent any more.
type DeliveryDropped struct {
	At  time.Time
	Why string
}

// DeliveryResent is a person's wish to send a dead message again.
type DeliveryResent struct{ At time.Time }

func (DeliveryTaken) deliveryEvent() string    { return DeliveryEventTaken }
func (DeliveryAccepted) deliveryEvent() string { return DeliveryEventAccepted }
func (DeliveryMissed) deliveryEvent() string   { return DeliveryEventMissed }
func (DeliveryDropped) deliveryEvent() string  { return DeliveryEventDropped }
func (DeliveryResent) deliveryEvent() string   { return DeliveryEventResent }

// DecideDelivery moves a delivery. It refuses with conflict what the table does not list,
// and a try that comes before its time.
func DecideDelivery(d Delivery, ev DeliveryEvent) (Delivery, error) {
	if !legal(DeliveryTransitions, string(d.Status), ev.deliveryEvent()) {
		return d, deliveryConflict("The delivery is %s; it cannot take this.", d.Status)
	}
	next := d
	switch ev := ev.(type) {
	case DeliveryTaken:
		if d.Tries > 0 && d.DueAt != nil && Before(ev.At, *d.DueAt) {
			return d, deliveryConflict("The delivery is out, or waits for its next try.")
		}
		if d.Tries >= MaxDeliveryTries {
			return d, deliveryConflict("The delivery was tried often enough.")
		}
		next.Status, next.Tries, next.DueAt, next.UpdatedAt = DeliverySending, d.Tries+1, ptr(ev.At.Add(DeliveryLease)), ev.At
	case DeliveryAccepted:
		next.end(DeliveryDelivered, ev.Outcome, ev.At)
	case DeliveryMissed:
		wait, again := DeliveryRetryAfter(d.Tries)
		if ev.Gone || !again {
			next.end(DeliveryDead, ev.Outcome, ev.At)
			break
		}
		next.Status, next.Outcome, next.DueAt, next.UpdatedAt = DeliveryPending, ev.Outcome, ptr(ev.At.Add(wait)), ev.At
	case DeliveryDropped:
		next.end(DeliveryDead, ev.Why, ev.At)
	case DeliveryResent:
		next.Status, next.Tries, next.DueAt, next.EndedAt, next.UpdatedAt = DeliveryPending, 0, ptr(ev.At.Add(RunnableGrace)), nil, ev.At
	default:
		return d, Errorf(CodeInternal, "DeliveryConflict", "An event that no delivery knows.")
	}
	return next, nil
}

func (d *Delivery) end(status DeliveryStatus, outcome string, at time.Time) {
	d.Status, d.Outcome, d.DueAt, d.EndedAt, d.UpdatedAt = status, outcome, nil, ptr(at), at
}

func deliveryConflict(format string, args ...any) *Error {
	return Errorf(CodeConflict, "DeliveryConflict", format, args...)
}

// HookMessage is one try of a delivery as it goes out.
type HookMessage struct {
	ID           DeliveryID
	Organization OrganizationID
	Owner        string // for whom the secret is sealed
	Sealed       []byte
	URL          string
	Payload      json.RawMessage
	// Unsigned is a message to a service for people: it knows no signature.
	Unsigned bool
	// Mail is the message as an e-mail, in place of URL and Payload; nil for every other.
	Mail *Mail
}

// TextMailed says what a mail server answered.
func TextMailed(code int) string {
	return fmt.Sprintf("The mail server answered with SMTP status %d.", code)
}

// TextDelivered says what a receiver answered.
func TextDelivered(status int) string {
	return fmt.Sprintf("The receiver answered with HTTP status %d.", status)
}
