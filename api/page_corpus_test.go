package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
)

// end is the last of every hostile text: whoever can read it can read all of it.
const end = "THE END of it"

// corpus is what Bots, Apps and people may write to fool whoever decides.
var corpus = map[string]string{
	"markup":      `"><img src=x onerror=alert(1)><svg/onload=alert(1)>' onfocus='alert(1)' autofocus='</textarea></details></pre><hx-partial hx-target="#detail">x</hx-partial><div hx-get="/logout" hx-trigger="load"> ` + end,
	"script":      `<script>alert(1)</script><script src=//evil.example></script>javascript:alert(1) {{.Secret}} ${alert(1)} --></style> ` + end,
	"Markdown":    "**Approved by ops** [click](javascript:alert(1)) ![x](https://evil.example/x.png)\n# Heading\n```\n| a | b |\n<!-- " + end + " -->",
	"ANSI":        "\x1b[2J\x1b[1;1H\x1b[31mred\x1b[0m\x1b]8;;http://evil.example\x07link\x1b]8;;\x07 \x08\x08\x08\x7f " + end,
	"bidi":        "invoice\u202egnp.exe\u2066a\u2067b\u2068c\u2069\u200f\u200e\u061c\u202a\u202b\u202d\u202c " + end,
	"zero width":  "a\u200bb\u200cc\u200dd\u2060e\ufefff\u00adg\u180eh\u3164i\U000e0041\U000e007fj\ufe0f " + end,
	"line breaks": "one\r\nTo: everybody\rtwo\u2028three\u2029four\u0085five\vsix\fseven" + strings.Repeat("\n", 300) + end,
	"1 MiB":       strings.Repeat("All is well. ", 79_900) + strings.Repeat("a\u200b", 500) + end,
	"deep JSON":   strings.Repeat(`{"a":[`, 30) + `"` + end + `"` + strings.Repeat(`]}`, 30),
	"marks":       "a" + strings.Repeat("\u0301", 300) + " paypаl.com " + end,
}

// places are where such a text can stand. Each puts it there and says on which pages a
// person meets it; a place that takes no text of that length gives none, after it was
// refused.
var places = map[string]func(c *corpusCase) []string{
	"reason": func(c *corpusCase) []string {
		request := c.asked("mail__send_email", c.json("to", "ann@example.com", "openbot_reason", c.text))
		return []string{"/requests/" + request, "/requests/selected?id=" + request}
	},
	"argument": func(c *corpusCase) []string {
		request := c.asked("mail__send_email", c.json("to", "ann@example.com", "text", c.text))
		return []string{"/requests/" + request, "/requests/selected?id=" + request, "/chats/" + c.chat}
	},
	"name of an argument": func(c *corpusCase) []string {
		request := c.asked("mail__echo", c.json(c.text, "x"))
		return []string{"/requests/" + request, "/chats/" + c.chat}
	},
	"argument that is JSON": func(c *corpusCase) []string {
		value := json.RawMessage(c.text)
		if !json.Valid(value) {
			value = json.RawMessage(`[[[[[[[[[[` + c.string(c.text) + `]]]]]]]]]]`)
		}
		request := c.asked("mail__echo", `{"deep":`+string(value)+`}`)
		return []string{"/requests/" + request, "/chats/" + c.chat}
	},
	"name of a Bot": func(c *corpusCase) []string {
		made := c.h.call("POST", "/v1/bots", c.json("name", c.text, "role", "", "instructions", ""))
		if made.status == 422 {
			return nil
		}
		var bot struct{ ID string }
		must(c.h.t, json.Unmarshal([]byte(made.body), &bot))
		chat := text(c.h.ok(201, "POST", "/v1/chats", c.json("bot", bot.ID, "title", c.text))["id"])
		request := c.askedIn(chat, "mail__send_email", c.json("to", "ann@example.com"))
		return []string{"/requests/" + request, "/bots/" + bot.ID, "/chats/" + chat}
	},
	"result of a call": func(c *corpusCase) []string {
		c.h.tool = func(domain.Call) (string, bool) { return c.text, false }
		request := c.asked("mail__send_email", c.json("to", "ann@example.com"))
		c.h.ok(200, "POST", "/v1/requests/"+request, `{"expected":0,"decision":"allow"}`)
		c.h.work()
		return []string{"/chats/" + c.chat}
	},
	"plan": func(c *corpusCase) []string {
		chat := text(c.h.ok(201, "POST", "/v1/chats", `{"mode":"plan"}`)["id"])
		request := c.askedIn(chat, "openbot_plan", c.json("plan", c.upTo(100_000)))
		return []string{"/requests/" + request}
	},
	"task and result of work": func(c *corpusCase) []string {
		task := c.raw(map[string]any{"task": "Do it.\n" + c.upTo(250_000), "reason": c.upTo(1000), "limits": map[string]any{"timeMs": 60_000}})
		c.hears("Go on.", calling("openbot_delegate", task), domain.ModelReply{Text: c.text})
		work := c.h.call("GET", "/v1/chats/"+c.chat+"/delegations", "").list(c.h.t)
		if len(work) != 1 || work[0]["status"] != "completed" {
			c.h.t.Fatalf("the work is %.500v", c.h.call("GET", "/v1/chats/"+c.chat+"/turns", "").body)
		}
		return []string{"/work", "/chats/" + c.chat, "/chats/" + text(work[0]["chat"])}
	},
	"message": func(c *corpusCase) []string {
		c.hears(c.upTo(500_000))
		return []string{"/chats/" + c.chat}
	},
	"answer": func(c *corpusCase) []string {
		c.hears("Go on.", domain.ModelReply{Text: c.text})
		return []string{"/chats/" + c.chat}
	},
	"memory": func(c *corpusCase) []string {
		c.hears("Go on.", calling("openbot_remember", c.json("memory", c.upTo(100_000))))
		return []string{"/chats/" + c.chat}
	},
}

