package domain

import (
	"fmt"
	"strings"
	"time"
)

// Outcome is what the check of one attempt came to.
type Outcome string

const (
	// OutcomeAsk makes a Request. It is what every doubt comes to, and the zero value
	// reads as it.
	OutcomeAsk Outcome = "ask"
	// OutcomeAllow lets the saved call run.
	OutcomeAllow Outcome = "allow"
	// OutcomeDeny ends the call without running it.
	OutcomeDeny Outcome = "deny"
	// OutcomeJudge lets the judge read the Rules first.
	OutcomeJudge Outcome = "judge"
)

// Verdict is the outcome of a check with its evidence.
type Verdict struct {
	Outcome  Outcome
	Decided  DecidedBy // for allow and deny
	Reason   string    // for deny: why, in words
	Approver Actor     // for ask: the first decider
	Evidence []Finding // what each step found, in order
	Caution  Caution   // of the attempt, for the Request
}

// Finding is what one step of a check found.
type Finding struct {
	Step  Step   `json:"step"`
	Found string `json:"found"`
	AtMs  int64  `json:"at"` // milliseconds since the epoch
}

// Attempt is what a Bot tries, with everything that was loaded to check it. The
// check reads nothing else.
type Attempt struct {
	At         time.Time
	Bot        BotID
	Member     MemberID
	Chat       ChatID
	Capability Capability // the zero value for what needs no capability
	Rights     []Rights
	Visible    bool   // the Member can see the target
	Planning   bool   // the Chat is in plan mode: nothing runs but reads and the plan
	Exempt     string // why no decision is needed, e.g. the pattern of appReadRules; "" if one is
	Revision   int64  // of the Connection, for apps.call
	Limit      string // the kind of limit, for delegations.continue
	Grants     []Grant
	Rules      []Rule        // that may apply
	Judged     *RulesVerdict // what the judge read in them; nil before it was asked
	Deciders   []BotID       // the Bots above, nearest first; the person stands above all of them
	Caution                  // what its tags and the taint of its Chat say
}

// Free says why the attempt needs no decision, or "": a setting that exempts it, or a tag
// policy that releases each of its tags.
func (a Attempt) Free() string {
	if a.Exempt == "" && a.TagLine.Effect == TagEffectRelease {
		return a.TagLine.String()
	}
	return a.Exempt
}

// Asked gives the attempt as one that waits for a decision already, so that nothing
// exempts it any more.
func (a Attempt) Asked() Attempt {
	a.Exempt = ""
	if a.TagLine.Effect == TagEffectRelease {
		a.TagLine.Effect = TagEffectAsk
	}
	return a
}

// heldFrom says why an allow Grant that covers the attempt does not count, or "". In a
// tainted Chat one counts that a person gave there on a Request that showed this taint.
func (a Attempt) heldFrom(g Grant) string {
	if !a.human() && g.showed(a.Taint, a.Chat) {
		return ""
	}
	return a.held()
}

// Check runs the steps in order; the first that decides wins: policy, no
// decision needed, Grants, Rules, the decider above. Policy and deny Grants only
// deny. Whatever is missing leads to a question, never to an allow. A call that its tags
// or the taint of its Chat hold back goes through the same steps, and nothing in them can
// allow it.
func Check(a Attempt) Verdict {
	c := &checking{Attempt: a}
	v := c.check()
	v.Caution = a.Caution
	return v
}

func (c *checking) check() Verdict {
	a := c.Attempt
	if v, denied := c.policy(); denied {
		return v
	}
	switch free, held := a.Free(), a.held(); {
	case free != "" && held == "":
		c.find(StepExemption, "no decision is needed: "+free)
		return c.decide(OutcomeAllow, DecidedBy{Step: StepExemption, By: Actor{Tag: TagExemption}, Pattern: free}, "")
	case free != "":
		c.find(StepExemption, free+" does not count: "+held)
	default:
		c.find(StepExemption, "a decision is needed")
	}
	if v, decided := c.grants(); decided {
		return v
	}
	if v, decided := c.rules(); decided {
		return v
	}
	approver := Person(a.Member)
	for _, bot := range a.Deciders {
		if bot != a.Bot && bot != "" {
			approver = Actor{Tag: TagBot, Bot: bot}
			break
		}
	}
	c.find(StepDecider, "asked "+approver.ID())
	return Verdict{Outcome: OutcomeAsk, Approver: approver, Evidence: c.found}
}

