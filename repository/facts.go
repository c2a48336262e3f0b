package repository

import (
	"context"
	"slices"
	"sync"

	"gorm.io/gorm"

	"openbot/domain"
)

// What is loaded together must fit together. Every move in a Chat moves the Chat's
// version, so the Chat is read in the first statement and all else with it or after
// it: a mixture of old and new then holds the old version of the Chat, and the
// commit that comes of it fails with conflict.

type stepRow struct {
	Organization organizationRow `gorm:"embedded;embeddedPrefix:o_"`
	Chat         chatRow         `gorm:"embedded;embeddedPrefix:c_"`
	Turn         turnRow         `gorm:"embedded;embeddedPrefix:t_"`
	Bot          botRow          `gorm:"embedded;embeddedPrefix:b_"`
	MainBotID    domain.BotID
}

var stepQuery = sync.OnceValue(func() string {
	return "SELECT " + columns[organizationRow]("o", "o_") + ", " + columns[chatRow]("c", "c_") + ", " + columns[turnRow]("t", "t_") +
		", " + columns[botRow]("b", "b_") + ", m.main_bot_id FROM turns t JOIN chats c ON c.id = t.chat_id" +
		" JOIN organizations o ON o.id = t.organization_id JOIN bots b ON b.id = t.bot_id" +
		" LEFT JOIN members m ON m.id = t.member_id WHERE t.id = ?"
})

// ownersQuery walks up from a Bot to its owner, or to the Main Bot where it has
// none. UNION drops what it has seen, so that a ring of owners ends.
const ownersQuery = `WITH RECURSIVE above (id) AS (
	SELECT id FROM bots WHERE id = ?
	UNION
	SELECT CASE WHEN b.owner_id <> '' THEN b.owner_id ELSE ? END FROM above JOIN bots b ON b.id = above.id WHERE b.kind <> 'main'
) SELECT bots.* FROM above JOIN bots ON bots.id = above.id WHERE bots.id <> ?`

// visibleQuery reads each half from an index of its own.
const visibleQuery = `SELECT * FROM connections WHERE member_id = ? AND organization_id = ? AND NOT shared AND deleted_at IS NULL
	UNION ALL SELECT * FROM connections WHERE organization_id = ? AND shared AND deleted_at IS NULL ORDER BY id`

// StepFacts gives everything that one model step needs, in ten statements on one
// connection.
func (s *Store) StepFacts(ctx context.Context, id domain.TurnID) (domain.StepFacts, error) {
	var f domain.StepFacts
	err := s.together(ctx, func(db *gorm.DB) error {
		var row stepRow
		if err := s.scan(ctx, db, "Turn", &row, stepQuery(), id); err != nil {
			return err
		}
		f.Organization, f.Chat, f.Turn, f.Bot = row.Organization.domain(), row.Chat.domain(), row.Turn.domain(), row.Bot.domain()
		f.MainBot = row.MainBotID

		var err error
		if f.Owners, err = s.owners(ctx, db, f.Bot.ID, f.MainBot); err != nil {
			return err
		}
		if f.Rights, err = s.rights(ctx, db, f.Turn.Authority); err != nil {
			return err
		}
		if f.Items, err = listOn(ctx, s, db, "read the history", itemRow.domain, func(db *gorm.DB) *gorm.DB {
			return db.Where("chat_id = ?", f.Chat.ID).Order("sequence")
		}); err != nil {
			return err
		}
		if f.Calls, err = listOn(ctx, s, db, "read the calls", callRow.domain, func(db *gorm.DB) *gorm.DB {
			return db.Where("chat_id = ? AND parent_id = ''", f.Chat.ID).Order(`turn_id, step, "position"`)
		}); err != nil {
			return err
		}
		if f.Inbox, err = listOn(ctx, s, db, "read the inbox", inputRow.domain, func(db *gorm.DB) *gorm.DB {
			return db.Where("chat_id = ?", f.Chat.ID).Order("sequence")
		}); err != nil {
			return err
		}
		if f.Connections, err = listOn(ctx, s, db, "read the Connections", connectionRow.domain, func(db *gorm.DB) *gorm.DB {
			return db.Raw(visibleQuery, f.Turn.Member, f.Turn.Organization, f.Turn.Organization)
		}); err != nil {
			return err
		}
		if f.HostTools, err = listOn(ctx, s, db, "read the host tools", hostToolRow.domain, func(db *gorm.DB) *gorm.DB {
			return db.Where("organization_id = ? AND deleted_at IS NULL", f.Turn.Organization).Order("id")
		}); err != nil {
			return err
		}
		if f.Grants, err = listOn(ctx, s, db, "read the Grants", grantRow.domain, func(db *gorm.DB) *gorm.DB {
			return db.Where("bot_id = ? AND member_id = ? AND revoked_at IS NULL", f.Bot.ID, f.Turn.Member).Order("id")
		}); err != nil {
			return err
		}
		f.Rules, err = s.rulesOf(ctx, db, f.Turn.Organization, f.Bot.ID, f.Turn.Member)
		return err
	})
	if err != nil {
		return domain.StepFacts{}, err
	}
	return f, nil
}

