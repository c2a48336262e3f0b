package api

import (
	"context"
	"net/http"

	"openbot/domain"
	"openbot/domain/engine"
)

// Trigger gives work to a Bot, at times or on a signal.
type Trigger struct {
	ID         domain.TriggerID `json:"id" example:"trg_018f6b1c2d3e7a4b8c9d0e1f2a3b4c5d"`
	Name       string           `json:"name"`
	Kind       string           `json:"kind" enum:"cron,webhook"`
	Cron       *string          `json:"cron" doc:"Five fields, or a word such as @daily."`
	TimeZone   *string          `json:"timeZone" doc:"An IANA name. Fixed hours go by the wall clock: each fires once also when clocks change."`
	Missed     *string          `json:"missed" doc:"What becomes of times that passed while no server ran: skip or once; null for a webhook."`
	Bot        domain.BotID     `json:"bot" doc:"The Bot that does the work."`
	Chat       domain.ChatID    `json:"chat" doc:"The Chat that hears of the work."`
	Task       string           `json:"task"`
	Enabled    bool             `json:"enabled"`
	Problem    *string          `json:"problem" doc:"Why the server switched it off."`
	NextAt     *int64           `json:"nextAt"`
	LastAt     *int64           `json:"lastAt"`
	Delegation *string          `json:"delegation" doc:"The work that it gave last."`
	Signal     *string          `json:"signal" doc:"Of kind webhook: where the signal goes, signed as Standard Webhooks says."`
	CreatedAt  int64            `json:"createdAt"`
	UpdatedAt  int64            `json:"updatedAt"`
	Secret     string           `json:"secret,omitempty" doc:"The signing secret, shown this once, in the answer that makes the trigger."`
}

func wireTrigger(t domain.Trigger) Trigger {
	out := Trigger{ID: t.ID, Name: t.Name, Kind: t.Kind, Bot: t.Bot, Chat: t.Chat, Task: t.Task, Enabled: t.Enabled, Problem: orNull(t.Problem),
		NextAt: msOrNull(t.NextAt), LastAt: msOrNull(t.LastAt), Delegation: orNull(string(t.LastWork)), CreatedAt: ms(t.CreatedAt), UpdatedAt: ms(t.UpdatedAt)}
	if t.Kind == domain.TriggerCron {
		out.Cron, out.TimeZone, out.Missed = &t.Cron, &t.TimeZone, &t.Missed
	} else {
		at := "/v1/triggers/" + string(t.ID) + "/signal"
		out.Signal = &at
	}
	return out
}

// NewTrigger is the body that makes a trigger.
type NewTrigger struct {
	Name     string  `json:"name" minLength:"1" maxLength:"200"`
	Kind     *string `json:"kind,omitempty" enum:"cron,webhook" doc:"Left out: cron."`
	Cron     *string `json:"cron,omitempty" maxLength:"200" doc:"Of kind cron: five fields, or a word such as @daily."`
	TimeZone *string `json:"timeZone,omitempty" maxLength:"100" doc:"Left out: UTC."`
	Missed   *string `json:"missed,omitempty" enum:"skip,once" doc:"Left out: skip."`
	Secret   *string `json:"secret,omitempty" maxLength:"200" doc:"Of kind webhook: whsec_ and base64; made when left out."`
	Bot      *string `json:"bot,omitempty" doc:"Left out: your Main Bot."`
	Chat     *string `json:"chat,omitempty" doc:"Left out: a Chat of its own."`
	Task     string  `json:"task" minLength:"1" maxLength:"100000"`
	Enabled  *bool   `json:"enabled,omitempty"`
}

// TriggerChange is the body that changes a trigger.
type TriggerChange struct {
	Name     *string `json:"name,omitempty" minLength:"1" maxLength:"200"`
	Cron     *string `json:"cron,omitempty" maxLength:"200"`
	TimeZone *string `json:"timeZone,omitempty" maxLength:"100"`
	Missed   *string `json:"missed,omitempty" enum:"skip,once"`
	Secret   *string `json:"secret,omitempty" maxLength:"200"`
	Bot      *string `json:"bot,omitempty"`
	Chat     *string `json:"chat,omitempty"`
	Task     *string `json:"task,omitempty" minLength:"1" maxLength:"100000"`
	Enabled  *bool   `json:"enabled,omitempty"`
}

// Fired is the work that a signal started.
type Fired struct {
	Trigger    domain.TriggerID    `json:"trigger"`
	Delegation domain.DelegationID `json:"delegation"`
}

func wireFired(f engine.Fired) Fired { return Fired{Trigger: f.Trigger, Delegation: f.Delegation} }

// TriggerPath names a trigger in an address.
type TriggerPath struct {
	Trigger string `path:"trigger" doc:"The ID of the trigger."`
}

func (p TriggerPath) id() (domain.TriggerID, error) {
	if !domain.ValidID(p.Trigger, domain.PrefixTrigger) {
		return "", newProblem(http.StatusNotFound, "TriggerNotFound", "There is no trigger with this ID.")
	}
	return domain.TriggerID(p.Trigger), nil
}

