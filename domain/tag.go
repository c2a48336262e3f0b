package domain

import (
	"maps"
	"slices"
	"strings"
)

// Permission tags say what a tool can do.
const (
	PermissionRead         = "read"
	PermissionWrite        = "write"
	PermissionDelete       = "delete"
	PermissionExternalSend = "external_send"
	PermissionPublish      = "publish"
	PermissionSpend        = "spend"
	PermissionExecuteCode  = "execute_code"
	PermissionCredentials  = "credentials"
	PermissionPermissions  = "permissions"
	PermissionPersonalData = "personal_data"
	PermissionNetwork      = "network"
)

// Tags are the permission tags, in the order in which they are shown.
var Tags = []string{PermissionRead, PermissionWrite, PermissionDelete, PermissionExternalSend, PermissionPublish, PermissionSpend,
	PermissionExecuteCode, PermissionCredentials, PermissionPermissions, PermissionPersonalData, PermissionNetwork}

// TagEffect is what the tag policy says of a tag.
type TagEffect string

const (
	// TagEffectRelease needs no decision.
	TagEffectRelease TagEffect = "release"
	// TagEffectAsk lets the check go on. It is what a tag without a line comes to.
	TagEffectAsk TagEffect = "ask"
	// TagEffectHuman lets the person alone allow, once; Bots, Grants and Rules can only deny.
	TagEffectHuman TagEffect = "human"
	// TagEffectDeny denies.
	TagEffectDeny TagEffect = "deny"
)

// tagEffects lists the effects, the mildest first.
var tagEffects = []TagEffect{TagEffectRelease, TagEffectAsk, TagEffectHuman, TagEffectDeny}

// TagLine is the line of the tag policy that speaks of a call: that of its strictest
// tag. The zero value is a call without tags, of which none speaks.
type TagLine struct {
	Tag    string    `json:"tag"`
	Effect TagEffect `json:"effect"`
}

// String gives the line as evidence names it, such as "tagPolicy.spend: human".
func (l TagLine) String() string { return "tagPolicy." + l.Tag + ": " + string(l.Effect) }

// ToolTags gives permission tags to tools by a pattern over connection/tool.
type ToolTags struct {
	Tool string   `json:"tool"`
	Tags []string `json:"tags"`
}

// CallTags gives the permission tags of a call, in the order of Tags. A tool of an App
// that the organization gave none counts as write and network. The App's own hints add
// tags and never take one away: what an App says in its own favour, such as that it only
// reads, adds nothing.
func (s Settings) CallTags(c Call, hints AppHints, host *HostTool) []string {
	given := map[string]bool{}
	give := func(tags ...string) {
		for _, tag := range tags {
			given[tag] = true
		}
	}
	switch {
	case c.Kind == CallApp || c.Kind == CallHost:
		for _, t := range s.ToolTags {
			if Match(t.Tool, c.Capability.Target) {
				give(t.Tags...)
			}
		}
	case c.Capability.Action == ActionChannelsSend:
		give(PermissionExternalSend)
	}
	if c.Kind == CallHost && host != nil {
		give(host.Tags...)
	}
	if c.Kind == CallApp {
		if len(given) == 0 {
			give(PermissionWrite, PermissionNetwork)
		}
		if said := hints.ReadOnly; said != nil && !*said {
			give(PermissionWrite)
		}
		if said := hints.Destructive; said != nil && *said {
			give(PermissionDelete)
		}
		if said := hints.OpenWorld; said != nil && *said {
			give(PermissionNetwork)
		}
	}
	tags := make([]string, 0, len(given))
	for _, tag := range Tags {
		if given[tag] {
			tags = append(tags, tag)
		}
	}
	return tags
}

// TagLine gives the line of the tag policy for these tags: the strictest wins. A line
// that cannot be read denies.
func (s Settings) TagLine(tags []string) TagLine {
	strictest := TagLine{}
	at := -1
	for _, tag := range tags {
		effect := TagEffectAsk
		if said, ok := s.TagPolicy[tag]; ok {
			effect = TagEffect(said)
		}
		place := slices.Index(tagEffects, effect)
		if place < 0 {
			effect, place = TagEffectDeny, len(tagEffects)
		}
		if place > at {
			strictest, at = TagLine{Tag: tag, Effect: effect}, place
		}
	}
	return strictest
}

// tagFaults lists what does not fit in toolTags, tagPolicy and taintedTags.
func (s Settings) tagFaults(add func(path, message string)) {
	known := func(path, tag string) {
		if !slices.Contains(Tags, tag) {
			add(path, "is not one of: "+strings.Join(Tags, ", "))
		}
	}
	if len(s.ToolTags) > maxSettingEntries {
		add("toolTags", "has too many entries, at most 1000")
	}
	for i, t := range s.ToolTags {
		path := pathIndex("toolTags", i)
		if !toolPattern(t.Tool) {
			add(path+".tool", `must be <ID of the Connection>/<tool>, e.g. "con_7/send_email"`)
		}
		if len(t.Tags) > len(Tags) {
			add(path+".tags", "names a tag twice")
			continue
		}
		for j, tag := range t.Tags {
			known(pathIndex(path+".tags", j), tag)
		}
	}
	for _, tag := range slices.Sorted(maps.Keys(s.TagPolicy)) {
		known("tagPolicy."+tag, tag)
		if !slices.Contains(tagEffects, TagEffect(s.TagPolicy[tag])) {
			add("tagPolicy."+tag, "must be ask, release, human or deny")
		}
	}
	if len(s.TaintedTags) > len(Tags) {
		add("taintedTags", "names a tag twice")
	}
	for i, tag := range s.TaintedTags {
		known(pathIndex("taintedTags", i), tag)
	}
}
