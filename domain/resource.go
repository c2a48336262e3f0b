package domain

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
)

// ResourceTemplate names the resource of a tool's call, e.g. "mail:{to}".
type ResourceTemplate struct {
	Tool     string `json:"tool"`
	Template string `json:"template"`
}

const (
	// maxResource is the longest resource, in bytes.
	maxResource = 500
	// maxResourceValues is how many entries of a list stand in a resource.
	maxResourceValues = 20
)

// resourcePart is a piece of a template: fixed text, or the name of an argument.
type resourcePart struct {
	text     string
	argument string
}

// Resource derives the resource of a call from its arguments, by the first template
// whose pattern fits the tool. It is "" where no template speaks, and where an argument
// that the template names is absent, is no plain value, or makes the text too long: what
// is shown is never a part of the truth.
func (s Settings) Resource(target string, arguments json.RawMessage) string {
	for _, r := range s.ResourceTemplates {
		if Match(r.Tool, target) {
			return resourceOf(r.Template, arguments)
		}
	}
	return ""
}

func resourceOf(template string, arguments json.RawMessage) string {
	parts, fault := resourceParts(template)
	if fault != "" {
		return ""
	}
	var given map[string]json.RawMessage
	if json.Unmarshal(arguments, &given) != nil {
		return ""
	}
	var out strings.Builder
	for i, part := range parts {
		if part.argument == "" {
			out.WriteString(part.text)
			continue
		}
		after := ""
		for _, next := range parts[i+1:] {
			after += next.text
		}
		value, ok := resourceValue(given[part.argument], after)
		if !ok {
			return ""
		}
		out.WriteString(value)
	}
	if out.Len() > maxResource {
		return ""
	}
	return out.String()
}

// resourceValue writes one argument: a text, a number, a boolean, or a list of these
// with commas between them.
func resourceValue(raw json.RawMessage, after string) (string, bool) {
	var list []json.RawMessage
	if len(raw) == 0 || len(raw) > 4*maxResource {
		return "", false
	}
	if raw[0] != '[' {
		return plainValue(raw, after)
	}
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 || len(list) > maxResourceValues {
		return "", false
	}
	values := make([]string, len(list))
	for i, one := range list {
		value, ok := plainValue(one, after)
		if !ok {
			return "", false
		}
		values[i] = value
	}
	return strings.Join(values, ","), true
}

func plainValue(raw json.RawMessage, after string) (string, bool) {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return "", false
	}
	switch value := value.(type) {
	case string:
		return escaped(value, after), value != ""
	case float64:
		return string(raw), true // to the digit, as it was written
	case bool:
		return fmt.Sprint(value), true
	}
	return "", false
}

// escaped writes a text so that no two read the same: what cannot be seen, blanks, and
// what the template puts between its arguments stand as the percent form of their bytes.
func escaped(value, after string) string {
	var out strings.Builder
	for _, r := range value {
		if visible(r) && r != '%' && r != ',' && !strings.ContainsRune(after, r) {
			out.WriteRune(r)
			continue
		}
		for _, b := range []byte(string(r)) {
			fmt.Fprintf(&out, "%%%02X", b)
		}
	}
	return out.String()
}

// visible reports whether a character shows itself and no other.
func visible(r rune) bool {
	return unicode.IsGraphic(r) && !unicode.IsSpace(r) && !unicode.Is(unicode.Variation_Selector, r) && !strings.ContainsRune(blanks, r)
}

// blanks are letters, marks and signs that show nothing, and what stands for a character
// that there is not.
const blanks = "\u034F\u115F\u1160\u17B4\u17B5\u2800\u3164\uFFA0\uFFFD"

// resourceParts reads a template: fixed text with the names of arguments in braces. The
// fault says what does not fit, or is "".
func resourceParts(template string) (parts []resourcePart, fault string) {
	if template == "" || len(template) > maxSettingText {
		return nil, "must have 1 to 500 bytes"
	}
	if strings.ContainsFunc(template, func(r rune) bool { return r != ' ' && !visible(r) }) {
		return nil, "must be of characters that can be seen"
	}
	for rest := template; rest != ""; {
		text, after, opened := strings.Cut(rest, "{")
		if strings.Contains(text, "}") {
			return nil, "has a } without its {"
		}
		if text != "" {
			parts = append(parts, resourcePart{text: text})
		}
		if !opened {
			break
		}
		name, more, closed := strings.Cut(after, "}")
		if !closed || name == "" || strings.ContainsAny(name, "{ ") {
			return nil, `must name an argument in each pair of braces, e.g. "mail:{to}"`
		}
		if n := len(parts); n > 0 && parts[n-1].argument != "" {
			return nil, "must have text between two arguments"
		}
		parts = append(parts, resourcePart{argument: name})
		rest = more
	}
	return parts, ""
}

// resourceFaults lists what does not fit in resourceTemplates.
func (s Settings) resourceFaults(add func(path, message string)) {
	if len(s.ResourceTemplates) > maxSettingEntries {
		add("resourceTemplates", "has too many entries, at most 1000")
	}
	for i, r := range s.ResourceTemplates {
		path := pathIndex("resourceTemplates", i)
		if !toolPattern(r.Tool) {
			add(path+".tool", `must be <ID of the Connection>/<tool>, e.g. "con_7/send_email"`)
		}
		if _, fault := resourceParts(r.Template); fault != "" {
			add(path+".template", fault)
		}
	}
}
