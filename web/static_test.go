package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strings"
	"testing"
)

// The files of others are those that their makers published.
func TestVendoredFiles(t *testing.T) {
	sums, err := staticFiles.ReadFile("static/vendor/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]string{}
	for line := range strings.Lines(string(sums)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		known[name] = sum
	}
	entries, err := staticFiles.ReadDir("static/vendor")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == "README.md" || e.Name() == "SHA256SUMS" {
			continue
		}
		body, err := staticFiles.ReadFile("static/vendor/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(body); known[e.Name()] != hex.EncodeToString(sum[:]) {
			t.Errorf("%s is not the file of SHA256SUMS", e.Name())
		}
		delete(known, e.Name())
	}
	if len(known) > 0 {
		t.Errorf("not there: %v", known)
	}
}

// What a first visit loads beside the page itself stays small on the wire.
func TestAssets(t *testing.T) {
	plain, packed := 0, 0
	for _, a := range Assets() {
		r, err := gzip.NewReader(bytes.NewReader(a.Gzip))
		if err != nil {
			t.Fatal(err)
		}
		back, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(back, a.Body) {
			t.Errorf("%s: the compressed form is another file: %v", a.Path, err)
		}
		plain, packed = plain+len(a.Body), packed+len(a.Gzip)
	}
	if packed > 40_000 {
		t.Errorf("the assets are %d bytes, compressed %d", plain, packed)
	}
}
