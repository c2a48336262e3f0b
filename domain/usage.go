package domain

import "time"

// UsageEntry is one line of the ledger of what models cost: a model step of a Turn, or
// one reading of Rules by the judge. It is written in the commit of what it paid for and
// never changed. A reply that came too late to count is in it as well: it was paid for.
type UsageEntry struct {
	ID           UsageID
	Organization OrganizationID
	Member       MemberID
	Bot          BotID        // "" for the preview of a Rule for every Bot
	Chat         ChatID       // "" for the preview of a Rule
	Delegation   DelegationID // whose Chat it was, or ""
	Model        string
	Purpose      Purpose
	Steps        int64 // 1 for a model step, 0 for what was no step
	InputTokens  int64
	OutputTokens int64
	CostNanos    int64 // nano-USD
	At           time.Time
}

// UsageGroup says by what usage is summed.
type UsageGroup string

const (
	// UsageByBot sums for each Bot.
	UsageByBot UsageGroup = "bot"
	// UsageByModel sums for each model.
	UsageByModel UsageGroup = "model"
	// UsageByChat sums for each Chat.
	UsageByChat UsageGroup = "chat"
	// UsageByMember sums for each Member.
	UsageByMember UsageGroup = "member"
	// UsageByDelegation sums for each piece of given-away work.
	UsageByDelegation UsageGroup = "delegation"
)

// UsageGroups lists every group.
func UsageGroups() []UsageGroup {
	return []UsageGroup{UsageByBot, UsageByModel, UsageByChat, UsageByMember, UsageByDelegation}
}

// UsageFilter says what usage is summed: from From to right before To.
type UsageFilter struct {
	Organization OrganizationID
	Member       MemberID // "" for every Member of the organization
	Group        UsageGroup
	From, To     time.Time
	Limit        int
}

// UsageSum is what one Bot, model, Chat, Member or piece of work used.
type UsageSum struct {
	Key          string // the ID or model; "" for what belongs to none
	Steps        int64
	InputTokens  int64
	OutputTokens int64
	CostNanos    int64 // nano-USD
}

// Plus adds what another model call used. No part goes beyond the largest number.
func (u ModelUsage) Plus(more ModelUsage) ModelUsage {
	return ModelUsage{InputTokens: sum(u.InputTokens, more.InputTokens), CachedInputTokens: sum(u.CachedInputTokens, more.CachedInputTokens),
		CacheWriteTokens: sum(u.CacheWriteTokens, more.CacheWriteTokens), OutputTokens: sum(u.OutputTokens, more.OutputTokens)}
}
