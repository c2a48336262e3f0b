package engine

import (
	"context"

	"github.com/google/uuid"

	"openbot/domain"
)

// newRound is work that a person starts in the task Chat of ended work.
type newRound struct {
	work domain.Delegation
	path []domain.Delegation // open work that it stands below, nearest first
	chat *domain.Chat
}

// roundFor says what a person's message to a task Chat starts: a new round when its work
// has ended, nil when the work takes the message as it is.
func (e *Engine) roundFor(ctx context.Context, chat *domain.Chat, text string, authority []domain.Authority) (*newRound, error) {
	path, err := e.Store.Work(ctx, chat.Delegation())
	if err != nil {
		return nil, err
	}
	if len(path) == 0 {
		return nil, domain.Errorf(domain.CodeInternal, "DelegationMissing", "The work of this Chat is not there.")
	}
	g := path[0]
	switch {
	case g.Status == domain.DelegationAuthorizing:
		return nil, domain.Errorf(domain.CodeConflict, "DelegationConflict", "The work waits for a decision whether it may start. Decide that first.")
	case domain.HeldBy(path).Stopping != "":
		return nil, domain.Errorf(domain.CodeConflict, "DelegationConflict", "The work is being stopped. Try again when it has ended.")
	case g.Open():
		return nil, nil
	}
	task := safeText(cut(text, domain.MaxTask))
	round := &newRound{chat: chat, work: domain.Delegation{ID: newID[domain.DelegationID](domain.PrefixDelegation), Organization: g.Organization,
		Member: g.Member, Execution: domain.ExecutionID(uuid.Must(uuid.NewV7()).String()), Above: domain.RoundAbove(path),
		Parent: domain.WorkParent{Chat: g.Parent.Chat}, Giver: g.Giver, Bot: g.Bot, Chat: chat.ID, Status: domain.DelegationAuthorizing,
		Task: task, Limits: g.Limits, Authority: domain.AddAuthority(g.Authority, authority...), FirstEvent: chat.LastEvent}}
	if round.work.Above != "" {
		if round.path, err = e.Store.Work(ctx, round.work.Above); err != nil {
			return nil, err
		}
	}
	return round, nil
}

// begin starts the round in the draft's Chat.
func (r *newRound) begin(d *draft) error {
	r.work.CreatedAt, r.work.UpdatedAt = d.at, d.at
	next, err := domain.DecideDelegation(r.work, domain.Begun{At: d.at, Path: append([]domain.Delegation{r.work}, r.path...)})
	if err != nil {
		return err
	}
	r.work = next
	r.chat.Parent = &domain.ChatParent{Chat: r.work.Parent.Chat, Delegation: r.work.ID}
	if len(r.path) > 0 {
		d.put(&r.path[0]) // written, though unchanged: an end of it at the same time conflicts with it
	}
	d.guard(r.path)
	d.work(&r.work, nil)
	return nil
}

// stopOwnWork stops the work of a task Chat that is being deleted.
func (e *Engine) stopOwnWork(ctx context.Context, d *draft, chat *domain.Chat) error {
	if chat.Delegation() == "" {
		return nil
	}
	g, err := e.Store.Delegation(ctx, chat.Delegation())
	if err != nil || !g.Open() || g.Stopping() {
		return gone(err)
	}
	next, err := domain.DecideDelegation(g, domain.WorkStopping{At: d.at, Why: "Its Chat was deleted."})
	if err != nil {
		return err
	}
	d.work(&next, nil)
	return nil
}
