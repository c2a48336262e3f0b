package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/gowebpki/jcs"
)

// Bounds of a call's arguments.
const (
	maxArguments     = 1 << 20 // bytes
	maxArgumentDepth = 64
)

// splitArguments checks that raw is one JSON object without repeated names at any
// depth, and takes the top-level reason out when the tool was shown one of ours.
// The rest keeps its order and its numbers to the digit: these are the bytes that
// people see, that are decided, and that the App gets.
func splitArguments(raw json.RawMessage, takeReason bool) (arguments json.RawMessage, reason string, err error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	if len(raw) > maxArguments {
		return nil, "", fmt.Errorf("they have more than %d bytes", maxArguments)
	}
	if !utf8.Valid(raw) {
		return nil, "", errors.New("they are not valid UTF-8")
	}
	if err := strictJSON(raw); err != nil {
		return nil, "", err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, "", errors.New("they are not a JSON object")
	}
	var out bytes.Buffer
	out.WriteByte('{')
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, "", errors.New("they are not valid JSON")
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, "", errors.New("they are not valid JSON")
		}
		if takeReason && name == reasonParameter {
			if json.Unmarshal(value, &reason) != nil {
				return nil, "", errors.New(reasonParameter + " must be a text")
			}
			continue
		}
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil, "", err
		}
		out.Write(key)
		out.WriteByte(':')
		if err := json.Compact(&out, value); err != nil {
			return nil, "", err
		}
	}
	out.WriteByte('}')
	return out.Bytes(), reason, nil
}

// strictJSON refuses what two readers could read in two ways: repeated names, and
// anything after the value. It also bounds the depth.
func strictJSON(raw []byte) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	type level struct {
		names map[string]bool // nil for arrays
		value bool            // inside an object: a value comes next
	}
	var stack []level
	closed := false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			if !closed {
				return errors.New("they are not valid JSON")
			}
			return nil
		}
		if err != nil {
			return errors.New("they are not valid JSON")
		}
		if closed {
			return errors.New("something stands after the JSON value")
		}
		top := len(stack) - 1
		if top >= 0 && stack[top].names != nil && !stack[top].value {
			if name, ok := token.(string); ok {
				if strings.ContainsRune(name, utf8.RuneError) {
					return errors.New("a name holds half a character") // it would not come back as it was
				}
				if stack[top].names[name] {
					return fmt.Errorf("the name %q stands twice", name)
				}
				stack[top].names[name] = true
				stack[top].value = true
				continue
			}
		}
		switch token {
		case json.Delim('{'):
			stack = append(stack, level{names: map[string]bool{}})
		case json.Delim('['):
			stack = append(stack, level{})
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:top]
		}
		if len(stack) > maxArgumentDepth {
			return fmt.Errorf("they are nested more than %d deep", maxArgumentDepth)
		}
		if token == json.Delim('{') || token == json.Delim('[') {
			continue
		}
		if len(stack) == 0 {
			closed = true
			continue
		}
		stack[len(stack)-1].value = false
	}
}

// digest is the SHA-256 of the RFC 8785 form, in hex.
func digest(arguments json.RawMessage) (string, error) {
	canonical, err := jcs.Transform(arguments)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}
