package api

import (
	"context"
	"net/http"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
)

// UsageSum is what one Bot, model, Chat, Member or piece of work used. The first field
// has the name of the group.
type UsageSum struct {
	Bot          *Nullable[string] `json:"bot,omitempty" doc:"With group=bot; null: trying a Rule for every Bot."`
	Model        *Nullable[string] `json:"model,omitempty" doc:"With group=model, as provider:model."`
	Chat         *Nullable[string] `json:"chat,omitempty" doc:"With group=chat, deleted Chats included; null: trying a Rule."`
	Member       *Nullable[string] `json:"member,omitempty" doc:"With group=member."`
	Delegation   *Nullable[string] `json:"delegation,omitempty" doc:"With group=delegation; null: what was no given-away work."`
	Steps        int64             `json:"steps" doc:"Model steps of Turns. Readings of Rules and replies that came too late cost, and are no steps."`
	InputTokens  int64             `json:"inputTokens"`
	OutputTokens int64             `json:"outputTokens"`
	CostMicros   int64             `json:"costMicros" doc:"In micro-USD, rounded once. A model without a price costs 0."`
}

func wireUsage(group domain.UsageGroup) func(domain.UsageSum) UsageSum {
	return func(u domain.UsageSum) UsageSum {
		out := UsageSum{Steps: u.Steps, InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CostMicros: domain.MicrosFromNanos(u.CostNanos)}
		key := &Nullable[string]{orNull(u.Key)}
		switch group {
		case domain.UsageByBot:
			out.Bot = key
		case domain.UsageByModel:
			out.Model = key
		case domain.UsageByChat:
			out.Chat = key
		case domain.UsageByMember:
			out.Member = key
		case domain.UsageByDelegation:
			out.Delegation = key
		}
		return out
	}
}

type usageQuery struct {
	From  int64  `query:"from" minimum:"0" maximum:"253402300799999" doc:"From this time on; left out: 30 days before to."`
	To    int64  `query:"to" minimum:"0" maximum:"253402300799999" doc:"Up to this time, which is not in it; left out: now."`
	Group string `query:"group" enum:"bot,model,chat,member,delegation" default:"bot" doc:"By what it is summed."`
}

const usageAbout = "Every model call that was paid for: steps of Turns, reviews by Bots and the judge's readings of Rules, from the moment it was saved. " +
	"It is your own work. With group=member an admin gets every Member of the organization. The most expensive come first, at most 1000."

func (s *server) usageRoutes() {
	register(s, route{id: "readUsage", method: http.MethodGet, path: "/v1/usage", tag: "Usage", summary: "What models used, and what it cost",
		about: usageAbout, role: domain.RoleRead, status: 200},
		func(ctx context.Context, p domain.Principal, in *usageQuery) (*struct{ Body []UsageSum }, error) {
			group := domain.UsageGroup(in.Group)
			sums, err := s.Engine.Usage(ctx, p, engine.UsageQuery{Group: group, From: momentGiven(ctx, "from", in.From), To: momentGiven(ctx, "to", in.To)})
			if err != nil {
				return nil, err
			}
			body := []UsageSum{}
			for _, u := range sums {
				body = append(body, wireUsage(group)(u))
			}
			return &struct{ Body []UsageSum }{body}, nil
		})
}

// momentGiven is the time of a query value; nil where it is left out.
func momentGiven(ctx context.Context, name string, ms int64) *time.Time {
	if infoFrom(ctx).url.Query().Get(name) == "" {
		return nil
	}
	at := time.UnixMilli(ms).UTC()
	return &at
}
