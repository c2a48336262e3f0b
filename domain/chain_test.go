package domain_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"openbot/domain"
)

// width orders scopes.
func width(scope string) int {
	return slices.Index([]string{domain.ScopeOnce, domain.ScopeChat, domain.ScopeLifetime}, scope)
}

// wayUp is one Request on its way through random deciders.
type wayUp struct {
	t        *rapid.T
	r        domain.Request
	archived map[domain.BotID]bool
	holds    map[domain.BotID]domain.Verdict
	effects  []domain.Effect
	steps    int
	strength domain.Verdict // of the Bot whose allow was final
}

func newWayUp(t *rapid.T) *wayUp {
	w := &wayUp{t: t, r: pendingRequest(), archived: map[domain.BotID]bool{}, holds: map[domain.BotID]domain.Verdict{}}
	w.r.Chain = nil
	for i := range rapid.SampledFrom([]int{0, 1, 2, 3, 4, 5, 3, 4}).Draw(t, "Bots above") {
		id := domain.BotID(fmt.Sprintf("bot_above_%d", i))
		w.r.Chain = append(w.r.Chain, id)
		w.archived[id] = rapid.IntRange(0, 3).Draw(t, "archived") == 0
		w.holds[id] = rapid.SampledFrom([]domain.Verdict{
			{Outcome: domain.OutcomeAsk}, {Outcome: domain.OutcomeAsk}, {}, {Outcome: domain.OutcomeDeny}, {Outcome: domain.OutcomeJudge},
			{Outcome: domain.OutcomeAllow, Decided: domain.DecidedBy{Step: domain.StepGrant, By: domain.ByGrant("grt_own"), Grant: "grt_own"}},
			{Outcome: domain.OutcomeAllow, Decided: domain.DecidedBy{Step: domain.StepRule, Rule: "rul_own", Quote: "Allow."}},
			{Outcome: domain.OutcomeAllow, Decided: domain.DecidedBy{Step: domain.StepExemption}},
		}).Draw(t, "holds")
	}
	w.r.Chain = append(w.r.Chain, w.r.Bot)
	w.r.Approver = domain.Person(w.r.Member)
	if deciders := domain.Deciders(w.r.Chain); len(deciders) > 0 {
		w.r.Approver = domain.ByBot(deciders[0])
	}
	return w
}

func (w *wayUp) isArchived(id domain.BotID) bool { return w.archived[id] }

// move decides one event and looks at what must hold of every move.
func (w *wayUp) move(ev domain.RequestEvent) bool {
	before := deepCopy(w.r)
	next, effects, err := domain.DecideRequest(w.r, ev)
	untouched(w.t, before, w.r)
	if err != nil {
		untouched(w.t, before, next)
		if len(effects) != 0 {
			w.t.Fatal("a refusal left effects")
		}
		return false
	}
	_, opened := ev.(domain.Reviewing)
	if moved := next.Revision != before.Revision; moved == opened {
		w.t.Fatalf("%T moved the revision: %v", ev, moved)
	}
	if next.Status == domain.RequestPending && !opened {
		now := slices.Index(next.Chain, next.Approver.Bot)
		was := slices.Index(before.Chain, before.Approver.Bot)
		if next.Approver.Tag == domain.TagBot && (now >= was || w.archived[next.Approver.Bot] || next.Approver.Bot == next.Bot) {
			w.t.Fatalf("%+v follows %+v", next.Approver, before.Approver)
		}
		if (next.ReviewDueAt != nil) != (next.Approver.Tag == domain.TagBot) || next.Review != "" {
			w.t.Fatalf("nothing moves a Request that waits for %+v", next.Approver)
		}
	}
	w.r, w.effects = next, append(w.effects, effects...)
	return true
}

