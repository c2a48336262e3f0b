package repository

import (
	"context"
	"sync"
	"time"

	"gorm.io/gorm"

	"openbot/domain"
)

type principalRow struct {
	Member memberRow `gorm:"embedded;embeddedPrefix:m_"`
	Token  tokenRow  `gorm:"embedded;embeddedPrefix:t_"`
}

var principalQuery = sync.OnceValue(func() string {
	return "SELECT " + columns[memberRow]("m", "m_") + ", " + columns[tokenRow]("t", "t_") +
		" FROM tokens t JOIN members m ON m.id = t.member_id WHERE t.hash = ?"
})

// Principal gives who stands behind a token, by the hash of its secret; not_found
// when no token has it. It gives revoked and expired ones too.
func (s *Store) Principal(ctx context.Context, tokenHash string) (domain.Principal, error) {
	var found domain.Principal
	err := s.together(ctx, func(ask ask) error {
		return ask(askOne("Token", func(row principalRow) error {
			found = domain.Principal{Organization: row.Token.OrganizationID, Member: row.Member.domain(), Token: row.Token.domain()}
			return nil
		}, principalQuery(), clean(tokenHash)))
	})
	return found, err
}

// TouchToken notes the last use of a token. It never moves it back, and it does
// not move the version.
func (s *Store) TouchToken(ctx context.Context, id domain.TokenID, at time.Time) error {
	err := s.write(ctx).Exec("UPDATE tokens SET last_used_at = ? WHERE id = ? AND (last_used_at IS NULL OR last_used_at < ?)",
		micros(at), id, micros(at)).Error
	return s.wrap(ctx, "note the use of a token", err)
}

func byID[T ~string](id T) func(*gorm.DB) *gorm.DB {
	return func(db *gorm.DB) *gorm.DB { return db.Where("id = ?", id) }
}

// Organization gives one organization.
func (s *Store) Organization(ctx context.Context, id domain.OrganizationID) (domain.Organization, error) {
	return one(ctx, s, "Organization", organizationRow.domain, byID(id))
}

// Member gives one Member.
func (s *Store) Member(ctx context.Context, id domain.MemberID) (domain.Member, error) {
	return one(ctx, s, "Member", memberRow.domain, byID(id))
}

// Members lists the Members of an organization, disabled ones included.
func (s *Store) Members(ctx context.Context, org domain.OrganizationID, page domain.Page) ([]domain.Member, error) {
	return list(ctx, s, "list Members", memberRow.domain, func(db *gorm.DB) *gorm.DB {
		return paged(db.Where("organization_id = ?", org), page)
	})
}

// Token gives one token.
func (s *Store) Token(ctx context.Context, id domain.TokenID) (domain.Token, error) {
	return one(ctx, s, "Token", tokenRow.domain, byID(id))
}

// Tokens lists the tokens of an organization, revoked ones included.
func (s *Store) Tokens(ctx context.Context, org domain.OrganizationID, page domain.Page) ([]domain.Token, error) {
	return list(ctx, s, "list tokens", tokenRow.domain, func(db *gorm.DB) *gorm.DB {
		return paged(db.Where("organization_id = ?", org), page)
	})
}
