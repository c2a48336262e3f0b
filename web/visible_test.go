package web

import (
	"html"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

const mark = `<b class="odd">`

func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "",
		"plain \"text\" & <b>": "plain &#34;text&#34; &amp; &lt;b&gt;",
		"two\nlines\tand":      "two\nlines\tand",
		"a\u202eb":             "a" + mark + "U+202E</b>b",
		"\r":                   mark + "U+000D</b>",
		"\x7f\u0085":           mark + "U+007F</b>" + mark + "U+0085</b>",
		"x\u00a0y\u2028z":      "x" + mark + "U+00A0</b>y" + mark + "U+2028</b>z",
		"\u200b\ufeff\u3164":   mark + "U+200B</b>" + mark + "U+FEFF</b>" + mark + "U+3164</b>",
		"\U000e0041":           mark + "U+E0041</b>",
		"bad\xffbyte":          "bad" + mark + "U+FFFD</b>byte",
		"größe 你好 שלום":        "größe 你好 שלום",
	} {
		if got := string(Visible(text)); got != want {
			t.Errorf("%q gives %q, not %q", text, got, want)
		}
	}
}

var marks = regexp.MustCompile(`<b class="odd">(U\+[0-9A-F]{4,6}|and [0-9]+ more)</b>|<i>U\+[0-9A-F]{4,6}</i>|</?b( class="like")?>`)

// Whatever the text: beside the marks there is no markup and no character that
// cannot be seen, and nothing that can be seen is lost.
func TestVisibleHidesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		got := marks.ReplaceAllString(string(Visible(text)), "")
		if strings.ContainsAny(got, "<>") {
			t.Fatalf("markup in %q", got)
		}
		var seen strings.Builder
		for _, r := range text {
			if !hidden(r, true) {
				seen.WriteRune(r)
			}
		}
		if plain := html.UnescapeString(got); plain != seen.String() {
			t.Fatalf("%q shows as %q", text, plain)
		}
	})
}

// What only looks like a letter is shown with its number; a text of another script
// alone is left as it is.
func TestLookAlikes(t *testing.T) {
	for text, marked := range map[string]string{
		"plain text.":          "",
		"größe naïve Ærø":      "",
		"Привет мир":           "",
		"Καλημέρα κόσμε":       "",
		"שלום 你好 ":             "",
		"pаypal.com":           "а",
		"аррӏе":                "аррӏе",
		"login ааа":            "ааа",
		"ｅxample":              "ｅ",
		"𝐚nn":                  "𝐚",
		"mail․example":         "․",
		"a∕b":                  "∕",
		"e\u0301":              "",
		"e\u0301\u0301\u0301":  "\u0301",
		"два слова and pаypal": "а",
	} {
		got := ""
		for _, at := range lookAlikes(text) {
			r, _ := utf8.DecodeRuneInString(text[at:])
			got += string(r)
		}
		if got != marked {
			t.Errorf("%q: marked are %q, not %q", text, got, marked)
		}
	}
	if got := string(Visible("<pаy>")); got != `&lt;p<b class="like">а<i>U+0430</i></b>y&gt;` {
		t.Errorf("shown as %s", got)
	}
}

// A flood of characters that cannot be seen is counted, and stays small.
func TestFloodsStaySmall(t *testing.T) {
	if got := string(Visible("a" + strings.Repeat("\u200b", 100_000) + "b")); !strings.Contains(got, "and 99988 more") || len(got) > 1000 {
		t.Errorf("%d bytes: %.200s", len(got), got)
	}
	if got := string(VisibleLine("a\nb\tc")); got != `a<b class="odd">U+000A</b>b<b class="odd">U+0009</b>c` {
		t.Errorf("a line with breaks shows as %s", got)
	}
	if got := string(Words("every `a<b` of `")); got != "every <code>a&lt;b</code> of <code></code>" {
		t.Errorf("the words are %s", got)
	}
}
