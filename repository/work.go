package repository

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"gorm.io/gorm"

	"openbot/domain"
)

// pathText is the statement that walks up from a piece of work. The texts of the work above are left out:
// nothing above is written by what this loads.
var pathText = sync.OnceValue(func() string {
	names := columns[delegationRow]("d", "")
	for _, text := range []string{"task", "reason", "result"} {
		names = strings.Replace(names, `d."`+text+`" AS "`+text+`"`, `CASE WHEN above.place = 0 THEN d."`+text+`" ELSE '' END AS "`+text+`"`, 1)
	}
	return `WITH RECURSIVE above (id, above_id, place) AS (
	SELECT id, above_id, 0 FROM delegations WHERE id = ?
	UNION ALL
	SELECT d.id, d.above_id, above.place + 1 FROM above JOIN delegations d ON d.id = above.above_id
) SELECT ` + names + ` FROM above JOIN delegations d ON d.id = above.id ORDER BY above.place`
})

func askPath(into *[]domain.Delegation, id domain.DelegationID) question {
	return askList("read work and all work above it", into, delegationRow.domain, func(db *gorm.DB) *gorm.DB { return said(db, pathText(), id) })
}

// aboveText is the same for a piece that is above another itself.
var aboveText = sync.OnceValue(func() string { return strings.Replace(pathText(), "above_id, 0 FROM", "above_id, 1 FROM", 1) })

func askAbove(into *[]domain.Delegation, id domain.DelegationID) question {
	return askList("read the work above", into, delegationRow.domain, func(db *gorm.DB) *gorm.DB { return said(db, aboveText(), id) })
}

// openWorkQuery counts what keeps the work of a Chat open. Rounds that a person started
// below it, further down, are among what it gave; calls that its own pause made are
// among the work calls.
const openWorkQuery = `SELECT
	(SELECT count(*) FROM delegations WHERE parent_chat_id = ? AND ended_at IS NULL)
		+ (SELECT count(*) FROM delegations WHERE above_id = ? AND above_id <> '' AND ended_at IS NULL AND parent_chat_id <> ?) AS given,
	(SELECT count(*) FROM delegations WHERE parent_chat_id = ? AND notice_due_at IS NOT NULL) AS untold,
	(SELECT count(*) FROM requests WHERE chat_id = ? AND status = 'pending')
		+ (SELECT count(*) FROM calls WHERE chat_id = ? AND step = -1 AND ended_at IS NULL) AS requests,
	(SELECT count(*) FROM calls WHERE chat_id = ? AND status IN ('sending', 'unknown') AND ended_at IS NULL) AS out,
	(SELECT count(*) FROM reminders WHERE chat_id = ?) AS reminders`

func askOpenWork(into *domain.OpenWork, of domain.Chat) question {
	chat := of.ID
	type row struct{ Given, Untold, Requests, Out, Reminders int64 }
	return askOne("count of open work", func(r row) error {
		*into = domain.OpenWork{Given: r.Given, Untold: r.Untold, Requests: r.Requests, Out: r.Out, Reminders: r.Reminders}
		return nil
	}, openWorkQuery, chat, of.Delegation(), chat, chat, chat, chat, chat, chat)
}

// askWork reads what a decision about a task Chat needs beside the Chat; nothing for
// any other Chat.
func askWork(path *[]domain.Delegation, open *domain.OpenWork, chat domain.Chat) []question {
	if chat.Delegation() == "" {
		return nil
	}
	questions := []question{askPath(path, chat.Delegation())}
	if open != nil {
		questions = append(questions, askOpenWork(open, chat))
	}
	return questions
}

// WorkFacts gives everything that a decision about the end of a Chat's work needs.
func (s *Store) WorkFacts(ctx context.Context, chat domain.ChatID) (domain.WorkFacts, error) {
	var f domain.WorkFacts
	err := s.together(ctx, func(ask ask) error {
		if err := ask(askOne("Chat", func(row chatRow) error {
			f.Chat = row.domain()
			return nil
		}, "SELECT * FROM chats WHERE id = ?", chat)); err != nil {
			return err
		}
		questions := append(askWork(&f.Work, &f.OpenWork, f.Chat), askList("read the inbox", &f.Inbox, inputRow.domain, func(db *gorm.DB) *gorm.DB {
			return db.Where("chat_id = ?", chat).Order("sequence")
		}))
		if f.Chat.LastTurn != "" {
			questions = append(questions, askOne("Turn", func(row turnRow) error {
				f.Turn = row.domain()
				return nil
			}, "SELECT * FROM turns WHERE id = ?", f.Chat.LastTurn))
		}
		return ask(questions...)
	})
	if err != nil {
		return domain.WorkFacts{}, err
	}
	return f, nil
}

// Delegation gives one piece of work.
func (s *Store) Delegation(ctx context.Context, id domain.DelegationID) (domain.Delegation, error) {
	return one(ctx, s, "Delegation", delegationRow.domain, byID(id))
}

