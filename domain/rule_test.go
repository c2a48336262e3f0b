package domain_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"openbot/domain"
)

func TestSentences(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                   nil,
		"   \n\t":                            nil,
		"One":                                {"One"},
		"One. Two!  Three? Four… Five":       {"One.", "Two!", "Three?", "Four…", "Five"},
		"con_7/a.b at 10.5 o'clock. Next":    {"con_7/a.b at 10.5 o'clock.", "Next"},
		"A line\nand another\r\n\r\nthe end": {"A line", "and another", "the end"},
		"Wait... What?! Yes":                 {"Wait...", "What?!", "Yes"},
		" folded \t white  space. ":          {"folded white space."},
	} {
		if got := domain.Sentences(text); !slices.Equal(got, want) {
			t.Errorf("%q has the sentences %q, want %q", text, got, want)
		}
	}
}

func TestWhatAQuoteIs(t *testing.T) {
	rule := domain.Rule{Text: "Allow mail to Ann. Never to Bob!\nAsk about Cid?  Be kind"}
	for quote, want := range map[string]bool{
		"Allow mail to Ann.":                    true,
		"Never to Bob!":                         true,
		"Be kind":                               true,
		"Allow mail to Ann. Never to Bob!":      true,
		"Never to Bob! Ask about Cid?":          true,
		"Never to Bob!\n  Ask about\tCid?":      true,
		" Allow mail to Ann. ":                  true,
		"":                                      false,
		"   ":                                   false,
		".":                                     false,
		"Allow mail to Ann":                     false,
		"mail to Ann.":                          false,
		"allow mail to ann.":                    false,
		"Allow mail to Ann. Ask about Cid?":     false,
		"Ask about Cid? Never to Bob!":          false,
		"Allow mail to Ann. Never to":           false,
		"Allow mail to Ann. Allow mail to Ann.": false,
		"Allow mail to Ann. Never to Bob! Be kind":   false,
		"Allow mail to Ann.Never to Bob!":            false,
		"\"Allow mail to Ann.\"":                     false,
		"Allow mail to Ann. Never to Bob! Ask about": false,
	} {
		if rule.Holds(quote) != want {
			t.Errorf("%q stands in the Rule: %v, want %v", quote, !want, want)
		}
	}
}

// Whatever stands in a Rule as whole sentences is a quote, and nothing else is.
func TestQuotesAreWholeSentences(t *testing.T) {
	word := rapid.StringMatching(`[a-c]{1,2}[.!?]?`)
	rapid.Check(t, func(t *rapid.T) {
		rule := domain.Rule{Text: strings.Join(rapid.SliceOfN(word, 1, 8).Draw(t, "rule"), " ")}
		quote := strings.Join(rapid.SliceOfN(word, 0, 4).Draw(t, "quote"), " ")
		sentences := domain.Sentences(rule.Text)
		want := false
		for i := range sentences {
			for j := i + 1; j <= len(sentences); j++ {
				want = want || strings.Join(sentences[i:j], " ") == quote
			}
		}
		if got := rule.Holds(quote); got != want {
			t.Fatalf("%q in %q: %v", quote, rule.Text, got)
		}
	})
}

// No answer whatsoever gives an allow that no Rule holds, and a deny that counts beats
// every allow.
func TestNoAnswerAllowsWhatNoRuleSays(t *testing.T) {
	reached := map[string]int{}
	law := func(t *rapid.T) {
		var rules []domain.Rule
		for i := range rapid.SampledFrom([]int{3, 3, 2, 1, 0}).Draw(t, "rules") {
			rules = append(rules, domain.Rule{ID: domain.RuleID(fmt.Sprintf("rul_%d", i)), Enabled: true, Version: 1,
				Text:   rapid.SampledFrom([]string{"Allow it.", "Never. Ever.", "Allow it. Never."}).Draw(t, "text"),
				Effect: rapid.SampledFrom([]string{"either", "either", "allow", "deny", ""}).Draw(t, "effect"),
				Keeper: rapid.SampledFrom([]domain.BotID{"", "", "", "bot_9"}).Draw(t, "keeper")})
		}
		type quote struct {
			Rule    string `json:"rule"`
			Verdict string `json:"verdict"`
			Quote   string `json:"quote"`
		}
		var quotes []quote
		for range rapid.SampledFrom([]int{0, 0, 1, 2, 3, 4}).Draw(t, "quotes") {
			quotes = append(quotes, quote{rapid.SampledFrom([]string{"rul_0", "rul_0", "rul_1", "rul_1", "rul_2", "rul_9", ""}).Draw(t, "of"),
				rapid.SampledFrom([]string{"allow", "allow", "deny", "deny", "Allow", ""}).Draw(t, "verdict"),
				rapid.SampledFrom([]string{"Allow it.", "Allow it.", "Never.", "Never.", "Ever.", "Never. Ever.", "it.", ""}).Draw(t, "quote")})
		}
		if len(rules) > 0 && rapid.IntRange(0, 2).Draw(t, "an honest one") < 2 {
			r := rapid.SampledFrom(rules).Draw(t, "honest of")
			quotes = append(quotes, quote{string(r.ID), rapid.SampledFrom([]string{"allow", "deny"}).Draw(t, "honest verdict"), domain.Sentences(r.Text)[0]})
		}
		raw, err := json.Marshal(map[string]any{"quotes": quotes})
		if err != nil {
			t.Fatal(err)
		}
		answer := string(raw)
		if rapid.IntRange(0, 9).Draw(t, "broken") == 9 {
			answer = answer[:rapid.IntRange(0, len(answer)).Draw(t, "cut")]
		}
		v := domain.ReadVerdict(rules, answer)
		reached[v.Decision]++
		counts := func(verdict string) (is bool) {
			for _, q := range quotes {
				for _, r := range rules {
					fits := q.Verdict == "allow" && r.Keeper == "" && r.Effect != "deny" && r.Effect != "" ||
						q.Verdict == "deny" && (r.Keeper != "" || r.Effect == "deny" || r.Effect == "either")
					is = is || string(r.ID) == q.Rule && q.Verdict == verdict && fits && r.Holds(q.Quote)
				}
			}
			return is
		}
		if v.Decision == "allow" && (!counts("allow") || counts("deny")) || v.Decision == "deny" && !counts("deny") {
			t.Fatalf("%s came to %+v with %+v", answer, v, rules)
		}
		if v.Decision == "" && (v.Quote != "" || v.Rule != "" || v.Why == "") {
			t.Fatalf("no decision with %+v", v)
		}
	}
	// A hundred draws reach every end nearly always; some more always.
	for range 5 {
		rapid.Check(t, law)
	}
	for _, d := range []string{"allow", "deny", ""} {
		if reached[d] == 0 {
			t.Errorf("no answer came to %q", d)
		}
	}
}

