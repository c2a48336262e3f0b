package domain_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// The work for hostile texts grows with their length and not faster: a text takes as
// long as eight of an eighth of its length, where it would take eight times as long if
// each part were looked at again for every part that follows.
func TestRedactionIsNotSlowOnHostileTexts(t *testing.T) {
	text := func(part string) func(int) {
		return func(size int) { strictly.Text(strings.Repeat(part, size/len(part))) }
	}
	hostile := map[string]func(int){
		"a list in a list": func(size int) {
			strictly.JSON([]byte(strings.Repeat(`[`, size/2) + strings.Repeat(`]`, size/2)))
		},
		"names that become the same": func(size int) {
			strictly.JSON([]byte(`{` + strings.Repeat(`"`+fake("ghp_", 20)+`":1,`, size/28) + `"a":1}`))
		},
		"pairs in one object": func(size int) {
			strictly.JSON([]byte(`{"name":"token"` + strings.Repeat(`,"value":"password=x"`, size/21) + `}`))
		},
		"pairs in each other": func(size int) {
			in := strings.Repeat(`{"name":"x","data":["password=x",`, 30) + strings.Repeat(`"token=x",`, size/10) + `1` + strings.Repeat(`]}`, 30)
			strictly.JSON([]byte(in))
		},
		"JSON in JSON": func(size int) {
			in := strings.Repeat("password=x ", size/64)
			for range 3 {
				raw, err := json.Marshal([]string{in, "y"})
				if err != nil {
					t.Fatal(err)
				}
				in = string(raw)
			}
			strictly.Text(in)
		},
	}
	for _, part := range []string{"a:", "1 ", "password=", "://", "://a:b@", "-a \"", "\"", ">", "<a>", "a@", "sk-", "ghp_", "eyJ", "AB12 ", "password \"", "password: '", " is ",
		"tokens=1 ", "PRIVATE KEY", "BEGIN PRIVATE KEY", "secret ''", "\\", "\\\":", "0123456 ", "bearer ", "[", "{\"a\":", "[redacted]=", "password is a ", "token: token: ", "password=[", "password=\n", "<token>", "&quot;:"} {
		hostile[part] = text(part)
	}
	const parts, size = 8, 1 << 16
	for name, run := range hostile {
		took := func(times, size int) time.Duration {
			began := time.Now()
			for range times {
				run(size)
			}
			return time.Since(began)
		}
		// A busy machine may hold up one of the two; what is slow is so every time.
		fast := false
		for try := 0; try < 8 && !fast; try++ {
			fast = took(1, size) < 4*took(parts, size/parts)
		}
		if !fast {
			t.Errorf("%q takes longer than its length", name)
		}
	}
}
