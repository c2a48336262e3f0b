package model

import (
	"strings"

	"openbot/domain"
)

// judgeByScript quotes every Rule, whole, that names the tool or the action of the
// call and starts with Allow, Always, Deny or Never.
func judgeByScript(script domain.Script) domain.ModelReply {
	type quote struct {
		Rule    domain.RuleID `json:"rule"`
		Verdict string        `json:"verdict"`
		Quote   string        `json:"quote"`
	}
	said := struct {
		Quotes []quote `json:"quotes"`
	}{Quotes: []quote{}}
	if c := script.Judge; c != nil {
		for _, r := range c.Rules {
			text := strings.TrimSpace(r.Text)
			first, _ := word(text)
			verdict := map[string]string{"Allow": "allow", "Always": "allow", "Deny": "deny", "Never": "deny"}[strings.TrimRight(first, ",:")]
			named := c.Tool != "" && strings.Contains(text, c.Tool) || c.Capability.Action != "" && strings.Contains(text, c.Capability.Action)
			if verdict != "" && named {
				said.Quotes = append(said.Quotes, quote{r.ID, verdict, text})
			}
		}
	}
	answer, err := encode(said)
	if err != nil {
		return domain.ModelReply{Text: `{"quotes":[]}`}
	}
	return domain.ModelReply{Text: strings.TrimSpace(string(answer))}
}
