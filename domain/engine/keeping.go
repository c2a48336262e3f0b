package engine

import (
	"context"
	"time"

	"openbot/domain"
)

// KeepFor is how long the answer under an Idempotency-Key is kept.
const KeepFor = 24 * time.Hour

// Keeping asks that the answer of a command be kept under a key, in the same
// transaction as what the command does, so that a retry can never do it twice.
type Keeping struct {
	Member      domain.MemberID
	Key         string
	Fingerprint string
	Chat        domain.ChatID // set for a commandKey, which lives as long as the Chat
	Status      int
	// Render gives the body that is kept for what the command returns. It must leave
	// secrets out.
	Render func(result any) ([]byte, error)
}

// KeptError carries the answer that was kept for this key before.
type KeptError struct{ Answer domain.KeptAnswer }

func (*KeptError) Error() string { return "the key was used before" }

type keepingKey struct{}

// WithKeeping makes the next command of this context keep its answer.
func WithKeeping(ctx context.Context, k *Keeping) context.Context {
	return context.WithValue(ctx, keepingKey{}, k)
}

func keepingFrom(ctx context.Context) *Keeping {
	k, _ := ctx.Value(keepingKey{}).(*Keeping)
	return k
}

func (k *Keeping) keep(d *draft) error {
	if k == nil {
		return nil
	}
	body, err := k.Render(d.result)
	if err != nil {
		return domain.Wrap(domain.CodeInternal, "Internal", "The answer could not be written.", err)
	}
	kept := domain.KeptAnswer{Member: k.Member, Key: k.Key, Fingerprint: k.Fingerprint, Status: k.Status,
		Body: body, Chat: k.Chat, CreatedAt: d.at}
	if k.Chat != "" && d.keptIn != "" {
		kept.Chat = d.keptIn
	}
	if k.Chat == "" {
		until := d.at.Add(KeepFor)
		kept.Until = &until
	}
	d.commit.Kept = &kept
	return nil
}

// Kept gives the answer that was kept under a key, as a *KeptError; it gives
// conflict when the key was used for something else, and nil when it is new.
func (e *Engine) Kept(ctx context.Context, k *Keeping) error {
	kept, err := e.Store.KeptAnswer(ctx, k.Member, k.Key)
	if domain.IsCode(err, domain.CodeNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if kept.Until != nil && !domain.Before(e.now(), *kept.Until) {
		_, err := e.Store.ForgetAnswers(ctx, e.now(), 1000)
		return err
	}
	if kept.Fingerprint != k.Fingerprint {
		return domain.Errorf(domain.CodeConflict, "IdempotencyConflict",
			"This key was used before with another body or on another route. Use a new key.")
	}
	return &KeptError{Answer: kept}
}

func (e *Engine) alreadyKept(ctx context.Context, k *Keeping) (error, bool) {
	if k == nil {
		return nil, false
	}
	err := e.Kept(ctx, k)
	return err, err != nil
}

// ForgetAnswers deletes kept answers and previews whose time is up.
func (e *Engine) ForgetAnswers(ctx context.Context) error {
	if _, err := e.Store.ForgetPreviews(ctx, e.now().Add(-keepPreviews), 1000); err != nil {
		return err
	}
	for {
		n, err := e.Store.ForgetAnswers(ctx, e.now(), 1000)
		if err != nil || n < 1000 {
			return err
		}
	}
}
