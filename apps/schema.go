package apps

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/google/jsonschema-go/jsonschema"
)

// maxSchema is the longest schema of one tool, in bytes.
const maxSchema = 64 << 10

// toolSchema checks the schema of a tool. whole is what the App gave; usable is what
// arguments are checked against; fault says why the tool cannot be offered, or "".
//
// A remote reference is never fetched: it makes the schema one that does not resolve.
// A pattern that this server's regular expressions cannot express (such as one with
// a look-ahead) is left out of usable; the App still checks it.
func toolSchema(input any) (whole, usable json.RawMessage, fault string) {
	whole, err := json.Marshal(input)
	if err != nil {
		return nil, nil, "its schema is not JSON"
	}
	if len(whole) > maxSchema {
		return nil, nil, fmt.Sprintf("its schema is larger than %d KiB", maxSchema>>10)
	}
	if bytes.Contains(whole, []byte(`\u0000`)) {
		return nil, nil, "its schema holds a NUL character"
	}
	object, ok := input.(map[string]any)
	if !ok || object["type"] != "object" {
		return nil, nil, `its schema is not of type "object"`
	}
	usable = whole
	if dropPatterns(object) {
		if usable, err = json.Marshal(object); err != nil {
			return nil, nil, "its schema is not JSON"
		}
	}
	if err := resolves(usable); err != nil {
		return nil, nil, "its schema does not resolve: " + cleanLine(err.Error(), 200)
	}
	return whole, usable, ""
}

// resolves checks a schema with the library that later checks arguments against it.
func resolves(data []byte) (err error) {
	// The schema comes from a stranger; a fault of the library must not take the
	// server down.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the schema cannot be read")
		}
	}()
	var schema jsonschema.Schema
	if err := json.Unmarshal(data, &schema); err != nil {
		return err
	}
	_, err = schema.Resolve(nil)
	return err
}

// dropPatterns removes the patterns that do not compile and reports whether there
// were any. A property that is called "pattern" is an object and stays.
func dropPatterns(value any) bool {
	dropped := false
	switch v := value.(type) {
	case map[string]any:
		if text, ok := v["pattern"].(string); ok {
			if _, err := regexp.Compile(text); err != nil {
				delete(v, "pattern")
				dropped = true
			}
		}
		for _, inner := range v {
			dropped = dropPatterns(inner) || dropped
		}
	case []any:
		for _, inner := range v {
			dropped = dropPatterns(inner) || dropped
		}
	}
	return dropped
}