type callFactsRow struct {
	Organization organizationRow `gorm:"embedded;embeddedPrefix:o_"`
	Chat         chatRow         `gorm:"embedded;embeddedPrefix:c_"`
	Turn         turnRow         `gorm:"embedded;embeddedPrefix:t_"`
	Call         callRow         `gorm:"embedded;embeddedPrefix:k_"`
	Request      requestRow      `gorm:"embedded;embeddedPrefix:r_"`
	Connection   connectionRow   `gorm:"embedded;embeddedPrefix:n_"`
	HostTool     hostToolRow     `gorm:"embedded;embeddedPrefix:h_"`
}

var callQuery = sync.OnceValue(func() string {
	return "SELECT " + columns[organizationRow]("o", "o_") + ", " + columns[chatRow]("c", "c_") + ", " + columns[turnRow]("t", "t_") +
		", " + columns[callRow]("k", "k_") + ", " + columns[requestRow]("r", "r_") + ", " + columns[connectionRow]("n", "n_") +
		", " + columns[hostToolRow]("h", "h_") +
		" FROM calls k JOIN turns t ON t.id = k.turn_id JOIN chats c ON c.id = t.chat_id JOIN organizations o ON o.id = k.organization_id" +
		" LEFT JOIN requests r ON r.id = k.request_id LEFT JOIN connections n ON n.id = k.connection_id" +
		" LEFT JOIN host_tools h ON k.kind = 'host' AND h.organization_id = k.organization_id AND h.name = k.tool AND h.deleted_at IS NULL" +
		" WHERE k.id = ?"
})

// CallFacts gives everything that a move of one call needs, in four statements on
// one connection, and a few more for a program and its calls, for a call that rests on
// a Rule or on a Bot's Grant, or that the judge has not seen. A Connection is given even when it was deleted meanwhile; a host
// tool is found by its name and only while it is not deleted.
func (s *Store) CallFacts(ctx context.Context, id domain.CallID) (domain.CallFacts, error) {
	var f domain.CallFacts
	err := s.together(ctx, func(db *gorm.DB) error {
		var row callFactsRow
		if err := s.scan(ctx, db, "Call", &row, callQuery(), id); err != nil {
			return err
		}
		f.Organization, f.Chat, f.Turn, f.Call = row.Organization.domain(), row.Chat.domain(), row.Turn.domain(), row.Call.domain()
		if row.Request.ID != "" {
			request := row.Request.domain()
			f.Request = &request
		}
		if row.Connection.ID != "" {
			connection := row.Connection.domain()
			f.Connection = &connection
		}
		if row.HostTool.ID != "" {
			tool := row.HostTool.domain()
			f.HostTool = &tool
		}
		var err error
		if f.Rights, err = s.rights(ctx, db, f.Turn.Authority); err != nil {
			return err
		}
		if f.Grants, err = listOn(ctx, s, db, "read the Grants", grantRow.domain, func(db *gorm.DB) *gorm.DB {
			return db.Where("bot_id = ? AND member_id = ? AND action = ? AND target = ? AND revoked_at IS NULL",
				f.Turn.Bot, f.Turn.Member, f.Call.Capability.Action, f.Call.Capability.Target).Order("id")
		}); err != nil {
			return err
		}
		if f.Siblings, err = s.siblings(ctx, db, f.Call); err != nil {
			return err
		}
		if err = s.program(ctx, db, &f); err != nil {
			return err
		}
		if f.Strength, err = s.strength(ctx, db, f.Call.Decided); err != nil || f.Call.Status != domain.CallChecking {
			return err
		}
		f.Judging, err = s.judgeFacts(ctx, db, f.Turn)
		return err
	})
	if err != nil {
		return domain.CallFacts{}, err
	}
	return f, nil
}

