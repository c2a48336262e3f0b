package repository

import (
	"context"
	"time"

	"openbot/domain"
)

// overdueGrace is how long a row may lie past its due time before it counts as
// overdue.
const overdueGrace = time.Minute

// Standing gives figures for metrics. Each is counted from an index of open rows.
func (s *Store) Standing(ctx context.Context, now time.Time) (domain.Standing, error) {
	standing := domain.Standing{TurnsOpen: map[domain.TurnStatus]int64{}}
	db := s.read(ctx)

	var turns []struct {
		Status domain.TurnStatus
		Number int64
	}
	if err := db.Raw(`SELECT status, COUNT(*) AS number FROM turns WHERE status IN ('Queued', 'Running', 'Waiting') GROUP BY status`).
		Scan(&turns).Error; err != nil {
		return domain.Standing{}, s.wrap(ctx, "count open Turns", err)
	}
	for _, status := range domain.TurnStatuses() {
		if !status.Ended() {
			standing.TurnsOpen[status] = 0
		}
	}
	for _, t := range turns {
		standing.TurnsOpen[t.Status] = t.Number
	}

	var requests struct {
		Number int64
		Oldest *int64
	}
	if err := db.Raw(`SELECT COUNT(*) AS number, MIN(created_at) AS oldest FROM requests WHERE status = 'pending'`).
		Scan(&requests).Error; err != nil {
		return domain.Standing{}, s.wrap(ctx, "count pending Requests", err)
	}
	standing.RequestsPending = requests.Number
	if requests.Oldest != nil {
		standing.OldestPending = max(0, now.Sub(moment(*requests.Oldest)))
	}

	if err := db.Raw(`SELECT COUNT(*) FROM calls WHERE status = 'unknown' AND ended_at IS NULL`).
		Scan(&standing.CallsUnknown).Error; err != nil {
		return domain.Standing{}, s.wrap(ctx, "count unknown calls", err)
	}

	line := micros(now.Add(-overdueGrace))
	if err := db.Raw(`SELECT (SELECT COUNT(*) FROM turns WHERE due_at < ?)
		+ (SELECT COUNT(*) FROM calls WHERE status IN ('checking', 'allowed', 'sending') AND due_at < ?)
		+ (SELECT COUNT(*) FROM requests WHERE status = 'pending' AND expires_at < ?)
		+ (SELECT COUNT(*) FROM grants WHERE settle_due_at < ?)
		+ (SELECT COUNT(*) FROM connections WHERE look_due_at < ?)
		+ (SELECT COUNT(*) FROM tokens WHERE closing_due_at < ?)
		+ (SELECT COUNT(*) FROM members WHERE closing_due_at < ?)
		+ (SELECT COUNT(*) FROM bots WHERE closing_due_at < ?)
		+ (SELECT COUNT(*) FROM requests WHERE review_due_at < ?)
		+ (SELECT COUNT(*) FROM previews WHERE due_at < ?)
		+ (SELECT COUNT(*) FROM reminders WHERE due_at < ?) + (SELECT COUNT(*) FROM deliveries WHERE due_at < ?)`, line, line, line, line, line, line, line, line, line, line, line, line).
		Scan(&standing.Overdue).Error; err != nil {
		return domain.Standing{}, s.wrap(ctx, "count overdue rows", err)
	}
	return standing, nil
}
