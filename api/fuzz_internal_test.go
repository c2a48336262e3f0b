package api

import (
	"net/http"
	"strings"
	"testing"
)

// A cursor is taken by its own list alone, in the one spelling that the list gives it.
func FuzzCursor(f *testing.F) {
	const id = "req_018f6b1c2d3e7a4b8c9d0e1f2a3b4c5d"
	for _, seed := range []string{"", "x", "AA", cursorAfter("approvals", id), cursorAfter("requests", id), cursorAfter("approvals", ""), cursorAfter("approvals", id) + "=", "AXJlcV8xIGFwcHJvdmFscw", "AWEgYXBwcm92YWxz\n"} {
		f.Add(seed, "approvals")
	}
	f.Fuzz(func(t *testing.T, cursor, list string) {
		page, err := Paged{Limit: 1, Cursor: cursor}.page(list)
		switch {
		case cursor == "":
			if err != nil || page.Before != "" {
				t.Fatalf("the first page is refused: %v", err)
			}
		case err == nil:
			if !plainID(page.Before) || cursorAfter(list, page.Before) != cursor {
				t.Fatalf("%q is taken for the place after %q", cursor, page.Before)
			}
			if _, err := (Paged{Limit: 1, Cursor: cursor}).page(list + "s"); err == nil {
				t.Fatalf("%q is taken by another list as well", cursor)
			}
		case page.Before != "":
			t.Fatalf("%q is refused and gives a place all the same", cursor)
		}
		if plainID(cursor) {
			if page, err := (Paged{Cursor: cursorAfter(list, cursor)}).page(list); err != nil || page.Before != cursor {
				t.Fatalf("the cursor after %q gives %q, %v", cursor, page.Before, err)
			}
		}
	})
}

// The secret is what stands after the one scheme, and nothing else of the header.
func FuzzBearer(f *testing.F) {
	for _, seed := range []string{"", "Bearer", "Bearer ", "Bearer x", "bEARER  x y ", "Basic x", "Bearer\tx", "Bearer \x00", " Bearer x", "Bearer\u00a0x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		secret, given := bearer(&http.Request{Header: http.Header{"Authorization": {header}}})
		if !given {
			if len(header) > len("Bearer ") && strings.EqualFold(header[:len("Bearer ")], "Bearer ") {
				t.Fatalf("%q gives no secret", header)
			}
			return
		}
		if !strings.EqualFold(header[:len("Bearer ")], "Bearer ") || secret != strings.TrimSpace(header[len("Bearer "):]) {
			t.Fatalf("%q gives the secret %q", header, secret)
		}
	})
}