// program gives the calls of a program, and the program of a call.
func (s *Store) program(ctx context.Context, db *gorm.DB, f *domain.CallFacts) error {
	if f.Call.Parent != "" {
		parents, err := listOn(ctx, s, db, "read a program", callRow.domain, byID(f.Call.Parent))
		if err != nil {
			return err
		}
		if len(parents) == 1 {
			f.Parent = &parents[0]
		}
	}
	if f.Call.Kind != domain.CallProgram {
		return nil
	}
	var err error
	f.Children, err = listOn(ctx, s, db, "read the calls of a program", callRow.domain, func(db *gorm.DB) *gorm.DB {
		return db.Where("turn_id = ? AND step = ? AND parent_id = ?", f.Call.Turn, f.Call.Step, f.Call.ID).Order(`"position"`)
	})
	return err
}

// strength gives what an allow rests on, as it stands now.
func (s *Store) strength(ctx context.Context, db *gorm.DB, d *domain.DecidedBy) (domain.Strength, error) {
	var found domain.Strength
	if d == nil {
		return found, nil
	}
	if d.By.Tag == domain.TagBot && d.Grant != "" {
		grants, err := listOn(ctx, s, db, "read a Grant", grantRow.domain, byID(d.Grant))
		if err != nil {
			return found, err
		}
		if len(grants) == 1 {
			found.Grant = &grants[0]
		}
	}
	if d.Rule != "" {
		rules, err := listOn(ctx, s, db, "read a Rule", ruleRow.domain, byID(d.Rule))
		if err != nil {
			return found, err
		}
		if len(rules) == 1 {
			found.Rule = &rules[0]
		}
	}
	return found, nil
}

// judgeFacts gives what a check that goes on after the judge needs, in three
// statements.
func (s *Store) judgeFacts(ctx context.Context, db *gorm.DB, turn domain.Turn) (*domain.JudgeFacts, error) {
	var row struct {
		Bot       botRow `gorm:"embedded;embeddedPrefix:b_"`
		MainBotID domain.BotID
	}
	query := "SELECT " + columns[botRow]("b", "b_") + ", m.main_bot_id FROM bots b LEFT JOIN members m ON m.id = ? WHERE b.id = ?"
	if err := s.scan(ctx, db, "Bot", &row, query, turn.Member, turn.Bot); err != nil {
		return nil, err
	}
	f := &domain.JudgeFacts{Bot: row.Bot.domain(), MainBot: row.MainBotID}
	var err error
	if f.Owners, err = s.owners(ctx, db, f.Bot.ID, f.MainBot); err != nil {
		return nil, err
	}
	f.Rules, err = s.rulesOf(ctx, db, turn.Organization, turn.Bot, turn.Member)
	return f, err
}

// TurnFacts gives everything that stopping a Turn needs, in three statements on one
// connection.
func (s *Store) TurnFacts(ctx context.Context, id domain.TurnID) (domain.TurnFacts, error) {
	var f domain.TurnFacts
	err := s.together(ctx, func(db *gorm.DB) error {
		var row struct {
			Chat chatRow `gorm:"embedded;embeddedPrefix:c_"`
			Turn turnRow `gorm:"embedded;embeddedPrefix:t_"`
		}
		query := "SELECT " + columns[chatRow]("c", "c_") + ", " + columns[turnRow]("t", "t_") +
			" FROM turns t JOIN chats c ON c.id = t.chat_id WHERE t.id = ?"
		if err := s.scan(ctx, db, "Turn", &row, query, id); err != nil {
			return err
		}
		f.Chat, f.Turn = row.Chat.domain(), row.Turn.domain()
		var err error
		if f.Open, err = listOn(ctx, s, db, "read the open calls", callRow.domain, func(db *gorm.DB) *gorm.DB {
			return db.Where("turn_id = ? AND ended_at IS NULL", id).Order(`step, "position"`)
		}); err != nil {
			return err
		}
		f.Requests, err = listOn(ctx, s, db, "read the pending Requests", requestRow.domain, func(db *gorm.DB) *gorm.DB {
			return db.Where("turn_id = ? AND status = 'pending'", id).Order("id")
		})
		return err
	})
	if err != nil {
		return domain.TurnFacts{}, err
	}
	return f, nil
}

