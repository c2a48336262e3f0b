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
	// Whether there is any: what most work has none of costs no statement.
	Inputs, HostTools, Grants, Rules bool
}

var stepQuery = sync.OnceValue(func() string {
	return "SELECT " + columns[organizationRow]("o", "o_") + ", " + columns[chatRow]("c", "c_") + ", " + columns[turnRow]("t", "t_") +
		", " + columns[botRow]("b", "b_") + ", m.main_bot_id" +
		", EXISTS (SELECT 1 FROM inputs x WHERE x.chat_id = c.id) AS inputs" +
		", EXISTS (SELECT 1 FROM host_tools x WHERE x.organization_id = t.organization_id AND x.deleted_at IS NULL) AS host_tools" +
		", EXISTS (SELECT 1 FROM grants x WHERE x.bot_id = t.bot_id AND x.member_id = t.member_id AND x.revoked_at IS NULL) AS grants" +
		", EXISTS (SELECT 1 FROM rules x WHERE x.bot_id = t.bot_id AND x.member_id = t.member_id AND x.deleted_at IS NULL)" +
		" OR EXISTS (SELECT 1 FROM rules x WHERE x.organization_id = t.organization_id AND x.deleted_at IS NULL AND x.bot_id = '') AS rules" +
		" FROM turns t JOIN chats c ON c.id = t.chat_id" +
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

// askedRow leaves out most of a call: each step reads all calls of its Chat.
type askedRow struct {
	ID        domain.CallID
	TurnID    domain.TurnID
	Step      int
	Name      string
	Arguments string
	Status    domain.CallStatus
	Result    string
	EndedAt   *int64
}

func (r askedRow) domain() domain.AskedCall {
	return domain.AskedCall{ID: r.ID, Turn: r.TurnID, Step: r.Step, Name: r.Name, Arguments: raw(r.Arguments),
		Status: r.Status, Result: r.Result, EndedAt: momentOrNil(r.EndedAt)}
}

const askedQuery = `SELECT id, turn_id, step, name, arguments, status, result, ended_at FROM calls
	WHERE chat_id = ? AND parent_id = '' AND step >= 0 ORDER BY turn_id, step, "position"`

// StepFacts gives everything that one model step needs, in five to ten statements that
// take two round trips on PostgreSQL.
func (s *Store) StepFacts(ctx context.Context, id domain.TurnID) (domain.StepFacts, error) {
	var f domain.StepFacts
	err := s.together(ctx, func(ask ask) error {
		var first stepRow
		if err := ask(askOne("Turn", func(row stepRow) error {
			read(s.images, &row.Chat)
			read(s.images, &row.Turn)
			f.Organization, f.Chat, f.Turn, f.Bot = row.Organization.domain(), row.Chat.domain(), row.Turn.domain(), row.Bot.domain()
			f.MainBot = row.MainBotID
			first = row
			return nil
		}, stepQuery(), id)); err != nil {
			return err
		}
		return ask(append(askWork(&f.Work, &f.OpenWork, f.Chat), askStep(&f, first)...)...)
	})
	if err != nil {
		return domain.StepFacts{}, err
	}
	return f, nil
}

// askStep reads what there is for a step beside the Turn.
func askStep(f *domain.StepFacts, first stepRow) []question {
	questions := []question{
		askRights(f.Turn.Authority, func(rights []domain.Rights) { f.Rights = rights }),
		askList("read the history", &f.Items, itemRow.domain, func(db *gorm.DB) *gorm.DB {
			return said(db, "SELECT * FROM items WHERE chat_id = ? ORDER BY sequence", f.Chat.ID)
		}),
		askList("read the calls", &f.Calls, askedRow.domain, func(db *gorm.DB) *gorm.DB {
			return said(db, askedQuery, f.Chat.ID)
		}),
		askList("read the Connections", &f.Connections, connectionRow.domain, func(db *gorm.DB) *gorm.DB {
			return said(db, visibleQuery, f.Turn.Member, f.Turn.Organization, f.Turn.Organization)
		}),
	}
	f.Owners, f.Inbox, f.HostTools, f.Grants, f.Rules = map[domain.BotID]domain.Bot{}, []domain.Input{}, []domain.HostTool{}, []domain.Grant{}, []domain.Rule{}
	if f.Bot.Kind != domain.BotMain {
		questions = append(questions, askOwners(&f.Owners, f.Bot.ID, f.MainBot))
	}
	if first.Inputs {
		questions = append(questions, askList("read the inbox", &f.Inbox, inputRow.domain, func(db *gorm.DB) *gorm.DB {
			return db.Where("chat_id = ?", f.Chat.ID).Order("sequence")
		}))
	}
	if first.HostTools {
		questions = append(questions, askList("read the host tools", &f.HostTools, hostToolRow.domain, func(db *gorm.DB) *gorm.DB {
			return db.Where("organization_id = ? AND deleted_at IS NULL", f.Turn.Organization).Order("id")
		}))
	}
	if first.Grants {
		questions = append(questions, askList("read the Grants", &f.Grants, grantRow.domain, func(db *gorm.DB) *gorm.DB {
			return db.Where("bot_id = ? AND member_id = ? AND revoked_at IS NULL", f.Bot.ID, f.Turn.Member).Order("id")
		}))
	}
	if first.Rules {
		questions = append(questions, askRules(&f.Rules, f.Turn.Organization, f.Bot.ID, f.Turn.Member))
	}
	return questions
}

// TurnFacts gives everything that stopping a Turn needs, in three statements that
// take two round trips on PostgreSQL.
func (s *Store) TurnFacts(ctx context.Context, id domain.TurnID) (domain.TurnFacts, error) {
	var f domain.TurnFacts
	err := s.together(ctx, func(ask ask) error {
		type turnFactsRow struct {
			Chat chatRow `gorm:"embedded;embeddedPrefix:c_"`
			Turn turnRow `gorm:"embedded;embeddedPrefix:t_"`
		}
		query := "SELECT " + columns[chatRow]("c", "c_") + ", " + columns[turnRow]("t", "t_") +
			" FROM turns t JOIN chats c ON c.id = t.chat_id WHERE t.id = ?"
		if err := ask(askOne("Turn", func(row turnFactsRow) error {
			read(s.images, &row.Chat)
			read(s.images, &row.Turn)
			f.Chat, f.Turn = row.Chat.domain(), row.Turn.domain()
			return nil
		}, query, id)); err != nil {
			return err
		}
		return ask(
			askList("read the open calls", &f.Open, callRow.domain, func(db *gorm.DB) *gorm.DB {
				return db.Where("turn_id = ? AND step >= 0 AND ended_at IS NULL", id).Order(`step, "position"`)
			}),
			askList("read the pending Requests", &f.Requests, requestRow.domain, func(db *gorm.DB) *gorm.DB {
				return db.Where("turn_id = ? AND status = 'pending' AND action NOT IN ('bots.delegate', 'delegations.continue')", id).Order("id")
			}),
			askList("read the open work calls", &f.WorkCalls, callRow.domain, func(db *gorm.DB) *gorm.DB {
				return db.Where("chat_id = ? AND step = -1 AND ended_at IS NULL", f.Chat.ID).Order("id")
			}),
			askList("read the pending Requests of work", &f.WorkRequests, requestRow.domain, func(db *gorm.DB) *gorm.DB {
				return db.Where("chat_id = ? AND status = 'pending' AND action IN ('bots.delegate', 'delegations.continue')", f.Chat.ID).Order("id")
			}),
		)
	})
	if err != nil {
		return domain.TurnFacts{}, err
	}
	return f, nil
}

func askOwners(into *map[domain.BotID]domain.Bot, bot, mainBot domain.BotID) question {
	return asking("read the owners", func(db *gorm.DB) *gorm.DB { return said(db, ownersQuery, bot, mainBot, bot) }, func(rows []botRow) error {
		*into = make(map[domain.BotID]domain.Bot, len(rows))
		for _, row := range rows {
			(*into)[row.ID] = row.domain()
		}
		return nil
	})
}

type rightsRow struct {
	Member memberRow `gorm:"embedded;embeddedPrefix:m_"`
	Token  tokenRow  `gorm:"embedded;embeddedPrefix:t_"`
}

// rightsQuery puts every token beside every Member: a token may have posted what another
// Member wrote. Few stand behind one Turn.
var rightsQuery = sync.OnceValue(func() string {
	return "SELECT " + columns[memberRow]("m", "m_") + ", " + columns[tokenRow]("t", "t_") +
		" FROM tokens t JOIN members m ON m.id IN ? WHERE t.id IN ?"
})

// askRights reads the Members and tokens behind a Turn, in the order of its
// authorities. One that is missing, or a token that is not whose it should be, is an
// error: leaving it out would widen what the Turn may do.
func askRights(authority []domain.Authority, take func([]domain.Rights)) question {
	var tokens []domain.TokenID
	var members []domain.MemberID
	for _, a := range authority {
		tokens, members = append(tokens, a.Token), append(members, a.Bearer())
		if a.Member != "" {
			members = append(members, a.Member)
		}
	}
	slices.Sort(tokens)
	slices.Sort(members)
	tokens, members = slices.Compact(tokens), slices.Compact(members)
	return asking("read the rights", func(db *gorm.DB) *gorm.DB { return db.Raw(rightsQuery(), members, tokens) }, func(rows []rightsRow) error {
		if len(authority) == 0 {
			return nil
		}
		foundTokens, foundMembers := map[domain.TokenID]domain.Token{}, map[domain.MemberID]domain.Member{}
		for _, row := range rows {
			foundTokens[row.Token.ID], foundMembers[row.Member.ID] = row.Token.domain(), row.Member.domain()
		}
		rights := make([]domain.Rights, len(authority))
		for i, a := range authority {
			token, there := foundTokens[a.Token]
			bearer, known := foundMembers[a.Bearer()]
			member, named := foundMembers[a.Member]
			if !there || !known || token.Member != a.Bearer() || a.Member != "" && !named {
				return domain.Errorf(domain.CodeInternal, "AuthorityMissing", "The token or the Member behind this work is not there.")
			}
			rights[i] = domain.Rights{Member: member, Token: token}
			if a.Via != "" {
				rights[i].Via = &bearer
			}
		}
		take(rights)
		return nil
	})
}
