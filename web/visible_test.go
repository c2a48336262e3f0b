package web

import (
	"html"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

const mark = `<span class="hidden-char" title="a character that cannot be seen">`

func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "",
		"plain \"text\" & <b>": "plain &#34;text&#34; &amp; &lt;b&gt;",
		"two\nlines\tand":      "two\nlines\tand",
		"a\u202eb":             "a" + mark + "U+202E</span>b",
		"\r":                   mark + "U+000D</span>",
		"\x7f\u0085":           mark + "U+007F</span>" + mark + "U+0085</span>",
		"x\u00a0y\u2028z":      "x" + mark + "U+00A0</span>y" + mark + "U+2028</span>z",
		"\u200b\ufeff\u3164":   mark + "U+200B</span>" + mark + "U+FEFF</span>" + mark + "U+3164</span>",
		"\U000e0041":           mark + "U+E0041</span>",
		"bad\xffbyte":          "bad" + mark + "U+FFFD</span>byte",
		"größe 你好 שלום":        "größe 你好 שלום",
	} {
		if got := string(Visible(text)); got != want {
			t.Errorf("%q gives %q, not %q", text, got, want)
		}
	}
}

var marks = regexp.MustCompile(`<span class="hidden-char" title="a character that cannot be seen">U\+[0-9A-F]{4,6}</span>`)

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
			if !hidden(r) && r != utf8.RuneError {
				seen.WriteRune(r)
			}
		}
		if plain := html.UnescapeString(got); plain != seen.String() {
			t.Fatalf("%q shows as %q", text, plain)
		}
	})
}
