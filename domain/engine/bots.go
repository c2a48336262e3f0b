package engine

import (
	"context"

	"openbot/domain"
)

// BotFields is what a person sets of a Bot; nil leaves a field as it is.
type BotFields struct {
	Name         *string
	Role         *string
	Instructions *string
	Model        *string
	Memory       *string
	Owner        *domain.BotID
	Shared       *bool
}

// visibleBot reads a Bot that a Member works with: its own or a shared one.
func (e *Engine) visibleBot(ctx context.Context, org domain.OrganizationID, member domain.MemberID, id domain.BotID) (domain.Bot, error) {
	notFound := domain.Errorf(domain.CodeNotFound, "BotNotFound", "There is no Bot with this ID.")
	bot, err := e.Store.Bot(ctx, id)
	if domain.IsCode(err, domain.CodeNotFound) {
		return bot, notFound
	}
	if err != nil {
		return bot, err
	}
	if bot.Organization != org || !bot.Shared && bot.Member != member {
		return domain.Bot{}, notFound
	}
	return bot, nil
}

// Bot reads a Bot that the caller works with.
func (e *Engine) Bot(ctx context.Context, p domain.Principal, id domain.BotID) (domain.Bot, error) {
	return e.visibleBot(ctx, p.Organization, p.Member.ID, id)
}

// Bots lists those that the caller works with.
func (e *Engine) Bots(ctx context.Context, p domain.Principal, page domain.Page) ([]domain.Bot, error) {
	return e.Store.Bots(ctx, p.Organization, p.Member.ID, page)
}

// CreateBot makes a lasting Bot: shared by the organization (admins), owned by a
// Bot of the caller, or, with neither, owned by the caller's Main Bot.
func (e *Engine) CreateBot(ctx context.Context, p domain.Principal, in BotFields) (domain.Bot, error) {
	var bot domain.Bot
	err := e.decide(ctx, string(p.Member.ID), func(d *draft) error {
		bot = domain.Bot{ID: newID[domain.BotID](domain.PrefixBot), Organization: p.Organization, Kind: domain.BotLasting,
			Member: p.Member.ID, CreatedAt: d.at, UpdatedAt: d.at}
		switch {
		case in.Shared != nil && *in.Shared:
			if in.Owner != nil {
				return invalid("owner", "cannot stand beside shared")
			}
			if !p.HasRole(domain.RoleAdmin) {
				return domain.Errorf(domain.CodeForbidden, "Forbidden", "Only an admin may make a shared Bot.")
			}
			bot.Shared, bot.Member = true, ""
		case in.Owner != nil:
			owner, err := e.visibleBot(ctx, p.Organization, p.Member.ID, *in.Owner)
			if err != nil || owner.ArchivedAt != nil || owner.Shared {
				return invalid("owner", "must be a Bot of yours that is not archived")
			}
			bot.Owner = owner.ID
		default:
			bot.Owner = p.Member.MainBot
		}
		if err := e.setBot(&bot, in); err != nil {
			return err
		}
		d.put(&bot)
		d.result = bot
		return nil
	})
	return bot, err
}

// ChangeBot sets fields of a Bot. A shared Bot is changed by admins. What a person writes
// is no content from outside: a new memory, and a new name, role and instructions
// together, bring no taint any more. Chats that took the old ones in stay tainted.
func (e *Engine) ChangeBot(ctx context.Context, p domain.Principal, id domain.BotID, in BotFields) (domain.Bot, error) {
	var bot domain.Bot
	err := e.decide(ctx, string(id), func(d *draft) error {
		var err error
		if bot, err = e.changeableBot(ctx, p, id); err != nil {
			return err
		}
		if err := e.setBot(&bot, in); err != nil {
			return err
		}
		if in.Name != nil && in.Role != nil && in.Instructions != nil {
			bot.Taint = nil
		}
		if in.Memory != nil {
			bot.MemoryTaint = nil
		}
		bot.UpdatedAt = d.at
		d.put(&bot)
		return nil
	})
	return bot, err
}

// ArchiveBot takes a Bot out of use and interrupts its Turns. A Main Bot stays as long as its Member.
func (e *Engine) ArchiveBot(ctx context.Context, p domain.Principal, id domain.BotID) error {
	return e.decide(ctx, string(id), func(d *draft) error {
		bot, err := e.changeableBot(ctx, p, id)
		if err != nil {
			return err
		}
		if bot.Kind == domain.BotMain {
			return domain.Errorf(domain.CodeConflict, "BotConflict", "A Main Bot cannot be archived.")
		}
		at := d.at
		due := at.Add(domain.RunnableGrace)
		bot.ArchivedAt, bot.UpdatedAt, bot.ClosingDueAt = &at, at, &due
		d.put(&bot)
		return nil
	})
}

// archiveHelpers takes the helpers of a Chat out of use with it.
func (e *Engine) archiveHelpers(ctx context.Context, d *draft, chat domain.ChatID) error {
	helpers, err := e.Store.Helpers(ctx, chat)
	if err != nil {
		return err
	}
	for i := range helpers {
		at, due := d.at, d.at.Add(domain.RunnableGrace)
		helpers[i].ArchivedAt, helpers[i].UpdatedAt, helpers[i].ClosingDueAt = &at, at, &due
		d.put(&helpers[i])
	}
	return nil
}

func (e *Engine) changeableBot(ctx context.Context, p domain.Principal, id domain.BotID) (domain.Bot, error) {
	bot, err := e.visibleBot(ctx, p.Organization, p.Member.ID, id)
	if err != nil {
		return bot, err
	}
	if bot.Shared && !p.HasRole(domain.RoleAdmin) {
		return bot, domain.Errorf(domain.CodeForbidden, "Forbidden", "Only an admin may change a shared Bot.")
	}
	if bot.ArchivedAt != nil {
		return bot, domain.Errorf(domain.CodeConflict, "BotConflict", "The Bot is archived.")
	}
	return bot, nil
}

func (e *Engine) setBot(b *domain.Bot, in BotFields) error {
	for _, f := range []struct {
		path  string
		value *string
		into  *string
		least int
		most  int
	}{
		{"name", in.Name, &b.Name, 1, domain.MaxBotName},
		{"role", in.Role, &b.Role, 0, domain.MaxBotRole},
		{"instructions", in.Instructions, &b.Instructions, 0, domain.MaxBotInstructions},
		{"memory", in.Memory, &b.Memory, 0, domain.MaxBotMemory},
	} {
		if f.value == nil {
			continue
		}
		if len(*f.value) < f.least || len(*f.value) > f.most {
			return invalidf(f.path, "must have %d to %d bytes", f.least, f.most)
		}
		*f.into = safeText(*f.value)
	}
	if in.Model != nil {
		if *in.Model != "" && e.CheckModel != nil {
			if err := e.CheckModel(*in.Model); err != nil {
				return invalid("model", err.Error())
			}
		}
		b.Model = *in.Model
	}
	return nil
}
