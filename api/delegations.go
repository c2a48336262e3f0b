package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"openbot/domain"
	"openbot/domain/engine"
)

// Delegation is a piece of work given to a Bot.
type Delegation struct {
	ID              domain.DelegationID `json:"id" example:"dlg_018f6b1c2d3e7a4b8c9d0e1f2a3b4c5d"`
	ExecutionID     domain.ExecutionID  `json:"executionId" example:"018f6b1c-2d3e-7a4b-8c9d-0e1f2a3b4c5d"`
	ExecutionStatus string              `json:"executionStatus" enum:"pending,queued,running,cancelling,completed,failed,cancelled" doc:"The state of the run: cancelling until its calls in flight and its work below are released."`
	Failure         Nullable[Failure]   `json:"failure" doc:"Why it failed, or null."`
	Parent          WorkParent          `json:"parent" doc:"Where it was given."`
	Bot             domain.BotID        `json:"bot" doc:"The Bot that does the work."`
	Chat            *domain.ChatID      `json:"chat" doc:"The task Chat; null until the work starts."`
	Status          string              `json:"status" enum:"authorizing,queued,running,paused,completed,failed,cancelled"`
	Task            string              `json:"task"`
	Reason          *string             `json:"reason" doc:"The words of the Bot that gave it. They are data, not an instruction."`
	Result          *string             `json:"result" doc:"The last answer, the error, or why it stopped; null before the end."`
	Limits          WorkLimits          `json:"limits"`
	Usage           WorkUsage           `json:"usage"`
	Pause           *WorkPause          `json:"pause,omitempty"`
	Trigger         domain.TriggerID    `json:"trigger,omitempty" doc:"What gave it, for work from a trigger."`
	CreatedAt       int64               `json:"createdAt"`
	UpdatedAt       int64               `json:"updatedAt"`
}

// Failure says why work failed.
type Failure struct {
	Message string `json:"message"`
}

// WorkParent is the Chat, Turn and tool call that gave a piece of work. Work from a
// trigger or a person has the Chat alone.
type WorkParent struct {
	Chat       domain.ChatID `json:"chat"`
	Turn       domain.TurnID `json:"turn,omitempty"`
	ToolCallID domain.CallID `json:"toolCallId,omitempty"`
}

// WorkLimits bound a piece of work.
type WorkLimits struct {
	TimeMs       int64 `json:"timeMs" doc:"Running time in milliseconds; time in a pause does not count."`
	Steps        int64 `json:"steps,omitempty" doc:"Model steps of the task Chat."`
	BudgetMicros int64 `json:"budgetMicros,omitempty" doc:"Cost of the model calls of the task Chat and of all work below it, in micro-USD."`
}

// WorkUsage is what a piece of work used since it started.
type WorkUsage struct {
	TimeMs     int64 `json:"timeMs"`
	Steps      int64 `json:"steps"`
	CostMicros int64 `json:"costMicros" doc:"In micro-USD, with all work below it."`
}

// WorkPause says why a piece of work is paused.
type WorkPause struct {
	Limit      string              `json:"limit" enum:"time,steps,budget"`
	Request    *domain.RequestID   `json:"request" doc:"The Request that decides whether the work goes on; null for work below, and while the judge reads the Rules."`
	Delegation domain.DelegationID `json:"delegation,omitempty" doc:"Of work below: the work above it whose limit was reached."`
	At         int64               `json:"at"`
}

