package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"openbot/domain"
)

// Every code has a status of its table, and what only logs may know is not shown.
func TestEveryCodeHasAStatus(t *testing.T) {
	want := map[domain.Code]int{
		domain.CodeInvalid: 422, domain.CodeUnauthenticated: 401, domain.CodeForbidden: 403, domain.CodeNotFound: 404,
		domain.CodeConflict: 409, domain.CodePrecondition: 409, domain.CodeExhausted: 429, domain.CodeUnavailable: 503,
		domain.CodeInternal: 500,
	}
	if len(statuses) != len(domain.Codes()) {
		t.Errorf("the table has %d rows for %d codes", len(statuses), len(domain.Codes()))
	}
	for _, code := range domain.Codes() {
		secret := errors.New("dial postgres://user:hush@db")
		for _, err := range []error{
			domain.Wrap(code, "", "Say this.", secret),
			fmt.Errorf("more: %w", domain.Wrap(code, "OwnTag", "Say this.", secret)),
		} {
			p := problemOf(err)
			if p.Status != want[code] || p.Tag == "" || p.Title == "" || p.Detail == "" {
				t.Errorf("%s gives %+v", code, p)
			}
			if strings.Contains(p.Detail, "hush") {
				t.Errorf("%s shows its cause: %s", code, p.Detail)
			}
			if (p.Detail == "Say this.") != (code != domain.CodeInternal) {
				t.Errorf("%s says %q", code, p.Detail)
			}
		}
	}
	for err, status := range map[error]int{errors.New("hush"): 500, context.DeadlineExceeded: 503, &domain.Error{Code: "new"}: 500} {
		if p := problemOf(err); p.Status != status || strings.Contains(p.Detail, "hush") {
			t.Errorf("%v gives %+v", err, p)
		}
	}
}

// What does not fit is said with its place, never with its value.
func TestTheFaultsOfBodies(t *testing.T) {
	for body, path := range map[string]string{
		`{"a":{"b":[1,{"c":1,"c":2}]}}`: "a.b[1].c",
		`["x","\u0000"]`:                "[1]",
		`{"a\u0000":1}`:                 "a",
		strings.Repeat("[", 102) + "1" + strings.Repeat("]", 102): strings.Repeat("[0]", 101),
	} {
		p := checkJSON([]byte(body))
		if p == nil || p.Status != 422 || len(p.Errors) != 1 || p.Errors[0].Path != path {
			t.Errorf("%s: %+v", body, p)
		}
	}
	for _, body := range []string{`{}`, `[]`, `null`, `{"a":{"a":1},"b":{"a":1}}`, `[{"a":1},{"a":1}]`, `"\u0001"`, `1e999`} {
		if p := checkJSON([]byte(body)); p != nil {
			t.Errorf("%s: %+v", body, p)
		}
	}
	for _, body := range []string{``, `{`, `{}{}`, `{'a':1}`, "\"\xff\"", `01`} {
		if p := checkJSON([]byte(body)); p == nil || p.Status != 400 || p.Tag != "InvalidJSON" {
			t.Errorf("%s: %+v", body, p)
		}
	}
}
