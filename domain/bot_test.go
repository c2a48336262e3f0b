package domain_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"openbot/domain"
)

func TestOwnerChains(t *testing.T) {
	main := domain.Bot{ID: "bot_main", Kind: domain.BotMain, Member: "mem_1"}
	lasting := func(id, owner domain.BotID) domain.Bot {
		return domain.Bot{ID: id, Kind: domain.BotLasting, Owner: owner}
	}
	archived := func(b domain.Bot) domain.Bot { b.ArchivedAt = ptr(noon); return b }
	for _, c := range []struct {
		name  string
		bot   domain.Bot
		known []domain.Bot
		want  []domain.BotID
	}{
		{"a Main Bot belongs to its Member alone", main, []domain.Bot{main}, []domain.BotID{"bot_main"}},
		{"owned by the Main Bot", lasting("bot_a", "bot_main"), []domain.Bot{main}, []domain.BotID{"bot_main", "bot_a"}},
		{"owned by an owned Bot", lasting("bot_b", "bot_a"), []domain.Bot{main, lasting("bot_a", "bot_main")}, []domain.BotID{"bot_main", "bot_a", "bot_b"}},
		{"a shared Bot works below the Main Bot", domain.Bot{ID: "bot_s", Kind: domain.BotLasting, Shared: true}, []domain.Bot{main}, []domain.BotID{"bot_main", "bot_s"}},
		{"a session Bot belongs to the Bot of its Chat", domain.Bot{ID: "bot_h", Kind: domain.BotSession, Owner: "bot_a", Chat: "chat_1"},
			[]domain.Bot{main, lasting("bot_a", "bot_main")}, []domain.BotID{"bot_main", "bot_a", "bot_h"}},
		{"an archived Bot is left out, what is above it is not", lasting("bot_b", "bot_a"), []domain.Bot{main, archived(lasting("bot_a", "bot_main"))}, []domain.BotID{"bot_main", "bot_b"}},
		{"an archived Main Bot is left out", lasting("bot_a", "bot_main"), []domain.Bot{archived(main)}, []domain.BotID{"bot_a"}},
		{"an owner that there is not ends the chain", lasting("bot_b", "bot_gone"), []domain.Bot{main}, []domain.BotID{"bot_b"}},
		{"a Bot that owns itself", lasting("bot_a", "bot_a"), []domain.Bot{main, lasting("bot_a", "bot_a")}, []domain.BotID{"bot_a"}},
		{"two Bots that own each other", lasting("bot_a", "bot_b"), []domain.Bot{main, lasting("bot_b", "bot_a")}, []domain.BotID{"bot_b", "bot_a"}},
		{"a cycle above the Bot", lasting("bot_c", "bot_a"), []domain.Bot{lasting("bot_a", "bot_b"), lasting("bot_b", "bot_a")}, []domain.BotID{"bot_b", "bot_a", "bot_c"}},
		{"a cycle of archived Bots", lasting("bot_a", "bot_b"), []domain.Bot{archived(lasting("bot_b", "bot_b"))}, []domain.BotID{"bot_a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			known := map[domain.BotID]domain.Bot{}
			for _, b := range c.known {
				known[b.ID] = b
			}
			if got := domain.OwnerChain(c.bot, "bot_main", known); !slices.Equal(got, c.want) {
				t.Errorf("the chain is %v, want %v", got, c.want)
			}
		})
	}
}

// Any graph of owners gives a chain that ends, repeats nobody, leaves out archived
// Bots and ends with the asking Bot.
func TestOwnerChainsAlwaysEnd(t *testing.T) {
	cycles := 0
	rapid.Check(t, func(t *rapid.T) {
		ids := []domain.BotID{"bot_0", "bot_1", "bot_2", "bot_3", "bot_4"}
		known := map[domain.BotID]domain.Bot{}
		for _, id := range ids {
			b := domain.Bot{ID: id, Kind: rapid.SampledFrom([]domain.BotKind{domain.BotLasting, domain.BotLasting, domain.BotSession, domain.BotMain}).Draw(t, "kind"),
				Owner: rapid.SampledFrom(append([]domain.BotID{"", "bot_gone"}, ids...)).Draw(t, "owner")}
			if rapid.Bool().Draw(t, "archived") {
				b.ArchivedAt = ptr(noon)
			}
			if b.Owner == id {
				cycles++
			}
			known[id] = b
		}
		bot := known[rapid.SampledFrom(ids).Draw(t, "asks")]
		chain := domain.OwnerChain(bot, rapid.SampledFrom([]domain.BotID{"", "bot_0", "bot_gone"}).Draw(t, "main"), known)
		if chain[len(chain)-1] != bot.ID {
			t.Fatalf("the chain %v does not end with %s", chain, bot.ID)
		}
		seen := map[domain.BotID]bool{}
		for _, id := range chain {
			if seen[id] {
				t.Fatalf("the chain %v repeats %s", chain, id)
			}
			seen[id] = true
			if id != bot.ID && known[id].ArchivedAt != nil {
				t.Fatalf("the chain %v holds the archived %s", chain, id)
			}
		}
	})
	if cycles == 0 {
		t.Fatal("no cycle was drawn")
	}
}
