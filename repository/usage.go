package repository

import (
	"context"
	"fmt"
	"math"

	"openbot/domain"
)

// usageRow is only ever inserted: what was paid for stays paid for.
type usageRow struct {
	MemberID       domain.MemberID
	UsedAt         int64
	ID             domain.UsageID
	OrganizationID domain.OrganizationID
	BotID          domain.BotID
	ChatID         domain.ChatID
	DelegationID   domain.DelegationID
	Model          string
	Purpose        domain.Purpose
	Steps          int64
	InputTokens    int64
	OutputTokens   int64
	CostNanos      int64
}

func (usageRow) TableName() string { return "usage" }

func fromUsage(u *domain.UsageEntry) usageRow {
	return usageRow{MemberID: u.Member, UsedAt: micros(u.At), ID: u.ID, OrganizationID: u.Organization, BotID: u.Bot, ChatID: u.Chat,
		DelegationID: u.Delegation, Model: u.Model, Purpose: u.Purpose, Steps: u.Steps, InputTokens: u.InputTokens,
		OutputTokens: u.OutputTokens, CostNanos: u.CostNanos}
}

// usageKeys are the columns by which usage is summed.
var usageKeys = map[domain.UsageGroup]string{
	domain.UsageByBot: "bot_id", domain.UsageByModel: "model", domain.UsageByChat: "chat_id",
	domain.UsageByMember: "member_id", domain.UsageByDelegation: "delegation_id",
}

// half is where figures are cut in two, so that neither half of a sum leaves 64 bits:
// a model may report whatever it likes.
const half = 1_000_000_000

// Usage sums the ledger by one group, the most expensive first. The sum over an
// organization is read Member by Member, since the index is in the order of a Member's
// time. No sum goes beyond the largest number.
func (s *Store) Usage(ctx context.Context, f domain.UsageFilter) ([]domain.UsageSum, error) {
	key, ok := usageKeys[f.Group]
	if !ok {
		return nil, domain.Errorf(domain.CodeInternal, "UsageGroup", "Usage is not summed by %q.", f.Group)
	}
	whose, who := "member_id = ?", []any{f.Organization, f.Member}
	if f.Member == "" {
		whose, who = "member_id IN (SELECT id FROM members WHERE organization_id = ?)", []any{f.Organization, f.Organization}
	}
	query := "SELECT " + key + ` AS "key", CAST(SUM(steps) AS BIGINT) AS steps` + halves("input_tokens") + halves("output_tokens") + halves("cost_nanos") +
		" FROM usage WHERE organization_id = ? AND " + whose + " AND used_at >= ? AND used_at < ? GROUP BY " + key +
		// In floating point, since this sum must not overflow either.
		" ORDER BY SUM(CAST(cost_nanos AS DOUBLE PRECISION)) DESC, SUM(steps) DESC, " + key + " LIMIT ?"
	var rows []struct {
		Key              string
		Steps            int64
		InputTokensHigh  int64
		InputTokensLow   int64
		OutputTokensHigh int64
		OutputTokensLow  int64
		CostNanosHigh    int64
		CostNanosLow     int64
	}
	if err := s.read(ctx).Raw(query, append(who, micros(f.From), micros(f.To), atLeastOne(f.Limit))...).Scan(&rows).Error; err != nil {
		return nil, s.wrap(ctx, "sum the usage", err)
	}
	sums := make([]domain.UsageSum, len(rows))
	for i, r := range rows {
		sums[i] = domain.UsageSum{Key: r.Key, Steps: r.Steps, InputTokens: whole(r.InputTokensHigh, r.InputTokensLow),
			OutputTokens: whole(r.OutputTokensHigh, r.OutputTokensLow), CostNanos: whole(r.CostNanosHigh, r.CostNanosLow)}
	}
	return sums, nil
}

func halves(column string) string {
	return fmt.Sprintf(", CAST(SUM(%[1]s / %[2]d) AS BIGINT) AS %[1]s_high, CAST(SUM(%[1]s %% %[2]d) AS BIGINT) AS %[1]s_low", column, half)
}

func whole(high, low int64) int64 {
	if high > (math.MaxInt64-low)/half {
		return math.MaxInt64
	}
	return high*half + low
}
