package repository

import (
	"context"

	"gorm.io/gorm"

	"openbot/domain"
)

// Reminder gives one open reminder.
func (s *Store) Reminder(ctx context.Context, id domain.ReminderID) (domain.Reminder, error) {
	return one(ctx, s, "Reminder", reminderRow.domain, byID(id))
}

// OpenReminders counts the open reminders of a Chat.
func (s *Store) OpenReminders(ctx context.Context, chat domain.ChatID) (int, error) {
	var number int
	err := s.read(ctx).Raw("SELECT COUNT(*) FROM reminders WHERE chat_id = ?", chat).Scan(&number).Error
	return number, s.wrap(ctx, "count the open reminders", err)
}

// reminded deletes reminders that fired or were cancelled.
func reminded(ids []domain.ReminderID) written {
	return written{
		write: func(tx *gorm.DB) *gorm.DB { return tx.Where("id IN ?", ids).Delete(&reminderRow{}) },
		check: touches(len(ids), func() *domain.Error { return conflict(tagReminded, "This reminder is not open any more.") }),
	}
}