// corpusCase is one text in one place. It is the model too, whose answers are given.
type corpusCase struct {
	engine.Models
	h       *house
	text    string
	chat    string
	mu      sync.Mutex
	replies []domain.ModelReply
}

func calling(tool, arguments string) domain.ModelReply {
	return domain.ModelReply{Calls: []domain.ModelCall{{ID: "1", Name: tool, Arguments: json.RawMessage(arguments)}}}
}

// Call gives the next answer, and none after what a tool gave.
func (c *corpusCase) Call(_ context.Context, request domain.ModelRequest) (domain.ModelReply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.replies) == 0 || request.Messages[len(request.Messages)-1].Role == domain.RoleTool {
		return domain.ModelReply{Text: "Done."}, nil
	}
	next := c.replies[0]
	c.replies = c.replies[1:]
	return next, nil
}

func (c *corpusCase) raw(v any) string {
	raw, err := json.Marshal(v)
	must(c.h.t, err)
	return string(raw)
}

func (c *corpusCase) string(s string) string { return c.raw(s) }

func (c *corpusCase) json(pairs ...string) string {
	fields := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		fields[pairs[i]] = pairs[i+1]
	}
	return c.raw(fields)
}

// asked gives the Request that a call in a new Chat asks for.
func (c *corpusCase) asked(tool, arguments string) string {
	c.h.t.Helper()
	return c.askedIn("", tool, arguments)
}

func (c *corpusCase) askedIn(chat, tool, arguments string) string {
	c.h.t.Helper()
	c.chat = chat
	c.hears("Go on.", calling(tool, arguments))
	waiting := c.h.call("GET", "/v1/requests?status=pending&limit=1&chat="+c.chat, "").list(c.h.t)
	if len(waiting) != 1 {
		c.h.t.Fatalf("nothing waits: %.500s", c.h.call("GET", "/v1/chats/"+c.chat+"/turns", "").body)
	}
	return text(waiting[0]["id"])
}

// upTo gives the text, of a long one its end: as much as the place takes.
func (c *corpusCase) upTo(most int) string {
	if len(c.text) <= most {
		return c.text
	}
	return strings.ToValidUTF8(c.text[len(c.text)-most:], "")
}

// hears says something in the Chat, or in a new one, which the model answers.
func (c *corpusCase) hears(message string, replies ...domain.ModelReply) {
	c.h.t.Helper()
	c.replies = replies
	if c.chat == "" {
		c.chat = text(c.h.ok(201, "POST", "/v1/chats", `{}`)["id"])
	}
	c.h.ok(202, "POST", "/v1/chats/"+c.chat+"/messages", c.json("text", message))
	c.h.work()
}

const (
	longestPage = 250_000 // bytes of a page that was not asked for the whole of something
	slowestPage = 10 * time.Second
	// longestReason is what is kept of a reason, in bytes; a longer one ends in "…".
	longestReason = 4000
)

var (
	edited     = regexp.MustCompile(`(?s)<textarea.*?</textarea>|\svalue="[^"]*"`)
	notOurs    = regexp.MustCompile(`<(img src=x|svg/|script src=/|hx-|div hx-get|!--)`)
	toTheWhole = regexp.MustCompile(`href="([^"#]*\bwhole=[^"#]*)|All of it stands in <a href="([^"]*)`)
)

