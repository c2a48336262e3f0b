package domain_test

import (
	"strings"
	"testing"

	"openbot/domain"
)

// simplest is Match in the fewest words: what a star stands for is tried letter by
// letter.
func simplest(pattern, text string) bool {
	fits := make([]bool, len(text)+1) // whether the pattern so far fits the first i bytes
	fits[0] = true
	for _, c := range []byte(pattern) {
		next := make([]bool, len(text)+1)
		for i := range next {
			if c == '*' {
				next[i] = fits[i] || i > 0 && next[i-1]
			} else {
				next[i] = i > 0 && fits[i-1] && text[i-1] == c
			}
		}
		fits = next
	}
	return fits[len(text)]
}

func FuzzMatch(f *testing.F) {
	for _, seed := range [][2]string{{"", ""}, {"*", "x"}, {"a*a", "a"}, {"*ab*ab", "ab"}, {"con_7/*", "con_70/x"}, {"**a**", "bab"}, {"\xff*", "\xff\xfe"}, {"a*b*c", "abcabc"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 200 || len(text) > 200 {
			return
		}
		if got := domain.Match(pattern, text); got != simplest(pattern, text) {
			t.Fatalf("Match(%q, %q) = %v", pattern, text, got)
		}
	})
}

// A list gives no role and covers no capability beyond what its entries say, and an
// entry that is taken to lie within it gives nothing more.
func FuzzPermissions(f *testing.F) {
	for _, seed := range [][4]string{{"read,apps.call:con_7/*", "apps.call:con_7/a*", "apps.call", "con_7/ab"}, {"*", "agents.*:*", "bots.spawn", "*"}, {"admin", "write", "apps.call", "x"},
		{"agents.spawn:*", "bots.spawn:*", "bots.spawn", "*"}, {"a*:b", "a*:b*", "apps.call", "b"}, {"apps.call:*", "*:*", "tools.call", "x"}, {"", "", "", ""}} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, list, entry, action, target string) {
		if len(list)+len(entry)+len(action)+len(target) > 500 {
			return
		}
		own := domain.Permissions(strings.Split(list, ","))
		c := domain.Capability{Action: action, Target: target}
		one := domain.Permissions{entry}
		faulty := one.Faults("x") != nil
		if own.Within(entry) && !faulty && own.Faults("x") == nil {
			if _, covers := one.Covering(c); covers {
				if _, ok := own.Covering(c); !ok {
					t.Fatalf("%q is within %q, but covers %s", entry, own, c)
				}
			}
			for _, role := range []string{domain.RoleRead, domain.RoleWrite, domain.RoleAdmin} {
				if one.HasRole(role) && !own.HasRole(role) {
					t.Fatalf("%q is within %q, but has the role %s", entry, own, role)
				}
			}
		}
		if pattern, ok := own.Covering(c); ok && !strings.Contains(pattern, "*") && domain.CanonicalAction(pattern) != c.String() && pattern != c.String() {
			t.Fatalf("%q without a star covers %s", pattern, c)
		}
		for _, role := range []string{"", "root", "Admin", entry} {
			if own.HasRole(role) && role != domain.RoleRead && role != domain.RoleWrite && role != domain.RoleAdmin {
				if !own.HasRole(domain.RoleWrite) {
					t.Fatalf("%q has the role %q", own, role)
				}
			}
		}
	})
}
