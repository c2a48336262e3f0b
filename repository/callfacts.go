package repository

import (
	"context"
	"slices"
	"sync"

	"gorm.io/gorm"

	"openbot/domain"
)

type callFactsRow struct {
	Organization organizationRow `gorm:"embedded;embeddedPrefix:o_"`
	Chat         chatRow         `gorm:"embedded;embeddedPrefix:c_"`
	Turn         turnRow         `gorm:"embedded;embeddedPrefix:t_"`
	Call         callRow         `gorm:"embedded;embeddedPrefix:k_"`
	Request      requestRow      `gorm:"embedded;embeddedPrefix:r_"`
	Connection   connectionRow   `gorm:"embedded;embeddedPrefix:n_"`
	HostTool     hostToolRow     `gorm:"embedded;embeddedPrefix:h_"`
	MainBotID    domain.BotID
	Grants       bool // whether there is any
	Siblings     int  // how many calls the step has, itself among them
}

// callRead is what is known of a call when the rest is asked for.
type callRead struct {
	*domain.CallFacts
	mainBot  domain.BotID
	grants   bool
	siblings int
}

var callQuery = sync.OnceValue(func() string {
	return "SELECT " + columns[organizationRow]("o", "o_") + ", " + columns[chatRow]("c", "c_") + ", " + columns[turnRow]("t", "t_") +
		", " + columns[callRow]("k", "k_") + ", " + columns[requestRow]("r", "r_") + ", " + columns[connectionRow]("n", "n_") +
		", " + columns[hostToolRow]("h", "h_") + ", m.main_bot_id" +
		", EXISTS (SELECT 1 FROM grants x WHERE x.bot_id = t.bot_id AND x.member_id = t.member_id AND x.action = k.action AND x.target = k.target" +
		" AND x.revoked_at IS NULL) AS grants" +
		", (SELECT count(*) FROM calls x WHERE x.turn_id = k.turn_id AND x.step = k.step) AS siblings" +
		" FROM calls k JOIN turns t ON t.id = k.turn_id JOIN chats c ON c.id = t.chat_id JOIN organizations o ON o.id = k.organization_id" +
		" LEFT JOIN members m ON m.id = t.member_id LEFT JOIN requests r ON r.id = k.request_id LEFT JOIN connections n ON n.id = k.connection_id" +
		" LEFT JOIN host_tools h ON k.kind = 'host' AND h.organization_id = k.organization_id AND h.name = k.tool AND h.deleted_at IS NULL" +
		" WHERE k.id IN ?"
})

// CallFacts gives everything that a move of one call needs, in two statements, and a
// few more for a call beside others, one with Grants, a program and its calls, a call that
// rests on a Rule or on a Bot's Grant, or that the judge has not seen. They take two round
// trips on PostgreSQL. A Connection is given even when it was deleted meanwhile; a host
// tool is found by its name and only while it is not deleted.
func (s *Store) CallFacts(ctx context.Context, id domain.CallID) (domain.CallFacts, error) {
	facts, err := s.CallsFacts(ctx, []domain.CallID{id})
	if err != nil {
		return domain.CallFacts{}, err
	}
	return facts[0], nil
}

// CallsFacts gives CallFacts of several calls, in their order, in as many round trips as
// of one. It gives not_found when one of them is not there.
func (s *Store) CallsFacts(ctx context.Context, ids []domain.CallID) ([]domain.CallFacts, error) {
	facts, found := make([]domain.CallFacts, len(ids)), make([]callRead, len(ids))
	err := s.together(ctx, func(ask ask) error {
		if err := ask(s.askCalls(facts, found, ids)); err != nil {
			return err
		}
		around := slices.Concat(askRightsOf(found), askGrantsOf(found), askSiblingsOf(found))
		for i := range facts {
			around = append(around, askAround(&facts[i], found[i].mainBot)...)
		}
		return ask(around...)
	})
	if err != nil {
		return nil, err
	}
	return facts, nil
}

// askCalls reads calls with what belongs to each alone.
func (s *Store) askCalls(facts []domain.CallFacts, found []callRead, ids []domain.CallID) question {
	return asking("read a Call", func(db *gorm.DB) *gorm.DB { return db.Raw(callQuery(), ids) }, func(rows []callFactsRow) error {
		places := make(map[domain.CallID]*callFactsRow, len(rows))
		for i := range rows {
			places[rows[i].Call.ID] = &rows[i]
		}
		for i, id := range ids {
			row, there := places[id]
			if !there {
				return notFound("Call")
			}
			s.readCall(&facts[i], row)
			found[i] = callRead{&facts[i], row.MainBotID, row.Grants, row.Siblings}
		}
		return nil
	})
}

func (s *Store) readCall(f *domain.CallFacts, row *callFactsRow) {
	read(s.images, &row.Chat)
	read(s.images, &row.Turn)
	read(s.images, &row.Call)
	read(s.images, &row.Request)
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
}

// groups puts together the calls for which the same is read.
func groups(found []callRead, same func(a, b callRead) bool) [][]callRead {
	var all [][]callRead
	for _, f := range found {
		n := slices.IndexFunc(all, func(group []callRead) bool { return same(group[0], f) })
		if n < 0 {
			all = append(all, []callRead{f})
			continue
		}
		all[n] = append(all[n], f)
	}
	return all
}

func askRightsOf(found []callRead) []question {
	var questions []question
	for _, group := range groups(found, func(a, b callRead) bool { return slices.Equal(a.Turn.Authority, b.Turn.Authority) }) {
		questions = append(questions, askRights(group[0].Turn.Authority, func(rights []domain.Rights) {
			for _, f := range group {
				f.Rights = slices.Clone(rights)
			}
		}))
	}
	return questions
}