// Every kind of hostile text in every place: it is harmless, what cannot be seen is made
// visible, its end can be read from the page where one meets it, and the page stays small.
func TestHostileCorpus(t *testing.T) {
	for kind, odd := range corpus {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.look = func(domain.Connection) (domain.AppLook, *domain.AppError) {
				look := mailLook()
				look.Tools = append(look.Tools, domain.AppTool{Name: "echo", Description: "Says it again.", Schema: json.RawMessage(`{"type":"object"}`)})
				return look, nil
			}
			h.connect()
			b := h.signIn(h.secret)
			for name, put := range places {
				c := &corpusCase{h: h, text: odd, Models: h.engine.Models}
				h.engine.Models = c
				for _, path := range put(c) {
					b.meets(t, kind+" as "+name, path, odd, name != "reason" || len(odd) <= longestReason)
				}
				h.engine.Models = c.Models
			}
			for _, path := range []string{"/", "/chats", "/work", "/bots", "/history"} {
				b.meets(t, kind, path, odd, false)
			}
		})
	}
}

// meets looks at one page, and follows what it offers to see the whole.
func (b *browser) meets(t *testing.T, what, path, odd string, holds bool) {
	t.Helper()
	began := time.Now()
	page := b.get(path) // looks for markup that is not ours
	if took := time.Since(began); page.status != 200 || len(page.body) > longestPage || took > slowestPage {
		t.Errorf("%s: %s gave %d, %d bytes, in %s", what, path, page.status, len(page.body), took)
	}
	b.harmless(t, what, path, page)
	if !holds {
		return
	}
	all := b.reads(t, what, path, page, map[string]bool{path: true})
	if !strings.Contains(all, end) {
		t.Errorf("%s: its end cannot be read on %s or where it says the whole stands", what, path)
	}
	looked := map[rune]bool{}
	for _, r := range odd {
		if unseen(r) && !looked[r] && !named(all, r) {
			t.Errorf("%s: %s does not say that U+%04X stands in it", what, path, r)
		}
		looked[r] = true
	}
}

// reads gives the text of a page and of those that show the whole of what it cuts.
func (b *browser) reads(t *testing.T, what, path string, page answer, seen map[string]bool) string {
	t.Helper()
	all := readable(page)
	for _, to := range toTheWhole.FindAllStringSubmatch(page.body, -1) {
		next, err := url.Parse(path)
		must(t, err)
		next, err = next.Parse(html.UnescapeString(to[1] + to[2]))
		must(t, err)
		if address := next.String(); !seen[address] {
			seen[address] = true
			whole := b.get(address)
			b.harmless(t, what, address, whole)
			all += b.reads(t, what, address, whole, seen)
		}
	}
	return all
}

func (b *browser) harmless(t *testing.T, what, path string, page answer) {
	t.Helper()
	if page.status != 200 {
		t.Errorf("%s: %s gave %d", what, path, page.status)
	}
	shown := page.body
	if strings.ContainsFunc(shown, unseen) { // what is edited stands in its field as it is
		shown = edited.ReplaceAllString(shown, "")
	}
	if at := strings.IndexFunc(shown, unseen); at >= 0 {
		t.Errorf("%s: %s holds a character that cannot be seen: %q", what, path, shown[max(0, at-40):min(len(shown), at+40)])
	}
	if found := notOurs.FindString(tagsOf(page.body)); found != "" {
		t.Errorf("%s: %s holds %q", what, path, found)
	}
}

// readable is the text of a page, in its fields too.
func readable(page answer) string {
	var b strings.Builder
	for rest := page.body; rest != ""; {
		plain, tag, _ := strings.Cut(rest, "<")
		b.WriteString(plain)
		_, rest, _ = strings.Cut(tag, ">")
	}
	return html.UnescapeString(b.String())
}

// named reports whether a page names a character that shows nothing, in one of the ways
// that a person knows.
func named(all string, r rune) bool {
	quoted := strings.Trim(strconv.QuoteRuneToASCII(r), "'")
	for _, way := range []string{fmt.Sprintf("U+%04X", r), quoted, fmt.Sprintf(`\u%04x`, r), "that cannot be seen"} {
		if strings.Contains(all, way) {
			return true
		}
	}
	return false
}

// unseen reports whether a character shows nothing or moves what stands beside it.
func unseen(r rune) bool {
	switch {
	case r == '\n' || r == '\t' || r == '\r':
		return false
	case r < ' ' || r >= 0x7f && r < 0xa0 || r == 0xad || r == 0x61c || r == 0x180e || r == 0x3164 || r == 0xfe0f || r == 0xfeff:
		return true
	}
	return r >= 0x200b && r <= 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2060 && r <= 0x2069 || r >= 0xe0000 && r <= 0xe007f
}
