package domain

import (
	"fmt"
	"strings"
)

// This file is what Bots read about work that is given away.

// TextTask is the notice that opens a task Chat. The task begins on its own line.
func TextTask(giver, task string) string {
	return fmt.Sprintf("[OpenBot] %s gives you this task:\n%s", inLine(giver), task)
}

// TaskOf takes the task out of such a notice.
func TaskOf(text string) string {
	_, task, _ := strings.Cut(text, "\n")
	return task
}

// TextTaskAdded is the notice of a task that goes on with earlier work.
func TextTaskAdded(giver, task string) string {
	return fmt.Sprintf("[OpenBot] %s gives you one more task:\n%s", inLine(giver), task)
}

// TextWorkGiven is what openbot_delegate tells the model.
func TextWorkGiven(status DelegationStatus) string {
	if status == DelegationAuthorizing {
		return "The work waits for a decision whether you may give it. You get a message when it is done, or when it was not allowed. Go on with other work, or end your answer now."
	}
	return "The work runs on its own. Its result comes back to this Chat as a message. Go on with other work, or end your answer now."
}

// TextTaskTaken is what openbot_delegate tells the model when running work takes one
// more task.
const TextTaskTaken = "The work reads the new task at its next step. Its result comes back to this Chat as a message. Go on with other work, or end your answer now."

// TextWorkEnded is the notice of the end of work to the Chat that gave it.
func TextWorkEnded(g Delegation, bot string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[OpenBot] The work %s that you gave to %s ", g.ID, inLine(bot))
	switch {
	case g.Status == DelegationCompleted:
		b.WriteString("is done.\n\nResult:\n")
	case g.Status == DelegationCancelled:
		b.WriteString("was stopped. It is not done.\n\n")
	case g.StartedAt == nil:
		b.WriteString("was not allowed. It was not started, and asking again in the same way is pointless.\n\n")
	default:
		b.WriteString("failed.\n\nError:\n")
	}
	b.WriteString(g.Result)
	return strings.TrimRight(b.String(), "\n")
}

// TextTaskRefused is the notice of a task that may not be added to earlier work.
func TextTaskRefused(id DelegationID, why string) string {
	return strings.TrimRight(fmt.Sprintf("[OpenBot] The task that you wanted to add to the work %s was not allowed. It was not given, and asking again in the same way is pointless.\n\n%s", id, why), "\n")
}

// TextWorkStopped is the result of work that was stopped.
func TextWorkStopped(why string) string {
	if why == "" {
		return "The work was stopped."
	}
	return "The work was stopped. " + why
}

// TextLimitDenied says why work at a limit was stopped.
func TextLimitDenied(limit string, by DecidedBy, decision, reason string) string {
	what := map[string]string{LimitTime: "time limit", LimitSteps: "limit of steps", LimitBudget: "budget"}[limit]
	if what == "" {
		what = "limit"
	}
	text := "It reached its " + what + ", and "
	reason = strings.TrimSpace(reason)
	switch {
	case by.By.Tag == TagExpiry:
		return text + "nobody decided in time whether it goes on."
	case decision == DecisionAsk:
		return text + "whoever decides asks: " + reason
	case by.By.Tag == TagPerson:
		text += "a person decided that it does not go on."
	case by.By.Tag == TagBot:
		text += "the Bot " + string(by.By.Bot) + " decided that it does not go on."
	default:
		text += "it may not go on."
	}
	if reason != "" {
		text += " Reason: " + reason
	}
	return text
}

// inLine keeps a name that people or Bots chose on its line.
func inLine(name string) string { return strings.Join(strings.Fields(name), " ") }
