package domain_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"openbot/domain"
)

const statesIntroduction = `# States

This page is written by ` + "`make generate`" + ` from the tables and the comments in ` + "`domain/`" + `; do not edit it.

Each table is the law of its kind of row: an event that it does not list in a state is
refused and changes nothing. End states absorb. Every state says who moves it on, by
when, and what happens when a process dies there.
`

// docMachine is one section of the page.
type docMachine struct {
	title, file, constants string
	table                  []domain.Transition
	statuses               []string
}

// TestStatesDocument keeps docs/states.md as the code is; with -update it writes it.
func TestStatesDocument(t *testing.T) {
	var page strings.Builder
	page.WriteString(statesIntroduction)
	for _, m := range []docMachine{
		{"Turn", "turn.go", "TurnStatus", domain.TurnTransitions, words(domain.TurnStatuses())},
		{"Tool call", "call.go", "CallStatus", domain.CallTransitions, words(domain.CallStatuses())},
		{"Request", "request.go", "RequestStatus", domain.RequestTransitions, words(domain.RequestStatuses())},
		{"Delegation", "delegation.go", "DelegationStatus", domain.DelegationTransitions, words(domain.DelegationStatuses())},
		{"Delivery", "delivery.go", "DeliveryStatus", domain.DeliveryTransitions, words(domain.DeliveryStatuses())},
	} {
		comments := stateComments(t, m.file, m.constants)
		fmt.Fprintf(&page, "\n## %s\n\n```mermaid\n%s```\n\n| state | who moves it on, and what a crash leaves |\n|---|---|\n", m.title, domain.Mermaid(m.table))
		for _, s := range m.statuses {
			if comments[s] == "" {
				t.Errorf("the state %s of %s has no comment that says who moves it", s, m.file)
			}
			fmt.Fprintf(&page, "| `%s` | %s |\n", s, comments[s])
		}
		page.WriteString("\n| from | event | to |\n|---|---|---|\n")
		for _, row := range m.table {
			fmt.Fprintf(&page, "| `%s` | %s | `%s` |\n", row.From, row.Event, strings.Join(row.To, "`, `"))
		}
	}
	golden(t, "../docs/states.md", page.String())
}

// stateComments reads the comment of each constant of a type in a file of this
// package, by the constant's value.
func stateComments(t *testing.T, file, typeName string) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	comments := map[string]string{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || spec.Doc == nil || len(spec.Values) != 1 {
			return true
		}
		name, isName := spec.Type.(*ast.Ident)
		literal, isLiteral := spec.Values[0].(*ast.BasicLit)
		if !isName || !isLiteral || name.Name != typeName {
			return true
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(spec.Doc.Text()), " ")
		text = strings.TrimPrefix(text, spec.Names[0].Name+" ")
		comments[value] = strings.ToUpper(text[:1]) + text[1:]
		return true
	})
	return comments
}
