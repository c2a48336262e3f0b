package evidence

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"
	"time"

	"openbot/domain"
)

// Pin is an entry that somebody wrote down earlier: its number and its hash.
type Pin struct {
	Number int64
	Hash   string
}

// ParsePin reads a pin as NUMBER:HASH.
func ParsePin(text string) (Pin, error) {
	number, hash, _ := strings.Cut(text, ":")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 1 || len(hash) != 64 {
		return Pin{}, errors.New("a pin is the number and the hash of an entry, as 57:9f86d0…, with all 64 digits of the hash")
	}
	return Pin{Number: n, Hash: strings.ToLower(hash)}, nil
}

// Fault is the first thing in a log that is not as it was written. Its error names
// the entry.
type Fault struct {
	Number int64  // of the entry; for an inserted one that of the entry before it
	What   string // changed, removed, inserted, head or pin
	words  string
}

func (f *Fault) Error() string { return f.words }

// Report is what a check of one organization's log found.
type Report struct {
	First   int64  // number of the first entry that was checked; 1 but for a part of a log
	Count   int64  // number of the last one
	Hash    string // of the last one
	Waiting int64  // entries that were written and are not chained yet
	Beyond  bool   // there are links after the head: it has moved meanwhile, or was set back
	Fault   *Fault // nil when everything is whole
}

func changed(number int64, about string) *Fault {
	return &Fault{number, "changed", fmt.Sprintf("entry %d was changed%s", number, about)}
}

func removed(number int64) *Fault {
	return &Fault{number, "removed", fmt.Sprintf("entry %d was removed", number)}
}

func headFault(why string, number int64) *Fault {
	return &Fault{number, "head", "the head of the chain " + why}
}

func named(e domain.AuditEntry) string {
	return fmt.Sprintf(" (%s of %s, %s)", plain(e.Kind), plain(e.Subject), e.At.UTC().Format(time.RFC3339))
}

// plain makes what stands in a log fit into one line of a terminal: whoever changed it
// may have written anything.
func plain(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
	return text[:min(len(text), 100)]
}

// Check walks through a log and its links, both in the order of their positions, and
// names the first entry that was changed, removed or inserted. head is the remembered
// end of the chain, nil when it is missing; whatever lies beyond it was written
// meanwhile and waits. An error is one of reading.
func Check(head *domain.AuditHead, entries iter.Seq2[domain.AuditEntry, error], links iter.Seq2[domain.AuditLink, error], pin *Pin) (Report, error) {
	next, stop := iter.Pull2(links)
	defer stop()
	w := &walk{next: next, pin: pin, edge: math.MaxInt64, count: math.MaxInt64, report: Report{First: 1}}
	if head != nil {
		w.edge, w.count = head.Position, head.Count
	}
	if err := w.advance(); err != nil {
		return w.report, err
	}
	for e, err := range entries {
		if err != nil {
			return w.report, err
		}
		if err := w.take(e); err != nil || w.report.Fault != nil {
			return w.report, err
		}
	}
	w.report.Fault = w.end(head)
	return w.report, nil
}

// walk is how far a check has come.
type walk struct {
	next   func() (domain.AuditLink, error, bool)
	link   *domain.AuditLink // the next one; nil when none is left
	edge   int64             // position of the last chained entry, as the head remembers it
	count  int64             // of chained entries, as the head remembers it
	last   int64             // position of the entry taken last
	pin    *Pin
	report Report
}

// advance reads the next link.
func (w *walk) advance() error {
	link, err, more := w.next()
	w.link = nil
	switch {
	case !more || err != nil:
	case link.Position > w.edge:
		w.report.Beyond = true
	default:
		w.link = &link
	}
	return err
}

func (w *walk) take(e domain.AuditEntry) error {
	r := &w.report
	if w.link != nil && w.link.Position < e.Position {
		r.Fault = removed(r.Count + 1) // its link is here, and it is not
		return nil
	}
	if w.link == nil || w.link.Position > e.Position {
		r.Fault = w.unlinked(e)
		return nil
	}
	link := *w.link
	if link.Number > r.Count+1 {
		r.Fault = removed(r.Count + 1)
		return nil
	}
	hash, err := Hash(e, r.Count+1, r.Hash)
	if err != nil || !exact(e) || link.Number != r.Count+1 || link.Previous != r.Hash || link.Hash != hash || link.Organization != e.Organization {
		r.Fault = changed(r.Count+1, named(e))
		return nil
	}
	r.Count, r.Hash, w.last = r.Count+1, hash, e.Position
	if r.Fault = w.pin.fits(r); r.Fault != nil {
		return nil
	}
	return w.advance()
}

// unlinked says what an entry without a link is: one that waits, one that was put in
// later, or one whose link was taken away.
func (w *walk) unlinked(e domain.AuditEntry) *Fault {
	r := &w.report
	after := w.count
	if w.link != nil {
		after = w.link.Number - 1
	}
	switch {
	case e.Position > w.edge, w.edge == math.MaxInt64 && w.link == nil:
		r.Waiting++
		return nil
	case after > r.Count:
		return &Fault{r.Count + 1, "removed", fmt.Sprintf("the link of entry %d was removed", r.Count+1) + named(e)}
	}
	return &Fault{r.Count, "inserted", fmt.Sprintf("an entry was inserted after entry %d", r.Count) + named(e)}
}

// end compares what was found with what the head remembers.
func (w *walk) end(head *domain.AuditHead) *Fault {
	r := &w.report
	switch {
	case w.link != nil:
		return removed(r.Count + 1)
	case head == nil && r.Count == 0 && r.Waiting > 0:
		return nil // a new organization, whose first entries are not chained yet
	case head == nil:
		return headFault("was removed", r.Count)
	case head.Count > r.Count:
		return removed(r.Count + 1)
	case head.Count != r.Count, head.Hash != r.Hash, head.Position != w.last:
		return headFault(fmt.Sprintf("was changed: it does not fit entry %d", r.Count), r.Count)
	}
	return w.pin.reached(r)
}

// fits compares the entry that was just checked with the pin.
func (p *Pin) fits(r *Report) *Fault {
	if p == nil || p.Number != r.Count || p.Hash == r.Hash {
		return nil
	}
	return &Fault{r.Count, "pin", fmt.Sprintf("entry %d is not the one that was pinned: this log was written anew", r.Count)}
}

// reached sees to it that the pinned entry was there.
func (p *Pin) reached(r *Report) *Fault {
	switch {
	case p == nil, p.Number >= r.First && p.Number <= r.Count:
		return nil
	case p.Number < r.First:
		return &Fault{p.Number, "pin", fmt.Sprintf("entry %d, which was pinned, is not in this part of the log", p.Number)}
	}
	return removed(r.Count + 1)
}

// HeadSetBack is the fault of a head that has not moved although the chain goes on
// behind it.
func HeadSetBack(number int64) *Fault {
	return headFault(fmt.Sprintf("was set back: entries after %d are chained, and it does not know them", number), number)
}

// CheckHead sees to it that the end of a chain was signed by the server itself, whose
// keys these are. A chain without entries has nothing to sign.
func CheckHead(head domain.AuditHead, own Keys) *Fault {
	if head.Count == 0 && head.Signed == "" {
		return nil
	}
	signed, err := Open(head.Signed, own)
	switch {
	case err != nil:
		return headFault("is not signed by this server and its OPENBOT_SECRET_KEY: "+err.Error(), head.Count)
	case signed.Head == nil, *signed.Head != head.Claims():
		return headFault("was changed: its signature is for another one", head.Count)
	}
	return nil
}
