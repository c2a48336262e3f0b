package evidence_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"openbot/domain"
	"openbot/domain/evidence"
)

// log is an audit log in memory, as a store keeps it.
type log struct {
	head    *domain.AuditHead
	entries []domain.AuditEntry
	links   []domain.AuditLink
}

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func entryAt(position int64) domain.AuditEntry {
	return domain.AuditEntry{Organization: "org_1", Position: position, At: began.Add(time.Duration(position) * time.Second), Kind: domain.AuditGrantCreated,
		Subject: fmt.Sprintf("grt_%d", position), Actor: domain.Person("mem_1"), Token: "tok_1", Address: "203.0.113.7",
		Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, position))}
}

// failing is a test, or one try of a property.
type failing interface {
	Helper()
	Fatal(args ...any)
}

// newLog chains entries at positions 10, 20, 30, … in batches, and leaves some waiting.
func newLog(t failing, chained, waiting int, batch int) *log {
	t.Helper()
	l := &log{head: &domain.AuditHead{ID: "org_1"}}
	for i := range chained + waiting {
		l.entries = append(l.entries, entryAt(int64(10*(i+1))))
	}
	for from := 0; from < chained; from += batch {
		head, links, err := evidence.Chain(*l.head, l.entries[from:min(from+batch, chained)])
		if err != nil {
			t.Fatal(err)
		}
		l.head, l.links = &head, append(l.links, links...)
	}
	return l
}

func (l *log) check(t failing, pin *evidence.Pin) evidence.Report {
	t.Helper()
	report, err := evidence.Check(l.head, all(l.entries), all(l.links), pin)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func all[T any](list []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range list {
			if !yield(v, nil) {
				return
			}
		}
	}
}

func TestAWholeLogIsWhole(t *testing.T) {
	for _, batch := range []int{1, 2, 7, 50} {
		l := newLog(t, 20, 3, batch)
		r := l.check(t, &evidence.Pin{Number: 7, Hash: l.links[6].Hash})
		if r.Fault != nil || r.Count != 20 || r.Waiting != 3 || r.Hash != l.head.Hash {
			t.Errorf("in batches of %d: %+v", batch, r)
		}
	}
	if r := (&log{head: &domain.AuditHead{ID: "org_1"}}).check(t, nil); r.Fault != nil || r.Count != 0 {
		t.Errorf("an empty log: %+v", r)
	}
	if r := (&log{entries: []domain.AuditEntry{entryAt(5)}}).check(t, nil); r.Fault != nil || r.Waiting != 1 {
		t.Errorf("a log that was never chained: %+v", r)
	}
}

// The hash is what any RFC 8785 library makes of the entry on the wire.
func TestTheHashIsThatOfTheWireForm(t *testing.T) {
	got, err := evidence.Hash(entryAt(10), 1, "")
	must(t, err)
	// printf '{"actor":…}' | sha256sum of the canonical form, made by hand.
	const want = `{"actor":{"_tag":"Person","userId":"mem_1"},"address":"203.0.113.7","at":1767323055000,"data":{"n":10},"kind":"grant.created",` +
		`"number":1,"organization":"org_1","previous":null,"subject":"grt_10","token":"tok_1"}`
	if got != sha(want) {
		t.Errorf("got %s, want %s", got, sha(want))
	}
}

