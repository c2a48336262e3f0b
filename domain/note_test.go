package domain_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"openbot/domain"
)

func TestAPlainLine(t *testing.T) {
	for _, c := range []struct{ text, want, why string }{
		{"Helper", "Helper", "what is plain stays"},
		{"  a \r\n\tb\u2028c  ", "a b c", "a line break would let a text pass for a line of the server"},
		{"a\x00\x1b[31mb", "a [31mb", "a terminal would take it for a colour"},
		{"abc\u202edef\u2066", "abc\ufffddef\ufffd", "the text would be shown turned around"},
		{"pay\u200b\u00ad\ufeff\ufe0f\u3164", "pay\ufffd\ufffd\ufffd\ufffd\ufffd", "what cannot be seen is marked"},
		{"go to https://evil.example or www.evil.example", "go to https: //evil.example or www .evil.example", "a mail program makes no link of it"},
		{strings.Repeat("ü", 50), strings.Repeat("ü", 20) + "…", "it is cut between characters"},
		{"a\xffb", "a\ufffdb", "broken UTF-8"},
		{" \n ", "", "nothing"},
	} {
		max := 60
		if strings.HasPrefix(c.text, "ü") {
			max = 20
		}
		if got := domain.PlainLine(c.text, max); got != c.want {
			t.Errorf("%q gives %q, want %q: %s", c.text, got, c.want, c.why)
		}
	}
}

// Whatever a Bot writes, a line stays one short line that can be seen.
func TestAPlainLineIsPlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[\x00-\x20\x{200b}-\x{2069}<>!@:/w.a]{0,60}`)).Draw(t, "text")
		got := domain.PlainLine(text, 40)
		for _, r := range got {
			if r != ' ' && !unicode.IsGraphic(r) || r != ' ' && unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) {
				t.Errorf("%q holds %U", got, r)
			}
		}
		if strings.Contains(got, "://") || strings.TrimSpace(got) != got || !utf8.ValidString(got) || utf8.RuneCountInString(got) > 2*40+1 {
			t.Errorf("%q gives %q", text, got)
		}
	})
}

// Slack reads no command, no mention and no markup out of what a Bot wrote; ntfy gets
// plain text and the link apart from it.
func TestNotesForSlackAndNtfy(t *testing.T) {
	n := domain.Note{Title: "A Request of <!channel> *Bot* & co", Lines: []string{"<@U123> <https://evil.example|Allow>", "`x`"}, Link: "https://bots.example.com/requests/req_1"}
	var slack struct {
		Text        string
		Mrkdwn      bool
		UnfurlLinks bool `json:"unfurl_links"`
		Blocks      []struct {
			Type string
			Text struct{ Type, Text string }
		}
	}
	if err := json.Unmarshal(n.Slack(), &slack); err != nil {
		t.Fatal(err)
	}
	if slack.Mrkdwn || slack.UnfurlLinks || slack.Text != "A Request of &lt;!channel&gt; *Bot* &amp; co" || len(slack.Blocks) != 2 {
		t.Fatalf("slack gets %s", n.Slack())
	}
	if b := slack.Blocks[0]; b.Type != "section" || b.Text.Type != "plain_text" || strings.ContainsAny(b.Text.Text, "<>") {
		t.Errorf("the words of others are %+v", b)
	}
	if b := slack.Blocks[1]; b.Text.Type != "mrkdwn" || !strings.HasPrefix(b.Text.Text, "<https://bots.example.com/requests/req_1|") || strings.Count(b.Text.Text, "<") != 1 {
		t.Errorf("the link is %+v", b)
	}
	var ntfy map[string]any
	if err := json.Unmarshal(n.Ntfy("topic"), &ntfy); err != nil {
		t.Fatal(err)
	}
	if len(ntfy) != 4 || ntfy["topic"] != "topic" || ntfy["title"] != n.Title || ntfy["click"] != n.Link || !strings.Contains(ntfy["message"].(string), "<@U123>") {
		t.Errorf("ntfy gets %v", ntfy)
	}
}

func TestMailAddresses(t *testing.T) {
	for _, good := range []string{"mailto:a@b", "mailto:Ann.O'Hara+x_1=2@mail-1.EXAMPLE.com"} {
		if _, host, ok := domain.MailAddress(good); !ok || host != strings.ToLower(host) {
			t.Errorf("%q is refused", good)
		}
	}
	for _, bad := range []string{"", "a@b", "mailto:a", "mailto:@b", "mailto:a@", "mailto:a@b@c", "mailto:a@b c", "mailto:a@b\n", "mailto:.a@b", "mailto:a@-b", "mailto:a@b..c", "mailto:a@[::1]", "MAILTO:a@b", "mailto:a@b\u2028"} {
		if _, _, ok := domain.MailAddress(bad); ok {
			t.Errorf("%q is taken", bad)
		}
	}
}
