package api_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden answers anew")

var anyID = regexp.MustCompile(`\b(org|mem|tok|bot|chat|turn|call|req|grt|rul|con|dlg|trg|ntc|hook|key|dlv|chn)_[0-9a-f]{32}\b`)
var anyUUID = regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)
var anySecret = regexp.MustCompile(`\b(obt_[A-Za-z0-9_-]{43}|whsec_[A-Za-z0-9+/=]+)`)

// goldenBook writes down answers with stable names in place of IDs.
type goldenBook struct {
	t     *testing.T
	names map[string]string
	count map[string]int
}

func newGolden(t *testing.T) *goldenBook {
	return &goldenBook{t: t, names: map[string]string{}, count: map[string]int{}}
}

func (g *goldenBook) stable(s string) string {
	s = anyID.ReplaceAllStringFunc(s, func(id string) string {
		if name, ok := g.names[id]; ok {
			return name
		}
		kind, _, _ := strings.Cut(id, "_")
		g.count[kind]++
		g.names[id] = fmt.Sprintf("<%s %d>", kind, g.count[kind])
		return g.names[id]
	})
	s = anyUUID.ReplaceAllStringFunc(s, func(id string) string {
		if _, ok := g.names[id]; !ok {
			g.count["uuid"]++
			g.names[id] = fmt.Sprintf("<uuid %d>", g.count["uuid"])
		}
		return g.names[id]
	})
	s = anySigned.ReplaceAllString(s, "<signed>")
	s = anyHash.ReplaceAllString(s, `"$1": "<sha256>"`)
	s = anyKey.ReplaceAllString(s, `"x": "<public key>"`)
	return anySecret.ReplaceAllString(s, "<secret>")
}

// What is made of IDs and of keys is another one in every run.
var (
	anySigned = regexp.MustCompile(`eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+`)
	anyHash   = regexp.MustCompile(`"(hash|previous|receiptSha256)": "[0-9a-f]{64}"`)
	anyKey    = regexp.MustCompile(`"x": "[A-Za-z0-9_-]{43}"`)
)

// same compares an answer with its golden one.
func (g *goldenBook) same(name string, a answer) {
	g.t.Helper()
	var b strings.Builder
	fmt.Fprintln(&b, a.status)
	var headers []string
	for _, h := range []string{"Content-Type", "Link", "Retry-After", "Www-Authenticate", "Allow", "Location"} {
		if v := a.header.Get(h); v != "" {
			headers = append(headers, h+": "+v)
		}
	}
	sort.Strings(headers)
	for _, h := range headers {
		fmt.Fprintln(&b, h)
	}
	var pretty bytes.Buffer
	if json.Indent(&pretty, []byte(a.body), "", "  ") == nil {
		fmt.Fprintf(&b, "\n%s", pretty.String())
	} else if a.body != "" {
		fmt.Fprintf(&b, "\n%s", a.body)
	}
	got := cursorOf.ReplaceAllString(g.stable(strings.TrimSpace(b.String()))+"\n", "${1}<cursor>")
	path := filepath.Join("testdata", name+".golden")
	if *update {
		must(g.t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(g.t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		g.t.Fatalf("%v (go test ./api -update writes it)", err)
	}
	if got != string(want) {
		g.t.Errorf("%s differs from its golden answer.\ngot:\n%s\nwant:\n%s", name, got, want)
	}
}

var cursorOf = regexp.MustCompile(`(cursor=|"nextCursor": ")[A-Za-z0-9_-]+`)