// Cases that name the first entry that is not as it was written.
func TestWhatWasDoneToALogIsNamed(t *testing.T) {
	remove := func(l *log, i int) {
		l.entries = slices.Delete(slices.Clone(l.entries), i, i+1)
		l.links = slices.Delete(slices.Clone(l.links), i, i+1)
	}
	rewrite := func(l *log, from int) { // a forger who knows how it works chains it anew
		head := domain.AuditHead{ID: "org_1"}
		if from > 0 {
			head.Count, head.Hash, head.Position = int64(from), l.links[from-1].Hash, l.links[from-1].Position
		}
		next, links, err := evidence.Chain(head, l.entries[from:10])
		must(t, err)
		l.head, l.links = &next, append(slices.Clone(l.links[:from]), links...)
	}
	for name, c := range map[string]struct {
		do     func(l *log)
		what   string
		number int64
	}{
		"an entry's kind":             {func(l *log) { l.entries[4].Kind = domain.AuditGrantRevoked }, "changed", 5},
		"an entry's subject":          {func(l *log) { l.entries[4].Subject = "grt_51" }, "changed", 5},
		"an entry's actor":            {func(l *log) { l.entries[4].Actor.User = "mem_2" }, "changed", 5},
		"who acts":                    {func(l *log) { l.entries[4].Actor = domain.ByBot("mem_1") }, "changed", 5},
		"an actor with a second ID":   {func(l *log) { l.entries[4].Actor.Grant = "grt_1" }, "changed", 5},
		"an entry's token":            {func(l *log) { l.entries[4].Token = "" }, "changed", 5},
		"an entry's address":          {func(l *log) { l.entries[4].Address = "203.0.113.8" }, "changed", 5},
		"an entry's data":             {func(l *log) { l.entries[4].Data = json.RawMessage(`{"n":51}`) }, "changed", 5},
		"a space in an entry's data":  {func(l *log) { l.entries[4].Data = json.RawMessage(`{"n": 50}`) }, "changed", 5},
		"data that is no JSON":        {func(l *log) { l.entries[4].Data = json.RawMessage(`{"n":50`) }, "changed", 5},
		"an entry's time":             {func(l *log) { l.entries[4].At = l.entries[4].At.Add(time.Millisecond) }, "changed", 5},
		"less than an entry's time":   {func(l *log) { l.entries[4].At = l.entries[4].At.Add(time.Microsecond) }, "changed", 5},
		"an entry's organization":     {func(l *log) { l.entries[4].Organization = "org_2" }, "changed", 5},
		"a link's hash":               {func(l *log) { l.links[4].Hash = strings.Repeat("0", 64) }, "changed", 5},
		"a link's previous hash":      {func(l *log) { l.links[4].Previous = strings.Repeat("0", 64) }, "changed", 5},
		"a link's number":             {func(l *log) { l.links[4].Number = 4 }, "changed", 5},
		"two entries swapped":         {func(l *log) { l.entries[3].Subject, l.entries[4].Subject = "grt_50", "grt_40" }, "changed", 4},
		"what a terminal would obey":  {func(l *log) { l.entries[4].Kind = "\x1b[2J\nvalid" }, "changed", 5},
		"the first entry":             {func(l *log) { l.entries[0].Subject = "x" }, "changed", 1},
		"the last entry":              {func(l *log) { l.entries[9].Subject = "x" }, "changed", 10},
		"an entry removed":            {func(l *log) { remove(l, 4) }, "removed", 5},
		"the first entry removed":     {func(l *log) { remove(l, 0) }, "removed", 1},
		"the last entry removed":      {func(l *log) { remove(l, 9) }, "removed", 10},
		"the last three removed":      {func(l *log) { remove(l, 9); remove(l, 8); remove(l, 7) }, "removed", 8},
		"everything removed":          {func(l *log) { l.entries, l.links = nil, nil }, "removed", 1},
		"an entry alone removed":      {func(l *log) { l.entries = slices.Delete(l.entries, 4, 5) }, "removed", 5},
		"a link alone removed":        {func(l *log) { l.links = slices.Delete(l.links, 4, 5) }, "removed", 5},
		"the last link removed":       {func(l *log) { l.links = l.links[:9] }, "removed", 10},
		"an entry moved away":         {func(l *log) { l.entries[4].Position = 55 }, "removed", 5},
		"an entry inserted":           {func(l *log) { l.entries = slices.Insert(l.entries, 5, entryAt(55)) }, "inserted", 5},
		"an entry inserted at first":  {func(l *log) { l.entries = slices.Insert(l.entries, 0, entryAt(5)) }, "inserted", 0},
		"an entry inserted at last":   {func(l *log) { l.entries = slices.Insert(l.entries, 9, entryAt(95)) }, "inserted", 9},
		"the head removed":            {func(l *log) { l.head = nil }, "head", 10},
		"the head's count":            {func(l *log) { l.head.Count = 11 }, "removed", 11},
		"the head's count, less":      {func(l *log) { l.head.Count = 9 }, "head", 10},
		"the head's hash":             {func(l *log) { l.head.Hash = strings.Repeat("0", 64) }, "head", 10},
		"the head's position, ahead":  {func(l *log) { l.head.Position = 105 }, "head", 10},
		"the log written anew from 5": {func(l *log) { l.entries[4].Subject = "x"; rewrite(l, 4) }, "pin", 7},
		"and cut off before the pin": {func(l *log) {
			l.entries, l.links = l.entries[:6], l.links[:6]
			l.head = &domain.AuditHead{ID: "org_1", Count: 6, Hash: l.links[5].Hash, Position: 60}
		}, "removed", 7},
	} {
		l := newLog(t, 10, 0, 4)
		pin := &evidence.Pin{Number: 7, Hash: l.links[6].Hash}
		c.do(l)
		r := l.check(t, pin)
		if r.Fault == nil || r.Fault.What != c.what || r.Fault.Number != c.number {
			t.Errorf("%s: got %+v, want %s %d", name, r.Fault, c.what, c.number)
		} else if strings.ContainsAny(r.Fault.Error(), "\x1b\n") {
			t.Errorf("%s: the words hold what a terminal would obey: %q", name, r.Fault.Error())
		}
	}
}

