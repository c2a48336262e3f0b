package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"openbot/domain"
)

// Approval is a Request as scripts see it: secrets masked, and no more than an answer
// needs.
type Approval struct {
	ID            string                    `json:"id" format:"uuid" example:"4a5b6c7d-8e9f-4a0b-8c1d-2e3f4a5b6c7d"`
	RunID         string                    `json:"runId" format:"uuid" example:"7c1e2d3f-4a5b-4c6d-8e9f-0a1b2c3d4e5f" doc:"The Turn that waits."`
	ToolName      string                    `json:"toolName" example:"send_email" doc:"The App's own name for the tool."`
	Resource      *string                   `json:"resource" example:"mail:ops@example.test" doc:"What the call is about: derived by the server from declared arguments, never written by a model."`
	Tags          []string                  `json:"tags" doc:"The permission tags of the call."`
	Reason        *string                   `json:"reason" doc:"The words of the Bot, masked. They are data, not an instruction."`
	InputRedacted json.RawMessage           `json:"inputRedacted" doc:"The arguments of the call. Secrets are masked; there is no way to read them here."`
	Decision      Nullable[scriptDecision]  `json:"decision" doc:"null while nobody decided, and for what was cancelled."`
	ReviewVerdict Nullable[reviewerVerdict] `json:"reviewVerdict" doc:"What the automatic reviewer reads in it: an input to the decision, never the authority for it."`
	ExpiresAt     string                    `json:"expiresAt" format:"date-time" example:"2026-09-18T09:00:00.000Z" doc:"Denied when nobody answers by then."`
	CreatedAt     string                    `json:"createdAt" format:"date-time" example:"2026-09-18T08:00:00.000Z"`
}

// scriptDecision is an answer that a script can give and read.
type scriptDecision string

// Schema lists the answers.
func (scriptDecision) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Enum: []any{domain.ApprovalApproved, domain.ApprovalDenied}}
}

// reviewerVerdict is what the automatic reviewer can say.
type reviewerVerdict string

// Schema lists the verdicts.
func (reviewerVerdict) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Enum: []any{"allow", "block", "unclear"}}
}

// ApprovalPage is one page of a list.
type ApprovalPage struct {
	Data       []Approval `json:"data"`
	NextCursor *string    `json:"nextCursor" doc:"Give it as cursor to read on; null on the last page."`
}

// ApprovalDecision is the body that answers an approval.
type ApprovalDecision struct {
	Decision string  `json:"decision" enum:"approved,denied" doc:"There is no third answer: a standing decision is made in OpenBot itself."`
	Reason   *string `json:"reason,omitempty" nullable:"true" maxLength:"4000" doc:"The Bot sees it."`
}

// ApprovalPath names an approval in an address.
type ApprovalPath struct {
	Approval string `path:"approval" doc:"The ID of the approval, a UUID."`
}

func (p ApprovalPath) id() (domain.RequestID, error) {
	id, ok := domain.IDOf(p.Approval, domain.PrefixRequest)
	if !ok {
		return "", newProblem(http.StatusNotFound, "ApprovalNotFound", "There is no approval with this ID in your work.")
	}
	return domain.RequestID(id), nil
}

// ApprovalQuery is the query of the list.
type ApprovalQuery struct {
	State  string `query:"state" enum:"pending" default:"pending" doc:"The list holds what waits for you, and nothing else."`
	Limit  int    `query:"limit" default:"50" minimum:"1" maximum:"200" doc:"How many to give at most. A page of large inputs can hold fewer."`
	Cursor string `query:"cursor" maxLength:"400" doc:"nextCursor of the page before."`
}

// isoMillis is a time as ISO 8601 writes it, in UTC with milliseconds.
const isoMillis = "2006-01-02T15:04:05.000Z"

func wireApproval(a domain.Approval) Approval {
	out := Approval{ID: a.ID, RunID: a.RunID, ToolName: a.ToolName, Resource: orNull(a.Resource), Tags: nonNil(a.Tags), Reason: orNull(a.Reason),
		InputRedacted: a.Input, ExpiresAt: iso(a.ExpiresAt), CreatedAt: iso(a.CreatedAt)}
	if a.Decision != "" {
		decision := scriptDecision(a.Decision)
		out.Decision.Value = &decision
	}
	if a.Verdict != "" {
		verdict := reviewerVerdict(a.Verdict)
		out.ReviewVerdict.Value = &verdict
	}
	return out
}

func iso(t time.Time) string { return t.UTC().Format(isoMillis) }

// keptApproval is all that is kept under a key: an answer that is given again is
// masked as the settings are then.
type keptApproval struct {
	ID domain.RequestID `json:"id"`
}

func (s *server) approvalRoutes() {
	const list = "approvals"
	type one = struct{ Body Approval }
	register(s, route{id: "listApprovals", method: http.MethodGet, path: "/api/v1/approvals", tag: "Approvals", script: true,
		summary: "List what waits for your answer, newest first", role: domain.RoleRead, status: 200},
		func(ctx context.Context, p domain.Principal, in *ApprovalQuery) (*struct{ Body ApprovalPage }, error) {
			page, err := Paged{Limit: in.Limit, Cursor: in.Cursor}.page(list)
			if err != nil {
				return nil, err
			}
			page.Limit = in.Limit
			approvals, more, err := s.Engine.Approvals(ctx, p, page)
			if err != nil {
				return nil, err
			}
			out := ApprovalPage{Data: []Approval{}}
			for _, a := range approvals {
				out.Data = append(out.Data, wireApproval(a))
			}
			if more {
				next := cursorAfter(list, string(approvals[len(approvals)-1].Request))
				out.NextCursor = &next
			}
			return &struct{ Body ApprovalPage }{out}, nil
		})
	register(s, route{id: "readApproval", method: http.MethodGet, path: "/api/v1/approvals/{approval}", tag: "Approvals", script: true,
		summary: "Read one approval of your work", role: domain.RoleRead, status: 200, errors: []int{404}},
		func(ctx context.Context, p domain.Principal, in *ApprovalPath) (*one, error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			a, err := s.Engine.Approval(ctx, p, id)
			return &one{wireApproval(a)}, err
		})
	register(s, route{id: "decideApproval", method: http.MethodPost, path: "/api/v1/approvals/{approval}/decide", tag: "Approvals", script: true,
		summary: "Answer an approval, for this call alone", about: "The answer is that of the Member of the key, and the work goes on at once. " +
			"The same answer again gives the decided approval. What a Bot still decides, what is closed and what is too late is a conflict.",
		role: domain.RoleWrite, status: 200, errors: []int{404, 409}, fresh: s.freshApproval},
		func(ctx context.Context, p domain.Principal, in *struct {
			Keyed
			ApprovalPath
			Body ApprovalDecision
		}) (*one, error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			ctx = keep(ctx, func(r domain.Request) keptApproval { return keptApproval{r.ID} })
			a, err := s.Engine.DecideApproval(ctx, p, id, in.Body.Decision, in.Body.Reason)
			return &one{wireApproval(a)}, err
		})
}

func (s *server) freshApproval(ctx context.Context, p domain.Principal, kept []byte) ([]byte, error) {
	var was keptApproval
	if err := json.Unmarshal(kept, &was); err != nil {
		return nil, err
	}
	a, err := s.Engine.Approval(ctx, p, was.ID)
	if err != nil {
		return nil, err
	}
	return encode(wireApproval(a)), nil
}
