package domain

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
)

// EffectEither is the effect of a Rule that may allow as well as deny.
const EffectEither = "either"

// Applies reports whether the Rule speaks in work of this Bot for this Member.
func (r Rule) Applies(bot BotID, member MemberID) bool {
	return r.Enabled && r.DeletedAt == nil && r.Text != "" && (r.Bot == "" || r.Bot == bot && r.Member == member)
}

// takes reports whether a verdict fits the Rule. One that a Bot keeps can only deny,
// whatever its row says.
func (r Rule) takes(verdict string) bool {
	switch verdict {
	case DecisionDeny:
		return r.Effect == DecisionDeny || r.Effect == EffectEither || r.Keeper != ""
	case DecisionAllow:
		return r.Keeper == "" && (r.Effect == DecisionAllow || r.Effect == EffectEither)
	}
	return false
}

// Holds reports whether a quote stands in the Rule: one or more whole sentences of
// it, in their order, word for word, with white space folded.
func (r Rule) Holds(quote string) bool {
	quote = strings.Join(strings.Fields(quote), " ")
	if quote == "" {
		return false
	}
	sentences := Sentences(r.Text)
	for i := range sentences {
		text := ""
		for _, s := range sentences[i:] {
			text = strings.TrimPrefix(text+" "+s, " ")
			if text == quote {
				return true
			}
			if len(text) > len(quote) {
				break
			}
		}
	}
	return false
}

// Sentences cuts a text where a sentence ends: at the end of a line, and after . ! ?
// or … when white space follows. White space inside a sentence is folded.
func Sentences(text string) []string {
	var out []string
	add := func(s string) {
		if s = strings.Join(strings.Fields(s), " "); s != "" {
			out = append(out, s)
		}
	}
	for line := range strings.Lines(text) {
		start, ended := 0, false
		for i, c := range line {
			if ended && unicode.IsSpace(c) {
				add(line[start:i])
				start = i
			}
			ended = strings.ContainsRune(".!?…", c)
		}
		add(line[start:])
	}
	return out
}

// RulesVerdict is what the judge's reading of Rules came to.
type RulesVerdict struct {
	Decision string      // allow, deny, or "" when it decides nothing
	Rule     RuleID      // the Rule that decides
	Quote    string      // its sentences, with white space folded
	Why      string      // evidence: what was found, or why nothing is decided
	Read     []RuleEntry // the Rules that the judge had before it
	Usage    ModelUsage  // what the readings used
}

// RuleEntry names one state of a Rule.
type RuleEntry struct {
	Rule    RuleID
	Version int64
}

// hasRead reports whether the judge had this very state of the Rule before it.
func (v RulesVerdict) hasRead(r Rule) bool {
	for _, e := range v.Read {
		if e.Rule == r.ID && e.Version == r.Version {
			return true
		}
	}
	return false
}

// NoVerdict is a reading that decides nothing, with the reason.
func NoVerdict(rules []Rule, why string) RulesVerdict {
	v := RulesVerdict{Why: why}
	for _, r := range rules {
		v.Read = append(v.Read, RuleEntry{Rule: r.ID, Version: r.Version})
	}
	return v
}

// maxQuotes bounds how many quotes of one answer are looked at.
const maxQuotes = 100

// ReadVerdict reads what the judge answered about these Rules: a JSON object
// {"quotes":[{"rule":…,"verdict":"allow" or "deny","quote":…}]}. A quote counts only
// when it stands in that very Rule and the verdict fits the Rule's effect. Of several
// that count a deny wins. An allow beside a deny that does not count decides nothing:
// a judge that contradicts itself is not believed. Anything else decides nothing.
func ReadVerdict(rules []Rule, answer string) RulesVerdict {
	var said struct {
		Quotes []struct {
			Rule    RuleID
			Verdict string
			Quote   string
		}
	}
	if err := json.Unmarshal([]byte(unfenced(answer)), &said); err != nil {
		return NoVerdict(rules, "the judge's answer is not the JSON object that was asked for")
	}
	if len(said.Quotes) == 0 {
		return NoVerdict(rules, "the judge quotes no Rule")
	}
	if len(said.Quotes) > maxQuotes {
		return NoVerdict(rules, "the judge quotes more than can be looked at")
	}
	byID := make(map[RuleID]Rule, len(rules))
	for _, r := range rules {
		byID[r.ID] = r
	}
	found := RulesVerdict{}
	refused, lostDeny := "", false
	for _, q := range said.Quotes {
		rule, known := byID[q.Rule]
		why := ""
		switch {
		case !known:
			why = "the judge names a Rule that does not apply here"
		case q.Verdict != DecisionAllow && q.Verdict != DecisionDeny:
			why = fmt.Sprintf("the judge's verdict about %s is neither allow nor deny", rule.ID)
		case !rule.takes(q.Verdict):
			why = fmt.Sprintf("%s cannot %s", rule.ID, q.Verdict)
		case !rule.Holds(q.Quote):
			why = fmt.Sprintf("the judge's quote does not stand in %s", rule.ID)
		}
		if why != "" {
			refused = why
			lostDeny = lostDeny || q.Verdict != DecisionAllow
			continue
		}
		if found.Decision == "" || found.Decision == DecisionAllow && q.Verdict == DecisionDeny {
			found.Decision, found.Rule, found.Quote = q.Verdict, rule.ID, strings.Join(strings.Fields(q.Quote), " ")
		}
	}
	switch {
	case found.Decision == "":
		return NoVerdict(rules, refused)
	case found.Decision == DecisionAllow && lostDeny:
		return NoVerdict(rules, "the judge contradicts itself: "+refused)
	}
	v := NoVerdict(rules, fmt.Sprintf("%s says: %s", found.Rule, found.Quote))
	v.Decision, v.Rule, v.Quote = found.Decision, found.Rule, found.Quote
	return v
}

// AskJudge asks the judge about an attempt and reads what it answers. An allow counts
// only when the judge, asked again without a word of the Bot or of strangers, says that
// the quoted sentences can allow such an attempt: an attacker who talks the judge into
// an allow cannot talk to that second reading. ask makes one model call; its why is
// why there is no answer.
func AskJudge(request ModelRequest, rules []Rule, ask func(ModelRequest) (answer, why string)) RulesVerdict {
	answer, why := ask(request)
	if why != "" {
		return NoVerdict(rules, why)
	}
	v := ReadVerdict(rules, answer)
	if v.Decision != DecisionAllow {
		return v
	}
	for _, rule := range rules {
		if rule.ID != v.Rule {
			continue
		}
		answer, why := ask(secondReading(request, rule, v.Quote))
		if why != "" {
			return NoVerdict(rules, "the second reading failed: "+why)
		}
		if second := ReadVerdict([]Rule{rule}, answer); second.Decision != DecisionAllow || second.Quote != v.Quote {
			return NoVerdict(rules, "read again without the words of the Bot, the quoted sentences do not allow such an attempt")
		}
		return v
	}
	return NoVerdict(rules, "the judge names a Rule that does not apply here")
}

// unfenced takes away the fence of code that some models put around JSON.
func unfenced(answer string) string {
	answer = strings.TrimSpace(answer)
	inner, fenced := strings.CutPrefix(answer, "```")
	if !fenced {
		return answer
	}
	if inner, fenced = strings.CutSuffix(inner, "```"); !fenced {
		return answer
	}
	return strings.TrimPrefix(inner, "json")
}
