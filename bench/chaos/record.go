//go:build linux

package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"
)

// part names one App call of one story. Its address stands in the call's arguments and
// nowhere else, so that whoever meets it knows the call.
type part struct{ story, number int }

func (p part) address() string { return fmt.Sprintf("mail-%d-%d@example.test", p.story, p.number) }

var addresses = regexp.MustCompile(`mail-(\d+)-(\d+)@example\.test`)

// partIn gives the first call named in a text.
func partIn(text []byte) (part, bool) {
	found := addresses.FindSubmatch(text)
	if found == nil {
		return part{}, false
	}
	return part{number(found[1]), number(found[2])}, true
}

func number(digits []byte) int {
	n, err := strconv.Atoi(string(digits))
	if err != nil {
		return -1
	}
	return n
}

// story is one thing that was asked of OpenBot.
type story struct {
	number int
	kind   string
	chat   string
	said   []string // texts of accepted messages, in order
	limit  string   // of work: steps, budget or time; "" is none that matters
	stop   bool     // work that a person stops
	begun  time.Time
	remind time.Time // when its reminder is due at the earliest
}

// arrival is one call that reached the App.
type arrival struct {
	part part
	at   time.Time
}

// advice is what a model was asked about a story, and what it said. Said is "" when no
// answer was meant to arrive.
type advice struct {
	role  string
	story int
	part  part // of an App call that it was about
	said  string
	hold  time.Duration // before it is said
	at    time.Time
}

// Outcomes of an answer.
const (
	taken   = "taken"
	refused = "refused"
	unheard = "unheard" // no answer, or one that leaves it open
)

// answer is one answer of the person to a Request.
type answer struct {
	request   string
	chat      string
	part      part // of the App call that it is about
	story     int
	work      string // of an answer that lets paused work go on
	decision  string
	scope     string
	unknown   bool // about a call whose outcome is not known
	stale     bool // to a revision that was never shown
	asked     time.Time
	expires   time.Time
	outcome   string
	endorsers int
}

// may says whether the answer may have taken effect.
func (a answer) may() bool { return a.outcome != refused && !a.stale }

// stopping is an accepted interrupt of a Chat, or cancel of a piece of work.
type stopping struct {
	story int
	chat  string // of an interrupt
	work  string // of a cancel
	at    time.Time
}

// window is the time of one strike.
type window struct {
	name     string
	from, to time.Time
}

// record is what is known beside the server's own word.
type record struct {
	mu       sync.Mutex
	stories  []*story
	arrivals []arrival
	advice   []advice
	answers  []answer
	stops    []stopping
	windows  []window
	requests map[string]bool // that were shown to the person
	heard    map[string]int  // how often the stream of events told of an end; nil when nobody listened
	breaches []breach        // that were seen on the way
}

// breach is one broken promise.
type breach struct{ kind, what string }

func newRecord() *record { return &record{requests: map[string]bool{}} }

func (r *record) breach(kind, form string, values ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.breaches = append(r.breaches, breach{kind, fmt.Sprintf(form, values...)})
}

func add[T any](r *record, list *[]T, one T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*list = append(*list, one)
}

// begin numbers a new story.
func (r *record) begin(kind string) *story {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &story{number: len(r.stories) + 1, kind: kind, begun: time.Now()}
	r.stories = append(r.stories, s)
	return s
}

// told are the stories of which the server took at least one message.
func (r *record) told() []*story {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.stories), func(s *story) bool { return len(s.said) == 0 })
}

func (r *record) story(n int) *story {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n < 1 || n > len(r.stories) {
		return nil
	}
	return r.stories[n-1]
}

// struck says how much of a time a strike of the name covered; "" is any.
func struck(windows []window, name string, from, to time.Time) time.Duration {
	var sum time.Duration
	for _, w := range windows {
		if name != "" && w.name != name {
			continue
		}
		start, end := w.from, w.to
		if start.Before(from) {
			start = from
		}
		if end.After(to) {
			end = to
		}
		sum += max(end.Sub(start), 0)
	}
	return sum
}

// byTime orders what was noted by several at once.
func byTime[T any](list []T, at func(T) time.Time) []T {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b T) int { return cmp.Compare(at(a).UnixNano(), at(b).UnixNano()) })
	return list
}
