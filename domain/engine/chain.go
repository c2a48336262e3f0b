package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"openbot/domain"
	"openbot/domain/evidence"
)

const (
	// chainBatch is how many entries one commit chains.
	chainBatch = 500
	// chainOrganizations is how many organizations are looked up at a time.
	chainOrganizations = 200
)

// ChainAudit chains what was written to the audit logs since the last time, for every
// organization. Any number of processes may do it at once: the version of the head
// lets one of them extend a chain, and what one that dies has not committed is taken
// up by the next. An organization whose chain cannot go on holds up no other.
func (e *Engine) ChainAudit(ctx context.Context) error {
	var failures []error
	for after := domain.OrganizationID(""); ; {
		ids, err := e.Store.Unchained(ctx, after, chainOrganizations)
		if err != nil {
			return errors.Join(append(failures, err)...)
		}
		for _, id := range ids {
			err := e.chainOne(ctx, id)
			if domain.IsCode(err, domain.CodeUnavailable) {
				return err
			}
			if err != nil {
				failures = append(failures, fmt.Errorf("the audit log of %s cannot go on, run openbot audit verify: %w", id, err))
			}
			after = id
		}
		if len(ids) < chainOrganizations {
			return errors.Join(failures...)
		}
	}
}

func (e *Engine) chainOne(ctx context.Context, org domain.OrganizationID) error {
	for more := true; more; {
		err := e.decide(ctx, "audit log of "+string(org), func(d *draft) error {
			more = false
			head, err := e.Store.AuditHead(ctx, org)
			if err != nil && !domain.IsCode(err, domain.CodeNotFound) {
				return err
			}
			head.ID = org
			entries, err := e.Store.AuditAfter(ctx, org, domain.AuditFilter{}, head.Position, chainBatch)
			if err != nil || len(entries) == 0 {
				return err
			}
			next, links, err := evidence.Chain(head, entries)
			if err != nil {
				return err
			}
			next.LinkedAt = d.at.Truncate(time.Millisecond)
			key, err := e.signer(ctx)
			if err != nil {
				return err
			}
			if next.Signed, err = key.SignHead(next.Claims()); err != nil {
				return err
			}
			d.put(&next)
			d.commit.Links = links
			more = len(entries) == chainBatch
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
