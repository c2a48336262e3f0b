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
