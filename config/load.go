package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// DefaultFile is the file that is read when none is named and it is there.
const DefaultFile = "openbot.yaml"

const maxFileBytes = 1 << 20

// faults gathers what is wrong, so that a person mends everything in one go.
type faults []string

func (f *faults) add(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

func (f *faults) addError(err error) {
	if err != nil {
		*f = append(*f, err.Error())
	}
}

// err joins all faults in one line, or is nil.
func (f faults) err() error {
	if len(f) == 0 {
		return nil
	}
	return errors.New(strings.Join(f, "; "))
}

// Load gives the defaults, changed by the file and then by the environment, which
// wins. With an empty path it reads DefaultFile if that is there; a named file must
// be there. environ is a list of NAME=value as os.Environ gives it; an empty value
// counts as not set.
//
// The error is one line with every fault, those of Validate too; the Config
// beside it then holds what could be read and must not be used.
func Load(path string, environ []string) (Config, error) {
	c := Default()
	var found faults
	content, path, err := readFile(path)
	if err != nil {
		found.addError(err)
	} else {
		readYAML(&c, content, filepath.Base(path), &found)
	}
	readEnvironment(&c, environ, &found)
	found.addError(c.Validate())
	return c, found.err()
}

// LoadRole is Load and ValidateRole in one, with the faults of both.
func LoadRole(path string, environ []string, role string) (Config, error) {
	c, err := Load(path, environ)
	var found faults
	found.addError(err)
	found.addError(c.ValidateRole(role))
	return c, found.err()
}

func readFile(path string) (content []byte, name string, err error) {
	named := path != ""
	if !named {
		path = DefaultFile
	}
	file, err := os.Open(path)
	if !named && errors.Is(err, fs.ErrNotExist) {
		return nil, path, nil
	}
	if err != nil {
		return nil, path, fmt.Errorf("the settings file cannot be read: %w", err)
	}
	defer file.Close()
	content, err = io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err != nil {
		return nil, path, fmt.Errorf("the settings file cannot be read: %w", err)
	}
	if len(content) > maxFileBytes {
		return nil, path, fmt.Errorf("the settings file %s is larger than 1 MiB", quote(path))
	}
	return content, path, nil
}

func readYAML(c *Config, content []byte, file string, found *faults) {
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var document yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return
	case err != nil:
		found.add("%s is not valid YAML%s", file, reasonOf(err))
		return
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		found.add("%s must hold one YAML document and nothing after it", file)
	}
	root := document.Content[0]
	if root.ShortTag() == "!!null" {
		return
	}
	if root.Kind != yaml.MappingNode {
		found.add("%s must be a list of keys with values, such as listen: 127.0.0.1:8080", file)
		return
	}
	readMapping(c, root, "", file, found)
}

// reasonOf keeps of a parser's message what cannot quote a value, for that could be
// a secret.
func reasonOf(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if strings.ContainsAny(text, "'`\"\n\r") {
		return ""
	}
	return ": " + text
}

func readMapping(c *Config, mapping *yaml.Node, prefix, file string, found *faults) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		name, value := mapping.Content[i], mapping.Content[i+1]
		key := prefix + name.Value
		where := fmt.Sprintf("%s line %d", file, name.Line)
		known, ok := settingOf(key)
		switch {
		case name.Kind != yaml.ScalarNode || (!ok && !isSection(key)):
			found.add("%s: unknown key %s%s", where, quote(key), suggest(key))
		case seen[key]:
			found.add("%s: %s stands there twice", where, key)
		case value.Kind == yaml.ScalarNode && value.ShortTag() == "!!null":
			// A key without a value keeps the default.
		case ok && !isPlain(value):
			found.add("%s: %s must be one plain value", where, known.name())
		case ok:
			if err := known.set(c, value.Value); err != nil {
				found.add("%s: %v", where, err)
			}
		case value.Kind != yaml.MappingNode:
			found.add("%s: %s must hold keys of its own", where, key)
		default:
			readMapping(c, value, key+".", file, found)
		}
		seen[key] = true
	}
}

func isPlain(value *yaml.Node) bool {
	if value.Kind != yaml.ScalarNode {
		return false
	}
	switch value.ShortTag() {
	case "!!str", "!!int", "!!float", "!!bool", "!!timestamp":
		return true
	}
	return false
}

// suggest names the key that was meant when only letter case or dashes differ.
func suggest(key string) string {
	for _, s := range settings {
		if fold(s.key) == fold(key) {
			return ", did you mean " + s.key + "?"
		}
	}
	return ""
}

func fold(key string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(key))
}

// Variables that start like ours and are none of ours: those of the tests, and those
// that Kubernetes puts into each container for a Service whose name starts with
// "openbot". Any other is most likely a typing error, which must not pass in silence.
var foreignVariable = regexp.MustCompile(`^OPENBOT_(TEST_.*|NPM_DIR|(.*_)?SERVICE_(HOST|PORT)(_.*)?|(.*_)?PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

func readEnvironment(c *Config, environ []string, found *faults) {
	values := make(map[string]string, len(environ))
	var unknown []string
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if _, seen := values[name]; !seen && strings.HasPrefix(name, "OPENBOT_") && !isVariable(name) && !foreignVariable.MatchString(name) {
			unknown = append(unknown, name)
		}
		values[name] = value
	}
	for _, s := range settings {
		if value := values[s.variable]; value != "" {
			found.addError(s.set(c, value))
		}
	}
	for _, name := range unknown {
		found.add("unknown variable %s", quote(name))
	}
}

func isVariable(name string) bool {
	for _, s := range settings {
		if s.variable == name {
			return true
		}
	}
	return false
}
