package domain_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"openbot/domain"
)

func TestEveryDeliveryStateTakesOnlyTheEventsOfTheTable(t *testing.T) {
	decide := func(ev domain.DeliveryEvent) func(domain.Delivery) (domain.Delivery, int, error) {
		return func(d domain.Delivery) (domain.Delivery, int, error) {
			next, err := domain.DecideDelivery(d, ev)
			return next, 0, err
		}
	}
	later := noon.Add(time.Hour)
	machine[domain.Delivery]{
		table:    domain.DeliveryTransitions,
		statuses: words(domain.DeliveryStatuses()),
		rows: func(status string) []domain.Delivery {
			d := domain.Delivery{ID: "dlv_1", Status: domain.DeliveryStatus(status), Payload: []byte(`{}`), CreatedAt: noon, UpdatedAt: noon}
			if d.Status == domain.DeliveryDelivered || d.Status == domain.DeliveryDead {
				d.EndedAt = ptr(noon)
				return []domain.Delivery{d}
			}
			d.DueAt = ptr(noon.Add(time.Minute))
			again, spent := d, d
			again.Tries, spent.Tries = 1, domain.MaxDeliveryTries
			return []domain.Delivery{d, again, spent}
		},
		status: func(d domain.Delivery) string { return string(d.Status) },
		end:    func(d domain.Delivery) bool { return d.Status == domain.DeliveryDelivered },
		events: map[string][]func(domain.Delivery) (domain.Delivery, int, error){
			domain.DeliveryEventTaken:    {decide(domain.DeliveryTaken{At: noon}), decide(domain.DeliveryTaken{At: later})},
			domain.DeliveryEventAccepted: {decide(domain.DeliveryAccepted{At: later})},
			domain.DeliveryEventMissed:   {decide(domain.DeliveryMissed{At: later}), decide(domain.DeliveryMissed{At: later, Gone: true})},
			domain.DeliveryEventDropped:  {decide(domain.DeliveryDropped{At: later, Why: "no"})},
			domain.DeliveryEventResent:   {decide(domain.DeliveryResent{At: later})},
		},
	}.run(t)
}

// A message that nobody takes is tried over about seven hours and is then dead.
func TestTheWaitsOfADelivery(t *testing.T) {
	d := domain.Delivery{ID: "dlv_1", Status: domain.DeliveryPending, DueAt: ptr(noon)}
	at := noon
	var waits []time.Duration
	for d.Status != domain.DeliveryDead {
		var err error
		if d, err = domain.DecideDelivery(d, domain.DeliveryTaken{At: at}); err != nil {
			t.Fatal(err)
		}
		if d, err = domain.DecideDelivery(d, domain.DeliveryMissed{At: at}); err != nil {
			t.Fatal(err)
		}
		if d.DueAt != nil {
			waits = append(waits, d.DueAt.Sub(at))
			at = *d.DueAt
		}
	}
	want := []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour}
	if !slices.Equal(waits, want) || d.Tries != domain.MaxDeliveryTries {
		t.Errorf("the waits are %v after %d tries, want %v", waits, d.Tries, want)
	}
}

// Whatever happens to a delivery: what is open has a time at which somebody looks, what
// has ended has none, no try is made too often or before its time, and its words stay.
func TestDeliveriesKeepTheirPromises(t *testing.T) {
	reached := map[string]int{}
	checks := 0
	rapid.Check(t, func(t *rapid.T) {
		checks++
		d := domain.Delivery{ID: "dlv_1", Status: domain.DeliveryPending, Payload: []byte(`{"a":1}`), DueAt: ptr(noon), CreatedAt: noon}
		now, tries := noon, 0
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			if rapid.Bool().Draw(t, "wait") && d.DueAt != nil {
				now = *d.DueAt
			}
			ev := rapid.SampledFrom([]domain.DeliveryEvent{domain.DeliveryTaken{At: now}, domain.DeliveryTaken{At: now}, domain.DeliveryAccepted{At: now},
				domain.DeliveryMissed{At: now}, domain.DeliveryMissed{At: now}, domain.DeliveryMissed{At: now, Gone: true},
				domain.DeliveryDropped{At: now, Why: "why"}, domain.DeliveryResent{At: now}}).Draw(t, "event")
			before := deepCopy(d)
			next, err := domain.DecideDelivery(d, ev)
			untouched(t, before, d)
			if err != nil {
				untouched(t, before, next)
				reached["refused"]++
				continue
			}
			if _, taken := ev.(domain.DeliveryTaken); taken {
				if before.Tries > 0 && now.Before(*before.DueAt) {
					t.Fatalf("a try came at %s, before %s", now, *before.DueAt)
				}
				tries++
			}
			if _, again := ev.(domain.DeliveryResent); again {
				tries = 0
				reached["resent"]++
			}
			d = next
			reached[string(d.Status)]++
			ended := d.Status == domain.DeliveryDelivered || d.Status == domain.DeliveryDead
			if ended != (d.DueAt == nil) || ended != (d.EndedAt != nil) {
				t.Fatalf("%s has due_at %v and ended_at %v", d.Status, d.DueAt, d.EndedAt)
			}
			if d.Tries != tries || d.Tries > domain.MaxDeliveryTries || string(d.Payload) != `{"a":1}` {
				t.Fatalf("%d tries of %d, payload %s", d.Tries, tries, d.Payload)
			}
		}
	})
	reachedAll(t, reached, checks, append(words(domain.DeliveryStatuses()), "refused", "resent")...)
}

// Who a webhook hears of, case by case.
func TestWhoAWebhookHearsOf(t *testing.T) {
	admin := domain.Member{ID: "mem_1", Permissions: domain.Permissions{"admin"}}
	plain := domain.Member{ID: "mem_1", Permissions: domain.Permissions{"write"}}
	gone := admin
	gone.DisabledAt = ptr(noon)
	mine := domain.Webhook{Member: "mem_1", Enabled: true}
	whole, off, deleted := mine, mine, mine
	whole.Whole, off.Enabled, deleted.DeletedAt = true, false, ptr(noon)
	for name, c := range map[string]struct {
		hook  domain.Webhook
		maker domain.Member
		work  domain.MemberID
		why   string
	}{
		"its own Member's work":                    {mine, plain, "mem_1", ""},
		"another's work":                           {mine, admin, "mem_2", "own Member's work alone"},
		"an admin's, of the organization":          {whole, admin, "mem_2", ""},
		"of the organization, by an admin no more": {whole, plain, "mem_2", "no admin any more"},
		"the same, of its own Member's work":       {whole, plain, "mem_1", ""},
		"a disabled Member's":                      {mine, gone, "mem_1", "Member that made the webhook is disabled"},
		"a disabled one":                           {off, plain, "mem_1", "webhook is disabled"},
		"a deleted one":                            {deleted, plain, "mem_1", "deleted"},
	} {
		got := c.hook.Hears(c.maker, c.work)
		if (got == "") != (c.why == "") || !strings.Contains(got, c.why) {
			t.Errorf("%s: %q, want %q", name, got, c.why)
		}
	}
}

func TestTheIDsOfASetOfDeliveries(t *testing.T) {
	set := domain.Deliveries{Prefix: domain.PrefixDelivery + strings.Repeat("a", 28)}
	if got := set.ID(0x1f); got != domain.DeliveryID("dlv_"+strings.Repeat("a", 28)+"001f") || !domain.ValidID(string(got), domain.PrefixDelivery) {
		t.Errorf("the ID is %s", got)
	}
	if domain.MaxNews*2*domain.MaxWebhooks > 0xffff {
		t.Error("a set can hold more deliveries than four digits can number")
	}
}
