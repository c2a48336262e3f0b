package repositorytest

import (
	"cmp"
	"context"
	"reflect"

	"openbot/domain"
	"openbot/domain/engine"
)

// kind is one kind of row, seen without its type.
type kind struct {
	name string
	// fresh makes a row with every field filled, ready to be inserted.
	fresh func(w *world, seed int) domain.Row
	// changed makes the row as a later commit would write it: all that may change is
	// other than before, all that may not is the same.
	changed func(before domain.Row, seed int) domain.Row
	// read gives the row as the store has it; nil where the port has no such read.
	read func(ctx context.Context, store engine.Store, id string) (domain.Row, error)
}

func kindOf[D any, P interface {
	*D
	domain.Row
}](name, prefix string, read func(ctx context.Context, store engine.Store, id string) (D, error),
	adjust func(w *world, row *D), fixed ...string) kind {
	set := func(row P, field string, value any) {
		f := reflect.ValueOf(row).Elem().FieldByName(field)
		f.Set(reflect.ValueOf(value).Convert(f.Type()))
	}
	k := kind{
		name: name,
		fresh: func(w *world, seed int) domain.Row {
			row := P(new(D))
			fill(row, seed)
			set(row, "ID", newID[string](prefix))
			set(row, "Version", int64(0))
			if adjust != nil {
				adjust(w, (*D)(row))
			}
			return row
		},
		changed: func(before domain.Row, seed int) domain.Row {
			row := P(new(D))
			fill(row, seed)
			old := reflect.ValueOf(before).Elem()
			for _, field := range append([]string{"ID", "Version"}, fixed...) {
				reflect.ValueOf(row).Elem().FieldByName(field).Set(old.FieldByName(field))
			}
			return row
		},
	}
	if read != nil {
		k.read = func(ctx context.Context, store engine.Store, id string) (domain.Row, error) {
			row, err := read(ctx, store, id)
			return P(&row), err
		}
	}
	return k
}

// partly lets a field that is written once hold a part that may change.
func partly[P domain.Row](k kind, keep func(before, row P)) kind {
	changed := k.changed
	k.changed = func(before domain.Row, seed int) domain.Row {
		row := changed(before, seed)
		keep(before.(P), row.(P))
		return row
	}
	return k
}

