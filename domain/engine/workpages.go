package engine

import (
	"context"

	"openbot/domain"
)

// WorkChats lists the Chats of the caller from which work was given, those with the
// newest work first: the tops of the trees of work whose task Chats are on one page of
// the caller's Chats. next is the ID after which the page after begins, or "".
func (e *Engine) WorkChats(ctx context.Context, p domain.Principal, page domain.Page) (tops []domain.Chat, next domain.ChatID, err error) {
	chats, err := e.Store.Chats(ctx, p.Member.ID, domain.Page{Limit: page.Limit + 1, Before: page.Before})
	if err != nil {
		return nil, "", err
	}
	if len(chats) > page.Limit {
		chats = chats[:page.Limit]
		next = chats[len(chats)-1].ID
	}
	var tasks []domain.DelegationID
	for _, c := range chats {
		if c.Kind == domain.ChatTask && c.Delegation() != "" {
			tasks = append(tasks, c.Delegation())
		}
	}
	if len(tasks) == 0 {
		return nil, next, nil
	}
	paths, err := e.Store.Works(ctx, tasks)
	if err != nil {
		return nil, "", err
	}
	seen := map[domain.ChatID]bool{}
	for _, path := range paths {
		if len(path) == 0 {
			continue
		}
		id := path[len(path)-1].Parent.Chat
		if seen[id] {
			continue
		}
		seen[id] = true
		chat, err := e.Chat(ctx, p, id)
		if domain.IsCode(err, domain.CodeNotFound) {
			continue // it was deleted, and its work stopped
		}
		if err != nil {
			return nil, "", err
		}
		tops = append(tops, chat)
	}
	return tops, next, nil
}