// A fence around the JSON is forgiven, and nothing else.
func TestWhatAroundTheAnswerIsForgiven(t *testing.T) {
	rules := []domain.Rule{{ID: "rul_1", Text: "Allow it.", Effect: "allow", Enabled: true}}
	const good = `{"quotes":[{"rule":"rul_1","verdict":"allow","quote":"Allow it."}]}`
	for answer, want := range map[string]string{
		good: "allow", "  " + good + "\n": "allow", "```json\n" + good + "\n```": "allow", "```\n" + good + "```": "allow",
		"Sure: " + good: "", good + " Done.": "", good + good: "", "```json\n" + good: "", "[" + good + "]": "", "null": "", "": "", "{}": "",
		`{"quotes":"allow"}`: "", `{"quotes":[["rul_1","allow","Allow it."]]}`: "", strings.Replace(good, "[{", "[null,{", 1): "",
	} {
		if v := domain.ReadVerdict(rules, answer); v.Decision != want {
			t.Errorf("%q came to %q (%s), want %q", answer, v.Decision, v.Why, want)
		}
	}
}

// An allow is read twice, the second time without a word of the Bot.
func TestAnAllowIsReadTwice(t *testing.T) {
	rules := []domain.Rule{{ID: "rul_1", Text: "Never send.", Effect: "either", Enabled: true, Version: 1}}
	c := domain.JudgeCase{Rules: rules, Capability: mail, Tool: "send", Arguments: json.RawMessage(`{"x":"SECRET WORDS"}`), Reason: "SECRET WORDS"}
	first := domain.ModelRequest{Model: "m", Messages: []domain.ModelMessage{{Text: domain.TextJudge(c)}}, Script: domain.Script{Judge: &c}}
	said := func(verdict, quote string) string {
		return fmt.Sprintf(`{"quotes":[{"rule":"rul_1","verdict":%q,"quote":%q}]}`, verdict, quote)
	}
	for _, k := range []struct {
		name, second, why string
		want              string
	}{
		{"it says the same", said("allow", "Never send."), "", "allow"},
		{"it says the opposite", said("deny", "Never send."), "", ""},
		{"it says nothing", `{"quotes":[]}`, "", ""},
		{"it says something else", "yes", "", ""},
		{"it fails", "", "down", ""},
	} {
		asked := 0
		v := domain.AskJudge(first, rules, func(r domain.ModelRequest) (string, string) {
			if asked++; asked == 1 {
				return said("allow", "Never send."), ""
			}
			if text := r.System + r.Messages[0].Text; strings.Contains(text, "SECRET") || !strings.Contains(text, "Never send.") || r.Script.Judge.Reason != "" {
				t.Errorf("the second reading sees %s", text)
			}
			return k.second, k.why
		})
		if v.Decision != k.want || asked != 2 {
			t.Errorf("%s: it came to %q after %d questions (%s)", k.name, v.Decision, asked, v.Why)
		}
	}
	asked := 0
	v := domain.AskJudge(first, rules, func(domain.ModelRequest) (string, string) { asked++; return said("deny", "Never send."), "" })
	if v.Decision != "deny" || asked != 1 {
		t.Errorf("a deny came to %q after %d questions", v.Decision, asked)
	}
}