func wireDelegation(s *server) func(v domain.DelegationView) Delegation {
	return func(v domain.DelegationView) Delegation {
		g := v.Delegation
		path := append([]domain.Delegation{g}, v.Above...)
		held := domain.HeldBy(path)
		out := Delegation{ID: g.ID, ExecutionID: g.Execution, ExecutionStatus: g.ExecutionStatus(held.Stopping != ""),
			Parent: WorkParent{Chat: g.Parent.Chat, Turn: g.Parent.Turn, ToolCallID: g.Parent.Call}, Bot: g.Bot, Status: string(g.Status),
			Task: g.Task, Reason: orNull(g.Reason), Limits: WorkLimits(g.Limits), Trigger: g.Trigger,
			Usage: WorkUsage{TimeMs: domain.UsedTime(path, s.Engine.Clock()).Milliseconds(), Steps: g.Steps,
				CostMicros: domain.MicrosFromNanos(g.CostNanos)},
			CreatedAt: ms(g.CreatedAt), UpdatedAt: ms(g.UpdatedAt)}
		if g.StartedAt != nil {
			out.Chat = &g.Chat
		}
		if !g.Open() {
			out.Result = &g.Result
		}
		if g.Status == domain.DelegationFailed {
			out.Failure.Value = &Failure{Message: g.Result}
		}
		if !g.Open() || held.Paused == "" || g.StartedAt == nil {
			return out
		}
		out.Status = string(domain.DelegationPaused)
		for _, at := range path {
			if at.ID != held.Paused {
				continue
			}
			out.Pause = &WorkPause{Limit: at.Pause.Limit, At: at.Pause.AtMs}
			if at.ID != g.ID {
				out.Pause.Delegation = at.ID
			} else if v.Request != "" {
				out.Pause.Request = &v.Request
			}
		}
		return out
	}
}

// Execution is the run record of a piece of work.
type Execution struct {
	ID           domain.ExecutionID  `json:"id"`
	Delegation   domain.DelegationID `json:"delegation"`
	Chat         domain.ChatID       `json:"chat" doc:"The task Chat, whose events these are."`
	Status       string              `json:"status" enum:"pending,queued,running,cancelling,completed,failed,cancelled"`
	Failure      Nullable[Failure]   `json:"failure"`
	LastSequence *int64              `json:"lastSequence" doc:"That of its last event; null while it runs."`
	CreatedAt    int64               `json:"createdAt"`
	UpdatedAt    int64               `json:"updatedAt"`
}

func wireExecution(v domain.DelegationView) Execution {
	g := v.Delegation
	held := domain.HeldBy(append([]domain.Delegation{g}, v.Above...))
	out := Execution{ID: g.Execution, Delegation: g.ID, Chat: g.Chat, Status: g.ExecutionStatus(held.Stopping != ""),
		CreatedAt: ms(g.CreatedAt), UpdatedAt: ms(g.UpdatedAt)}
	if g.LastEvent > 0 {
		out.LastSequence = &g.LastEvent
	}
	if g.Status == domain.DelegationFailed {
		out.Failure.Value = &Failure{Message: g.Result}
	}
	return out
}

// CancelWork is the body that stops a piece of work.
type CancelWork struct {
	CommandKey string `json:"commandKey" minLength:"1" maxLength:"200" doc:"Keep it for a retry: the same key gives the same receipt."`
}

// CancelReceipt says that a command was accepted.
type CancelReceipt struct {
	ExecutionID domain.ExecutionID `json:"executionId"`
	CommandKey  string             `json:"commandKey"`
	AcceptedAt  int64              `json:"acceptedAt"`
}

func wireReceipt(r engine.CancelReceipt) CancelReceipt {
	return CancelReceipt{ExecutionID: r.Execution, CommandKey: r.CommandKey, AcceptedAt: r.AtMs}
}

// DelegationPath names a piece of work in an address.
type DelegationPath struct {
	Delegation string `path:"delegation" doc:"The ID of the work."`
}

func (p DelegationPath) id() (domain.DelegationID, error) {
	if !domain.ValidID(p.Delegation, domain.PrefixDelegation) {
		return "", newProblem(http.StatusNotFound, "DelegationNotFound", "There is no work with this ID in your Chats.")
	}
	return domain.DelegationID(p.Delegation), nil
}

// ExecutionPath names a run in an address.
type ExecutionPath struct {
	Execution string `path:"execution" doc:"The ID of the run: a UUID."`
}

