package domain_test

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"openbot/domain"
)

var modelName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func connectionNamed(id domain.ConnectionID, name string) domain.Connection {
	return domain.Connection{ID: id, Name: name}
}

func TestToolNamesForModels(t *testing.T) {
	var names domain.ModelToolNames
	if got := names.Name(connectionNamed("con_1", "mail"), "send"); got != "mail__send" {
		t.Errorf("a plain name stays plain, got %q", got)
	}
	if got := names.Name(connectionNamed("con_1", "mail"), "send"); got != "mail__send" {
		t.Errorf("the same tool asked again keeps its name, got %q", got)
	}
	second := names.Name(connectionNamed("con_2", "mail"), "send")
	if second == "mail__send" || !strings.HasPrefix(second, "mail__send_") {
		t.Errorf("a second App of the same name gets a hash, got %q", second)
	}
	split := names.Name(connectionNamed("con_3", "mail__send"), "x")
	other := names.Name(connectionNamed("con_4", "mail"), "send__x")
	if split == other {
		t.Errorf("two ways to read one name are two names, got %q twice", split)
	}
	for _, c := range []struct{ connection, tool string }{
		{"mail", strings.Repeat("t", 300)}, {strings.Repeat("c", 100), "t"}, {"Пошта", "надіслати"}, {"mail", "send email"},
		{"mail", "a.b/c:d"}, {"mail", "\x00\xff"}, {"", ""}, {"🙂", "🙂🙂"},
	} {
		name := names.Name(connectionNamed("con_5", c.connection), c.tool)
		if !modelName.MatchString(name) {
			t.Errorf("providers refuse the name %q of %q %q", name, c.connection, c.tool)
		}
		var alone domain.ModelToolNames
		if got := alone.Name(connectionNamed("con_5", c.connection), c.tool); got != name {
			t.Errorf("the name of %q %q hangs on its neighbours: %q and %q", c.connection, c.tool, name, got)
		}
	}
	if a, b := names.Name(connectionNamed("con_6", "m"), "a.b"), names.Name(connectionNamed("con_6", "m"), "a:b"); a == b {
		t.Errorf("two tools that differ in a replaced character share the name %q", a)
	}
}

// Nothing of an App may be taken for a tool of OpenBot itself.
func TestNoAppToolLooksLikeOneOfOurs(t *testing.T) {
	for _, connection := range []string{"openbot_", "openbot", "openbot_openbot_", "openbot_openbot_openbot_x", "öpenbot_"} {
		var names domain.ModelToolNames
		for _, tool := range []string{"", "decide", "openbot_decide", strings.Repeat("openbot_", 20)} {
			if name := names.Name(connectionNamed("con_1", connection), tool); strings.HasPrefix(name, "openbot_") || !modelName.MatchString(name) {
				t.Errorf("%q %q is shown as %q", connection, tool, name)
			}
		}
	}
}

// An App chooses the names of its tools, so it may choose one that another tool's
// hashed name has already.
func TestAToolNamedAfterAnothersHashTakesNothing(t *testing.T) {
	long := strings.Repeat("t", 100)
	sum := sha256.Sum256([]byte("con_1/" + long))
	crafted := strings.Repeat("t", 50) + "_" + hex.EncodeToString(sum[:])[:10]
	var victimFirst, attackerFirst domain.ModelToolNames
	victim, attacker := victimFirst.Name(connectionNamed("con_1", "m"), long), victimFirst.Name(connectionNamed("con_2", "m"), crafted)
	if victim != "m__"+crafted {
		t.Fatalf("the case is not what it should be: the victim is %q", victim)
	}
	if victim == attacker {
		t.Errorf("both are %q", victim)
	}
	attacker, victim = attackerFirst.Name(connectionNamed("con_2", "m"), crafted), attackerFirst.Name(connectionNamed("con_1", "m"), long)
	if victim == attacker || !modelName.MatchString(victim) {
		t.Errorf("with the attacker first, both are %q", victim)
	}
}

