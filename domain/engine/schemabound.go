package engine

import (
	"encoding/json"
	"errors"
	"net/url"
	"reflect"
	"strconv"
	"strings"
)

// A schema comes from an App. The validator follows references without an end of
// its own: a schema that refers to itself in place overflows the stack, which ends
// the process, and one that refers to another twice on every level doubles the work
// with each of them. This file says beforehand how often a schema looks at one place
// of the arguments.

// maxLooks is how many looks at places of the arguments one check may take: some
// seconds at worst, and far more than any schema that people write needs.
const maxLooks = 4_000_000

// schemaNode is a schema with the schemas in it, by what they look at.
type schemaNode struct {
	inPlace  []*schemaNode // at the same value
	members  []*schemaNode // each at a member of its own name
	anyName  []*schemaNode // at members of many names
	elements []*schemaNode // each at an element of its own place
	anyPlace []*schemaNode // at elements of many places
	state    visit
}

// visit is how far the search for loops has come with a node.
type visit int

const (
	unseen visit = iota
	under        // on the way from here
	done
)

// schemaBound bounds the work of one schema.
type schemaBound struct{ root *schemaNode }

// Keywords by what the schemas under them look at. A keyword that holds one schema,
// a list of them or a map of them is told by its value.
var (
	inPlaceKeywords  = []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies", "propertyNames"}
	anyNameKeywords  = []string{"patternProperties", "additionalProperties", "unevaluatedProperties"}
	anyPlaceKeywords = []string{"additionalItems", "contains", "unevaluatedItems"}
)

var (
	errSchemaLoops  = errors.New("the schema refers to itself without an end")
	errSchemaRefers = errors.New(`the schema has a reference that is not of the form "#/path"`)
)

// boundSchema reads a schema and refuses one whose check could not end.
func boundSchema(raw json.RawMessage) (*schemaBound, error) {
	var root any
	if err := json.Unmarshal(raw, &root); err != nil {
		return nil, err
	}
	r := &schemaReader{root: root, nodes: map[uintptr]*schemaNode{}}
	node, err := r.read(root)
	if err != nil {
		return nil, err
	}
	for _, n := range r.nodes {
		if n.loops() {
			return nil, errSchemaLoops
		}
	}
	return &schemaBound{root: node}, nil
}

// within reports whether checking this value stays in bounds.
func (b *schemaBound) within(value any) bool {
	if b == nil {
		return true
	}
	places, depth := measure(value)
	return looksOf{}.at(b.root, depth) <= maxLooks/places
}

// measure counts the values in a value, itself included, and how deep they lie.
func measure(value any) (places, depth int) {
	places = 1
	inside := func(v any) {
		p, d := measure(v)
		places, depth = places+p, max(depth, d+1)
	}
	switch v := value.(type) {
	case map[string]any:
		for _, member := range v {
			inside(member)
		}
	case []any:
		for _, element := range v {
			inside(element)
		}
	}
	return places, depth
}

type schemaReader struct {
	root  any
	nodes map[uintptr]*schemaNode // by the map that a schema was read as
}

func (r *schemaReader) read(value any) (*schemaNode, error) {
	schema, ok := value.(map[string]any)
	if !ok {
		return &schemaNode{}, nil // true and false look once
	}
	key := reflect.ValueOf(schema).Pointer()
	if n, ok := r.nodes[key]; ok {
		return n, nil
	}
	n := &schemaNode{}
	r.nodes[key] = n
	for _, word := range []string{"$dynamicRef", "$recursiveRef"} {
		if _, ok := schema[word]; ok {
			return nil, errSchemaRefers
		}
	}
	if ref, ok := schema["$ref"]; ok {
		target, err := r.target(ref)
		if err != nil {
			return nil, err
		}
		n.inPlace = append(n.inPlace, target)
	}
	items := "items"
	if _, list := schema[items].([]any); list {
		items = "" // the older form of prefixItems
		if err := r.add(&n.elements, schema["items"]); err != nil {
			return nil, err
		}
	}
	for _, part := range []struct {
		into  *[]*schemaNode
		words []string
	}{
		{&n.inPlace, inPlaceKeywords}, {&n.members, []string{"properties"}}, {&n.anyName, anyNameKeywords},
		{&n.elements, []string{"prefixItems"}}, {&n.anyPlace, append([]string{items}, anyPlaceKeywords...)},
	} {
		for _, word := range part.words {
			many := word == "properties" || word == "patternProperties" || word == "dependentSchemas" || word == "dependencies"
			if under, ok := schema[word].(map[string]any); ok && many {
				for _, one := range under {
					if err := r.add(part.into, one); err != nil {
						return nil, err
					}
				}
				continue
			}
			if err := r.add(part.into, schema[word]); err != nil {
				return nil, err
			}
		}
	}
	return n, nil
}

