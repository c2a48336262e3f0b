package repository

import (
	"context"
	"time"

	"gorm.io/gorm"

	"openbot/domain"
)

type keptRow struct {
	MemberID    domain.MemberID
	Key         string
	Fingerprint string
	Status      int
	Body        []byte
	ChatID      domain.ChatID
	Until       *int64
	Created     int64 `gorm:"column:created_at"`
}

func (keptRow) TableName() string { return "kept_answers" }

func (r keptRow) domain() domain.KeptAnswer {
	return domain.KeptAnswer{Member: r.MemberID, Key: r.Key, Fingerprint: r.Fingerprint, Status: r.Status, Body: r.Body,
		Chat: r.ChatID, Until: momentOrNil(r.Until), CreatedAt: moment(r.Created)}
}

// KeptAnswer gives the answer kept under a key; not_found when there is none. It
// gives one whose time is up as long as it was not forgotten: the caller looks at
// Until.
func (s *Store) KeptAnswer(ctx context.Context, member domain.MemberID, key string) (domain.KeptAnswer, error) {
	return one(ctx, s, "Answer", keptRow.domain, func(db *gorm.DB) *gorm.DB {
		return db.Where(`member_id = ? AND "key" = ?`, member, clean(key))
	})
}

// ForgetAnswers deletes up to limit kept answers whose time is up, and reports how
// many. Several may run at once: each skips what another holds.
func (s *Store) ForgetAnswers(ctx context.Context, now time.Time, limit int) (int, error) {
	skip := ""
	if s.postgres {
		skip = " FOR UPDATE SKIP LOCKED"
	}
	done := s.write(ctx).Exec(`DELETE FROM kept_answers WHERE (member_id, "key") IN
		(SELECT member_id, "key" FROM kept_answers WHERE until <= ? ORDER BY until LIMIT ?`+skip+`)`, micros(now), limit)
	return int(done.RowsAffected), s.wrap(ctx, "forget kept answers", done.Error)
}
