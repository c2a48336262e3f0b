package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"openbot/domain"
)

// builtin is a tool of OpenBot itself. One with run does its work inside the
// commit of the step, one with own after a decision in a commit of its own; the
// others go out to an App as a read.
type builtin struct {
	shown     domain.ModelTool
	kind      domain.CallKind
	schema    *jsonschema.Resolved
	hasReason bool
	own       *ownTool // needs a decision, and is carried out in a commit
	writes    bool     // does more than read, and does not run in plan mode
	channel   bool     // is there in a Chat of a Channel alone
	// give does its work in the commit of the step and checks it itself. A plain error is for
	// the model and leaves nothing behind.
	give func(ctx context.Context, e *Engine, d *draft, w *stepWork, call *domain.Call) (domain.Call, error)
	run  func(ctx context.Context, e *Engine, w *stepWork, arguments json.RawMessage) (string, error)
}

// builtins are the tools that every Bot has.
var builtins = sync.OnceValue(func() []builtin {
	remembers := define("openbot_remember", "Replaces your memory, the text that you see in every Chat. Give the whole new text.",
		`{"type":"object","properties":{"memory":{"type":"string","maxLength":100000}},"required":["memory"],"additionalProperties":false}`,
		domain.CallBuiltin, remember)
	remembers.writes = true
	return append(append([]builtin{
		remembers,
		define("openbot_list_bots", "Lists the Bots that you can give work to, with their roles.",
			`{"type":"object","properties":{},"additionalProperties":false}`, domain.CallBuiltin, listBots),
		define("openbot_bot_details", "Reads the role and instructions of one Bot.",
			`{"type":"object","properties":{"bot":{"type":"string"}},"required":["bot"],"additionalProperties":false}`,
			domain.CallBuiltin, botDetails),
		define("openbot_read_app_resource", "Reads a resource of an App.",
			`{"type":"object","properties":{"connection":{"type":"string"},"uri":{"type":"string"}},"required":["connection","uri"],"additionalProperties":false}`,
			domain.CallResource, nil),
		define("openbot_get_app_prompt", "Gets a prompt of an App.",
			`{"type":"object","properties":{"connection":{"type":"string"},"name":{"type":"string"},"arguments":{"type":"object","additionalProperties":{"type":"string"}}},"required":["connection","name"],"additionalProperties":false}`,
			domain.CallPrompt, nil),
		define("openbot_run_code", programDescription,
			`{"type":"object","properties":{"program":{"type":"string","minLength":1,"maxLength":262144}},"required":["program"],"additionalProperties":false}`,
			domain.CallProgram, nil),
	}, append(reminderTools(), ownTools()...)...), append(workTools(), sendTool())...)
})

const programDescription = "Runs a JavaScript program that makes many calls of App tools. The program is the body of an async function: it may await, and what it returns is the result. " +
	"`await app.call(connection, tool, args, reason)` calls a tool by the App's own name for it; connection is the ID or the name of the App's connection, and reason says why in one sentence. It gives the result as a text and throws when the call was denied or failed. " +
	"Each call is checked like any other and may wait; calls that do not need one another can run together with Promise.all. console.log prints. There is no network, no file, no clock and no import."

func define(name, description, schema string, kind domain.CallKind,
	run func(context.Context, *Engine, *stepWork, json.RawMessage) (string, error)) builtin {
	resolved, err := resolveSchema(json.RawMessage(schema))
	if err != nil {
		panic("the schema of " + name + " does not resolve: " + err.Error())
	}
	return builtin{shown: domain.ModelTool{Name: name, Description: description, Schema: json.RawMessage(schema)},
		kind: kind, schema: resolved, run: run}
}

func remember(_ context.Context, _ *Engine, w *stepWork, arguments json.RawMessage) (string, error) {
	var in struct{ Memory string }
	if err := json.Unmarshal(arguments, &in); err != nil {
		return "", err
	}
	if len(in.Memory) > domain.MaxBotMemory {
		return "", fmt.Errorf("the memory has more than %d bytes", domain.MaxBotMemory)
	}
	w.bot.Memory, w.bot.MemoryTaint = in.Memory, w.chat.Taint
	w.botChanged = true
	return "Done: your memory was replaced.", nil
}

func listBots(ctx context.Context, e *Engine, w *stepWork, _ json.RawMessage) (string, error) {
	bots, err := e.Store.Bots(ctx, w.facts.Organization.ID, w.facts.Turn.Member, domain.Page{Limit: 200})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, bot := range bots {
		if bot.ArchivedAt == nil && (bot.Kind == domain.BotLasting || bot.Kind == domain.BotSession && bot.Chat == w.chat.ID) {
			fmt.Fprintf(&b, "%s %q: %s\n", bot.ID, bot.Name, bot.Role)
			w.chat.TakeIn(bot.Taint)
		}
	}
	if b.Len() == 0 {
		return "There is no other Bot.", nil
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

func botDetails(ctx context.Context, e *Engine, w *stepWork, arguments json.RawMessage) (string, error) {
	var in struct{ Bot domain.BotID }
	if err := json.Unmarshal(arguments, &in); err != nil {
		return "", err
	}
	bot, err := e.visibleBot(ctx, w.facts.Organization.ID, w.facts.Turn.Member, in.Bot)
	if domain.IsCode(err, domain.CodeNotFound) {
		return "", fmt.Errorf("there is no Bot %q", in.Bot)
	}
	if err != nil {
		return "", err
	}
	w.chat.TakeIn(bot.Taint)
	text, err := json.Marshal(map[string]string{"bot": string(bot.ID), "name": bot.Name, "role": bot.Role, "instructions": bot.Instructions})
	return string(text), err
}
