package repository

import (
	"fmt"

	"gorm.io/gorm"

	"openbot/domain"
)

// table writes the rows of one kind.
type table struct {
	name string
	// insert adds rows with version 1.
	insert func(rows []domain.Row) []written
	// update writes what has changed where id and version still stand; kept is called after
	// the commit.
	update func(m *images, row domain.Row, version int64) (write func(tx *gorm.DB) *gorm.DB, kept func())
}

// insertBatch bounds the rows of one statement: databases bound its parameters
// (32,766 on SQLite), and our widest row has about 40.
const insertBatch = 500

func tableOf[D any, P interface {
	*D
	domain.Row
}, R any](name string, from func(*D, int64) R) table {
	return table{
		name: name,
		insert: func(rows []domain.Row) []written {
			list := make([]R, len(rows))
			for i, row := range rows {
				list[i] = from((*D)(row.(P)), 1)
			}
			return inserts(list)
		},
		update: func(m *images, row domain.Row, version int64) (func(tx *gorm.DB) *gorm.DB, func()) {
			next := from((*D)(row.(P)), version+1)
			cleanRow(&next)
			return updateOf(m, &next, version)
		},
	}
}

// tables lists every kind in the order in which a commit writes it. The order is
// the same in every commit, and by ID within a kind, so that two commits never wait
// for each other in a ring.
var tables = []table{
	tableOf("delegations", fromDelegation),
	tableOf("organizations", fromOrganization),
	tableOf("members", fromMember),
	tableOf("tokens", fromToken),
	tableOf("bots", fromBot),
	tableOf("connections", fromConnection),
	tableOf("host_tools", fromHostTool),
	tableOf("chats", fromChat),
	tableOf("turns", fromTurn),
	tableOf("calls", fromCall),
	tableOf("requests", fromRequest),
	tableOf("grants", fromGrant),
	tableOf("rules", fromRule),
	tableOf("previews", fromPreview),
	tableOf("reminders", fromReminder),
	tableOf("triggers", fromTrigger),
	tableOf("signing_keys", fromSigningKey),
	tableOf("audit_heads", fromHead),
	tableOf("webhooks", fromWebhook),
	tableOf("deliveries", fromDelivery),
	tableOf("channels", fromChannel),
}

// placeOf gives a row's index in tables and where its version is.
func placeOf(row domain.Row) (int, *int64, error) {
	switch row := row.(type) {
	case *domain.Delegation:
		return 0, &row.Version, nil
	case *domain.Organization:
		return 1, &row.Version, nil
	case *domain.Member:
		return 2, &row.Version, nil
	case *domain.Token:
		return 3, &row.Version, nil
	case *domain.Bot:
		return 4, &row.Version, nil
	case *domain.Connection:
		return 5, &row.Version, nil
	case *domain.HostTool:
		return 6, &row.Version, nil
	case *domain.Chat:
		return 7, &row.Version, nil
	case *domain.Turn:
		return 8, &row.Version, nil
	case *domain.Call:
		return 9, &row.Version, nil
	case *domain.Request:
		return 10, &row.Version, nil
	case *domain.Grant:
		return 11, &row.Version, nil
	case *domain.Rule:
		return 12, &row.Version, nil
	case *domain.Preview:
		return 13, &row.Version, nil
	case *domain.Reminder:
		return 14, &row.Version, nil
	case *domain.Trigger:
		return 15, &row.Version, nil
	case *domain.SigningKey:
		return 16, &row.Version, nil
	case *domain.AuditHead:
		return 17, &row.Version, nil
	case *domain.Webhook:
		return 18, &row.Version, nil
	case *domain.Delivery:
		return 19, &row.Version, nil
	case *domain.Channel:
		return 20, &row.Version, nil
	}
	return 0, nil, domain.Errorf(domain.CodeInternal, "CommitRow", "No table keeps a %s.", fmt.Sprintf("%T", row))
}

func inserts[R any](rows []R) []written {
	var writes []written
	for len(rows) > 0 {
		n := min(len(rows), insertBatch)
		batch := rows[:n]
		for i := range batch {
			cleanRow(&batch[i])
		}
		writes = append(writes, written{write: insertOf(batch)})
		rows = rows[n:]
	}
	return writes
}
