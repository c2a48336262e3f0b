package repositorytest

import "openbot/domain"

var reminders = []promise{
	{"a reminder is over once, and then it is not there", func(w *world) {
		w.settle()
		chat, other := w.newChat(), w.newChat()
		a, b, elsewhere := w.newReminder(chat), w.newReminder(chat), w.newReminder(other)
		w.commit(chat, other, a, b, elsewhere)
		open := func(of *domain.Chat) int {
			w.Helper()
			return must[int](w)(w.store.OpenReminders(w.ctx, of.ID))
		}
		w.same("open", open(chat), 2)
		w.ok(w.store.Commit(w.ctx, domain.Commit{Reminded: []domain.ReminderID{a.ID}}))
		w.code(w.store.Commit(w.ctx, domain.Commit{Reminded: []domain.ReminderID{a.ID}}), domain.CodeConflict)
		w.code(w.store.Commit(w.ctx, domain.Commit{Reminded: []domain.ReminderID{b.ID, a.ID}}), domain.CodeConflict)
		_, err := w.store.Reminder(w.ctx, a.ID)
		w.code(err, domain.CodeNotFound)
		w.same("the other", must[domain.Reminder](w)(w.store.Reminder(w.ctx, b.ID)), *b)
		w.same("open after one is over", open(chat), 1)
		won := w.race(10, func(int) error { return w.store.Commit(w.ctx, domain.Commit{Reminded: []domain.ReminderID{b.ID}}) })
		w.same("commits that won", won, 1)
		w.same("open after both", open(chat), 0)
		w.same("open elsewhere", open(other), 1)
	}},
	{"closing a Chat drops its reminders, and no others", func(w *world) {
		w.settle()
		gone, stays := w.newChat(), w.newChat()
		lost, kept := w.newReminder(gone), w.newReminder(stays)
		lost.DueAt, kept.DueAt = w.now, w.now
		w.commit(gone, stays, lost, w.newReminder(gone), kept)
		w.ok(w.store.Commit(w.ctx, domain.Commit{CloseChats: []domain.ChatID{gone.ID}}))
		w.same("open", must[int](w)(w.store.OpenReminders(w.ctx, gone.ID)), 0)
		_, err := w.store.Reminder(w.ctx, lost.ID)
		w.code(err, domain.CodeNotFound)
		due := must[[]domain.DueRow](w)(w.store.Due(w.ctx, domain.TaskReminderFire, w.now, 9))
		w.same("due", ids(due), []string{string(kept.ID)})
	}},
}
