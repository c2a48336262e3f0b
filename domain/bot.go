package domain

import "time"

// BotKind says where a Bot belongs.
type BotKind string

const (
	// BotMain belongs to its Member; each Member has one.
	BotMain BotKind = "main"
	// BotLasting lives until it is archived, owned by a Bot or shared.
	BotLasting BotKind = "lasting"
	// BotSession is a helper that lives in one Chat.
	BotSession BotKind = "session"
)

// Bot is an agent.
type Bot struct {
	ID           BotID
	Organization OrganizationID
	Kind         BotKind
	Member       MemberID // of a main Bot, and of the Bots below it; "" for shared Bots
	Owner        BotID    // "" for main and shared Bots
	Chat         ChatID   // of a session Bot: the Chat that it lives in
	Shared       bool
	Name         string
	Role         string
	Instructions string
	Model        string // "" means the server's default
	Memory       string
	Taint        Taint // of its name, role and instructions
	MemoryTaint  Taint
	ArchivedAt   *time.Time
	ClosingDueAt *time.Time // set while the Turns of an archived Bot are being stopped
	CreatedAt    time.Time
	UpdatedAt    time.Time
	Version      int64
}

// Bounds of a Bot's texts, in bytes.
const (
	MaxBotName         = 200
	MaxBotRole         = 1000
	MaxBotInstructions = 100_000
	MaxBotMemory       = 100_000
)

// OwnerChain lists the Bots from the top to bot: Main Bot → … → bot. known holds
// the Bots that may stand in it. Archived Bots are left out. A chain that comes
// back to a Bot that it already holds stops there, so that a cycle ends at the
// Member and never hangs. mainBot is that of the Member whom the work is for.
func OwnerChain(bot Bot, mainBot BotID, known map[BotID]Bot) []BotID {
	chain := []BotID{bot.ID}
	seen := map[BotID]bool{bot.ID: true}
	for at := bot; at.Kind != BotMain; {
		next := at.Owner
		if next == "" {
			next = mainBot
		}
		if next == "" || seen[next] {
			break
		}
		seen[next] = true
		above, ok := known[next]
		if !ok {
			break
		}
		if above.ArchivedAt == nil {
			chain = append(chain, above.ID)
		}
		at = above
	}
	for i, j := 0, len(chain)-1; i < j; i, j = i+1, j-1 {
		chain[i], chain[j] = chain[j], chain[i]
	}
	return chain
}

// Deciders lists the Bots of an owner chain that decide for its last one, nearest
// first. The person stands above all of them.
func Deciders(chain []BotID) []BotID {
	var above []BotID
	for i := len(chain) - 2; i >= 0; i-- {
		above = append(above, chain[i])
	}
	return above
}
