package repository

import (
	"context"

	"gorm.io/gorm"

	"openbot/domain"
)

// Operator gives the oldest admin who is not disabled, with every right: whoever
// runs commands on this machine acts as that Member. It gives not_found before the
// first start.
func (s *Store) Operator(ctx context.Context) (domain.Principal, error) {
	members, err := list(ctx, s, "find the first admin", memberRow.domain, func(db *gorm.DB) *gorm.DB {
		return db.Where("disabled_at IS NULL").Order("id").Limit(1000)
	})
	if err != nil {
		return domain.Principal{}, err
	}
	for _, m := range members {
		if m.Permissions.HasRole(domain.RoleAdmin) {
			return domain.Principal{Organization: m.Organization, Member: m,
				Token: domain.Token{Organization: m.Organization, Member: m.ID, Scopes: domain.Permissions{domain.RoleAdmin, "*"}}}, nil
		}
	}
	return domain.Principal{}, notFound("member with the admin role; start the server once first")
}
