package api

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"openbot/web"
)

// docsPage puts the OpenAPI document into a page that needs nothing else.
func docsPage(doc *huma.OpenAPI) web.Docs {
	out := web.Docs{Title: doc.Info.Title, Version: doc.Info.Version, About: doc.Info.Description}
	for _, tag := range doc.Tags {
		group := web.DocsGroup{Name: tag.Name, About: tag.Description}
		for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
			item := doc.Paths[path]
			for _, op := range []*huma.Operation{item.Get, item.Post, item.Patch, item.Delete} {
				if op != nil && slices.Contains(op.Tags, tag.Name) {
					group.Operations = append(group.Operations, docsOperation(op))
				}
			}
		}
		out.Groups = append(out.Groups, group)
	}
	schemas := doc.Components.Schemas.Map()
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		out.Schemas = append(out.Schemas, web.DocsSchema{Name: name, Fields: docsFields(schemas[name])})
	}
	return out
}

func docsOperation(op *huma.Operation) web.DocsOperation {
	out := web.DocsOperation{ID: op.OperationID, Method: op.Method, Path: op.Path, Summary: op.Summary, About: op.Description}
	if r, ok := op.Metadata[routeKey].(*route); ok {
		out.Role = r.role
	}
	for _, p := range op.Parameters {
		out.Parameters = append(out.Parameters, web.DocsField{Name: p.Name, In: p.In, Type: docsType(p.Schema), Required: p.Required, About: p.Description})
	}
	if op.RequestBody != nil {
		for _, media := range op.RequestBody.Content {
			if media.Schema != nil {
				out.Body = []web.DocsField{{Name: "body", Type: docsType(media.Schema), Required: op.RequestBody.Required}}
			}
		}
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		response := op.Responses[status]
		answer := web.DocsAnswer{Status: status, Text: response.Description}
		for _, name := range slices.Sorted(maps.Keys(response.Content)) {
			if media := response.Content[name]; media.Schema != nil && answer.Type == (web.DocsType{}) {
				answer.Type = docsType(media.Schema)
			}
		}
		out.Answers = append(out.Answers, answer)
	}
	return out
}

func docsFields(s *huma.Schema) []web.DocsField {
	var fields []web.DocsField
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		fields = append(fields, web.DocsField{Name: name, Type: docsType(p), Required: slices.Contains(s.Required, name), About: p.Description})
	}
	return fields
}

func docsType(s *huma.Schema) web.DocsType {
	if s == nil {
		return web.DocsType{}
	}
	switch {
	case s.Ref != "":
		return web.DocsType{Ref: s.Ref[strings.LastIndex(s.Ref, "/")+1:]}
	case len(s.AnyOf) == 2:
		t := docsType(s.AnyOf[0])
		t.After += " or null"
		return t
	case s.Type == huma.TypeArray:
		t := docsType(s.Items)
		t.Before = "list of " + t.Before
		return t
	case s.Type == huma.TypeObject:
		if of, ok := s.AdditionalProperties.(*huma.Schema); ok {
			t := docsType(of)
			t.Before = "names to " + t.Before
			return t
		}
		return web.DocsType{Before: "object"}
	case s.Type == "":
		return web.DocsType{Before: "any JSON"}
	}
	text := s.Type
	if len(s.Enum) > 0 {
		var words []string
		for _, e := range s.Enum {
			words = append(words, fmt.Sprint(e))
		}
		text = strings.Join(words, " | ")
	}
	if s.Nullable {
		text += " or null"
	}
	return web.DocsType{Before: text + docsBounds(s)}
}

func docsBounds(s *huma.Schema) string {
	var bounds []string
	number := func(word string, v *float64) {
		if v != nil {
			bounds = append(bounds, word+strconv.FormatFloat(*v, 'f', -1, 64))
		}
	}
	length := func(word string, v *int) {
		if v != nil {
			bounds = append(bounds, word+strconv.Itoa(*v)+" characters")
		}
	}
	number("from ", s.Minimum)
	number("to ", s.Maximum)
	length("at least ", s.MinLength)
	length("at most ", s.MaxLength)
	if s.Default != nil {
		bounds = append(bounds, fmt.Sprintf("default %v", s.Default))
	}
	if len(bounds) == 0 {
		return ""
	}
	return ", " + strings.Join(bounds, ", ")
}