// What was chained while the check was reading is no fault, and is said to be there.
func TestAChainThatGrowsMeanwhile(t *testing.T) {
	l := newLog(t, 10, 0, 4)
	before := *newLog(t, 8, 2, 4).head
	l.head = &before
	if r := l.check(t, nil); r.Fault != nil || r.Count != 8 || r.Waiting != 2 || !r.Beyond {
		t.Errorf("got %+v", r)
	}
}

// Whatever one change does to one row, it is found; and no log that was left alone is
// ever blamed.
func TestNoSingleChangeGoesUnnoticed(t *testing.T) {
	reached := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "entries")
		l := newLog(t, n, rapid.IntRange(0, 2).Draw(t, "waiting"), rapid.IntRange(1, 5).Draw(t, "batch"))
		if r := l.check(t, nil); r.Fault != nil || r.Count != int64(n) {
			t.Fatalf("a whole log: %+v", r.Fault)
		}
		i := rapid.IntRange(0, n-1).Draw(t, "row")
		what := rapid.SampledFrom([]string{"entry", "link", "both", "insert", "byte"}).Draw(t, "what")
		reached[what]++
		switch what {
		case "entry":
			l.entries = slices.Delete(l.entries, i, i+1)
		case "link":
			l.links = slices.Delete(l.links, i, i+1)
		case "both":
			l.entries, l.links = slices.Delete(l.entries, i, i+1), slices.Delete(l.links, i, i+1)
		case "insert":
			l.entries = slices.Insert(l.entries, i, entryAt(int64(10*i+rapid.IntRange(1, 9).Draw(t, "at"))))
		case "byte":
			e := &l.entries[i]
			fields := []*string{&e.Kind, &e.Subject, &e.Address, (*string)(&e.Token), (*string)(&e.Actor.User), (*string)(&e.Organization), &l.links[i].Hash, &l.links[i].Previous}
			field := fields[rapid.IntRange(0, len(fields)-1).Draw(t, "field")]
			at := rapid.IntRange(0, len(*field)).Draw(t, "byte")
			*field = (*field)[:at] + "~" + (*field)[at:]
		}
		r := l.check(t, nil)
		if r.Fault == nil {
			t.Fatalf("%s of row %d was not noticed", what, i)
		}
		if first := int64(i + 1); r.Fault.Number != first && r.Fault.Number != first-1 {
			t.Fatalf("%s of entry %d was blamed on %d: %v", what, first, r.Fault.Number, r.Fault)
		}
	})
	if len(reached) < 5 {
		t.Errorf("only these were tried: %v", reached)
	}
}

// export writes a log as the API does.
func (l *log) export(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	for i, e := range l.entries {
		line := map[string]any{"organization": e.Organization, "number": nil, "at": e.At.UnixMilli(), "kind": e.Kind, "subject": e.Subject,
			"actor": e.Actor, "token": e.Token, "address": e.Address, "data": e.Data, "previous": nil, "hash": nil}
		if i < len(l.links) {
			line["number"], line["hash"] = l.links[i].Number, l.links[i].Hash
			if p := l.links[i].Previous; p != "" {
				line["previous"] = p
			}
		}
		raw, err := json.Marshal(line)
		must(t, err)
		out.Write(append(raw, '\n'))
	}
	return out.Bytes()
}

