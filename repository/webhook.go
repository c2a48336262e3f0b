package repository

import (
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"

	"openbot/domain"
)

// tellQuery makes a delivery for every webhook that hears of some news. It is part of the
// commit that the news is about: what is told of and whom it is told to are never apart,
// and a commit that tells nobody costs two looks into an index. The IDs are numbered, so
// that how many were made says what they are.
const tellQuery = `WITH news (place, quiet, member_id, event, payload) AS (VALUES %s),
	told (place, member_id, event, payload, webhook_id) AS (
		SELECT news.place, news.member_id, news.event, news.payload, w.id FROM news JOIN webhooks w ON w.member_id = news.member_id
			AND NOT w.whole AND w.deleted_at IS NULL AND w.organization_id = ? AND w.enabled AND (w.format = 'standard' OR NOT news.quiet) AND w.events LIKE '%%"' || news.event || '"%%'
			AND EXISTS (SELECT 1 FROM members m WHERE m.id = w.member_id AND m.disabled_at IS NULL)
		UNION ALL
		SELECT news.place, news.member_id, news.event, news.payload, w.id FROM news JOIN webhooks w ON w.organization_id = ?
			AND w.whole AND w.deleted_at IS NULL AND w.enabled AND (w.format = 'standard' OR NOT news.quiet) AND w.events LIKE '%%"' || news.event || '"%%'
			AND EXISTS (SELECT 1 FROM members m WHERE m.id = w.member_id AND m.disabled_at IS NULL))
	INSERT INTO deliveries (id, organization_id, webhook_id, member_id, event, payload, status, tries, outcome, due_at, created_at, updated_at, version)
	SELECT ? || %s, ?, told.webhook_id, told.member_id, told.event, told.payload, 'pending', 0, '', ?, ?, ?, 1 FROM told`

// tellWebhooks tells the webhooks of an organization. It counts the deliveries that it
// makes.
func (s *Store) tellWebhooks(set *domain.Deliveries, at time.Time) written {
	const inOrder = "row_number() OVER (ORDER BY told.place, told.webhook_id)"
	number := "printf('%04x', " + inOrder + ")"
	if s.postgres {
		number = "lpad(to_hex(" + inOrder + "), 4, '0')"
	}
	var values strings.Builder
	args := make([]any, 0, 3*len(set.News)+7)
	for i, n := range set.News {
		if i > 0 {
			values.WriteString(", ")
		}
		fmt.Fprintf(&values, "(%d, %t, ?, ?, ?)", i, n.Quiet)
		args = append(args, clean(string(n.Member)), clean(n.Event), clean(n.Payload))
	}
	args = append(args, set.Organization, set.Organization, set.Prefix, set.Organization, micros(at.Add(domain.RunnableGrace)), micros(at), micros(at))
	query := fmt.Sprintf(tellQuery, values.String(), number)
	return written{
		write: func(tx *gorm.DB) *gorm.DB { return tx.Exec(query, args...) },
		check: func(touched int64) error {
			set.Made = int(touched)
			return nil
		},
	}
}
