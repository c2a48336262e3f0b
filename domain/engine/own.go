package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"openbot/domain"
)

// ownTool is a tool of OpenBot that needs a decision. Once allowed it is carried out
// in a commit, and nothing goes out.
type ownTool struct {
	// names says which capability the call asks for; an error is for the model and
	// nothing is created.
	names func(ctx context.Context, e *Engine, w *stepWork, arguments json.RawMessage) (domain.Capability, error)
	// carry does it: it changes the draft and gives what the model reads. A plain error
	// is for the model: the call fails and nothing else changes.
	carry func(ctx context.Context, e *Engine, d *draft, f *domain.CallFacts) (string, error)
}

const newBotSchema = `{"type":"object","properties":{"name":{"type":"string","minLength":1,"maxLength":200},"role":{"type":"string","maxLength":1000},` +
	`"instructions":{"type":"string","maxLength":100000},"model":{"type":"string","maxLength":200},"reason":{"type":"string","minLength":1,"maxLength":4000}},` +
	`"required":["name","role","instructions","reason"],"additionalProperties":false}`

// ownTools are the tools of OpenBot that wait for a decision.
func ownTools() []builtin {
	own := func(name, description, schema string, tool ownTool) builtin {
		b := define(name, description, schema, domain.CallOwn, nil)
		b.own = &tool
		return b
	}
	return []builtin{
		own("openbot_spawn", "Starts a helper: a Bot that lives in this Chat and belongs to you. Give a reason; somebody may have to agree.", newBotSchema,
			ownTool{names: namesNewBot(domain.ActionBotsSpawn), carry: carryNewBot(domain.BotSession)}),
		own("openbot_create_bot", "Makes a lasting Bot that belongs to you. Give a reason; somebody may have to agree.", newBotSchema,
			ownTool{names: namesNewBot(domain.ActionBotsCreate), carry: carryNewBot(domain.BotLasting)}),
		own("openbot_promote_bot", "Makes a helper of this Chat a lasting Bot that belongs to you. Give a reason; somebody may have to agree.",
			`{"type":"object","properties":{"bot":{"type":"string"},"reason":{"type":"string","minLength":1,"maxLength":4000}},"required":["bot","reason"],"additionalProperties":false}`,
			ownTool{names: namesPromoted, carry: carryPromoted}),
		own("openbot_plan", "Hands in your plan, when this Chat is in plan mode. Nothing but reads runs before it is allowed.",
			`{"type":"object","properties":{"plan":{"type":"string","minLength":1,"maxLength":100000},"reason":{"type":"string","maxLength":4000}},"required":["plan"],"additionalProperties":false}`,
			ownTool{names: namesPlan, carry: carryPlan}),
	}
}

// ownByName finds the tools that are carried out in a commit.
var ownByName = sync.OnceValue(func() map[string]*ownTool {
	found := map[string]*ownTool{}
	for _, b := range builtins() {
		if b.own != nil {
			found[b.shown.Name] = b.own
		}
	}
	return found
})

// decideTool is the one tool of a review Chat.
func decideTool() builtin {
	return define("openbot_decide", "Decides the Request of this review. allow: it may run; deny: it may not. Anything you may not do yourself goes on with your support to the decider above.",
		`{"type":"object","properties":{"decision":{"type":"string","enum":["allow","deny"]},"scope":{"type":"string","enum":["once","chat","lifetime","session"]},`+
			`"reason":{"type":"string","maxLength":4000},"rule":{"type":"string","minLength":1,"maxLength":4000}},"required":["decision"],"additionalProperties":false}`,
		domain.CallDecide, nil)
}

// newBot is the arguments of the tools that make a Bot.
type newBot struct{ Name, Role, Instructions, Model string }

// bot checks the arguments against the bounds of every Bot.
func (in newBot) bot(e *Engine, kind domain.BotKind) (domain.Bot, error) {
	b := domain.Bot{ID: newID[domain.BotID](domain.PrefixBot), Kind: kind}
	fields := BotFields{Name: &in.Name, Role: &in.Role, Instructions: &in.Instructions}
	if in.Model != "" {
		fields.Model = &in.Model
	}
	if err := e.setBot(&b, fields); err != nil {
		return b, fmt.Errorf("%s", messageOf(err))
	}
	return b, nil
}

