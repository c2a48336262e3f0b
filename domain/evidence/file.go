package evidence

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/gowebpki/jcs"

	"openbot/domain"
)

// maxLine is the longest line of an export that is read, in bytes; an entry has less
// than a tenth of it.
const maxLine = 4 << 20

// line is what a check needs of an exported entry beside its hash.
type line struct {
	Organization domain.OrganizationID `json:"organization"`
	Number       *int64                `json:"number"`
	Previous     *string               `json:"previous"`
	Hash         *string               `json:"hash"`
	Kind         string                `json:"kind"`
	Subject      string                `json:"subject"`
	At           int64                 `json:"at"`
}

// CheckFile walks through an export of a whole log, or of a part of it without a gap:
// one entry a line, oldest first. It cannot see what was cut off at either end; a pin
// can. An error says which line cannot be read.
func CheckFile(file io.Reader, pin *Pin) (Report, error) {
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 0, 1<<16), maxLine)
	r := Report{First: 1}
	var of domain.OrganizationID
	for n := 1; lines.Scan(); n++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		l, hash, err := readLine(lines.Bytes())
		if err != nil {
			return r, fmt.Errorf("line %d %w", n, err)
		}
		if of == "" {
			of = l.Organization
		}
		if l.Organization != of {
			return r, fmt.Errorf("line %d is of another organization: check the log of each by itself", n)
		}
		if r.Fault = r.follow(l, hash, pin); r.Fault != nil {
			return r, nil
		}
	}
	if err := lines.Err(); err != nil {
		return r, fmt.Errorf("the export cannot be read to its end: %w", err)
	}
	if of == "" {
		return r, errors.New("the export is empty")
	}
	r.Fault = pin.reached(&r)
	return r, nil
}

// readLine reads one line and hashes it without the hash that it says it has. Names
// that stand twice are refused: readers understand them differently.
func readLine(raw []byte) (line, string, error) {
	canonical, err := jcs.Transform(raw)
	if err != nil {
		return line{}, "", errors.New("is not a JSON object")
	}
	var l line
	var fields map[string]json.RawMessage
	if json.Unmarshal(canonical, &l) != nil || json.Unmarshal(canonical, &fields) != nil || l.Organization == "" || l.Kind == "" {
		return line{}, "", errors.New("is not an entry of an audit log")
	}
	delete(fields, "hash")
	rest, err := json.Marshal(fields)
	if err != nil {
		return line{}, "", errors.New("is not an entry of an audit log")
	}
	hash, err := hashObject(rest)
	return l, hash, err
}

func (r *Report) follow(l line, hash string, pin *Pin) *Fault {
	about := fmt.Sprintf(" (%s of %s)", plain(l.Kind), plain(l.Subject))
	if l.Number == nil || l.Hash == nil {
		r.Waiting++
		return nil
	}
	previous := ""
	if l.Previous != nil {
		previous = *l.Previous
	}
	if r.Count == 0 && *l.Number > 1 { // a part of a log: what came before is taken as it says
		r.First, r.Count, r.Hash = *l.Number, *l.Number-1, previous
	}
	switch {
	case r.Waiting > 0:
		return &Fault{r.Count, "inserted", fmt.Sprintf("an entry was inserted before entry %d: it is not chained", *l.Number)}
	case *l.Number > r.Count+1:
		return removed(r.Count + 1)
	case *l.Number <= r.Count:
		return &Fault{r.Count, "inserted", fmt.Sprintf("an entry was inserted after entry %d%s", r.Count, about)}
	case previous != r.Hash, *l.Hash != hash:
		return changed(*l.Number, about)
	}
	r.Count, r.Hash = *l.Number, hash
	return pin.fits(r)
}
