package repository

import (
	"context"
	"time"

	"openbot/domain"
)

// due says where the open rows of one kind of task are found. Every query reads an
// index that holds only rows with a due time, oldest first, so that it costs nothing
// how many are open and not due.
type due struct {
	query   string // takes the time, and the limit
	urgency domain.Urgency
	times   int // how often the query takes the time
}

var dues = map[domain.TaskKind]due{
	domain.TaskTurnStep: {times: 1, urgency: domain.UrgencyAnswer, query: `SELECT id, version, due_at, steps = 0 AS fresh FROM turns
		WHERE due_at <= ? AND status IN ('Queued', 'Running') AND open_calls = 0 ORDER BY due_at LIMIT ?`},
	domain.TaskCallSend: {times: 1, urgency: domain.UrgencyAnswer, query: `SELECT id, version, due_at, kind FROM calls
		WHERE status = 'allowed' AND due_at <= ? AND kind <> 'program' ORDER BY due_at LIMIT ?`},
	domain.TaskProgramRun: {times: 1, urgency: domain.UrgencyProgram, query: `SELECT id, version, due_at FROM calls
		WHERE status = 'allowed' AND due_at <= ? AND kind = 'program' ORDER BY due_at LIMIT ?`},
	domain.TaskCallLapse: {times: 1, urgency: domain.UrgencyAnswer, query: `SELECT id, version, due_at FROM calls
		WHERE status = 'sending' AND due_at <= ? ORDER BY due_at LIMIT ?`},
	// The revision of a timer is its due time in milliseconds, so that the timer and
	// the sweep ring the same task.
	domain.TaskRequestElapse: {times: 1, urgency: domain.UrgencyTurn, query: `SELECT id, expires_at / 1000 AS version, expires_at AS due_at
		FROM requests WHERE status = 'pending' AND expires_at <= ? ORDER BY expires_at LIMIT ?`},
	domain.TaskGrantSettle: {times: 1, urgency: domain.UrgencyAnswer, query: `SELECT id, version, settle_due_at AS due_at FROM grants
		WHERE settle_due_at <= ? ORDER BY settle_due_at LIMIT ?`},
	domain.TaskConnectionLook: {times: 1, urgency: domain.UrgencyReview, query: `SELECT id, version, look_due_at AS due_at FROM connections
		WHERE look_due_at <= ? ORDER BY look_due_at LIMIT ?`},
	domain.TaskBotClose: {times: 1, urgency: domain.UrgencyRest, query: `SELECT id, version, closing_due_at AS due_at FROM bots
		WHERE closing_due_at <= ? ORDER BY closing_due_at LIMIT ?`},
	domain.TaskCallJudge: {times: 1, urgency: domain.UrgencyJudge, query: `SELECT id, version, due_at FROM calls
		WHERE status = 'checking' AND due_at <= ? ORDER BY due_at LIMIT ?`},
	domain.TaskRequestReview: {times: 1, urgency: domain.UrgencyReview, query: `SELECT id, version, review_due_at AS due_at FROM requests
		WHERE review_due_at <= ? ORDER BY review_due_at LIMIT ?`},
	domain.TaskRequestVerdict: {times: 1, urgency: domain.UrgencyJudge, query: `SELECT id, verdict_due_at / 1000 AS version, verdict_due_at AS due_at
		FROM requests WHERE verdict_due_at <= ? ORDER BY verdict_due_at LIMIT ?`},
	domain.TaskRequestFollowUp: {times: 2, urgency: domain.UrgencyRest, query: `SELECT id, remind_at / 1000 AS version, remind_at AS due_at
		FROM requests WHERE remind_at <= ? UNION ALL SELECT id, escalate_at / 1000 AS version, escalate_at AS due_at
		FROM requests WHERE escalate_at <= ? ORDER BY due_at LIMIT ?`},
	domain.TaskRulePreview: {times: 1, urgency: domain.UrgencyJudge, query: `SELECT id, version, due_at FROM previews
		WHERE due_at <= ? ORDER BY due_at LIMIT ?`},
	domain.TaskTriggerFire: {times: 1, urgency: domain.UrgencyTurn, query: `SELECT id, next_at / 1000 AS version, next_at AS due_at FROM triggers
		WHERE next_at <= ? ORDER BY next_at LIMIT ?`},
	domain.TaskWorkElapse: {times: 1, urgency: domain.UrgencyTurn, query: `SELECT id, due_at / 1000 AS version, due_at FROM delegations
		WHERE due_at <= ? ORDER BY due_at LIMIT ?`},
	domain.TaskWorkNotify: {times: 1, urgency: domain.UrgencyAnswer, query: `SELECT id, version, notice_due_at AS due_at FROM delegations
		WHERE notice_due_at <= ? ORDER BY notice_due_at LIMIT ?`},
	domain.TaskWorkClose: {times: 1, urgency: domain.UrgencyTurn, query: `SELECT id, version, closing_due_at AS due_at FROM delegations
		WHERE closing_due_at <= ? ORDER BY closing_due_at LIMIT ?`},
	domain.TaskWorkResume: {times: 1, urgency: domain.UrgencyAnswer, query: `SELECT id, version, resume_due_at AS due_at FROM delegations
		WHERE resume_due_at <= ? ORDER BY resume_due_at LIMIT ?`},
	domain.TaskWebhookDeliver: {times: 1, urgency: domain.UrgencyDelivery, query: `SELECT id, version, due_at FROM deliveries
		WHERE due_at <= ? ORDER BY due_at LIMIT ?`},
	domain.TaskTokenClose: {times: 2, urgency: domain.UrgencyRest, query: `SELECT id, version, closing_due_at AS due_at FROM tokens
		WHERE closing_due_at <= ? UNION ALL SELECT id, version, closing_due_at AS due_at FROM members
		WHERE closing_due_at <= ? ORDER BY due_at LIMIT ?`},
	domain.TaskReminderFire: {times: 1, urgency: domain.UrgencyTurn, query: `SELECT id, due_at / 1000 AS version, due_at
		FROM reminders WHERE due_at <= ? ORDER BY due_at LIMIT ?`},
}

