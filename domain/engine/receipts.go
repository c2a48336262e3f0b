package engine

import (
	"context"

	"openbot/domain"
)

// attest adds what a commit must leave behind as evidence: the receipt of each
// decision, and the entries of the audit log. It is signed before it is written, so
// that a row that is changed later cannot get a receipt.
func (e *Engine) attest(ctx context.Context, d *draft) error {
	for _, row := range d.commit.Rows {
		r, ok := row.(*domain.Request)
		if !ok || r.Decision == nil || r.Receipt != "" {
			continue
		}
		digest, err := argumentsDigest(r)
		if err != nil {
			return err
		}
		receipt, _ := r.ReceiptFor(digest)
		key, err := e.signer(ctx)
		if err != nil {
			return err
		}
		if r.Receipt, err = key.SignReceipt(receipt); err != nil {
			return domain.Wrap(domain.CodeInternal, "Receipt", "The receipt of this decision could not be signed.", err)
		}
		if d.signed == nil {
			d.signed = map[domain.RequestID]bool{}
		}
		d.signed[r.ID] = true
	}
	d.commit.Audit = d.audit(originFrom(ctx))
	return nil
}

// argumentsDigest is that of the saved call, or made from the arguments where there is
// no call of an App.
func argumentsDigest(r *domain.Request) (string, error) {
	if r.App != nil {
		return r.App.SHA256, nil
	}
	if len(r.Arguments) == 0 {
		return digest([]byte("{}"))
	}
	return digest(r.Arguments)
}

// Receipt gives the signed receipt of a decided Request of the caller's work, as a JWS
// in compact form. It gives not_found while the Request waits, and for one that was
// cancelled: nobody decided it.
func (e *Engine) Receipt(ctx context.Context, p domain.Principal, id domain.RequestID) (string, error) {
	r, err := e.Request(ctx, p, id)
	if err != nil {
		return "", err
	}
	why := ""
	switch {
	case r.Receipt != "":
		return r.Receipt, nil
	case r.Status == domain.RequestPending:
		why = "The Request is not decided yet; its receipt comes with the decision."
	case r.Status == domain.RequestCancelled:
		why = "The Request was cancelled with its work; nobody decided it, so there is no receipt."
	default:
		why = "The Request was decided before this server kept receipts."
	}
	return "", domain.Errorf(domain.CodeNotFound, "ReceiptNotFound", "%s", why)
}