// as gives text as a type of ID; nil stays nil.
func as[T ~string](text *string) *T {
	if text == nil {
		return nil
	}
	id := T(*text)
	return &id
}

type triggerOut = struct{ Body Trigger }

func (s *server) triggerRoutes() {
	const list = "triggers"
	register(s, route{id: "listTriggers", method: http.MethodGet, path: "/v1/triggers", tag: "Triggers", summary: "List your triggers, newest first",
		role: domain.RoleRead, status: 200},
		func(ctx context.Context, p domain.Principal, in *struct{ Paged }) (*listed[Trigger], error) {
			page, err := in.page(list)
			if err != nil {
				return nil, err
			}
			rows, err := s.Engine.Triggers(ctx, p, page)
			if err != nil {
				return nil, err
			}
			return listOf(ctx, list, in.Paged, rows, func(t domain.Trigger) string { return string(t.ID) }, wireTrigger), nil
		})
	register(s, route{id: "createTrigger", method: http.MethodPost, path: "/v1/triggers", tag: "Triggers", summary: "Make a trigger",
		about: "Each of its times gives work once, with any number of servers. The signing secret of a webhook is in this answer alone.",
		role:  domain.RoleWrite, status: 201, errors: []int{409}},
		func(ctx context.Context, p domain.Principal, in *struct {
			Keyed
			Body NewTrigger
		}) (*triggerOut, error) {
			b := in.Body
			t, secret, err := s.Engine.CreateTrigger(keep(ctx, wireTrigger), p, engine.TriggerFields{Name: &b.Name, Kind: b.Kind, Cron: b.Cron,
				TimeZone: b.TimeZone, Missed: b.Missed, Secret: b.Secret, Bot: as[domain.BotID](b.Bot), Chat: as[domain.ChatID](b.Chat), Task: &b.Task, Enabled: b.Enabled})
			if err != nil {
				return nil, err
			}
			out := wireTrigger(t)
			out.Secret = secret
			return &triggerOut{out}, nil
		})
	register(s, route{id: "readTrigger", method: http.MethodGet, path: "/v1/triggers/{trigger}", tag: "Triggers", summary: "Read a trigger",
		role: domain.RoleRead, status: 200, errors: []int{404}},
		func(ctx context.Context, p domain.Principal, in *TriggerPath) (*triggerOut, error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			t, err := s.Engine.Trigger(ctx, p, id)
			return &triggerOut{wireTrigger(t)}, err
		})
	register(s, route{id: "changeTrigger", method: http.MethodPatch, path: "/v1/triggers/{trigger}", tag: "Triggers", summary: "Change a trigger",
		about: "It rests on the token of this call from then on.", role: domain.RoleWrite, status: 200, errors: []int{404, 409}},
		func(ctx context.Context, p domain.Principal, in *struct {
			TriggerPath
			Body TriggerChange
		}) (*triggerOut, error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			b := in.Body
			t, err := s.Engine.ChangeTrigger(ctx, p, id, engine.TriggerFields{Name: b.Name, Cron: b.Cron, TimeZone: b.TimeZone, Missed: b.Missed,
				Secret: b.Secret, Bot: as[domain.BotID](b.Bot), Chat: as[domain.ChatID](b.Chat), Task: b.Task, Enabled: b.Enabled})
			return &triggerOut{wireTrigger(t)}, err
		})
	register(s, route{id: "deleteTrigger", method: http.MethodDelete, path: "/v1/triggers/{trigger}", tag: "Triggers", summary: "Take a trigger away",
		about: "Work that it gave goes on.", role: domain.RoleWrite, status: 204, errors: []int{404, 409}},
		func(ctx context.Context, p domain.Principal, in *TriggerPath) (*none, error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			return nil, s.Engine.DeleteTrigger(ctx, p, id)
		})
	register(s, route{id: "signalTrigger", method: http.MethodPost, path: "/v1/triggers/{trigger}/signal", tag: "Triggers", summary: "Fire a trigger of kind webhook",
		about:  "Signed with the trigger's secret as Standard Webhooks says; the body is data for the Bot. The same webhook-id again gives the same answer.",
		signed: true, status: 202, errors: []int{401, 404, 409, 413, 429}}, s.signalTrigger)
}

func (s *server) signalTrigger(ctx context.Context, _ domain.Principal, in *TriggerPath) (*struct{ Body Fired }, error) {
	id, err := in.id()
	if err != nil {
		return nil, err
	}
	i := infoFrom(ctx)
	fired, err := s.Engine.Signal(ctx, id, i.header, i.signed, func(member domain.MemberID, key, fingerprint string) *engine.Keeping {
		k := keeping(i, key, wireFired)
		k.Member, k.Fingerprint = member, fingerprint
		return k
	})
	if domain.IsCode(err, domain.CodeUnauthenticated) {
		err = s.countWrong(ctx, i.origin.Address, err)
	}
	return &struct{ Body Fired }{wireFired(fired)}, err
}