// Work gives a piece of work and all work above it, nearest first.
func (s *Store) Work(ctx context.Context, id domain.DelegationID) ([]domain.Delegation, error) {
	var path []domain.Delegation
	err := s.together(ctx, func(ask ask) error { return ask(askPath(&path, id)) })
	return path, err
}

// Works gives Work of several pieces, in their order, in one round trip on PostgreSQL.
func (s *Store) Works(ctx context.Context, ids []domain.DelegationID) ([][]domain.Delegation, error) {
	paths := make([][]domain.Delegation, len(ids))
	err := s.together(ctx, func(ask ask) error {
		questions := make([]question, len(ids))
		for i, id := range ids {
			questions[i] = askPath(&paths[i], id)
		}
		return ask(questions...)
	})
	return paths, err
}

// DelegationOf gives the piece of work of an execution.
func (s *Store) DelegationOf(ctx context.Context, id domain.ExecutionID) (domain.Delegation, error) {
	return one(ctx, s, "Execution", delegationRow.domain, func(db *gorm.DB) *gorm.DB { return db.Where("execution_id = ?", id) })
}

// Delegations lists the work that a Chat gave away, newest first.
func (s *Store) Delegations(ctx context.Context, chat domain.ChatID, page domain.Page) ([]domain.Delegation, error) {
	return list(ctx, s, "list work", delegationRow.domain, func(db *gorm.DB) *gorm.DB {
		return paged(db.Where("parent_chat_id = ?", chat), page)
	})
}

// WorkViews gives how pieces of work are shown beside what they hold: the work above
// them, and the Request that decides about each.
func (s *Store) WorkViews(ctx context.Context, list []domain.Delegation) ([]domain.DelegationView, error) {
	views := make([]domain.DelegationView, len(list))
	err := s.together(ctx, func(ask ask) error {
		var questions []question
		for i := range list {
			g := list[i]
			views[i].Delegation = g
			if !g.Open() {
				continue
			}
			if g.Above != "" {
				questions = append(questions, askAbove(&views[i].Above, g.Above))
			}
			if g.Status == domain.DelegationPaused || g.Status == domain.DelegationAuthorizing {
				questions = append(questions, askPending(&views[i].Request, "delegation_id = ? AND delegation_id <> ''", string(g.ID)))
			} else {
				questions = append(questions, askPending(&views[i].Waits, "chat_id = ?", string(g.Chat)))
			}
		}
		return ask(questions...)
	})
	return views, err
}

// askPending asks for the newest pending Request of those that a condition names.
func askPending(into *domain.RequestID, condition, value string) question {
	return asking("read the Request of work", func(db *gorm.DB) *gorm.DB {
		return db.Where(condition+" AND status = 'pending'", value).Order("id DESC").Limit(1)
	}, func(rows []requestRow) error {
		for _, r := range rows {
			*into = r.ID
		}
		return nil
	})
}

// Untold gives the work that a Chat gave away and of whose end it was not told, oldest
// first.
func (s *Store) Untold(ctx context.Context, chat domain.ChatID, limit int) ([]domain.Delegation, error) {
	return list(ctx, s, "read ended work", delegationRow.domain, func(db *gorm.DB) *gorm.DB {
		return db.Where("parent_chat_id = ? AND notice_due_at IS NOT NULL", chat).Order("id").Limit(atLeastOne(limit))
	})
}

// OpenBelow gives open work below a piece of work that has no open work below itself, by
// ID after a given one.
func (s *Store) OpenBelow(ctx context.Context, id, after domain.DelegationID, limit int) ([]domain.DelegationID, error) {
	var ids []domain.DelegationID
	err := s.read(ctx).Raw(`WITH RECURSIVE below (id) AS (
	SELECT d.id FROM delegations d WHERE d.above_id = ? AND d.ended_at IS NULL AND d.above_id <> ''
	UNION ALL
	SELECT d.id FROM below JOIN delegations d ON d.above_id = below.id AND d.ended_at IS NULL AND d.above_id <> ''
) SELECT below.id FROM below WHERE below.id > ? AND NOT EXISTS
	(SELECT 1 FROM delegations d WHERE d.above_id = below.id AND d.ended_at IS NULL AND d.above_id <> '') ORDER BY below.id LIMIT ?`, id, after, atLeastOne(limit)).Scan(&ids).Error
	return ids, s.wrap(ctx, "find open work below", err)
}

// freed is what a parked row becomes when its pause is over.
var freed = []struct {
	kind domain.TaskKind
	set  string
}{
	{domain.TaskTurnStep, "UPDATE turns SET parked_by = '', due_at = ?, status = 'Running', version = version + 1 WHERE id IN (SELECT id FROM turns WHERE parked_by = ? AND parked_by <> '' ORDER BY id LIMIT ?%s) RETURNING id, version, '' AS kind, '' AS status"},
	{domain.TaskCallSend, "UPDATE calls SET parked_by = '', due_at = ?, version = version + 1 WHERE id IN (SELECT id FROM calls WHERE parked_by = ? AND parked_by <> '' ORDER BY id LIMIT ?%s) RETURNING id, version, kind, status"},
	{domain.TaskWorkElapse, "UPDATE delegations SET parked_by = '', due_at = ?, version = version + 1 WHERE id IN (SELECT id FROM delegations WHERE parked_by = ? AND parked_by <> '' ORDER BY id LIMIT ?%s) RETURNING id, version, '' AS kind, '' AS status"},
}