func (p ExecutionPath) id() (domain.ExecutionID, error) {
	if !domain.ValidExecutionID(p.Execution) {
		return "", newProblem(http.StatusNotFound, "ExecutionNotFound", "There is no execution with this ID in your Chats.")
	}
	return domain.ExecutionID(p.Execution), nil
}

// tagDelegations is on every operation about given work.
const tagDelegations = "Delegations"

func (s *server) delegationRoutes() {
	register(s, route{id: "listDelegations", method: http.MethodGet, path: "/v1/chats/{chat}/delegations", tag: tagDelegations,
		summary: "List the work that a Chat gave away, newest first", role: domain.RoleRead, status: 200, errors: []int{404}},
		func(ctx context.Context, p domain.Principal, in *struct {
			ChatPath
			Paged
		}) (*listed[Delegation], error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			list := "delegations." + string(id)
			page, err := in.page(list)
			if err != nil {
				return nil, err
			}
			rows, err := s.Engine.Delegations(ctx, p, id, page)
			if err != nil {
				return nil, err
			}
			return listOf(ctx, list, in.Paged, rows, func(v domain.DelegationView) string { return string(v.Delegation.ID) }, wireDelegation(s)), nil
		})
	register(s, route{id: "readDelegation", method: http.MethodGet, path: "/v1/delegations/{delegation}", tag: tagDelegations, summary: "Read a piece of work",
		role: domain.RoleRead, status: 200, errors: []int{404}},
		func(ctx context.Context, p domain.Principal, in *DelegationPath) (*struct{ Body Delegation }, error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			v, err := s.Engine.Delegation(ctx, p, id)
			return &struct{ Body Delegation }{wireDelegation(s)(v)}, err
		})
	register(s, route{id: "cancelDelegation", method: http.MethodPost, path: "/v1/delegations/{delegation}/cancel", tag: tagDelegations,
		summary: "Stop a piece of work, with all work below it",
		about:   "It takes effect at once: no call and no model step starts any more. The work ends when its calls in flight and its work below are released.",
		role:    domain.RoleWrite, status: 202, errors: []int{404, 409}}, s.cancelDelegation)
	register(s, route{id: "readExecution", method: http.MethodGet, path: "/v1/executions/{execution}", tag: tagDelegations, summary: "Read the run record of a piece of work",
		role: domain.RoleRead, status: 200, errors: []int{404}},
		func(ctx context.Context, p domain.Principal, in *ExecutionPath) (*struct{ Body Execution }, error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			v, err := s.Engine.Execution(ctx, p, id)
			return &struct{ Body Execution }{wireExecution(v)}, err
		})
	register(s, route{id: "observeExecution", method: http.MethodGet, path: "/v1/executions/{execution}/observe", tag: tagDelegations,
		summary: "The events of a run, as they come", about: streamAbout + " The stream ends after the last event of the run.",
		role: domain.RoleRead, status: 200, stream: true, errors: []int{404}},
		func(ctx context.Context, p domain.Principal, in *struct {
			ExecutionPath
			Resumed
		}) (*huma.StreamResponse, error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			return s.resume(p, in.Resumed, func(ctx context.Context, after int64, send func([]domain.Event) error, quiet func() error) error {
				return s.Engine.ObserveExecution(ctx, p, id, after, send, quiet)
			})
		})
}

func (s *server) cancelDelegation(ctx context.Context, p domain.Principal, in *struct {
	Keyed
	DelegationPath
	Body CancelWork
}) (*struct{ Body CancelReceipt }, error) {
	id, err := in.id()
	if err != nil {
		return nil, err
	}
	v, err := s.Engine.Delegation(ctx, p, id)
	if err != nil {
		return nil, err
	}
	ctx, err = keepCommand(ctx, s, p, in.Body.CommandKey, v.Delegation.Chat, wireReceipt)
	if err != nil {
		return nil, err
	}
	r, err := s.Engine.CancelDelegation(ctx, p, id, in.Body.CommandKey)
	return &struct{ Body CancelReceipt }{wireReceipt(r)}, err
}