func askGrantsOf(found []callRead) []question {
	var questions []question
	for _, group := range groups(found, func(a, b callRead) bool {
		return a.Turn.Bot == b.Turn.Bot && a.Turn.Member == b.Turn.Member && a.Call.Capability == b.Call.Capability
	}) {
		for _, f := range group {
			f.Grants = []domain.Grant{}
		}
		first := group[0]
		if !slices.ContainsFunc(group, func(f callRead) bool { return f.grants }) {
			continue
		}
		questions = append(questions, asking("read the Grants", func(db *gorm.DB) *gorm.DB {
			return db.Where("bot_id = ? AND member_id = ? AND action = ? AND target = ? AND revoked_at IS NULL",
				first.Turn.Bot, first.Turn.Member, first.Call.Capability.Action, first.Call.Capability.Target).Order("id")
		}, func(rows []grantRow) error {
			for _, f := range group {
				f.Grants = mapAll(rows, func(row *grantRow) domain.Grant { return row.domain() })
			}
			return nil
		}))
	}
	return questions
}

func askSiblingsOf(found []callRead) []question {
	var several []callRead
	for _, f := range found {
		f.Siblings = []domain.CallStanding{{ID: f.Call.ID, Status: f.Call.Status, Ended: !f.Call.Open()}}
		if f.siblings > 1 {
			several = append(several, f)
		}
	}
	var questions []question
	for _, group := range groups(several, func(a, b callRead) bool { return a.Call.Step == b.Call.Step }) {
		turns := make([]domain.TurnID, len(group))
		for i, f := range group {
			turns[i] = f.Call.Turn
		}
		slices.Sort(turns)
		questions = append(questions, asking("read the calls of a step", func(db *gorm.DB) *gorm.DB {
			return db.Raw(siblingsQuery, slices.Compact(turns), group[0].Call.Step)
		}, func(rows []siblingRow) error {
			for _, f := range group {
				f.Siblings = []domain.CallStanding{}
				for _, row := range rows {
					if row.TurnID == f.Call.Turn {
						f.Siblings = append(f.Siblings, row.domain())
					}
				}
			}
			return nil
		}))
	}
	return questions
}

// askAround reads what a decision about a call needs beside the call and what many share.
func askAround(f *domain.CallFacts, mainBot domain.BotID) []question {
	questions := askProgram(f)
	questions = append(questions, askWork(&f.Work, nil, f.Chat)...)
	questions = append(questions, askStrength(&f.Strength, f.Call.Decided)...)
	if f.Call.Status == domain.CallChecking {
		f.Judging = &domain.JudgeFacts{MainBot: mainBot}
		questions = append(questions, askJudging(f.Judging, f.Turn)...)
	}
	return questions
}

// askProgram reads the calls of a program, or the program of a call.
func askProgram(f *domain.CallFacts) []question {
	if f.Call.Parent != "" && !f.Call.ForWork() {
		return []question{asking("read a program", byID(f.Call.Parent), func(rows []callRow) error {
			if len(rows) == 1 {
				parent := rows[0].domain()
				f.Parent = &parent
			}
			return nil
		})}
	}
	if f.Call.Kind != domain.CallProgram {
		return nil
	}
	return []question{askList("read the calls of a program", &f.Children, callRow.domain, func(db *gorm.DB) *gorm.DB {
		return db.Where("turn_id = ? AND step = ? AND parent_id = ?", f.Call.Turn, f.Call.Step, f.Call.ID).Order(`"position"`)
	})}
}

// askStrength reads what an allow rests on, as it stands now.
func askStrength(into *domain.Strength, d *domain.DecidedBy) []question {
	var questions []question
	if d == nil {
		return nil
	}
	if d.By.Tag == domain.TagBot && d.Grant != "" {
		questions = append(questions, asking("read a Grant", byID(d.Grant), func(rows []grantRow) error {
			if len(rows) == 1 {
				grant := rows[0].domain()
				into.Grant = &grant
			}
			return nil
		}))
	}
	if d.Rule != "" {
		questions = append(questions, asking("read a Rule", byID(d.Rule), func(rows []ruleRow) error {
			if len(rows) == 1 {
				rule := rows[0].domain()
				into.Rule = &rule
			}
			return nil
		}))
	}
	return questions
}

// askJudging reads what a check that goes on after the judge needs.
func askJudging(into *domain.JudgeFacts, turn domain.Turn) []question {
	return []question{
		askOne("Bot", func(row botRow) error {
			into.Bot = row.domain()
			return nil
		}, "SELECT * FROM bots WHERE id = ?", turn.Bot),
		askOwners(&into.Owners, turn.Bot, into.MainBot),
		askRules(&into.Rules, turn.Organization, turn.Bot, turn.Member),
	}
}

// siblingsQuery tells from the status what has ended, because ended_at stands after
// the result, and SQLite walks through a long result to get there; only of an unknown
// outcome the status does not tell.
const siblingsQuery = `SELECT id, turn_id, status, CASE WHEN status IN ('succeeded', 'failed', 'denied', 'cancelled') THEN 1 = 1
	WHEN status = 'unknown' THEN ended_at IS NOT NULL ELSE 1 = 0 END AS ended FROM calls WHERE turn_id IN ? AND step = ? ORDER BY turn_id, "position"`

type siblingRow struct {
	ID     domain.CallID
	TurnID domain.TurnID
	Status domain.CallStatus
	Ended  bool
}

func (r siblingRow) domain() domain.CallStanding {
	return domain.CallStanding{ID: r.ID, Status: r.Status, Ended: r.Ended}
}