// Due gives open rows of one kind whose due_at has come, oldest first. The Version
// is that of the row; for a Request that elapses, waits for a verdict or is told of again, for a reminder,
// a trigger and a time limit of work it is that time in milliseconds. For
// token.close the ID is that of a token or of a Member.
func (s *Store) Due(ctx context.Context, kind domain.TaskKind, now time.Time, limit int) ([]domain.DueRow, error) {
	d, ok := dues[kind]
	if !ok {
		return nil, domain.Errorf(domain.CodeInternal, "TaskKind", "No rows are due for tasks of kind %q.", kind)
	}
	args := make([]any, 0, 3)
	for range d.times {
		args = append(args, micros(now))
	}
	var rows []struct {
		ID      string
		Version int64
		DueAt   int64
		Fresh   bool            // of a Turn that has taken no step
		Kind    domain.CallKind // of a call that may go out
	}
	if err := s.read(ctx).Raw(d.query, append(args, atLeastOne(limit))...).Scan(&rows).Error; err != nil {
		return nil, s.wrap(ctx, "find what is due", err)
	}
	out := make([]domain.DueRow, len(rows))
	for i, row := range rows {
		out[i] = domain.DueRow{Kind: kind, ID: row.ID, Version: row.Version, DueAt: moment(row.DueAt), Urgency: d.urgency}
		switch {
		case row.Fresh:
			out[i].Urgency = domain.UrgencyTurn
		case row.Kind != "":
			out[i].Urgency = domain.Call{Kind: row.Kind}.Urgency()
		}
	}
	return out, nil
}

// DueRequests gives a share of the pending Requests whose time is up, oldest first. share
// is from 0 to domain.ExpiryShares - 1.
func (s *Store) DueRequests(ctx context.Context, now time.Time, share, limit int) ([]domain.DueRequest, error) {
	var rows []struct{ ID, CallID string }
	err := s.read(ctx).Raw(`SELECT id, call_id FROM requests WHERE status = 'pending' AND expires_at <= ? AND expires_at % ? = ?
		ORDER BY expires_at LIMIT ?`, micros(now), domain.ExpiryShares, share, atLeastOne(limit)).Scan(&rows).Error
	if err != nil {
		return nil, s.wrap(ctx, "find the Requests whose time is up", err)
	}
	out := make([]domain.DueRequest, len(rows))
	for i, row := range rows {
		out[i] = domain.DueRequest{ID: domain.RequestID(row.ID), Call: domain.CallID(row.CallID)}
	}
	return out, nil
}

// RenewLease moves the end of a lease of a call that is out, and with it the time
// at which somebody looks at the call. It reports false when the lease is another's
// or the call is not out. A Turn that was stopped changes nothing: what is out keeps
// its result. It does not move the version.
func (s *Store) RenewLease(ctx context.Context, call domain.CallID, lease string, until time.Time) (bool, error) {
	if lease == "" {
		return false, nil
	}
	done := s.write(ctx).Exec(`UPDATE calls SET lease_until = ?, due_at = ? WHERE id = ? AND lease = ? AND status = 'sending'`,
		micros(until), micros(until), call, clean(lease))
	return done.RowsAffected == 1, s.wrap(ctx, "renew a lease", done.Error)
}

// PushCall moves the due_at of a call that the judge is being asked about, or of a
// program that runs. It reports false when its version has moved: what comes of it is
// not wanted. It does not move the version.
func (s *Store) PushCall(ctx context.Context, call domain.CallID, version int64, due time.Time) (bool, error) {
	done := s.write(ctx).Exec("UPDATE calls SET due_at = ? WHERE id = ? AND version = ? AND status IN ('checking', 'allowed')", micros(due), call, version)
	return done.RowsAffected == 1, s.wrap(ctx, "push a call", done.Error)
}

// PushTurn moves the due_at of a Turn whose model step is under way and shows it as
// running. It reports false when its version has moved: the step is not wanted. It
// does not move the version.
func (s *Store) PushTurn(ctx context.Context, turn domain.TurnID, version int64, due time.Time) (bool, error) {
	done := s.write(ctx).Exec(`UPDATE turns SET due_at = ?, status = 'Running' WHERE id = ? AND version = ?
		AND status IN ('Queued', 'Running')`, micros(due), turn, version)
	return done.RowsAffected == 1, s.wrap(ctx, "push a Turn", done.Error)
}