// grants is the step of kept allows; denies have spoken before.
func (c *checking) grants() (Verdict, bool) {
	spoke := false
	for _, g := range c.Grants {
		if g.Decision != DecisionAllow || !g.Covers(c.Attempt) {
			continue
		}
		if held := c.heldFrom(g); held != "" {
			c.find(StepGrant, fmt.Sprintf("%s does not count: %s", g.ID, held))
			spoke = true
			continue
		}
		found := fmt.Sprintf("%s allows it", g.ID)
		if c.tainted() {
			found += ": a person gave it in this Chat on a Request that showed this taint"
		}
		c.find(StepGrant, found)
		return c.decide(OutcomeAllow, DecidedBy{Step: StepGrant, By: ByGrant(g.ID), Grant: g.ID, Scope: g.Scope}, ""), true
	}
	if !spoke {
		c.find(StepGrant, "no Grant speaks of it")
	}
	return Verdict{}, false
}

// Recheck is the last look before a call goes out: policy and deny Grants again,
// and that the Grant or Rule that allowed it still stands. What was taken away
// meanwhile denies it. For an allow that a Bot gave, strength is what let that Bot,
// as it stands now. It comes to a question when the tag policy or taint that came in
// meanwhile leaves the call to a decider: then the whole check is made again.
func Recheck(a Attempt, allowedBy *DecidedBy, strength Strength) Verdict {
	c := &checking{Attempt: a}
	if v, denied := c.policy(); denied {
		return v
	}
	if allowedBy == nil || !allowedBy.canAllow(a.Capability) {
		return c.refuse(DecidedBy{Step: StepPolicy, By: Actor{Tag: TagPolicy}}, "no decision was kept for this call")
	}
	by := *allowedBy
	if by.Step == StepExemption && a.Free() == "" {
		return c.refuse(DecidedBy{Step: StepPolicy, By: Actor{Tag: TagPolicy}}, "the setting that exempted it was taken away")
	}
	if by.Step == StepGrant || by.By.Tag == TagGrant {
		stands := false
		for _, g := range a.Grants {
			stands = stands || g.ID == by.By.Grant && g.Decision == DecisionAllow && g.Covers(a)
		}
		if !stands {
			return c.refuse(DecidedBy{Step: StepGrant, By: by.By, Grant: by.By.Grant}, "the Grant that allowed it was revoked")
		}
	}
	if by.By.Tag == TagBot && by.Grant != "" && !strength.grantStands(by.Grant, a.Capability) {
		return c.refuse(DecidedBy{Step: StepGrant, By: by.By, Grant: by.Grant}, "the Grant that let the Bot allow it was revoked")
	}
	if (by.Step == StepRule || by.Rule != "") && !strength.ruleStands(by) {
		return c.refuse(DecidedBy{Step: StepRule, By: by.By, Rule: by.Rule}, "the Rule that allowed it was changed or taken away")
	}
	if held := a.heldFor(by, strength); held != "" {
		c.find(StepExemption, "decided anew before it went out: "+held)
		return Verdict{Outcome: OutcomeAsk, Reason: held, Evidence: c.found, Caution: a.Caution}
	}
	return Verdict{Outcome: OutcomeAllow, Decided: by, Evidence: c.found}
}

// heldFor says why the decision that allowed a call does not carry it any more, or "". A
// person's answer carries every call.
func (a Attempt) heldFor(by DecidedBy, strength Strength) string {
	switch {
	case by.Step == StepDecider && by.By.Tag == TagPerson:
		return ""
	case by.By.Tag == TagGrant:
		for _, g := range a.Grants {
			if g.ID == by.By.Grant {
				return a.heldFrom(g)
			}
		}
	case by.By.Tag == TagBot && strength.Grant != nil && strength.Grant.ID == by.Grant:
		a.Chat = strength.Chat
		return a.heldFrom(*strength.Grant)
	}
	return a.held()
}

// Strength is what an earlier decision rests on, as it stands now; nil for what is
// not there.
type Strength struct {
	Grant *Grant
	Rule  *Rule
	Chat  ChatID // from which a Bot that allowed gave the work, or ""
}

func (s Strength) grantStands(id GrantID, c Capability) bool {
	g := s.Grant
	return g != nil && g.ID == id && g.RevokedAt == nil && g.Decision == DecisionAllow && g.Capability == c
}

// ruleStands reports whether the Rule is still the very one that was quoted.
func (s Strength) ruleStands(by DecidedBy) bool {
	r := s.Rule
	return by.Rule != "" && r != nil && r.ID == by.Rule && r.Enabled && r.DeletedAt == nil &&
		r.Version == by.RuleVersion && r.takes(DecisionAllow) && r.Holds(by.Quote)
}

