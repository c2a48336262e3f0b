package domain

import (
	"fmt"
	"strings"
)

// This file is everything that a model reads about what became of a call. Where
// the call did not run, it says so, and that asking again in the same way is
// pointless.

const notExecuted = " It was not executed. Asking again in the same way is pointless."

// TextDenied is for a call that somebody or something denied.
func TextDenied(by DecidedBy, reason string) string {
	who := "the policy"
	switch {
	case by.By.Tag == TagExpiry:
		return "Not answered in time: nobody decided about this call before its time was up." + notExecuted
	case by.By.Tag == TagPerson:
		who = "a person"
	case by.By.Tag == TagBot:
		who = "the Bot " + string(by.By.Bot)
	case by.Step == StepGrant || by.By.Tag == TagGrant:
		who = "a kept decision (Grant)"
	case by.Step == StepRule:
		who = "a Rule"
	}
	text := "Denied by " + who + "."
	if by.Quote != "" {
		text += " The Rule says: " + by.Quote
	}
	if reason = strings.TrimSpace(reason); reason != "" {
		text += " Reason: " + reason
		if !strings.HasSuffix(reason, ".") {
			text += "."
		}
	}
	return text + notExecuted
}

// TextCancelled is for a call that was stopped with its Turn.
func TextCancelled() string {
	return "Cancelled: the work was stopped before this call went out." + notExecuted
}

// TextStopped is for a call that was stopped before it went out, or before it went out
// again after an outcome that nobody knows.
func TextStopped(c Call) string {
	if c.Sends > 0 && !c.Repeatable {
		return TextUnknown()
	}
	return TextCancelled()
}

// TextUnknown is for a call that went out and whose outcome stays unknown.
func TextUnknown() string {
	return "Outcome unknown: the call went out, no answer came back, and it was decided not to send it again. It may or may not have run."
}

// TextStillOut is for a call of a stopped Turn that is out and gave no sign yet.
func TextStillOut() string {
	return "Outcome not known yet: the work was stopped while this call was out."
}

// TextNoAnswer is for a repeatable call that was sent several times for nothing.
func TextNoAnswer(sends int) string {
	if sends == 1 {
		return "Failed: the call was sent once and the App gave no answer."
	}
	return fmt.Sprintf("Failed: the App gave no answer, although the call was sent %d times.", sends)
}

// TextRevisionChanged is for a saved call whose Connection is another by now.
func TextRevisionChanged() string {
	return "Failed: the App's connection changed after this call was saved, so the decision no longer holds. It was not executed. Look at the tools again before you ask anew."
}

// TextNoTool is for a call of a tool that there is not.
func TextNoTool(name string) string {
	return fmt.Sprintf("Failed: there is no tool %q.%s", name, notExecuted)
}

// TextBadArguments is for arguments that do not fit the tool's schema.
func TextBadArguments(why string) string {
	return "Failed: the arguments do not fit: " + why + ". It was not executed. Correct them and call again."
}

// TextAppFailed is for a call that the App, or the way to it, failed.
func TextAppFailed(why string) string { return "Failed: " + why }

// PlanModeOnly says why a call is denied in a Chat that is in plan mode.
const PlanModeOnly = "the Chat is in plan mode: only reads and openbot_plan run until the plan is allowed"

// TextPlanAllowed is for a plan that may be carried out.
func TextPlanAllowed() string {
	return "Allowed: the Chat has left plan mode. Carry your plan out now; each call is still checked by itself."
}

// TextNoPlanMode is for a plan that nobody asked for.
func TextNoPlanMode() string {
	return "Failed: this Chat is not in plan mode, so no plan is needed. It was not executed. Go on without one."
}

// TextSpawned is for a helper that was made.
func TextSpawned(id BotID, name string) string {
	return fmt.Sprintf("Done: %s (%q) is now a helper in this Chat. It belongs to you.", id, name)
}

// TextCreated is for a lasting Bot that was made.
func TextCreated(id BotID, name string) string {
	return fmt.Sprintf("Done: %s (%q) is now a lasting Bot. It belongs to you.", id, name)
}

// TextPromoted is for a helper that became a lasting Bot.
func TextPromoted(id BotID, name string) string {
	return fmt.Sprintf("Done: %s (%q) is now a lasting Bot. It belongs to you.", id, name)
}

// TextOwnFailed is for a call of OpenBot's own tools that was allowed and cannot be
// carried out any more.
func TextOwnFailed(why string) string { return "Failed: " + why + "." + notExecuted }

// TextDecisionTaken is what a Bot reads about its decision in a review.
func TextDecisionTaken(decision string, final bool) string {
	switch {
	case decision == DecisionDeny:
		return "Your deny was taken. It is final."
	case final:
		return "Your allow was taken. It is final: you may do the same yourself."
	}
	return "Your support was noted. You may not do this yourself, so the Request goes on to the decider above you."
}

// TextDecisionLate is for a decision about a Request that moved on.
func TextDecisionLate(why string) string {
	return "Failed: your decision was not taken: " + why + notExecuted
}