func TestAnExportIsCheckedByItself(t *testing.T) {
	l := newLog(t, 10, 2, 4)
	whole := l.export(t)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	pin := &evidence.Pin{Number: 7, Hash: l.links[6].Hash}
	r, err := evidence.CheckFile(bytes.NewReader(whole), pin)
	if err != nil || r.Fault != nil || r.First != 1 || r.Count != 10 || r.Waiting != 2 || r.Hash != l.head.Hash {
		t.Fatalf("the whole: %+v, %v", r, err)
	}
	r, err = evidence.CheckFile(bytes.NewReader(bytes.Join(lines[4:8], nil)), pin)
	if err != nil || r.Fault != nil || r.First != 5 || r.Count != 8 {
		t.Fatalf("a part: %+v, %v", r, err)
	}
	text := string(whole)
	for name, c := range map[string]struct {
		file   string
		what   string
		number int64
	}{
		"a digit changed":           {strings.Replace(text, `{"n":50}`, `{"n":51}`, 1), "changed", 5},
		"a hash changed":            {strings.Replace(text, l.links[4].Hash, strings.Repeat("0", 64), 1), "changed", 5},
		"a field added":             {strings.Replace(text, `{"n":50}`, `{"n":50},"x":1`, 1), "changed", 5},
		"a line removed":            {strings.Replace(text, string(lines[4]), "", 1), "removed", 5},
		"a line twice":              {strings.Replace(text, string(lines[4]), string(lines[4])+string(lines[4]), 1), "inserted", 5},
		"a line that is not linked": {strings.Replace(text, string(lines[4]), string(lines[11])+string(lines[4]), 1), "inserted", 4},
		"cut off before the pin":    {string(bytes.Join(lines[:6], nil)), "removed", 7},
		"begun after the pin":       {string(bytes.Join(lines[8:10], nil)), "pin", 7},
	} {
		r, err := evidence.CheckFile(strings.NewReader(c.file), pin)
		if err != nil || r.Fault == nil || r.Fault.What != c.what || r.Fault.Number != c.number {
			t.Errorf("%s: got %+v, %v; want %s %d", name, r.Fault, err, c.what, c.number)
		}
	}
	for name, file := range map[string]string{
		"nothing": "", "blank lines": "\n\n", "no JSON": "hello\n", "other JSON": `{"a":1}` + "\n", "a list": "[]\n",
		"a name that stands twice": strings.Replace(text, `"kind":`, `"kind":"x","kind":`, 1),
		"two organizations":        text + strings.Replace(string(lines[11]), "org_1", "org_2", 1),
	} {
		if r, err := evidence.CheckFile(strings.NewReader(file), nil); err == nil {
			t.Errorf("%s gives %+v", name, r)
		}
	}
}

func TestPins(t *testing.T) {
	hash := strings.Repeat("Ab", 32)
	p, err := evidence.ParsePin("57:" + hash)
	if err != nil || p.Number != 57 || p.Hash != strings.ToLower(hash) {
		t.Errorf("got %+v, %v", p, err)
	}
	for _, bad := range []string{"", "57", "57:abc", ":" + hash, "0:" + hash, "x:" + hash, "57:" + hash + "0"} {
		if p, err := evidence.ParsePin(bad); err == nil {
			t.Errorf("%q gives %+v", bad, p)
		}
	}
}

func TestTheHeadMustBeOurs(t *testing.T) {
	key, stranger := newKey(t, "key_1", 1), newKey(t, "key_1", 2)
	head := domain.AuditHead{ID: "org_1", Count: 3, Hash: "h", Position: 30, LinkedAt: began}
	var err error
	head.Signed, err = key.SignHead(head.Claims())
	must(t, err)
	if fault := evidence.CheckHead(head, publicOf(t, key)); fault != nil {
		t.Fatal(fault)
	}
	if fault := evidence.CheckHead(domain.AuditHead{ID: "org_1"}, publicOf(t, key)); fault != nil {
		t.Errorf("a chain without entries: %v", fault)
	}
	receipt, err := key.SignReceipt(receipt)
	must(t, err)
	for name, change := range map[string]func(h *domain.AuditHead){
		"fewer entries":             func(h *domain.AuditHead) { h.Count = 2 },
		"another hash":              func(h *domain.AuditHead) { h.Hash = "i" },
		"another time":              func(h *domain.AuditHead) { h.LinkedAt = began.Add(time.Second) },
		"of another organization":   func(h *domain.AuditHead) { h.ID = "org_2" },
		"no signature":              func(h *domain.AuditHead) { h.Signed = "" },
		"no entries but signed":     func(h *domain.AuditHead) { h.Count = 0 },
		"a receipt in its place":    func(h *domain.AuditHead) { h.Signed = receipt },
		"signed with another key":   func(h *domain.AuditHead) { h.Signed, _ = stranger.SignHead(h.Claims()) },
		"changed and signed anew":   func(h *domain.AuditHead) { h.Count = 2; h.Signed, _ = stranger.SignHead(h.Claims()) },
		"one byte of the signature": func(h *domain.AuditHead) { h.Signed = h.Signed[:len(h.Signed)-2] + "~" + h.Signed[len(h.Signed)-1:] },
	} {
		changed := head
		change(&changed)
		if fault := evidence.CheckHead(changed, publicOf(t, key)); fault == nil || fault.What != "head" {
			t.Errorf("%s: %v", name, fault)
		}
	}
}