// checking is one run of the check with what it found so far.
type checking struct {
	Attempt
	found []Finding
}

func (c *checking) find(step Step, found string) {
	c.found = append(c.found, Finding{Step: step, Found: found, AtMs: c.At.UnixMilli()})
}

func (c *checking) decide(outcome Outcome, by DecidedBy, reason string) Verdict {
	by.AtMs = c.At.UnixMilli()
	return Verdict{Outcome: outcome, Decided: by, Reason: reason, Evidence: c.found}
}

// refuse denies at the last look.
func (c *checking) refuse(by DecidedBy, reason string) Verdict {
	c.find(by.Step, reason)
	return c.decide(OutcomeDeny, by, reason)
}

func (c *checking) policy() (Verdict, bool) {
	why, ok := Stands(c.Rights)
	if ok && c.Capability != (Capability{}) {
		why, ok = Policy(c.Rights, c.Capability)
	}
	if ok && !c.Visible {
		why, ok = "the member cannot see the target", false
	}
	if ok && c.Planning && c.Exempt == "" && c.Capability.Action != ActionPlansRun && c.Capability.Action != ActionDelegationsContinue {
		why, ok = PlanModeOnly, false
	}
	if !ok {
		c.find(StepPolicy, why)
		return c.decide(OutcomeDeny, DecidedBy{Step: StepPolicy, By: Actor{Tag: TagPolicy}, Pattern: why}, why), true
	}
	c.find(StepPolicy, "covered by "+covering(why))
	if line := c.TagLine; line.Effect == TagEffectDeny {
		why := "the tag policy denies every call with the tag " + line.Tag
		c.find(StepPolicy, why)
		return c.decide(OutcomeDeny, DecidedBy{Step: StepPolicy, By: Actor{Tag: TagPolicy}, Pattern: line.String()}, why), true
	}
	if len(c.Tags) > 0 {
		c.find(StepPolicy, "tags "+strings.Join(c.Tags, ", ")+"; "+c.TagLine.String())
	}
	for _, g := range c.Grants {
		if g.Decision == DecisionDeny && g.Covers(c.Attempt) {
			c.find(StepGrant, fmt.Sprintf("%s denies it", g.ID))
			return c.decide(OutcomeDeny, DecidedBy{Step: StepGrant, By: ByGrant(g.ID), Grant: g.ID}, "a kept decision denies it"), true
		}
	}
	return Verdict{}, false
}

func covering(pattern string) string {
	if pattern == "" {
		return "the rights of the work"
	}
	return "the pattern " + pattern
}

// rules is the step of the judge. A verdict counts for the Rules as they stand now:
// one that names a Rule that is gone or was changed decides nothing, and a Rule that
// the judge has not read is read first.
func (c *checking) rules() (Verdict, bool) {
	var speaking []Rule
	for _, r := range c.Rules {
		if r.Applies(c.Bot, c.Member) {
			speaking = append(speaking, r)
		}
	}
	if len(speaking) == 0 {
		c.find(StepRule, "no Rule applies")
		return Verdict{}, false
	}
	if c.Judged == nil {
		return Verdict{Outcome: OutcomeJudge, Evidence: c.found}, true
	}
	for _, r := range speaking {
		if !c.Judged.hasRead(r) {
			return Verdict{Outcome: OutcomeJudge, Evidence: c.found}, true
		}
	}
	c.find(StepRule, c.Judged.Why)
	for _, r := range speaking {
		if r.ID != c.Judged.Rule || !r.takes(c.Judged.Decision) || !r.Holds(c.Judged.Quote) {
			continue
		}
		by := DecidedBy{Step: StepRule, By: Actor{Tag: TagRule, Rule: r.ID}, Rule: r.ID, RuleVersion: r.Version, Quote: c.Judged.Quote}
		if c.Judged.Decision == DecisionDeny {
			return c.decide(OutcomeDeny, by, ""), true
		}
		if held := c.held(); held != "" {
			c.find(StepRule, fmt.Sprintf("%s does not count: %s", r.ID, held))
			return Verdict{}, false
		}
		return c.decide(OutcomeAllow, by, ""), true
	}
	return Verdict{}, false
}

// Ask skips the Rules: the judge was asked as often as it may be and gave nothing
// that counts.
func Ask(a Attempt, why string) Verdict {
	judged := NoVerdict(a.Rules, why)
	a.Judged = &judged
	return Check(a)
}
