package engine

import (
	"context"

	"openbot/domain"
)

// maxApprovalsBytes ends a page of approvals early: masking takes time that grows with
// the arguments, which Bots choose.
const maxApprovalsBytes = 4 << 20

// Approvals lists the Requests that wait for the caller, newest first, as scripts see
// them. Calls whose outcome nobody knows are left out. A page may hold less than what
// was asked for; more reports whether something follows.
func (e *Engine) Approvals(ctx context.Context, p domain.Principal, page domain.Page) (list []domain.Approval, more bool, err error) {
	mask, err := e.redactor(ctx, p)
	if err != nil {
		return nil, false, err
	}
	limit := page.Limit
	page.Limit++ // one more tells whether another page follows
	rows, err := e.Requests(ctx, p, domain.RequestFilter{Status: domain.RequestPending, Known: true}, page)
	if err != nil {
		return nil, false, err
	}
	size := 0
	for i, r := range rows {
		size += len(r.Arguments)
		if i == limit || i > 0 && size > maxApprovalsBytes {
			return list, true, nil
		}
		list = append(list, domain.NewApproval(r, mask))
	}
	return list, false, nil
}

// Approval reads a Request of the caller's work as scripts see it.
func (e *Engine) Approval(ctx context.Context, p domain.Principal, id domain.RequestID) (domain.Approval, error) {
	r, err := e.approvable(ctx, p, id)
	if err != nil {
		return domain.Approval{}, err
	}
	mask, err := e.redactor(ctx, p)
	return domain.NewApproval(r, mask), err
}

// DecideApproval answers a Request once, as the caller's Member, with what is saved in
// it: what a script saw of it cannot have changed since. It gives conflict for one that
// a Bot still decides, that is closed by another answer, or whose time is up.
func (e *Engine) DecideApproval(ctx context.Context, p domain.Principal, id domain.RequestID, decision string, reason *string) (domain.Approval, error) {
	answer := Answer{Reason: reason}
	switch decision {
	case domain.ApprovalApproved:
		answer.Decision = domain.DecisionAllow
	case domain.ApprovalDenied:
		answer.Decision = domain.DecisionDeny
	default:
		return domain.Approval{}, invalid("decision", "must be approved or denied")
	}
	r, err := e.approvable(ctx, p, id)
	if err != nil {
		return domain.Approval{}, err
	}
	mask, err := e.redactor(ctx, p)
	if err != nil {
		return domain.Approval{}, err
	}
	answer.Expected = r.Revision
	if r, err = e.AnswerRequest(ctx, p, id, answer); err != nil {
		return domain.Approval{}, err
	}
	return domain.NewApproval(r, mask), nil
}

// approvable reads a Request that scripts may see: whether a call whose outcome nobody
// knows goes out again is for a person who looks.
func (e *Engine) approvable(ctx context.Context, p domain.Principal, id domain.RequestID) (domain.Request, error) {
	r, err := e.Request(ctx, p, id)
	if err == nil && r.Unknown != nil {
		err = domain.Errorf(domain.CodeNotFound, "", "")
	}
	if domain.IsCode(err, domain.CodeNotFound) {
		return domain.Request{}, domain.Errorf(domain.CodeNotFound, "ApprovalNotFound", "There is no approval with this ID in your work.")
	}
	return r, err
}

func (e *Engine) redactor(ctx context.Context, p domain.Principal) (*domain.Redactor, error) {
	settings, err := e.Settings(ctx, p)
	return domain.NewRedactor(settings.Redaction), err
}