func (r *schemaReader) add(into *[]*schemaNode, value any) error {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	for _, one := range list {
		if _, isSchema := one.(map[string]any); !isSchema {
			continue
		}
		n, err := r.read(one)
		if err != nil {
			return err
		}
		*into = append(*into, n)
	}
	return nil
}

// target finds what a reference of the form # or #/a/b means.
func (r *schemaReader) target(ref any) (*schemaNode, error) {
	text, _ := ref.(string)
	pointer, ok := strings.CutPrefix(text, "#")
	if !ok || pointer != "" && pointer[0] != '/' {
		return nil, errSchemaRefers
	}
	pointer, err := url.PathUnescape(pointer)
	if err != nil {
		return nil, errSchemaRefers
	}
	at := r.root
	for _, name := range strings.Split(pointer, "/")[1:] {
		name = strings.ReplaceAll(strings.ReplaceAll(name, "~1", "/"), "~0", "~")
		switch in := at.(type) {
		case map[string]any:
			at = in[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(in) {
				return nil, errSchemaRefers
			}
			at = in[i]
		default:
			return nil, errSchemaRefers
		}
	}
	if at == nil {
		return nil, errSchemaRefers
	}
	return r.read(at)
}

// loops reports whether a schema leads back to itself at the same value.
func (n *schemaNode) loops() bool {
	switch n.state {
	case under:
		return true
	case done:
		return false
	}
	n.state = under
	for _, in := range n.inPlace {
		if in.loops() {
			return true
		}
	}
	n.state = done
	return false
}

// tally counts looks: at the value itself, and along the longest way down when the
// value is an object or an array, of which it is one at most.
type tally struct{ here, asObject, asArray int }

type nodeDepth struct {
	node  *schemaNode
	depth int
}

// looksOf remembers the tallies of one check.
type looksOf map[nodeDepth]tally

// at bounds how many looks a value of this depth gets along its longest way down.
func (l looksOf) at(n *schemaNode, depth int) int {
	t := l.tally(n, depth)
	return capped(t.here + max(t.asObject, t.asArray))
}

func (l looksOf) tally(n *schemaNode, depth int) tally {
	key := nodeDepth{n, depth}
	if t, ok := l[key]; ok {
		return t
	}
	t := tally{here: 1}
	if depth > 0 {
		t.asObject = l.most(n.members, depth-1) + l.total(n.anyName, depth-1)
		t.asArray = l.most(n.elements, depth-1) + l.total(n.anyPlace, depth-1)
	}
	for _, in := range n.inPlace {
		more := l.tally(in, depth)
		t = tally{capped(t.here + more.here), capped(t.asObject + more.asObject), capped(t.asArray + more.asArray)}
	}
	l[key] = t
	return t
}

func (l looksOf) most(list []*schemaNode, depth int) int {
	looks := 0
	for _, s := range list {
		looks = max(looks, l.at(s, depth))
	}
	return looks
}

func (l looksOf) total(list []*schemaNode, depth int) int {
	looks := 0
	for _, s := range list {
		looks = capped(looks + l.at(s, depth))
	}
	return looks
}

func capped(looks int) int { return min(looks, maxLooks+1) }