func TestToolNamesNeverCollide(t *testing.T) {
	hashed := 0
	rapid.Check(t, func(t *rapid.T) {
		var names domain.ModelToolNames
		owner := map[string]string{}
		for range rapid.IntRange(1, 20).Draw(t, "tools") {
			c := connectionNamed(domain.ConnectionID(rapid.SampledFrom([]string{"con_1", "con_2", "con_3"}).Draw(t, "id")),
				rapid.SampledFrom([]string{"m", "m_", "m__s", "é", "openbot_", strings.Repeat("m", 70)}).Draw(t, "name"))
			tool := rapid.OneOf(rapid.StringMatching(`[s_.]{1,4}`), rapid.SampledFrom([]string{strings.Repeat("s", 80), "s"})).Draw(t, "tool")
			identity := string(c.ID) + "/" + tool
			name := names.Name(c, tool)
			if !modelName.MatchString(name) || strings.HasPrefix(name, "openbot_") {
				t.Fatalf("the name %q", name)
			}
			if other, ok := owner[name]; ok && other != identity {
				t.Fatalf("%q and %q are both %q", other, identity, name)
			}
			owner[name] = identity
			if name != c.Name+"__"+tool {
				hashed++
			}
		}
	})
	if hashed == 0 {
		t.Fatal("no name needed a hash")
	}
}

func TestLooks(t *testing.T) {
	fresh := domain.Connection{ID: "con_1", Revision: 1, Health: domain.HealthUnknown, LookDueAt: ptr(noon)}
	look := domain.AppLook{Name: "mail", Digest: "d1", Tools: []domain.AppTool{{Name: "send"}}}

	first := domain.DecideLook(fresh, domain.Looked{At: noon, Look: look})
	if first.Revision != 1 || first.Health != domain.HealthOK || first.LookDueAt != nil || !first.LookedAt.Equal(noon) {
		t.Errorf("the first look fills the first revision: %+v", first)
	}
	if _, ok := first.Tool("send"); !ok {
		t.Error("the tool of the look is found")
	}
	if _, ok := first.Tool("Send"); ok {
		t.Error("names are exact")
	}
	same := domain.DecideLook(first, domain.Looked{At: noon, Look: look})
	if same.Revision != 1 {
		t.Error("a look that finds the same makes no revision: many Apps cry change right after connecting")
	}
	changed := look
	changed.Digest, changed.Tools = "d2", nil
	if next := domain.DecideLook(first, domain.Looked{At: noon, Look: changed}); next.Revision != 2 || len(next.Look.Tools) != 0 {
		t.Errorf("other tools are another revision: %+v", next)
	}
	before := deepCopy(first)
	down := domain.DecideLook(first, domain.Looked{At: noon, Down: "connection refused"})
	untouched(t, before, first)
	if down.Health != domain.HealthDown || down.HealthWhy != "connection refused" || down.Revision != 1 || len(down.Look.Tools) != 1 {
		t.Errorf("an App that is away keeps what it offered: %+v", down)
	}
	if back := domain.DecideLook(down, domain.Looked{At: noon, Look: look}); back.Health != domain.HealthOK || back.HealthWhy != "" || back.Revision != 1 {
		t.Errorf("and is the same when it is back: %+v", back)
	}
}

func TestWhoSeesAConnection(t *testing.T) {
	own := domain.Connection{Member: "mem_1"}
	shared := domain.Connection{Member: "mem_1", Shared: true}
	deleted := domain.Connection{Member: "mem_1", Shared: true, DeletedAt: ptr(noon)}
	if !own.VisibleTo("mem_1") || own.VisibleTo("mem_2") || !shared.VisibleTo("mem_2") || deleted.VisibleTo("mem_1") {
		t.Error("a Connection is seen by its Member, a shared one by all, a deleted one by nobody")
	}
}
