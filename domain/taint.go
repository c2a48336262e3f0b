package domain

import "slices"

// Kinds of sources of taint.
const (
	// SourceApp is what an App answered: results of tools, resources and prompts.
	SourceApp = "app"
	// SourceTool is what a tool of the host answered.
	SourceTool = "tool"
	// SourceChannel is a message of somebody who is no Member.
	SourceChannel = "channel"
	// SourceSignal is what came with the signal of a trigger.
	SourceSignal = "signal"
	// SourceMore stands for sources beyond the bound of the list.
	SourceMore = "more"
)

// TaintSource is where content from outside the organization came from.
type TaintSource struct {
	Kind       string       `json:"kind"`
	Connection ConnectionID `json:"connection,omitempty"` // of an App
	Tool       string       `json:"tool,omitempty"`       // of the host: its name
	Channel    string       `json:"channel,omitempty"`
	Trigger    TriggerID    `json:"trigger,omitempty"`
	Author     string       `json:"author,omitempty"` // of a Channel message: the outside name
	Chat       ChatID       `json:"chat,omitempty"`   // that took it in first
	AtMs       int64        `json:"at"`               // when that was, milliseconds since the epoch
}

// is reports whether two are one source, wherever and whenever it was read.
func (s TaintSource) is(other TaintSource) bool {
	s.Chat, s.AtMs = other.Chat, other.AtMs
	return s == other
}

// String names the source for people.
func (s TaintSource) String() string {
	switch s.Kind {
	case SourceApp:
		return "the App " + string(s.Connection)
	case SourceTool:
		return "the host tool " + s.Tool
	case SourceSignal:
		return "the signal of the trigger " + string(s.Trigger)
	case SourceChannel:
		return "a message of somebody who is no Member"
	}
	return "more sources"
}

// maxTaint bounds the sources that a Chat keeps.
const maxTaint = 32

// Taint is the content from outside the organization that a Chat, or what a Chat wrote,
// rests on: its sources, each once, in the order in which they came. It only grows; the
// empty Taint is none.
type Taint []TaintSource

// With gives the taint with more sources. The input is not changed. A list that is full
// ends in a source of kind more, which no Grant was ever given for.
func (t Taint) With(more ...TaintSource) Taint {
	out := t
	for _, source := range more {
		if slices.ContainsFunc(out, source.is) {
			continue
		}
		if len(out) >= maxTaint-1 {
			source = TaintSource{Kind: SourceMore, Chat: source.Chat, AtMs: source.AtMs}
			if slices.ContainsFunc(out, source.is) {
				continue
			}
		}
		out = append(slices.Clip(out), source)
	}
	return out
}

// Within reports whether every source of it is among those that were shown.
func (t Taint) Within(shown Taint) bool {
	for _, source := range t {
		if source.Kind == SourceMore || !slices.ContainsFunc(shown, source.is) {
			return false
		}
	}
	return true
}

// TakeIn notes what content that comes into the Chat rests on. A Chat that is tainted
// stays so.
func (c *Chat) TakeIn(taint Taint) { c.Taint = c.Taint.With(taint...) }

// Tainted reports whether the Chat took in content from outside the organization.
func (c Chat) Tainted() bool { return len(c.Taint) > 0 }

// Brings is what a Chat takes in with the Bot that works in it: its name, role,
// instructions and memory are read before every step.
func (b Bot) Brings() Taint { return b.Taint.With(b.MemoryTaint...) }

// Source says where the answer of a call comes from. There is none for what the
// organization trusts, and for what never leaves it.
func (s Settings) Source(c Call, host *HostTool, atMs int64) Taint {
	source := TaintSource{Chat: c.Chat, AtMs: atMs}
	trusted := ""
	switch c.Kind {
	case CallApp, CallResource, CallPrompt:
		source.Kind, source.Connection = SourceApp, c.Connection
		trusted = string(c.Connection)
	case CallHost:
		source.Kind, source.Tool = SourceTool, c.Tool
		if host != nil {
			trusted = string(host.ID)
		}
	default:
		return nil
	}
	if trusted != "" && slices.Contains(s.TrustedSources, trusted) {
		return nil
	}
	return Taint{source}
}

// sourceFaults lists what does not fit in trustedSources.
func (s Settings) sourceFaults(add func(path, message string)) {
	if len(s.TrustedSources) > maxSettingEntries {
		add("trustedSources", "has too many entries, at most 1000")
	}
	for i, source := range s.TrustedSources {
		if !ValidID(source, PrefixConnection) && !ValidID(source, PrefixHostTool) {
			add(pathIndex("trustedSources", i), "must be the ID of a Connection or of a host tool")
		}
	}
}

// names lists the first sources for people.
func (t Taint) names() string {
	const shown = 3
	text := ""
	for i, source := range t {
		switch {
		case i == shown:
			return text + " and others"
		case i > 0:
			text += ", "
		}
		text += source.String()
	}
	return text
}
