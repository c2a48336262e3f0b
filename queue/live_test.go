package queue

import (
	"strconv"
	"testing"
)

func TestPublishReachesSubscribersInEveryProcess(t *testing.T) {
	outside(t, func(t *testing.T, p *place) {
		one, two := p.open(), p.open()
		news, end := two.Subscribe("chat:1")
		defer end()
		own, endOwn := one.Subscribe("chat:1")
		defer endOwn()
		marker, endMarker := one.Subscribe("chat:2")
		defer endMarker()
		// A new subscription tells all readers once: they may have missed something.
		await(t, news)
		await(t, own)
		await(t, marker)

		// A word that Redis did not take in time is dropped, so each is said until it
		// is heard.
		eventually(t, "a word reaches the other process", func() bool {
			one.Publish(t.Context(), "chat:1", "nobody's")
			await(t, own)
			return heard(news)
		})
		eventually(t, "a word comes back", func() bool {
			two.Publish(t.Context(), "chat:2")
			return heard(marker)
		})
		heard(news)  // of the last repetition
		none(t, own) // its own word came back before the marker and told it nothing new
		none(t, news)
	})
}

// heard says whether something came, and takes it.
func heard(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestPublishWithoutAnotherProcess(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		if p.url != "" {
			p.url = "redis://" + closedPort(t)
		}
		q := p.open()
		a, endA := q.Subscribe("a")
		b, endB := q.Subscribe("b")
		defer endB()
		for range 10 {
			q.Publish(t.Context(), "a")
		}
		if _, open := <-a; !open {
			t.Fatal("closed before its end")
		}
		none(t, a)
		none(t, b)
		endA()
		endA()
		if _, open := <-a; open {
			t.Fatal("open after its end")
		}
		q.Publish(t.Context(), "a", "b")
		await(t, b)
	})
}

func TestManySubscribers(t *testing.T) {
	p := &place{t: t, logs: &logs{}}
	q := p.open()
	const n = 2000
	channels := make([]<-chan struct{}, n)
	for i := range channels {
		c, end := q.Subscribe("chat:" + strconv.Itoa(i%1000))
		defer end()
		channels[i] = c
	}
	q.Publish(t.Context(), "chat:7")
	for i, c := range channels {
		if got, want := len(c), map[bool]int{true: 1}[i%1000 == 7]; got != want {
			t.Fatalf("subscriber %d was told %d times, want %d", i, got, want)
		}
	}
}

func TestASubscriptionOutlivesItsQueue(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		q := p.open()
		news, end := q.Subscribe("a")
		if err := q.Close(); err != nil {
			t.Fatal(err)
		}
		_, late := q.Subscribe("b")
		q.Publish(t.Context(), "b")
		q.Ring(t.Context(), task("a"))
		late()
		end()
		for range news {
			// At most the word of its own start is left in it.
		}
	})
}
