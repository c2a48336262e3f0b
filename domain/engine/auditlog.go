package engine

import (
	"context"
	"iter"
	"math"

	"openbot/domain"
	"openbot/domain/evidence"
)

// auditBatch is how many entries are read at a time.
const auditBatch = 500

// AuditLog lists the entries of the caller's organization below a position, newest
// first; 0 begins at the newest.
func (e *Engine) AuditLog(ctx context.Context, p domain.Principal, filter domain.AuditFilter, before int64, limit int) ([]domain.AuditEntry, error) {
	return e.Store.Audit(ctx, p.Organization, filter, before, limit)
}

// ExportAudit gives the entries of the caller's organization, oldest first, a batch at
// a time, until all are sent or send fails.
func (e *Engine) ExportAudit(ctx context.Context, p domain.Principal, filter domain.AuditFilter, send func([]domain.AuditEntry) error) error {
	for after := int64(0); ; {
		entries, err := e.Store.AuditAfter(ctx, p.Organization, filter, after, auditBatch)
		if err != nil {
			return err
		}
		if err := send(entries); err != nil || len(entries) < auditBatch {
			return err
		}
		after = entries[len(entries)-1].Position
	}
}

// AuditHead gives the signed end of the chain of the caller's organization, for
// whoever wants to write it down elsewhere.
func (e *Engine) AuditHead(ctx context.Context, p domain.Principal) (domain.AuditHead, error) {
	head, err := e.Store.AuditHead(ctx, p.Organization)
	if err == nil && head.Count == 0 {
		err = domain.Errorf(domain.CodeNotFound, "", "")
	}
	return head, asNotFound(err, "AuditHeadNotFound", "Nothing is chained yet. Try again in a few seconds.")
}

// CheckAudit checks the audit log of one organization and names the first entry that
// was changed, removed or inserted. pin may be nil.
func (e *Engine) CheckAudit(ctx context.Context, org domain.OrganizationID, pin *evidence.Pin) (evidence.Report, error) {
	head, err := e.headOf(ctx, org)
	if err != nil {
		return evidence.Report{}, err
	}
	entries := inBatches(func(after int64) ([]domain.AuditEntry, error) {
		return e.Store.AuditAfter(ctx, org, domain.AuditFilter{}, after, auditBatch)
	}, func(a domain.AuditEntry) int64 { return a.Position })
	links := inBatches(func(after int64) ([]domain.AuditLink, error) {
		return e.Store.AuditLinks(ctx, org, after, auditBatch)
	}, func(l domain.AuditLink) int64 { return l.Position })
	report, err := evidence.Check(head, entries, links, pin)
	if err != nil || report.Fault != nil || head == nil {
		return report, err
	}
	if report.Beyond {
		now, err := e.headOf(ctx, org)
		if err != nil {
			return report, err
		}
		if now != nil && now.Version == head.Version {
			report.Fault = evidence.HeadSetBack(report.Count)
			return report, nil
		}
	}
	keys, err := e.OwnKeys(ctx)
	if err != nil {
		return report, err
	}
	report.Fault = evidence.CheckHead(*head, keys)
	return report, nil
}

func (e *Engine) headOf(ctx context.Context, org domain.OrganizationID) (*domain.AuditHead, error) {
	head, err := e.Store.AuditHead(ctx, org)
	if domain.IsCode(err, domain.CodeNotFound) {
		return nil, nil
	}
	return &head, err
}

// inBatches gives rows in the order of their positions, reading a batch at a time.
func inBatches[R any](read func(after int64) ([]R, error), position func(R) int64) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		for after := int64(math.MinInt64); ; {
			rows, err := read(after)
			if err != nil {
				yield(*new(R), err)
				return
			}
			for _, r := range rows {
				if !yield(r, nil) {
					return
				}
				after = position(r)
			}
			if len(rows) < auditBatch {
				return
			}
		}
	}
}

// AuditedOrganizations lists every organization that has or should have an audit log.
func (e *Engine) AuditedOrganizations(ctx context.Context) ([]domain.OrganizationID, error) {
	var all []domain.OrganizationID
	for after := domain.OrganizationID(""); ; {
		ids, err := e.Store.Organizations(ctx, after, chainOrganizations)
		if err != nil {
			return nil, err
		}
		all = append(all, ids...)
		if len(ids) < chainOrganizations {
			return all, nil
		}
		after = ids[len(ids)-1]
	}
}
