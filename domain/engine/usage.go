package engine

import (
	"context"
	"time"

	"openbot/domain"
)

// entry is a line of the ledger about a model call of one model.
func (e *Engine) entry(at time.Time, s domain.Settings, model string, purpose domain.Purpose, usage domain.ModelUsage) domain.UsageEntry {
	return domain.UsageEntry{ID: newID[domain.UsageID](domain.PrefixUsage), At: at, Model: model, Purpose: purpose,
		InputTokens: max(usage.InputTokens, 0), OutputTokens: max(usage.OutputTokens, 0), CostNanos: e.cost(s, model, usage)}
}

// ofChat names the Chat and the Bot whose call it was.
func ofChat(chat *domain.Chat, bot domain.BotID, u domain.UsageEntry) domain.UsageEntry {
	u.Organization, u.Member, u.Chat, u.Bot = chat.Organization, chat.Member, chat.ID, bot
	if chat.Parent != nil {
		u.Delegation = chat.Parent.Delegation
	}
	return u
}

// stepUsage is the line of a model call of a Turn.
func (e *Engine) stepUsage(at time.Time, f *domain.StepFacts, model string, usage domain.ModelUsage, steps int64) domain.UsageEntry {
	purpose := domain.PurposeTurn
	if f.Chat.Kind == domain.ChatReview {
		purpose = domain.PurposeReview
	}
	u := ofChat(&f.Chat, f.Bot.ID, e.entry(at, f.Organization.Settings, model, purpose, usage))
	u.Steps = steps
	return u
}

// noteLate adds the line of a reply that came too late to count: it was paid for all the
// same. One that was held during a pause has its line already.
func (e *Engine) noteLate(d *draft, s *Step, usage domain.ModelUsage) {
	if s.Reply == nil {
		d.commit.Usage = append(d.commit.Usage, e.stepUsage(d.at, &s.facts, s.Request.Model, usage, 0))
	}
}

// noteJudge adds the line of a reading of Rules about a call, whatever comes of its
// verdict. A judge that gave nothing cost nothing that is known.
func (e *Engine) noteJudge(d *draft, f *domain.CallFacts, model string, usage domain.ModelUsage) {
	if usage == (domain.ModelUsage{}) {
		return
	}
	d.commit.Usage = append(d.commit.Usage, ofChat(&f.Chat, f.Turn.Bot, e.entry(d.at, f.Organization.Settings, model, domain.PurposeJudge, usage)))
}

// notePreview adds one line for all readings of a preview. It belongs to no Chat.
func (e *Engine) notePreview(d *draft, work *PreviewWork, verdicts []domain.RulesVerdict) {
	var used domain.ModelUsage
	for _, v := range verdicts {
		used = used.Plus(v.Usage)
	}
	if used == (domain.ModelUsage{}) {
		return
	}
	u := e.entry(d.at, work.settings, work.Cases[0].Request.Model, domain.PurposeJudge, used)
	u.Organization, u.Member, u.Bot = work.preview.Organization, work.preview.Member, work.preview.Bot
	d.commit.Usage = append(d.commit.Usage, u)
}

const (
	// usagePeriod is what is summed where no beginning is named.
	usagePeriod = 30 * 24 * time.Hour
	// maxUsage is how many sums are given, the most expensive first.
	maxUsage = 1000
)

// UsageQuery says what usage is asked for.
type UsageQuery struct {
	Group domain.UsageGroup
	From  *time.Time // nil: 30 days before To
	To    *time.Time // nil: now. What was used at To itself is not in it.
}

// Usage sums what models used in the work of the caller, the most expensive first. By
// Member an admin sees the whole organization; all else is the caller's own work for an
// admin as well.
func (e *Engine) Usage(ctx context.Context, p domain.Principal, in UsageQuery) ([]domain.UsageSum, error) {
	filter := domain.UsageFilter{Organization: p.Organization, Member: p.Member.ID, Group: in.Group, To: e.now(), Limit: maxUsage}
	if in.To != nil {
		filter.To = *in.To
	}
	filter.From = filter.To.Add(-usagePeriod)
	if in.From != nil {
		filter.From = *in.From
	}
	if !filter.From.Before(filter.To) {
		return nil, invalid("from", "must be before to")
	}
	if in.Group == domain.UsageByMember && p.HasRole(domain.RoleAdmin) {
		filter.Member = ""
	}
	return e.Store.Usage(ctx, filter)
}