// review lets the Bot whose turn it is do something, also what it may not.
func (w *wayUp) review() {
	bot := w.r.Approver.Bot
	if w.archived[bot] {
		w.move(domain.Passed{At: noon, Bot: bot, Next: w.r.NextDecider(w.isArchived)})
		return
	}
	if w.r.Review == "" {
		w.move(domain.Reviewing{At: noon, Chat: "chat_review", Until: noon.Add(time.Minute)})
	}
	ev := domain.Reviewed{At: noon, Chat: "chat_review", Bot: bot, Holds: w.holds[bot], Next: w.r.NextDecider(w.isArchived),
		Decision: rapid.SampledFrom([]string{"allow", "allow", "allow", "allow", "allow", "allow", "deny", "maybe"}).Draw(w.t, "decision"),
		Scope:    rapid.SampledFrom([]string{"lifetime", "lifetime", "lifetime", "once", "chat", ""}).Draw(w.t, "scope"), GrantID: "grt_new", RuleID: "rul_new"}
	if rapid.IntRange(0, 1).Draw(w.t, "rule") == 0 {
		ev.Rule = ptr("Always allow it.")
	}
	for i := range w.r.Endorsements {
		ev.Endorsed = append(ev.Endorsed, domain.GrantID(fmt.Sprintf("grt_endorsed_%d", i)))
	}
	switch rapid.IntRange(0, 24).Draw(w.t, "what is wrong") {
	case 0:
		ev.Bot = w.r.Bot // the asking Bot decides for itself
	case 1:
		ev.Chat = "chat_old"
	case 2:
		ev.At = w.r.ExpiresAt
	case 3:
		ev.Next = domain.ByBot(w.r.Bot)
	}
	endorsements := len(w.r.Endorsements)
	if !w.move(ev) {
		w.move(domain.Passed{At: noon, Bot: bot, Next: w.r.NextDecider(w.isArchived)})
		return
	}
	if ev.Bot != bot || ev.Chat != "chat_review" || !domain.Before(ev.At, w.r.ExpiresAt) {
		w.t.Fatalf("%+v was taken", ev)
	}
	switch w.r.Status {
	case domain.RequestAllowed:
		if ev.Decision != "allow" || ev.Holds.Outcome != domain.OutcomeAllow || w.r.Decision.By != domain.ByBot(bot) {
			w.t.Fatalf("%+v allowed it", ev)
		}
		w.strength = ev.Holds
	case domain.RequestDenied:
		if ev.Decision != "deny" {
			w.t.Fatalf("%+v denied it", ev)
		}
	default:
		if ev.Decision != "allow" || len(w.r.Endorsements) != endorsements+1 {
			w.t.Fatalf("%+v left %+v", ev, w.r.Endorsements)
		}
	}
}

// Random chains of random deciders end, and never with more than somebody gave who
// may give it.
func TestRandomChainsKeepTheLaw(t *testing.T) {
	reached := map[string]int{}
	law := func(t *rapid.T) {
		w := newWayUp(t)
		for w.r.Status == domain.RequestPending && w.r.Approver.Tag == domain.TagBot {
			if w.steps++; w.steps > 2*len(w.r.Chain) {
				t.Fatal("the chain does not end")
			}
			if a := (domain.Answered{At: noon, Expected: w.r.Revision, Member: "mem_1", Decision: "allow", Scope: "once"}); w.move(a) {
				t.Fatal("the person answered while a Bot decides")
			}
			w.review()
		}
		if w.r.Status == domain.RequestPending {
			if w.r.Approver != domain.Person("mem_1") {
				t.Fatalf("the chain ends at %+v", w.r.Approver)
			}
			a := domain.Answered{At: noon, Expected: w.r.Revision, Member: "mem_1", GrantID: "grt_new", RuleID: "rul_new",
				Decision: rapid.SampledFrom([]string{"allow", "allow", "deny"}).Draw(t, "answer"), Scope: rapid.SampledFrom([]string{"lifetime", "lifetime", "once", "chat"}).Draw(t, "answer scope")}
			for i := range w.r.Endorsements {
				a.Endorsed = append(a.Endorsed, domain.GrantID(fmt.Sprintf("grt_endorsed_%d", i)))
			}
			if !w.move(a) {
				t.Fatal("the person's answer was refused")
			}
			reached["person"]++
		} else {
			reached["bot "+string(w.r.Status)]++
		}
		w.check(reached)
	}
	// A hundred draws reach every end nearly always; some more always.
	for range 5 {
		rapid.Check(t, law)
	}
	for _, what := range []string{"person", "bot allowed", "bot denied", "endorsement kept", "capped by a Rule", "parent kept", "rule of a Bot"} {
		if reached[what] == 0 {
			t.Errorf("no chain reached: %s", what)
		}
	}
}