// together runs statements one after the other on one connection, so that a step
// does not wait for the pool again and again.
func (s *Store) together(ctx context.Context, load func(*gorm.DB) error) error {
	return s.wrap(ctx, "load facts", s.read(ctx).Connection(func(db *gorm.DB) error {
		// Without a new session each statement would carry the clauses of the last.
		return load(db.Session(&gorm.Session{NewDB: true}))
	}))
}

func (s *Store) scan(ctx context.Context, db *gorm.DB, what string, into any, query string, args ...any) error {
	done := db.Raw(query, args...).Scan(into)
	if done.Error != nil {
		return s.wrap(ctx, "read a "+what, done.Error)
	}
	if done.RowsAffected == 0 {
		return notFound(what)
	}
	return nil
}

func (s *Store) owners(ctx context.Context, db *gorm.DB, bot, mainBot domain.BotID) (map[domain.BotID]domain.Bot, error) {
	bots, err := listOn(ctx, s, db, "read the owners", botRow.domain, func(db *gorm.DB) *gorm.DB {
		return db.Raw(ownersQuery, bot, mainBot, bot)
	})
	if err != nil {
		return nil, err
	}
	owners := make(map[domain.BotID]domain.Bot, len(bots))
	for _, b := range bots {
		owners[b.ID] = b
	}
	return owners, nil
}

// rights loads the Members and tokens behind a Turn, in the order of its
// authorities. One that is missing is an error: leaving it out would widen what the
// Turn may do.
func (s *Store) rights(ctx context.Context, db *gorm.DB, authority []domain.Authority) ([]domain.Rights, error) {
	if len(authority) == 0 {
		return nil, nil
	}
	tokens := make([]domain.TokenID, len(authority))
	for i, a := range authority {
		tokens[i] = a.Token
	}
	slices.Sort(tokens)
	var rows []struct {
		Member memberRow `gorm:"embedded;embeddedPrefix:m_"`
		Token  tokenRow  `gorm:"embedded;embeddedPrefix:t_"`
	}
	query := "SELECT " + columns[memberRow]("m", "m_") + ", " + columns[tokenRow]("t", "t_") +
		" FROM tokens t JOIN members m ON m.id = t.member_id WHERE t.id IN ?"
	if err := db.Raw(query, slices.Compact(tokens)).Scan(&rows).Error; err != nil {
		return nil, s.wrap(ctx, "read the rights", err)
	}
	found := make(map[domain.Authority]domain.Rights, len(rows))
	for _, row := range rows {
		found[domain.Authority{Member: row.Member.ID, Token: row.Token.ID}] =
			domain.Rights{Member: row.Member.domain(), Token: row.Token.domain()}
	}
	rights := make([]domain.Rights, len(authority))
	for i, a := range authority {
		r, ok := found[a]
		if !ok {
			return nil, domain.Errorf(domain.CodeInternal, "AuthorityMissing", "The token or the Member behind this work is not there.")
		}
		rights[i] = r
	}
	return rights, nil
}

func (s *Store) siblings(ctx context.Context, db *gorm.DB, call domain.Call) ([]domain.CallStanding, error) {
	var rows []struct {
		ID     domain.CallID
		Status domain.CallStatus
		Ended  bool
	}
	err := db.Raw(`SELECT id, status, ended_at IS NOT NULL AS ended FROM calls WHERE turn_id = ? AND step = ? ORDER BY "position"`,
		call.Turn, call.Step).Scan(&rows).Error
	if err != nil {
		return nil, s.wrap(ctx, "read the calls of a step", err)
	}
	standing := make([]domain.CallStanding, len(rows))
	for i, row := range rows {
		standing[i] = domain.CallStanding{ID: row.ID, Status: row.Status, Ended: row.Ended}
	}
	return standing, nil
}
