package domain_test

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"openbot/domain"
)

// oracle is the same question put to the regexp package.
func oracle(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile(`(?s)\A` + strings.Join(parts, ".*") + `\z`).MatchString(text)
}

func TestMatchAgreesWithARegularExpression(t *testing.T) {
	fit, unfit, starred := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[ab./:\n]{0,12}`).Draw(t, "text")
		pattern := rapid.StringMatching(`[ab./:*]{0,8}`).Draw(t, "pattern")
		if rapid.Bool().Draw(t, "cut from the text") {
			pattern = text
			for range rapid.IntRange(0, 3).Draw(t, "stars") {
				from := rapid.IntRange(0, len(pattern)).Draw(t, "from")
				to := rapid.IntRange(from, len(pattern)).Draw(t, "to")
				pattern = pattern[:from] + "*" + pattern[to:]
			}
		}
		want := oracle(pattern, text)
		if got := domain.Match(pattern, text); got != want {
			t.Fatalf("Match(%q, %q) = %v", pattern, text, got)
		}
		if strings.Contains(pattern, "*") {
			starred++
		}
		if want {
			fit++
		} else {
			unfit++
		}
	})
	if fit == 0 || unfit == 0 || starred == 0 {
		t.Fatalf("the generator reached %d fits, %d misfits, %d stars", fit, unfit, starred)
	}
}

func TestMatchHasNoOtherSpecialCharacters(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true},
		{"", "a", false},
		{"*", "", true},
		{"**", "anything", true},
		{"a*a", "a", false}, // head and tail may not share a character
		{"a*a", "aa", true},
		{"*ab*ab", "ab", false},
		{"con_7/?", "con_7/x", false},
		{"con_7/[a-z]", "con_7/x", false},
		{"con_7/.", "con_7/x", false},
		{"con_7/*", "con_70/x", false},
		{"con_7/*", "con_7/", true},
		{"con_7/*", "con_7", false},
		{`con_7/\*`, "con_7/x", false},
		{"*é*", "café au lait", true},
	} {
		if got := domain.Match(c.pattern, c.text); got != c.want {
			t.Errorf("Match(%q, %q) = %v, want %v", c.pattern, c.text, got, c.want)
		}
	}
}

// A pattern of many stars over a long text must not take exponential time: both
// come from people whom nobody trusts. The test would not end if it did.
func TestMatchIsNotSlowOnHostilePatterns(t *testing.T) {
	if domain.Match(strings.Repeat("a*", 250)+"b", strings.Repeat("a", 100_000)) {
		t.Fatal("a text without b fits a pattern that ends in b")
	}
}

// entries draws permissions that overlap often.
func entries() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"*", "read", "write", "admin", "apps.call:*", "apps.call:con_7/*", "apps.call:con_*", "agents.*:*",
			"bots.*:*", "agents.spawn:*", "bots.spawn:*", "bots.delegate:bot_1", "agents.delegate:bot_1", "*:con_7/*", "apps.*:con_7/send_email"}),
		rapid.StringMatching(`(apps\.call|bots\.\*|agents\.\*|\*|tools\.call):[con_7/*]{1,6}`))
}

// capabilities draws what the patterns of entries speak about.
func capabilities() *rapid.Generator[domain.Capability] {
	return rapid.Custom(func(t *rapid.T) domain.Capability {
		return domain.Capability{Action: rapid.SampledFrom(domain.Actions()).Draw(t, "action"),
			Target: rapid.OneOf(rapid.SampledFrom([]string{"con_7/send_email", "con_70/x", "bot_1", "*", "x"}), rapid.StringMatching(`[con_7/*]{0,7}`)).Draw(t, "target")}
	})
}

// Within is what keeps a token from making a wider one: whatever it accepts may
// cover nothing that the list itself does not cover.
func TestWithinNeverAcceptsAnEntryThatCoversMore(t *testing.T) {
	accepted, refusedWider := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		own := domain.Permissions(rapid.SliceOfN(entries(), 0, 3).Draw(t, "own"))
		entry := entries().Draw(t, "entry")
		c := capabilities().Draw(t, "capability")
		within := own.Within(entry)
		_, entryCovers := domain.Permissions{entry}.Covering(c)
		_, ownCovers := own.Covering(c)
		if entryCovers && !ownCovers {
			refusedWider++
			if within {
				t.Fatalf("%q is within %q, but covers %s", entry, own, c)
			}
		}
		for _, role := range []string{domain.RoleRead, domain.RoleWrite, domain.RoleAdmin} {
			if within && (domain.Permissions{entry}).HasRole(role) && !own.HasRole(role) {
				t.Fatalf("%q is within %q, but has the role %s", entry, own, role)
			}
		}
		if within {
			accepted++
		}
	})
	if accepted == 0 || refusedWider == 0 {
		t.Fatalf("the generator reached %d accepted and %d wider entries", accepted, refusedWider)
	}
}

func TestWithinAcceptsWhatItHolds(t *testing.T) {
	for _, c := range []struct {
		own   domain.Permissions
		entry string
		want  bool
	}{
		{domain.Permissions{"admin", "*"}, "admin", true},
		{domain.Permissions{"admin", "*"}, "apps.call:con_7/*", true},
		{domain.Permissions{"*"}, "read", false}, // a capability pattern is no role
		{domain.Permissions{"admin"}, "*", false},
		{domain.Permissions{"write"}, "admin", false},
		{domain.Permissions{"write"}, "read", true},
		{domain.Permissions{"bots.*:*"}, "agents.spawn:*", true},
		{domain.Permissions{"agents.spawn:*"}, "bots.spawn:*", true},
		{domain.Permissions{"apps.call:con_7/a*"}, "apps.call:con_7/*", false},
		{domain.Permissions{"apps.call:con_7/*"}, "apps.call:con_7/a*", true},
		{nil, "*", false},
		{nil, "", false},
	} {
		if got := c.own.Within(c.entry); got != c.want {
			t.Errorf("%q.Within(%q) = %v, want %v", c.own, c.entry, got, c.want)
		}
	}
}

func TestRolesIncludeOneAnother(t *testing.T) {
	for _, c := range []struct {
		list               domain.Permissions
		read, write, admin bool
	}{
		{nil, false, false, false},
		{domain.Permissions{"*"}, false, false, false},
		{domain.Permissions{"apps.call:*"}, false, false, false},
		{domain.Permissions{"read"}, true, false, false},
		{domain.Permissions{"write"}, true, true, false},
		{domain.Permissions{"admin"}, true, true, true},
		{domain.Permissions{"read", "admin"}, true, true, true},
		{domain.Permissions{"Admin", "ADMIN", " admin"}, false, false, false},
	} {
		for role, want := range map[string]bool{domain.RoleRead: c.read, domain.RoleWrite: c.write, domain.RoleAdmin: c.admin} {
			if got := c.list.HasRole(role); got != want {
				t.Errorf("%q.HasRole(%s) = %v, want %v", c.list, role, got, want)
			}
		}
		if (domain.Permissions(c.list)).HasRole("root") && !c.admin && !c.write {
			t.Errorf("%q has a role that there is not", c.list)
		}
	}
	wide := domain.Member{Permissions: domain.Permissions{"admin"}}
	narrow := domain.Token{Scopes: domain.Permissions{"read"}}
	p := domain.Principal{Member: wide, Token: narrow}
	if p.HasRole(domain.RoleWrite) || !p.HasRole(domain.RoleRead) {
		t.Error("a token with read alone must narrow an admin to reading")
	}
	p = domain.Principal{Member: domain.Member{Permissions: domain.Permissions{"read"}}, Token: domain.Token{Scopes: domain.Permissions{"admin"}}}
	if p.HasRole(domain.RoleWrite) {
		t.Error("a token must not widen its Member")
	}
}

func TestOldActionsNameTheNewOnes(t *testing.T) {
	for old, want := range map[string]string{
		"agents.delegate": "bots.delegate", "agents.spawn": "bots.spawn", "agents.create": "bots.create", "agents.promote": "bots.promote",
		"bots.spawn": "bots.spawn", "apps.call": "apps.call", "agents": "agents", "": "", "xagents.spawn": "xagents.spawn", "agents.*": "bots.*",
	} {
		if got := domain.CanonicalAction(old); got != want {
			t.Errorf("CanonicalAction(%q) = %q, want %q", old, got, want)
		}
	}
	spawn := domain.Capability{Action: domain.ActionBotsSpawn, Target: "*"}
	if pattern, ok := (domain.Permissions{"agents.spawn:*"}).Covering(spawn); !ok || pattern != "agents.spawn:*" {
		t.Errorf("an old pattern covers the new action and is shown as it was written, got %q %v", pattern, ok)
	}
}

func TestPermissionsThatMeanNothingAreFaults(t *testing.T) {
	good := domain.Permissions{"read", "write", "admin", "*", "apps.call:*", "*:x", "bots.*:*", "agents.spawn:*", "plans.run:chat_1"}
	if faults := good.Faults("scopes"); faults != nil {
		t.Errorf("faults in good permissions: %v", faults)
	}
	bad := domain.Permissions{"", "root", "apps.call", "apps.call:", ":x", "apps.cal:x", "**", "apps.call:" + strings.Repeat("x", 500)}
	faults := bad.Faults("scopes")
	if len(faults) != len(bad) {
		t.Fatalf("%d faults for %d bad entries: %v", len(faults), len(bad), faults)
	}
	if faults[2].Path != "scopes[2]" {
		t.Errorf("the third fault stands at %q", faults[2].Path)
	}
}