// Unpark sets free up to limit rows of each kind that a pause parked: they are due at
// the given time. It gives the tasks to ring for them; fewer than limit of each kind
// mean that nothing is left.
func (s *Store) Unpark(ctx context.Context, by domain.DelegationID, due time.Time, limit int) ([]domain.Task, error) {
	if by == "" {
		return nil, nil
	}
	lock := ""
	if s.postgres {
		lock = " FOR UPDATE"
	}
	var tasks []domain.Task
	for _, f := range freed {
		var rows []struct {
			ID      string
			Version int64
			Kind    domain.CallKind
			Status  domain.CallStatus
		}
		if err := s.write(ctx).Raw(fmt.Sprintf(f.set, lock), micros(due), by, atLeastOne(limit)).Scan(&rows).Error; err != nil {
			return tasks, s.wrap(ctx, "set free what was parked", err)
		}
		for _, row := range rows {
			t := domain.Task{Kind: f.kind, Subject: row.ID, Revision: row.Version, Urgency: domain.UrgencyAnswer}
			switch {
			case f.kind == domain.TaskWorkElapse:
				t.Revision, t.Urgency = due.UnixMilli(), domain.UrgencyTurn
			case row.Status == domain.CallChecking:
				t.Kind, t.Urgency = domain.TaskCallJudge, domain.UrgencyJudge
			case row.Kind == domain.CallProgram:
				t.Kind, t.Urgency = domain.TaskProgramRun, domain.UrgencyProgram
			case row.Kind != "":
				t.Urgency = domain.Call{Kind: row.Kind}.Urgency()
			}
			tasks = append(tasks, t)
		}
	}
	return tasks, nil
}

// guard fails when the work above a commit is not as it was seen, and keeps it so until
// the end of the transaction.
func (s *Store) guard(gates []domain.WorkGate) []written {
	var writes []written
	// From the top down: IDs rise with the time at which work was given.
	gates = slices.SortedFunc(slices.Values(gates), func(a, b domain.WorkGate) int { return strings.Compare(string(a.ID), string(b.ID)) })
	for chunk := range slices.Chunk(gates, insertBatch) {
		var condition strings.Builder
		args := make([]any, 0, 2*len(chunk))
		for i, g := range chunk {
			if i > 0 {
				condition.WriteString(" OR ")
			}
			condition.WriteString("(id = ? AND gate = ?)")
			args = append(args, g.ID, g.Gate)
		}
		query := "SELECT id FROM delegations WHERE " + condition.String() + " ORDER BY id"
		if s.postgres {
			query += " FOR SHARE"
		}
		writes = append(writes, written{
			write: func(tx *gorm.DB) *gorm.DB { return tx.Raw(query, args...).Find(new([]gateRow)) },
			check: touches(len(chunk), func() *domain.Error { return conflict(tagStale, "The work above this changed.") }),
		})
	}
	return writes
}

type gateRow struct{ ID string }

// addCost counts what a model step cost.
func (s *Store) addCost(c domain.WorkCost) []written {
	if c.Nanos <= 0 || len(c.Path) == 0 {
		return nil
	}
	var writes []written
	path := slices.Sorted(slices.Values(c.Path))
	for chunk := range slices.Chunk(path, insertBatch) {
		if s.postgres {
			writes = append(writes, written{write: func(tx *gorm.DB) *gorm.DB {
				return tx.Raw("SELECT id FROM delegations WHERE id IN ? ORDER BY id FOR NO KEY UPDATE", chunk).Find(new([]gateRow))
			}})
		}
		writes = append(writes, written{write: func(tx *gorm.DB) *gorm.DB {
			return tx.Exec("UPDATE delegations SET cost_nanos = cost_nanos + ? WHERE id IN ?", c.Nanos, chunk)
		}})
	}
	return writes
}

// stopWork stops the open work that a Chat gave away.
func (s *Store) stopWork(w domain.StopWork, at time.Time) written {
	lock := ""
	if s.postgres {
		lock = " ORDER BY id FOR UPDATE"
	}
	return written{write: func(tx *gorm.DB) *gorm.DB {
		return tx.Exec(`UPDATE delegations SET stopping_at = ?, stop_why = ?, notice = ?, closing_due_at = ?, due_at = NULL, parked_by = '',
			gate = gate + 1, version = version + 1, updated_at = ? WHERE id IN
			(SELECT id FROM delegations WHERE parent_chat_id = ? AND ended_at IS NULL AND stopping_at IS NULL`+lock+`)`,
			micros(at), clean(w.Why), w.Notice, micros(at), micros(at), w.Chat)
	}}
}
