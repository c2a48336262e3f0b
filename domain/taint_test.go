package domain_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"openbot/domain"
)

func TestWhereAnAnswerComesFrom(t *testing.T) {
	connection, tool := domain.ConnectionID("con_"+hex32), domain.HostToolID("hook_"+hex32)
	host := &domain.HostTool{ID: tool, Name: "deploy"}
	app := domain.TaintSource{Kind: domain.SourceApp, Connection: connection, Chat: "chat_1", AtMs: 5}
	for _, c := range []struct {
		name    string
		call    domain.Call
		host    *domain.HostTool
		trusted []string
		want    domain.Taint
	}{
		{"a tool of an App", domain.Call{Kind: domain.CallApp, Connection: connection}, nil, nil, domain.Taint{app}},
		{"a resource", domain.Call{Kind: domain.CallResource, Connection: connection}, nil, nil, domain.Taint{app}},
		{"a prompt", domain.Call{Kind: domain.CallPrompt, Connection: connection}, nil, nil, domain.Taint{app}},
		{"a trusted App", domain.Call{Kind: domain.CallApp, Connection: connection}, nil, []string{string(connection)}, nil},
		{"another App is trusted", domain.Call{Kind: domain.CallApp, Connection: connection}, nil, []string{"con_" + hex32[:31] + "f", "con_*", "*", ""}, domain.Taint{app}},
		{"a host tool", domain.Call{Kind: domain.CallHost, Tool: "deploy"}, host, nil, domain.Taint{{Kind: domain.SourceTool, Tool: "deploy", Chat: "chat_1", AtMs: 5}}},
		{"a trusted host tool", domain.Call{Kind: domain.CallHost, Tool: "deploy"}, host, []string{string(tool)}, nil},
		{"a host tool that is gone", domain.Call{Kind: domain.CallHost, Tool: "deploy"}, nil, []string{"", string(tool)},
			domain.Taint{{Kind: domain.SourceTool, Tool: "deploy", Chat: "chat_1", AtMs: 5}}},
		{"a call of an App without its Connection", domain.Call{Kind: domain.CallApp}, nil, []string{""}, domain.Taint{{Kind: domain.SourceApp, Chat: "chat_1", AtMs: 5}}},
		{"a tool of OpenBot", domain.Call{Kind: domain.CallOwn}, nil, nil, nil},
		{"a program", domain.Call{Kind: domain.CallProgram}, nil, nil, nil},
	} {
		s := domain.DefaultSettings()
		s.TrustedSources = c.trusted
		c.call.Chat = "chat_1"
		if got := s.Source(c.call, c.host, 5); !slices.Equal(got, c.want) {
			t.Errorf("%s: the taint is %+v", c.name, got)
		}
	}
}

const hex32 = "018f6b1c2d3e7a4b8c9d0e1f2a3b4c5d"

var aSource = rapid.Custom(func(t *rapid.T) domain.TaintSource {
	return domain.TaintSource{Kind: rapid.SampledFrom([]string{domain.SourceApp, domain.SourceTool, domain.SourceChannel}).Draw(t, "kind"),
		Connection: domain.ConnectionID(fmt.Sprint("con_", rapid.IntRange(0, 30).Draw(t, "connection"))),
		Chat:       domain.ChatID(rapid.SampledFrom([]string{"", "chat_1", "chat_2"}).Draw(t, "chat")), AtMs: rapid.Int64Range(0, 9).Draw(t, "at")}
})

// Taint only grows, holds each source once, stays within bounds, and is never within what
// was shown when anything of it was not.
func TestTaintOnlyGrows(t *testing.T) {
	reached := map[string]int{}
	checks := 0
	rapid.Check(t, func(t *rapid.T) {
		checks++
		var taint domain.Taint
		for _, more := range rapid.SliceOfN(rapid.SliceOfN(aSource, 0, 20), 0, 6).Draw(t, "batches") {
			before := deepCopy(taint)
			next := taint.With(more...)
			untouched(t, before, taint)
			if len(next) < len(taint) || !slices.Equal(next[:len(taint)], taint) || len(next) > 32 {
				t.Fatalf("%d sources became %d", len(taint), len(next))
			}
			if len(more) > 0 && len(next) == 0 {
				t.Fatal("content from outside left no taint")
			}
			full := slices.ContainsFunc(next, func(s domain.TaintSource) bool { return s.Kind == domain.SourceMore })
			for _, source := range more {
				if named := slices.ContainsFunc(next, func(s domain.TaintSource) bool {
					return s.Kind == source.Kind && s.Connection == source.Connection
				}); !named && !full {
					t.Fatalf("%+v is lost", source)
				}
			}
			if !next.Within(next) != full {
				t.Fatal("a taint is shown by itself, unless there is more of it than can be shown")
			}
			if full {
				reached["full"]++
			}
			if len(next) > len(taint) && len(taint) > 0 && next.Within(taint) {
				t.Fatal("what came in later was shown before")
			}
			if !full && !taint.Within(next) {
				t.Fatal("what was there is shown no more")
			}
			if again := next.With(more...); !slices.Equal(again, next) {
				t.Fatal("the same content again is another source")
			}
			taint = next
		}
		if !domain.Taint(nil).Within(taint) {
			t.Fatal("no taint is always shown")
		}
		// Appending to one copy never shows in another.
		one, two := taint.With(domain.TaintSource{Kind: domain.SourceTool, Tool: "one"}), taint.With(domain.TaintSource{Kind: domain.SourceTool, Tool: "two"})
		if len(one) > len(taint) && len(taint) < 31 && slices.Equal(one, two) {
			t.Fatal("two copies share memory")
		}
		reached["any"] += len(taint)
	})
	reachedAll(t, reached, checks, "full", "any")
}

func TestAChatTakesInAndStaysTainted(t *testing.T) {
	var chat domain.Chat
	if chat.Tainted() {
		t.Error("a new Chat is tainted")
	}
	chat.TakeIn(nil)
	if chat.Tainted() {
		t.Error("nothing taints")
	}
	chat.TakeIn(fromApp("con_1", "chat_1"))
	chat.TakeIn(nil)
	if !chat.Tainted() {
		t.Error("the Chat did not stay tainted")
	}
	bot := domain.Bot{Taint: fromApp("con_1", "chat_1"), MemoryTaint: fromApp("con_2", "chat_2").With(fromApp("con_1", "chat_3")...)}
	if got := bot.Brings(); len(got) != 2 || got[0].Connection != "con_1" || got[0].Chat != "chat_1" || got[1].Connection != "con_2" {
		t.Errorf("the Bot brings %+v", got)
	}
}