func namesNewBot(action string) func(context.Context, *Engine, *stepWork, json.RawMessage) (domain.Capability, error) {
	return func(_ context.Context, e *Engine, _ *stepWork, arguments json.RawMessage) (domain.Capability, error) {
		var in newBot
		if err := json.Unmarshal(arguments, &in); err != nil {
			return domain.Capability{}, err
		}
		_, err := in.bot(e, domain.BotLasting)
		return domain.Capability{Action: action, Target: "*"}, err
	}
}

func carryNewBot(kind domain.BotKind) func(context.Context, *Engine, *draft, *domain.CallFacts) (string, error) {
	return func(_ context.Context, e *Engine, d *draft, f *domain.CallFacts) (string, error) {
		var in newBot
		if err := json.Unmarshal(f.Call.Arguments, &in); err != nil {
			return "", err
		}
		b, err := in.bot(e, kind)
		if err != nil {
			return "", err
		}
		b.Organization, b.Member, b.Owner, b.CreatedAt, b.UpdatedAt = f.Chat.Organization, f.Turn.Member, f.Turn.Bot, d.at, d.at
		b.Taint = f.Chat.Taint // the Bot wrote its name, role and instructions
		if kind == domain.BotSession {
			b.Chat, b.Owner = f.Chat.ID, f.Chat.Bot
			d.put(&b)
			return domain.TextSpawned(b.ID, b.Name), nil
		}
		d.put(&b)
		return domain.TextCreated(b.ID, b.Name), nil
	}
}

func namesPromoted(ctx context.Context, e *Engine, w *stepWork, arguments json.RawMessage) (domain.Capability, error) {
	var in struct{ Bot domain.BotID }
	if err := json.Unmarshal(arguments, &in); err != nil {
		return domain.Capability{}, err
	}
	_, err := e.helper(ctx, w.chat.ID, in.Bot)
	return domain.Capability{Action: domain.ActionBotsPromote, Target: string(in.Bot)}, err
}

// helper reads a session Bot of a Chat that is not archived. A plain error says that
// there is none.
func (e *Engine) helper(ctx context.Context, chat domain.ChatID, id domain.BotID) (domain.Bot, error) {
	if !domain.ValidID(string(id), domain.PrefixBot) {
		return domain.Bot{}, fmt.Errorf("bot must be the ID of a helper in this Chat")
	}
	b, err := e.Store.Bot(ctx, id)
	if err != nil && !domain.IsCode(err, domain.CodeNotFound) {
		return b, err
	}
	if err != nil || b.Kind != domain.BotSession || b.Chat != chat || b.ArchivedAt != nil {
		return b, fmt.Errorf("there is no helper %s in this Chat", id)
	}
	return b, nil
}

func carryPromoted(ctx context.Context, e *Engine, d *draft, f *domain.CallFacts) (string, error) {
	b, err := e.helper(ctx, f.Chat.ID, domain.BotID(f.Call.Capability.Target))
	if err != nil {
		return "", err
	}
	b.Kind, b.Owner, b.Chat, b.UpdatedAt = domain.BotLasting, f.Turn.Bot, "", d.at
	d.put(&b)
	return domain.TextPromoted(b.ID, b.Name), nil
}

func namesPlan(_ context.Context, _ *Engine, w *stepWork, _ json.RawMessage) (domain.Capability, error) {
	if w.chat.Mode != domain.ModePlan {
		return domain.Capability{}, errNoPlanMode
	}
	return domain.Capability{Action: domain.ActionPlansRun, Target: string(w.chat.ID)}, nil
}

func carryPlan(_ context.Context, _ *Engine, _ *draft, f *domain.CallFacts) (string, error) {
	f.Chat.Mode = "" // written with the call: its Chat is in the same draft
	return domain.TextPlanAllowed(), nil
}
