package domain

import "time"

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
	Exempt     string // why no decision is needed, e.g. the pattern of appReadRules; "" if one is
	Revision   int64  // of the Connection, for apps.call
	Grants     []Grant
	RulesFound bool // Rules apply that the judge has not read yet
}

// Check runs the steps in order; the first that decides wins: policy, no
// decision needed, Grants, Rules, the decider above. Policy and deny Grants only
// deny. Whatever is missing leads to a question, never to an allow.
func Check(a Attempt) Verdict {
	if v, denied := checkPolicy(a); denied {
		return v
	}
	if a.Exempt != "" {
		return Verdict{Outcome: OutcomeAllow, Decided: DecidedBy{
			Step: StepExemption, By: Actor{Tag: TagExemption}, Pattern: a.Exempt, AtMs: a.At.UnixMilli()}}
	}
	for _, g := range a.Grants {
		if g.Decision == DecisionAllow && g.Covers(a) {
			return Verdict{Outcome: OutcomeAllow, Decided: DecidedBy{
				Step: StepGrant, By: ByGrant(g.ID), Grant: g.ID, AtMs: a.At.UnixMilli()}}
		}
	}
	if a.RulesFound {
		return Verdict{Outcome: OutcomeJudge}
	}
	return Verdict{Outcome: OutcomeAsk, Approver: Person(a.Member)}
}

// Recheck is the last look before a call goes out: policy and deny Grants again,
// and that the Grant that allowed it still stands. What was taken away meanwhile
// denies it.
func Recheck(a Attempt, allowedBy *DecidedBy) Verdict {
	if v, denied := checkPolicy(a); denied {
		return v
	}
	if allowedBy == nil || !allowedBy.canAllow(a.Capability) {
		return Verdict{Outcome: OutcomeDeny, Reason: "no decision was kept for this call",
			Decided: DecidedBy{Step: StepPolicy, By: Actor{Tag: TagPolicy}, AtMs: a.At.UnixMilli()}}
	}
	if allowedBy.Step == StepGrant || allowedBy.By.Tag == TagGrant {
		stands := false
		for _, g := range a.Grants {
			stands = stands || g.ID == allowedBy.By.Grant && g.Decision == DecisionAllow && g.Covers(a)
		}
		if !stands {
			return Verdict{Outcome: OutcomeDeny, Reason: "the Grant that allowed it was revoked",
				Decided: DecidedBy{Step: StepGrant, By: allowedBy.By, Grant: allowedBy.By.Grant, AtMs: a.At.UnixMilli()}}
		}
	}
	return Verdict{Outcome: OutcomeAllow, Decided: *allowedBy}
}

func checkPolicy(a Attempt) (Verdict, bool) {
	deny := func(step Step, by Actor, pattern, reason string) (Verdict, bool) {
		return Verdict{Outcome: OutcomeDeny, Reason: reason,
			Decided: DecidedBy{Step: step, By: by, Grant: by.Grant, Pattern: pattern, AtMs: a.At.UnixMilli()}}, true
	}
	why, ok := Stands(a.Rights)
	if ok && a.Capability != (Capability{}) {
		why, ok = Policy(a.Rights, a.Capability)
	}
	if ok && !a.Visible {
		why, ok = "the member cannot see the target", false
	}
	if !ok {
		return deny(StepPolicy, Actor{Tag: TagPolicy}, why, why)
	}
	for _, g := range a.Grants {
		if g.Decision == DecisionDeny && g.Covers(a) {
			return deny(StepGrant, ByGrant(g.ID), "", "a kept decision denies it")
		}
	}
	return Verdict{}, false
}
