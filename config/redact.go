package config

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Redacted gives the settings in force as YAML that Load reads, with every secret
// masked: tokens, keys, and passwords inside addresses.
func (c Config) Redacted() string {
	root := &yaml.Node{Kind: yaml.MappingNode}
	sections := map[string]*yaml.Node{"": root}
	for _, s := range settings {
		parent, name := "", s.key
		if i := strings.LastIndexByte(s.key, '.'); i >= 0 {
			parent, name = s.key[:i], s.key[i+1:]
		}
		value := &yaml.Node{}
		if err := value.Encode(s.show(c)); err != nil {
			continue // plain values always encode
		}
		section := sectionOf(sections, parent)
		section.Content = append(section.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, value)
	}
	var text strings.Builder
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return ""
	}
	return text.String()
}

func sectionOf(sections map[string]*yaml.Node, key string) *yaml.Node {
	if section, ok := sections[key]; ok {
		return section
	}
	parent, name := "", key
	if i := strings.LastIndexByte(key, '.'); i >= 0 {
		parent, name = key[:i], key[i+1:]
	}
	section := &yaml.Node{Kind: yaml.MappingNode}
	sections[key] = section
	above := sectionOf(sections, parent)
	above.Content = append(above.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, section)
	return section
}

var secretParameter = regexp.MustCompile(`(?i)((?:^|[?&;])[^=&;]*(?:pass|pwd|secret|token|key)[^=&;]*=)[^&;]*`)

// maskURL hides what stands before the last @ except the user's name, and every
// parameter that sounds like a secret. The last @ counts, and not the first slash,
// because people forget to escape their passwords.
func maskURL(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return NewSecret(address).String()
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		user, _, hasPassword := strings.Cut(rest[:at], ":")
		if hasPassword {
			user += ":" + masked
		}
		rest = user + rest[at:]
	}
	return scheme + "://" + secretParameter.ReplaceAllString(rest, "${1}"+masked)
}
