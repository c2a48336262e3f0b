package model

import (
	"slices"
	"strings"

	"openbot/domain"
)

// verdictByScript says block for a call with a tag that is for people alone, allow for one
// with the tag read, else unclear.
func verdictByScript(script domain.Script) domain.ModelReply {
	said := struct {
		Verdict string `json:"verdict"`
		Note    string `json:"note"`
	}{domain.VerdictUnclear, "The playbook cannot tell."}
	switch c := script.Reviewer; {
	case c == nil:
	case c.TagLine.Effect == domain.TagEffectHuman:
		said.Verdict, said.Note = domain.VerdictBlock, "The tag "+c.TagLine.Tag+" is for people alone."
	case slices.Contains(c.Tags, domain.PermissionRead):
		said.Verdict, said.Note = domain.VerdictAllow, "The call has the tag read."
	}
	answer, err := encode(said)
	if err != nil {
		return domain.ModelReply{Text: "{}"}
	}
	return domain.ModelReply{Text: strings.TrimSpace(string(answer))}
}