// kinds lists every kind of row, with the fields that are written once.
var kinds = []kind{
	kindOf("organization", domain.PrefixOrganization, func(ctx context.Context, s engine.Store, id string) (domain.Organization, error) {
		return s.Organization(ctx, domain.OrganizationID(id))
	}, nil, "CreatedAt"),
	kindOf("member", domain.PrefixMember, func(ctx context.Context, s engine.Store, id string) (domain.Member, error) {
		return s.Member(ctx, domain.MemberID(id))
	}, func(w *world, m *domain.Member) { m.Organization = w.org.ID }, "Organization", "CreatedAt"),
	kindOf("token", domain.PrefixToken, func(ctx context.Context, s engine.Store, id string) (domain.Token, error) {
		return s.Token(ctx, domain.TokenID(id))
	}, func(w *world, t *domain.Token) { t.Organization, t.Member = w.org.ID, w.member.ID },
		"Organization", "Member", "Hash", "LastUsedAt", "CreatedAt"),
	kindOf("bot", domain.PrefixBot, func(ctx context.Context, s engine.Store, id string) (domain.Bot, error) {
		return s.Bot(ctx, domain.BotID(id))
	}, nil, "Organization", "CreatedAt"),
	kindOf("connection", domain.PrefixConnection, func(ctx context.Context, s engine.Store, id string) (domain.Connection, error) {
		return s.Connection(ctx, domain.ConnectionID(id))
	}, nil, "Organization", "Member", "CreatedAt"),
	kindOf("host tool", domain.PrefixHostTool, func(ctx context.Context, s engine.Store, id string) (domain.HostTool, error) {
		return s.HostTool(ctx, domain.HostToolID(id))
	}, nil, "Organization", "CreatedAt"),
	partly(kindOf("chat", domain.PrefixChat, func(ctx context.Context, s engine.Store, id string) (domain.Chat, error) {
		return s.Chat(ctx, domain.ChatID(id))
	}, nil, "Organization", "Member", "Bot", "Kind", "Request", "Channel", "Outside", "CreatedAt"), func(before, row *domain.Chat) {
		row.Parent.Chat = before.Parent.Chat // its Delegation is that of the newest round
	}),
	kindOf("turn", domain.PrefixTurn, func(ctx context.Context, s engine.Store, id string) (domain.Turn, error) {
		return s.Turn(ctx, domain.TurnID(id))
	}, nil, "Organization", "Chat", "Bot", "Member", "Author", "CreatedAt"),
	kindOf("call", domain.PrefixCall, func(ctx context.Context, s engine.Store, id string) (domain.Call, error) {
		found, err := s.ItemCalls(ctx, []domain.Item{{Call: domain.CallID(id)}})
		call, ok := found[domain.CallID(id)]
		if err == nil && !ok {
			err = domain.Errorf(domain.CodeNotFound, "CallNotFound", "There is no such Call.")
		}
		return call, err
	}, nil, "Organization", "Member", "Chat", "Turn", "Step", "Position", "Parent", "Code", "ModelID", "Name", "Kind", "Capability", "Connection",
		"Revision", "Tool", "Arguments", "Digest", "Reason", "Delegation", "CreatedAt"),
	kindOf("request", domain.PrefixRequest, func(ctx context.Context, s engine.Store, id string) (domain.Request, error) {
		return s.Request(ctx, domain.RequestID(id))
	}, nil, "Organization", "Member", "Bot", "Capability", "Reason", "Chain", "Chat", "Turn", "Call", "Asked", "Delegation", "Limit", "Arguments",
		"App", "Code", "Plan", "OnExpire", "Unknown", "Tags", "TagLine", "Taint", "TaintedTag", "Resource", "Escalation", "CreatedAt"),
	kindOf("grant", domain.PrefixGrant, func(ctx context.Context, s engine.Store, id string) (domain.Grant, error) {
		return s.Grant(ctx, domain.GrantID(id))
	}, nil, "Organization", "Member", "Bot", "Capability", "Limit", "Decision", "Scope", "Chat", "Revision", "Source", "Request", "Parent",
		"Shown", "ShownIn", "CreatedAt"),
	kindOf("rule", domain.PrefixRule, func(ctx context.Context, s engine.Store, id string) (domain.Rule, error) {
		return s.Rule(ctx, domain.RuleID(id))
	}, nil, "Organization", "Member", "Bot", "Source", "Keeper", "Request", "CreatedAt"),
	kindOf("preview", domain.PrefixPreview, func(ctx context.Context, s engine.Store, id string) (domain.Preview, error) {
		return s.Preview(ctx, domain.PreviewID(id))
	}, nil, "Organization", "Member", "Bot", "Text", "Effect", "Number", "CreatedAt"),
	kindOf("reminder", domain.PrefixReminder, func(ctx context.Context, s engine.Store, id string) (domain.Reminder, error) {
		return s.Reminder(ctx, domain.ReminderID(id))
	}, nil, "Organization", "Member", "Chat", "Bot", "Text", "Authority", "DueAt", "CreatedAt"),
	// What it cost is counted by Commit.Cost alone.
	kindOf("delegation", domain.PrefixDelegation, func(ctx context.Context, s engine.Store, id string) (domain.Delegation, error) {
		return s.Delegation(ctx, domain.DelegationID(id))
	}, nil, "Organization", "Member", "Execution", "Above", "Parent", "Trigger", "Giver", "Bot", "Chat", "Task", "Reason", "Limits", "CostNanos",
		"FirstEvent", "CreatedAt"),
	kindOf("trigger", domain.PrefixTrigger, func(ctx context.Context, s engine.Store, id string) (domain.Trigger, error) {
		return s.Trigger(ctx, domain.TriggerID(id))
	}, nil, "Organization", "Member", "Kind", "CreatedAt"),
	kindOf("signing key", domain.PrefixSigningKey, func(ctx context.Context, s engine.Store, id string) (domain.SigningKey, error) {
		keys, err := s.SigningKeys(ctx)
		for _, k := range keys {
			if string(k.ID) == id {
				return k, err
			}
		}
		return domain.SigningKey{}, cmp.Or[error](err, domain.Errorf(domain.CodeNotFound, "KeyNotFound", "There is no such key."))
	}, func(_ *world, k *domain.SigningKey) { k.Number = counter.Add(1) }, "Number", "Public", "Sealed", "ActiveAt", "CreatedAt"),
	kindOf("audit head", domain.PrefixOrganization, func(ctx context.Context, s engine.Store, id string) (domain.AuditHead, error) {
		return s.AuditHead(ctx, domain.OrganizationID(id))
	}, nil),
	kindOf("webhook", domain.PrefixWebhook, func(ctx context.Context, s engine.Store, id string) (domain.Webhook, error) {
		return s.Webhook(ctx, domain.WebhookID(id))
	}, nil, "Organization", "Member", "Format", "CreatedAt"),
	kindOf("delivery", domain.PrefixDelivery, func(ctx context.Context, s engine.Store, id string) (domain.Delivery, error) {
		return s.Delivery(ctx, domain.DeliveryID(id))
	}, nil, "Organization", "Webhook", "Channel", "Member", "Event", "Payload", "CreatedAt"),
	kindOf("channel", domain.PrefixChannel, func(ctx context.Context, s engine.Store, id string) (domain.Channel, error) {
		return s.Channel(ctx, domain.ChannelID(id))
	}, nil, "Organization", "Member", "CreatedAt"),
}

func versionOf(row domain.Row) int64 { return reflect.ValueOf(row).Elem().FieldByName("Version").Int() }

func setVersion(row domain.Row, version int64) {
	reflect.ValueOf(row).Elem().FieldByName("Version").SetInt(version)
}

// copyOf gives a copy of a row that shares nothing that a commit changes.
func copyOf(row domain.Row) domain.Row {
	c := reflect.New(reflect.TypeOf(row).Elem())
	c.Elem().Set(reflect.ValueOf(row).Elem())
	return c.Interface().(domain.Row)
}

// withIdentity gives row the ID and version of another.
func withIdentity(row, other domain.Row) domain.Row {
	for _, field := range []string{"ID", "Version"} {
		reflect.ValueOf(row).Elem().FieldByName(field).Set(reflect.ValueOf(other).Elem().FieldByName(field))
	}
	return row
}
