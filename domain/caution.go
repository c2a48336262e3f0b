package domain

import "slices"

// Caution is what the tags of a call and the taint of its Chat say about it.
type Caution struct {
	Tags       []string // in the order of the permission tags
	TagLine    TagLine  // of the tag policy
	Taint      Taint    // of the Chat
	TaintedTag string   // the first of Tags that is in taintedTags, or ""
}

// Caution weighs the tags of a call in a Chat of this taint.
func (s Settings) Caution(tags []string, taint Taint) Caution {
	c := Caution{Tags: tags, TagLine: s.TagLine(tags), Taint: taint}
	for _, tag := range tags {
		if slices.Contains(s.TaintedTags, tag) {
			c.TaintedTag = tag
			break
		}
	}
	return c
}

// human reports whether the person alone can allow the call.
func (c Caution) human() bool { return c.TagLine.Effect == TagEffectHuman }

// tainted reports whether the taint of the Chat keeps the call from being released.
func (c Caution) tainted() bool { return len(c.Taint) > 0 && c.TaintedTag != "" }

// held says why nothing but a decider can allow the call, or "".
func (c Caution) held() string {
	switch {
	case c.human():
		return "only a person can allow a call with the tag " + c.TagLine.Tag + " (" + c.TagLine.String() + ")"
	case c.tainted():
		return "the Chat is tainted by " + c.Taint.names() + " and the call has the tag " + c.TaintedTag + " (taintedTags)"
	}
	return ""
}

// caution is what the tags and the taint that the Request shows say about its call.
func (r Request) caution() Caution {
	return Caution{Tags: r.Tags, TagLine: r.TagLine, Taint: r.Taint, TaintedTag: r.TaintedTag}
}

// forPeople refuses an allow that would last, when a tag of the call is for people alone
// by the tag policy of the moment of asking or of now.
func (r Request) forPeople(ev Answered) error {
	for _, line := range []TagLine{r.TagLine, ev.TagLine} {
		if line.Effect != TagEffectHuman || ev.Decision != DecisionAllow {
			continue
		}
		if ev.Scope != ScopeOnce {
			return invalid("scope", "must be once: the tag "+line.Tag+" is for people alone, so nothing allows this call beforehand")
		}
		if ev.Rule != nil {
			return invalid("rule", "cannot be kept with an allow: the tag "+line.Tag+" is for people alone, so no Rule allows this call")
		}
	}
	return nil
}