// check looks at what the final decision left.
func (w *wayUp) check(reached map[string]int) {
	d := w.r.Decision
	supporters := map[domain.BotID]string{}
	for _, e := range w.r.Endorsements {
		if _, twice := supporters[e.Bot]; twice || e.Bot == w.r.Bot {
			w.t.Fatalf("%s endorsed twice, or itself", e.Bot)
		}
		supporters[e.Bot] = e.Scope
	}
	byBot := d.By.Tag == domain.TagBot
	if byBot && d.Decision == "allow" && w.strength.Decided.Step == domain.StepRule {
		if d.Scope != domain.ScopeOnce {
			w.t.Fatalf("a Rule about one attempt stands behind %+v", d)
		}
		reached["capped by a Rule"]++
	}
	for _, effect := range w.effects {
		switch effect := effect.(type) {
		case domain.KeepGrant:
			g := effect.Grant
			if d.Scope == domain.ScopeOnce || g.Decision != d.Decision || width(g.Scope) > width(d.Scope) || g.Capability != w.r.Capability ||
				g.Revision != w.r.App.Revision || g.Member != w.r.Member {
				w.t.Fatalf("%+v left %+v", d, g)
			}
			if g.Bot != w.r.Bot {
				scope, supported := supporters[g.Bot]
				if d.Decision != "allow" || !supported || width(g.Scope) > width(scope) || g.Source != domain.SourceEndorsement || g.Scope != domain.ScopeLifetime {
					w.t.Fatalf("%s got %+v", g.Bot, g)
				}
				reached["endorsement kept"]++
			}
			if want := w.strength.Decided.Grant; byBot && d.Decision == "allow" && g.Parent != want || !byBot && g.Parent != "" {
				w.t.Fatalf("%+v does not say on whose strength it was given", g)
			}
			if g.Parent != "" {
				reached["parent kept"]++
			}
		case domain.KeepRule:
			if byBot && (effect.Rule.Keeper != d.By.Bot || effect.Rule.Effect != domain.DecisionDeny) {
				w.t.Fatalf("a Bot left the Rule %+v", effect.Rule)
			}
			if byBot {
				reached["rule of a Bot"]++
			}
		}
	}
}

// Chains of random owners, with rings and archived Bots among them, hold each Bot once
// and never an archived one beside the asking Bot.
func TestRandomOwnersEndAtThePerson(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "Bots")
		id := func(i int) domain.BotID { return domain.BotID(fmt.Sprintf("bot_%d", i)) }
		known := map[domain.BotID]domain.Bot{}
		for i := range n {
			b := domain.Bot{ID: id(i), Kind: domain.BotLasting, Owner: id(rapid.IntRange(0, n).Draw(t, "owner"))}
			if rapid.IntRange(0, 3).Draw(t, "archived") == 0 {
				b.ArchivedAt = ptr(noon)
			}
			known[b.ID] = b
		}
		chain := domain.OwnerChain(known[id(0)], "bot_main", known)
		if len(chain) == 0 || chain[len(chain)-1] != id(0) {
			t.Fatalf("the chain %v does not end at the asking Bot", chain)
		}
		deciders := domain.Deciders(chain)
		if len(deciders) != len(chain)-1 || slices.Contains(deciders, id(0)) {
			t.Fatalf("%v decide in the chain %v", deciders, chain)
		}
		seen := map[domain.BotID]bool{}
		for _, bot := range deciders {
			if seen[bot] || known[bot].ArchivedAt != nil {
				t.Fatalf("%s stands twice in %v, or is archived", bot, deciders)
			}
			seen[bot] = true
		}
		r := pendingRequest()
		r.Bot, r.Chain, r.Approver = id(0), chain, domain.Person("mem_1")
		if len(deciders) > 0 {
			r.Approver = domain.ByBot(deciders[0])
		}
		for range 2 * n {
			if r.Approver.Tag != domain.TagBot {
				break
			}
			next, _, err := domain.DecideRequest(r, domain.Passed{At: noon, Bot: r.Approver.Bot, Next: r.NextDecider(func(b domain.BotID) bool { return known[b].ArchivedAt != nil })})
			if err != nil {
				t.Fatal(err)
			}
			r = next
		}
		if r.Approver != domain.Person("mem_1") {
			t.Fatalf("the chain ends at %+v", r.Approver)
		}
	})
}
