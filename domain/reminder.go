package domain

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Reminder is input that a Bot asked for at a time. The row is there as long as the
// reminder is open: at DueAt the task reminder.fire moves it, rung by the commit that
// made it or by the sweep, and its end deletes it, whether it fired, was cancelled or
// its Chat was deleted. A process that dies in between loses nothing but the ring.
type Reminder struct {
	ID           ReminderID
	Organization OrganizationID
	Member       MemberID
	Chat         ChatID
	Bot          BotID
	Text         string
	Authority    []Authority // of the Turn that made it; the input carries it
	DueAt        time.Time
	CreatedAt    time.Time
	Version      int64
}

// Bounds of reminders.
const (
	// MaxReminderText is the length of a reminder's text, in bytes.
	MaxReminderText = 4000
	// MaxReminders is how many reminders of one Chat may be open at a time.
	MaxReminders = 100
)

// ReminderDue gives the time of a reminder that is asked for now, with at in
// milliseconds since the epoch or afterMs in milliseconds from now. A time in the past
// is now. The error says to the Bot what does not fit.
func ReminderDue(now time.Time, at, afterMs *int64) (time.Time, error) {
	latest := now.AddDate(1, 0, 0)
	switch {
	case (at == nil) == (afterMs == nil):
		return now, errors.New("give exactly one of at and afterMs")
	case at != nil && *at > latest.UnixMilli(), afterMs != nil && *afterMs > latest.Sub(now).Milliseconds():
		return now, errors.New("the time is more than a year ahead")
	case afterMs != nil && *afterMs < 0:
		return now, errors.New("afterMs must not be negative")
	case afterMs != nil:
		return now.Add(time.Duration(*afterMs) * time.Millisecond), nil
	}
	if due := time.UnixMilli(*at).UTC(); Before(now, due) {
		return due, nil
	}
	return now, nil
}

// ReminderTextFits says to the Bot what is wrong with the text of a reminder; nil when
// nothing is.
func ReminderTextFits(text string) error {
	if len(text) == 0 || len(text) > MaxReminderText {
		return fmt.Errorf("text must have 1 to %d bytes", MaxReminderText)
	}
	return nil
}

// breaks are what begins a new line of a text.
var breaks = strings.NewReplacer("\r\n", "\n  ", "\n", "\n  ", "\r", "\n  ")

// TextReminder is the input that a reminder becomes. Its further lines are set in, so
// that none of them passes for one of the server's own.
func TextReminder(r Reminder) string { return "[OpenBot] Reminder: " + breaks.Replace(r.Text) }

// TextReminderSet is for a reminder that was made.
func TextReminderSet(r Reminder) string {
	return fmt.Sprintf("Done: the reminder %s is set for %s. It comes into this Chat as input; openbot_cancel_reminder cancels it.",
		r.ID, r.DueAt.UTC().Format("2006-01-02T15:04:05.000Z"))
}

// TextReminderCancelled is for a reminder that was cancelled.
func TextReminderCancelled(id ReminderID) string {
	return fmt.Sprintf("Done: the reminder %s is cancelled.", id)
}
