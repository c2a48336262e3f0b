package api

import (
	"context"
	"encoding/json"
	"net/http"

	"openbot/domain"
	"openbot/domain/engine"
)

// Turn is one run of a Bot's loop.
type Turn struct {
	ID         domain.TurnID `json:"id" example:"turn_018f6b1c2d3e7a4b8c9d0e1f2a3b4c5d"`
	Chat       domain.ChatID `json:"chat"`
	Bot        domain.BotID  `json:"bot"`
	Status     string        `json:"status" enum:"Queued,Running,Waiting,Completed,Failed,Interrupted"`
	Response   TurnResponse  `json:"response"`
	Answer     *string       `json:"answer" doc:"The Bot's last text; null before the end."`
	Error      *string       `json:"error" doc:"Why it failed."`
	WaitingFor []WaitingFor  `json:"waitingFor"`
	Usage      TurnUsage     `json:"usage"`
	Calls      []Call        `json:"calls" doc:"The tool calls, in order; the calls that a program made stand after those that the model asked for in the same step."`
	CreatedAt  int64         `json:"createdAt"`
	UpdatedAt  int64         `json:"updatedAt"`
}

// TurnResponse is the same state in the words of the responses API.
type TurnResponse struct {
	Status string `json:"status" enum:"in_progress,incomplete,completed,failed,cancelled"`
}

// WaitingFor is a tool call that waits for a Request.
type WaitingFor struct {
	ToolCall domain.CallID    `json:"toolCall"`
	Request  domain.RequestID `json:"request"`
}

// TurnUsage is what the Turn used.
type TurnUsage struct {
	Steps        int   `json:"steps"`
	InputTokens  int64 `json:"inputTokens"`
	OutputTokens int64 `json:"outputTokens"`
	CostMicros   int64 `json:"costMicros" doc:"In micro-USD."`
}

// Call is one tool call that a model asked for.
type Call struct {
	ID        domain.CallID       `json:"id"`
	Name      string              `json:"name" doc:"As the model was shown it."`
	Arguments json.RawMessage     `json:"arguments"`
	Status    string              `json:"status" enum:"planned,checking,waiting,allowed,sending,succeeded,failed,denied,cancelled,unknown"`
	Result    *string             `json:"result" doc:"What the model reads; null while it is open."`
	DecidedBy Nullable[DecidedBy] `json:"decidedBy"`
	Evidence  []Finding           `json:"evidence" doc:"What each step of the check found, in order."`
}

// Finding is what one step of the check found.
type Finding struct {
	Step  string `json:"step" enum:"policy,exemption,grant,rule,decider"`
	Found string `json:"found"`
	At    int64  `json:"at"`
}

// ItemCall is a tool call in the history. Its result is the text of the
// tool_result.
type ItemCall struct {
	ID        domain.CallID       `json:"id"`
	Name      string              `json:"name"`
	Arguments json.RawMessage     `json:"arguments"`
	Status    string              `json:"status" enum:"planned,checking,waiting,allowed,sending,succeeded,failed,denied,cancelled,unknown"`
	DecidedBy Nullable[DecidedBy] `json:"decidedBy"`
}

// DecidedBy is the evidence of a decision: which step of the check decided, who,
// and on the strength of what.
type DecidedBy struct {
	Step    string           `json:"step" enum:"policy,exemption,grant,rule,decider"`
	By      Actor            `json:"by"`
	Request domain.RequestID `json:"request,omitempty"`
	Grant   domain.GrantID   `json:"grant,omitempty"`
	Rule    domain.RuleID    `json:"rule,omitempty"`
	Quote   string           `json:"quote,omitempty" doc:"The sentences of the Rule that decided."`
	Pattern string           `json:"pattern,omitempty" doc:"Of policy, or of the setting that needs no decision."`
	At      int64            `json:"at"`
}

func wireDecidedBy(d *domain.DecidedBy) Nullable[DecidedBy] {
	if d == nil {
		return Nullable[DecidedBy]{}
	}
	return Nullable[DecidedBy]{&DecidedBy{Step: string(d.Step), By: Actor(d.By), Request: d.Request, Grant: d.Grant, Rule: d.Rule,
		Quote: d.Quote, Pattern: d.Pattern, At: d.AtMs}}
}

func wireTurn(v engine.TurnView) Turn {
	t := v.Turn
	out := Turn{ID: t.ID, Chat: t.Chat, Bot: t.Bot, Status: string(t.Status), Response: TurnResponse{t.Status.ResponseStatus()},
		Error: orNull(t.Error), WaitingFor: []WaitingFor{}, Calls: []Call{},
		Usage:     TurnUsage{Steps: t.Steps, InputTokens: t.InputTokens, OutputTokens: t.OutputTokens, CostMicros: domain.MicrosFromNanos(t.CostNanos)},
		CreatedAt: ms(t.CreatedAt), UpdatedAt: ms(t.UpdatedAt)}
	if t.Status == domain.TurnCompleted {
		out.Answer = &t.Answer
	}
	for _, c := range v.Calls {
		call := Call{ID: c.ID, Name: c.Name, Arguments: rawJSON(c.Arguments), Status: string(c.Status), DecidedBy: wireDecidedBy(c.Decided), Evidence: []Finding{}}
		for _, f := range c.Evidence {
			call.Evidence = append(call.Evidence, Finding{Step: string(f.Step), Found: f.Found, At: f.AtMs})
		}
		if !c.Open() {
			result := c.Result
			call.Result = &result
		}
		if c.Open() && c.Kind != domain.CallProgram && (c.Status == domain.CallWaiting || c.Status == domain.CallUnknown) {
			out.WaitingFor = append(out.WaitingFor, WaitingFor{ToolCall: c.ID, Request: c.Request})
		}
		out.Calls = append(out.Calls, call)
	}
	return out
}

func (s *server) turnRoutes() {
	register(s, route{id: "listTurns", method: http.MethodGet, path: "/v1/chats/{chat}/turns", tag: "Chats", summary: "List the Turns of a Chat, newest first",
		role: domain.RoleRead, status: 200, errors: []int{404}},
		func(ctx context.Context, p domain.Principal, in *struct {
			ChatPath
			Paged
		}) (*listed[Turn], error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			list := "turns." + string(id)
			page, err := in.page(list)
			if err != nil {
				return nil, err
			}
			rows, err := s.Engine.Turns(ctx, p, id, page)
			if err != nil {
				return nil, err
			}
			return listOf(ctx, list, in.Paged, rows, func(v engine.TurnView) string { return string(v.Turn.ID) }, wireTurn), nil
		})
	register(s, route{id: "readTurn", method: http.MethodGet, path: "/v1/turns/{turn}", tag: "Chats", summary: "Read a Turn with its calls",
		role: domain.RoleRead, status: 200, errors: []int{404}},
		func(ctx context.Context, p domain.Principal, in *struct {
			Turn string `path:"turn" doc:"The ID of the Turn."`
		}) (*struct{ Body Turn }, error) {
			if !domain.ValidID(in.Turn, domain.PrefixTurn) {
				return nil, notFound("Turn")
			}
			v, err := s.Engine.Turn(ctx, p, domain.TurnID(in.Turn))
			return &struct{ Body Turn }{wireTurn(v)}, err
		})
}
