package repository

import (
	"context"
	"slices"

	"gorm.io/gorm"

	"openbot/domain"
)

// Chat gives one Chat, deleted or not.
func (s *Store) Chat(ctx context.Context, id domain.ChatID) (domain.Chat, error) {
	return one(ctx, s, "Chat", chatRow.domain, byID(id))
}

// Chats lists a Member's Chats that are neither deleted nor archived.
func (s *Store) Chats(ctx context.Context, member domain.MemberID, page domain.Page) ([]domain.Chat, error) {
	return list(ctx, s, "list Chats", chatRow.domain, func(db *gorm.DB) *gorm.DB {
		return paged(db.Where("member_id = ? AND deleted_at IS NULL AND archived_at IS NULL", member), page)
	})
}

// Items gives the history after a sequence, in order.
func (s *Store) Items(ctx context.Context, chat domain.ChatID, after int64, limit int) ([]domain.Item, error) {
	return list(ctx, s, "read the history of a Chat", itemRow.domain, func(db *gorm.DB) *gorm.DB {
		return db.Where("chat_id = ? AND sequence > ?", chat, after).Order("sequence").Limit(atLeastOne(limit))
	})
}

// ItemCalls gives the calls that items speak of.
func (s *Store) ItemCalls(ctx context.Context, items []domain.Item) (map[domain.CallID]domain.Call, error) {
	var ids []domain.CallID
	for _, item := range items {
		if item.Call != "" {
			ids = append(ids, item.Call)
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	found := make(map[domain.CallID]domain.Call, len(ids))
	for chunk := range slices.Chunk(ids, maxIDs) {
		calls, err := list(ctx, s, "read calls", callRow.domain, func(db *gorm.DB) *gorm.DB {
			return db.Where("id IN ?", chunk)
		})
		if err != nil {
			return nil, err
		}
		for _, call := range calls {
			found[call.ID] = call
		}
	}
	return found, nil
}

// maxIDs bounds the IDs of one statement; a page is far below it.
const maxIDs = 10_000

// Turn gives one Turn.
func (s *Store) Turn(ctx context.Context, id domain.TurnID) (domain.Turn, error) {
	return one(ctx, s, "Turn", turnRow.domain, byID(id))
}

// Turns lists the Turns of a Chat, newest first.
func (s *Store) Turns(ctx context.Context, chat domain.ChatID, page domain.Page) ([]domain.Turn, error) {
	return list(ctx, s, "list Turns", turnRow.domain, func(db *gorm.DB) *gorm.DB {
		return paged(db.Where("chat_id = ?", chat), page)
	})
}

// TurnCalls gives the calls of these Turns, by turn, step and position.
func (s *Store) TurnCalls(ctx context.Context, turns ...domain.TurnID) ([]domain.Call, error) {
	if len(turns) == 0 {
		return nil, nil
	}
	return list(ctx, s, "read the calls of Turns", callRow.domain, func(db *gorm.DB) *gorm.DB {
		return db.Where("turn_id IN ? AND step >= 0", turns).Order(`turn_id, step, "position"`)
	})
}

// Inbox gives what waits in a Chat's inbox, in order.
func (s *Store) Inbox(ctx context.Context, chat domain.ChatID) ([]domain.Input, error) {
	return list(ctx, s, "read an inbox", inputRow.domain, func(db *gorm.DB) *gorm.DB {
		return db.Where("chat_id = ?", chat).Order("sequence")
	})
}

// OpenTurns gives the Chats in which a Bot has a Turn under way.
func (s *Store) OpenTurns(ctx context.Context, bot domain.BotID, limit int) ([]domain.ChatID, error) {
	var ids []domain.ChatID
	err := s.read(ctx).Model(&turnRow{}).Where("bot_id = ? AND status IN ('Queued', 'Running', 'Waiting')", bot).
		Order("id").Limit(atLeastOne(limit)).Pluck("chat_id", &ids).Error
	return ids, s.wrap(ctx, "list open Turns", err)
}
