package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"openbot/domain"
)

// reminderTools are the tools that set and cancel reminders. They work inside the
// commit of the step.
func reminderTools() []builtin {
	tools := []builtin{
		define("openbot_remind", "Sets a reminder: its text comes into this Chat as input at a time, and starts you again if nothing else is going on. "+
			"Give either at, in milliseconds since the epoch, or afterMs, in milliseconds from now; at most a year ahead. The result names the reminder's ID.",
			`{"type":"object","properties":{"text":{"type":"string","minLength":1,"maxLength":4000},"at":{"type":"integer"},"afterMs":{"type":"integer","minimum":0}},"required":["text"],"additionalProperties":false}`,
			domain.CallBuiltin, remind),
		define("openbot_cancel_reminder", "Cancels a reminder of this Chat that has not come yet, by its ID.",
			`{"type":"object","properties":{"reminder":{"type":"string"}},"required":["reminder"],"additionalProperties":false}`,
			domain.CallBuiltin, cancelReminder),
	}
	for i := range tools {
		tools[i].writes = true
	}
	return tools
}

func remind(ctx context.Context, e *Engine, w *stepWork, arguments json.RawMessage) (string, error) {
	var in struct {
		Text    string
		At      *whole
		AfterMs *whole
	}
	if err := json.Unmarshal(arguments, &in); err != nil {
		return "", err
	}
	if err := domain.ReminderTextFits(in.Text); err != nil {
		return "", err
	}
	due, err := domain.ReminderDue(w.at, (*int64)(in.At), (*int64)(in.AfterMs))
	if err != nil {
		return "", err
	}
	if w.open == nil {
		// A reminder that comes or goes meanwhile moves the version of the Chat, so that
		// the number is right whenever the commit goes through.
		open, err := e.Store.OpenReminders(ctx, w.chat.ID)
		if err != nil {
			return "", err
		}
		w.open = &open
	}
	if *w.open+len(w.reminders)-len(w.reminded) >= domain.MaxReminders {
		return "", fmt.Errorf("%d reminders of this Chat are open already, and more are not taken; cancel one first", domain.MaxReminders)
	}
	r := &domain.Reminder{ID: newID[domain.ReminderID](domain.PrefixReminder), Organization: w.chat.Organization, Member: w.turn.Member,
		Chat: w.chat.ID, Bot: w.bot.ID, Text: in.Text, Authority: w.turn.Authority, DueAt: due, CreatedAt: w.at}
	w.reminders = append(w.reminders, r)
	return domain.TextReminderSet(*r), nil
}

func cancelReminder(ctx context.Context, e *Engine, w *stepWork, arguments json.RawMessage) (string, error) {
	var in struct{ Reminder domain.ReminderID }
	if err := json.Unmarshal(arguments, &in); err != nil {
		return "", err
	}
	if !domain.ValidID(string(in.Reminder), domain.PrefixReminder) {
		return "", errors.New("reminder must be the ID of a reminder of this Chat")
	}
	r, err := e.Store.Reminder(ctx, in.Reminder)
	if err != nil && !domain.IsCode(err, domain.CodeNotFound) {
		return "", err
	}
	if err != nil || r.Chat != w.chat.ID || slices.Contains(w.reminded, r.ID) {
		return "", fmt.Errorf("there is no open reminder %s in this Chat; it may have come already", in.Reminder)
	}
	w.reminded = append(w.reminded, r.ID)
	return domain.TextReminderCancelled(r.ID), nil
}

// keepReminders writes what the calls of a step set and cancelled.
func (w *stepWork) keepReminders(d *draft) {
	for _, r := range w.reminders {
		d.put(r)
	}
	d.commit.Reminded = append(d.commit.Reminded, w.reminded...)
}

// whole is a whole number as models write them: 1e3 and 2.0 are whole as well.
type whole int64

// UnmarshalJSON reads the number.
func (n *whole) UnmarshalJSON(raw []byte) error {
	if i, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		*n = whole(i)
		return nil
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f != math.Trunc(f) {
		return errors.New("a time must be a whole number of milliseconds")
	}
	// What does not fit is as far away as can be.
	*n = whole(max(min(f, 1<<62), -1<<62))
	return nil
}

// FireReminder gives a reminder to its Chat when its time has come: an idle Chat starts
// a Turn with it, a Turn under way reads it before its next step. The row of the
// reminder goes in the same commit, so that of any number of workers one fires it.
func (e *Engine) FireReminder(ctx context.Context, id domain.ReminderID) error {
	seen, err := e.Store.Reminder(ctx, id)
	if err != nil {
		return gone(err)
	}
	return e.decide(ctx, string(seen.Chat), func(d *draft) error {
		r, err := e.Store.Reminder(ctx, id)
		if err != nil || domain.Before(d.at, r.DueAt) {
			return gone(err)
		}
		chat, err := e.Store.Chat(ctx, r.Chat)
		if err != nil {
			return err
		}
		d.commit.Reminded = append(d.commit.Reminded, r.ID)
		if over, err := e.over(ctx, &chat); err != nil || over {
			return err
		}
		d.in(&chat)
		if err := e.receive(ctx, d, domain.Input{ID: domain.InputID(r.ID), Kind: domain.ItemReminder, From: domain.FromServer,
			Text: domain.TextReminder(r), Authority: r.Authority}); err != nil {
			return err
		}
		d.event(domain.EventReminder, string(r.ID), map[string]any{"turn": chat.Turn, "reminder": r.ID})
		return nil
	})
}

// over reports whether a Chat takes nothing any more: it is deleted, or its work has
// ended or is being stopped.
func (e *Engine) over(ctx context.Context, chat *domain.Chat) (bool, error) {
	if chat.DeletedAt != nil || chat.Delegation() == "" {
		return chat.DeletedAt != nil, nil
	}
	path, err := e.Store.Work(ctx, chat.Delegation())
	return len(path) == 0 || !path[0].Open() || domain.HeldBy(path).Stopping != "", err
}

// receive gives input of the server to the draft's Chat. An idle one starts a Turn with
// all that waits there, in order.
func (e *Engine) receive(ctx context.Context, d *draft, in domain.Input) error {
	if d.chat.Turn != "" {
		d.enqueue(in)
		return nil
	}
	waiting, err := e.Store.Inbox(ctx, d.chat.ID)
	if err != nil {
		return err
	}
	taken, left := d.chat.ForOneTurn(append(waiting, in))
	for _, before := range taken {
		if before.ID != in.ID {
			d.commit.Taken = append(d.commit.Taken, before.ID)
		}
	}
	d.startTurn(taken)
	if len(left) > 0 && left[len(left)-1].ID == in.ID {
		d.enqueue(in)
	}
	return nil
}
