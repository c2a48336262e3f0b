package domain_test

import (
	"slices"
	"strings"
	"testing"

	"openbot/domain"
)

func inputOf(id string, from string, authority ...domain.Authority) domain.Input {
	return domain.Input{ID: domain.InputID(id), From: from, Authority: authority}
}

func idsOf(list []domain.Input) string {
	var ids []string
	for _, in := range list {
		ids = append(ids, string(in.ID))
	}
	return strings.Join(ids, " ")
}

// What waits in the Chat of a Channel is divided by whose it is; elsewhere it is not.
func TestInputOfOneAuthor(t *testing.T) {
	bob := domain.Authority{Member: "mem_b", Token: "tok_1", Via: "mem_1"}
	ann := domain.Authority{Member: "mem_a", Token: "tok_1", Via: "mem_1"}
	nobody := domain.Authority{Token: "tok_1", Via: "mem_1"}
	eve, mallory := domain.FromOutside("eve"), domain.FromOutside("mallory")
	all := []domain.Input{inputOf("1", domain.FromOutside("bob"), bob), inputOf("2", eve, nobody), inputOf("3", domain.FromOutside("ann"), ann),
		inputOf("4", domain.FromServer, bob), inputOf("5", mallory, nobody), inputOf("6", eve, nobody), inputOf("7", domain.FromOutside("bobby"), bob)}
	channel := domain.Chat{Channel: "chn_1"}
	for name, c := range map[string]struct {
		chat        domain.Chat
		waiting     []domain.Input
		taken, left string
	}{
		"the oldest is a Member's: its notices come along": {channel, all, "1 4 7", "2 3 5 6"},
		"the oldest is nobody's: one name alone":           {channel, all[1:], "2 6", "3 4 5 7"},
		"another nobody":                                   {channel, all[4:], "5", "6 7"},
		"nothing waits":                                    {channel, nil, "", ""},
		"no Channel":                                       {domain.Chat{}, all, "1 2 3 4 5 6 7", ""},
	} {
		taken, left := c.chat.ForOneTurn(c.waiting)
		if idsOf(taken) != c.taken || idsOf(left) != c.left {
			t.Errorf("%s: %q and %q, want %q and %q", name, idsOf(taken), idsOf(left), c.taken, c.left)
		}
		if len(taken) > 0 && c.chat.Channel != "" {
			if again := c.chat.Reads(domain.Turn{Author: taken[0].Author()}, c.waiting); idsOf(again) != c.taken {
				t.Errorf("%s: a Turn of that author reads %q", name, idsOf(again))
			}
		}
	}
	if got := (domain.Chat{}).Reads(domain.Turn{}, all); len(got) != len(all) {
		t.Errorf("outside a Channel a Turn reads %q", idsOf(got))
	}
}

func TestNamesOfTheOutside(t *testing.T) {
	for _, good := range []string{"bob", "U0123ABC", "Ann Müller", "👩‍👩‍👧", strings.Repeat("a", domain.MaxOutsideName)} {
		if !domain.ValidOutside(good) {
			t.Errorf("%q is refused", good)
		}
	}
	for _, bad := range []string{"", " bob", "bob ", "a\nb", "a\x00b", "a\u202eb", "a\u2066b", "a\u2028b", "\xff", strings.Repeat("a", domain.MaxOutsideName+1)} {
		if domain.ValidOutside(bad) {
			t.Errorf("%q is taken", bad)
		}
	}
	for _, name := range []string{"openbot", "mem_018f6b1c2d3e7a4b8c9d0e1f2a3b4c5d", "author:x"} {
		from := domain.FromOutside(name)
		if got, ok := domain.OutsideAuthor(from); !ok || got != name || from == name {
			t.Errorf("%q stands as %q", name, from)
		}
	}
	for _, from := range []string{domain.FromServer, "mem_1", "bot_1"} {
		if _, outside := domain.OutsideAuthor(from); outside {
			t.Errorf("%q is taken for an outside author", from)
		}
	}
}

// Nobody stands behind an author who is no Member, whoever stands beside; and the one who
// posted must stand as well.
func TestWhoStandsBehindAnAuthor(t *testing.T) {
	member, gone := fullRights(), fullRights()
	member.Via = &domain.Member{ID: "mem_2"}
	gone.Via = &domain.Member{ID: "mem_2", DisabledAt: ptr(noon)}
	nobody := domain.Rights{Token: member.Token, Via: member.Via}
	for name, c := range map[string]struct {
		rights []domain.Rights
		why    string
	}{
		"a Member by the token of another": {[]domain.Rights{member}, ""},
		"nobody":                           {[]domain.Rights{nobody}, "no member of the organization"},
		"nobody beside a Member":           {[]domain.Rights{member, nobody}, "no member of the organization"},
		"a disabled bridge":                {[]domain.Rights{gone}, "whose token posted the message is disabled"},
	} {
		why, ok := domain.Stands(c.rights)
		if ok != (c.why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%s: %v, %q", name, ok, why)
		}
		a := domain.Attempt{At: noon, Bot: "bot_1", Member: "mem_1", Rights: c.rights, Visible: true, Exempt: "a read"}
		if got := domain.Check(a).Outcome == domain.OutcomeAllow; got != (c.why == "") {
			t.Errorf("%s: a read is allowed: %v", name, got)
		}
	}
	all := domain.AddAuthority([]domain.Authority{{Token: "tok_1", Via: "mem_1"}}, domain.Authority{Member: "mem_1", Token: "tok_1"})
	if len(all) != 2 || slices.ContainsFunc(all, func(a domain.Authority) bool { return a.Bearer() != "mem_1" }) {
		t.Errorf("the authorities are %v", all)
	}
}

func TestWhatGoesOutThroughAChannel(t *testing.T) {
	open, off, deleted := domain.Channel{Enabled: true}, domain.Channel{}, domain.Channel{Enabled: true, DeletedAt: ptr(noon)}
	maker, gone := domain.Member{ID: "mem_1"}, domain.Member{ID: "mem_1", DisabledAt: ptr(noon)}
	for name, c := range map[string]struct {
		channel domain.Channel
		maker   domain.Member
		why     string
	}{
		"an open one":        {open, maker, ""},
		"a disabled one":     {off, maker, "Channel is disabled"},
		"a deleted one":      {deleted, maker, "deleted"},
		"a disabled maker's": {open, gone, "Member that made the Channel is disabled"},
	} {
		if got := c.channel.Talks(c.maker); (got == "") != (c.why == "") || !strings.Contains(got, c.why) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
