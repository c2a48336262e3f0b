package api

import (
	"cmp"
	"slices"
	"strings"

	"openbot/domain"
	"openbot/web"
)

// What pages say about Requests, in words.

// verbs says what a Bot that asks for an action wants to do.
var verbs = map[string]string{
	domain.ActionAppsCall:            "use",
	domain.ActionToolsCall:           "use",
	domain.ActionBotsDelegate:        "give work to",
	domain.ActionBotsSpawn:           "start a helper",
	domain.ActionBotsCreate:          "make a lasting Bot",
	domain.ActionBotsPromote:         "make a lasting Bot of",
	domain.ActionPlansRun:            "carry out its plan",
	domain.ActionChannelsSend:        "write to",
	domain.ActionDelegationsContinue: "go on past its limit",
}

// splitTarget takes the target of apps.call apart.
func splitTarget(target string) (domain.ConnectionID, string) {
	connection, tool, _ := strings.Cut(target, "/")
	return domain.ConnectionID(connection), tool
}

// toolOf is the name of what is used, as short as it is clear; "" where the action
// says it all.
func toolOf(c domain.Capability, n names) string {
	switch c.Action {
	case domain.ActionAppsCall:
		_, tool := splitTarget(c.Target)
		return tool
	case domain.ActionToolsCall, domain.ActionChannelsSend:
		return c.Target
	case domain.ActionBotsDelegate, domain.ActionBotsPromote:
		return n.bot(domain.BotID(c.Target))
	}
	return ""
}

func appOf(c domain.Capability, n names) string {
	if c.Action != domain.ActionAppsCall {
		return ""
	}
	connection, _ := splitTarget(c.Target)
	return n.connection(connection)
}

// titleOf is the line that stands for a capability in a list.
func titleOf(c domain.Capability, n names) string {
	switch tool := toolOf(c, n); c.Action {
	case domain.ActionAppsCall, domain.ActionToolsCall:
		return tool
	default:
		return strings.TrimSpace(cmp.Or(verbs[c.Action], c.Action) + " " + tool)
	}
}

// code sets a name apart from the words around it.
func code(name string) string { return "`" + strings.ReplaceAll(name, "`", "'") + "`" }

// every says what a kept decision about a capability of a Bot speaks of.
func every(c domain.Capability, bot string, n names) string {
	tool := toolOf(c, n)
	switch c.Action {
	case domain.ActionAppsCall:
		return "every " + code(tool) + " of " + bot + " on " + appOf(c, n)
	case domain.ActionToolsCall:
		return "every " + code(tool) + " of " + bot
	case domain.ActionBotsDelegate:
		return "all work that " + bot + " gives to " + tool
	case domain.ActionBotsSpawn:
		return "every helper that " + bot + " starts"
	case domain.ActionBotsCreate:
		return "every lasting Bot that " + bot + " makes"
	case domain.ActionBotsPromote:
		return "making a lasting Bot of " + tool + " whenever " + bot + " asks"
	case domain.ActionPlansRun:
		return "every plan of " + bot + " in this Chat"
	case domain.ActionChannelsSend:
		return "every message of " + bot + " to " + code(tool)
	case domain.ActionDelegationsContinue:
		return "going on at this limit each time " + bot + " comes to it"
	}
	return "every " + code(c.Action) + " of " + bot + " on " + code(c.Target)
}

// ways lists how a Request can be answered by a Member, each with what it would let
// happen. The first deny stands before the first allow: the key Enter in the reason means
// deny.
func ways(r domain.Request, me domain.MemberID, n names) []web.Way {
	if r.Unknown != nil {
		return []web.Way{
			{Value: "deny-once", Label: "Do not send", Words: "It is not sent again. The Bot learns that nobody knows what became of it.", Key: "d", First: true},
			{Value: "allow-once", Label: "Send again", Words: "Exactly this call is sent once more. It may have run before.", Allow: true, Key: "a", First: true},
		}
	}
	bot := n.bot(r.Bot)
	all := every(r.Capability, bot, n)
	until, end, ruleEnd := ", until you revoke it", ".", ""
	if r.Member != me { // what is kept of a second Member's answer is the person's
		until = ", until the Member whose work it is revokes it"
		end, ruleEnd = ". You cannot revoke it yourself.", " Only the Member whose work it is can take it away again."
	}
	if r.App != nil {
		until += " or " + n.connection(r.App.Connection) + " changes"
	}
	until += end
	arguments := ", whatever its arguments"
	if r.Capability.Action != domain.ActionAppsCall && r.Capability.Action != domain.ActionToolsCall {
		arguments = ""
	}
	no, once := "Deny: it does not run. The Bot reads your reason, and may ask again later.", "Allow once: only this call, exactly as shown."
	switch r.Capability.Action {
	case domain.ActionPlansRun:
		once = "Allow once: the Chat leaves plan mode; each call of the plan is still checked by itself."
	case domain.ActionBotsDelegate:
		once = "Allow once: this work starts, within its limits; what it does is still checked."
		no = "Deny: the work does not start. The Bot that gave it reads your reason."
	case domain.ActionDelegationsContinue:
		once = "Allow once: the work goes on, and its limits are counted anew. It reads your instructions first."
		no = "Deny: the work is stopped, with all work below it. Whoever gave it reads your reason."
	}
	out := []web.Way{
		{Value: "deny-once", Label: "Deny", Words: no, Key: "d", First: true},
		{Value: "allow-once", Label: "Allow once", Words: once, Allow: true, Key: "a", First: true},
		{Value: "allow-chat", Label: "Allow in this Chat", Words: "Allows " + all + arguments + ", in this Chat" + until, Allow: true},
		{Value: "allow-lifetime", Label: "Always allow", Words: "Allows " + all + arguments + ", in every Chat" + until},
		{Value: "deny-chat", Label: "Deny in this Chat", Words: "Denies " + all + arguments + ", in this Chat" + until},
		{Value: "deny-lifetime", Label: "Always deny", Words: "Denies " + all + arguments + ", in every Chat" + until},
		{Value: "deny-rule", Label: "Deny and keep this Rule", Words: "Denies this call and keeps the Rule for " + bot + ". From now on the judge reads it with every attempt of " + bot + ", and it can only deny." + ruleEnd, Rule: true},
	}
	out[3].Allow = true
	if r.TagLine.Effect == domain.TagEffectHuman {
		out = slices.DeleteFunc(out, func(w web.Way) bool { return w.Allow && w.Value != "allow-once" })
	} else if len(r.Taint) > 0 && r.TaintedTag != "" {
		out[3].Words += " A Chat with content from outside is still asked about it."
	}
	if r.Capability.Action == domain.ActionDelegationsContinue {
		out = slices.Insert(out, 1, web.Way{Value: "ask-once", Label: "Stop and ask", Words: "Stop and ask: the work is stopped, and whoever gave it gets your reason as a question.", First: true})
	}
	return out
}

// withSupports adds what the Bots get that support it.
func withSupports(list []web.Way, r domain.Request, n names) []web.Way {
	var lasting []string
	for _, e := range r.Endorsements {
		if e.Scope == domain.ScopeLifetime && e.Bot != r.Bot {
			lasting = append(lasting, n.bot(e.Bot))
		}
	}
	for i := range list {
		if list[i].Value == "allow-lifetime" && len(lasting) > 0 {
			list[i].Words += " " + strings.Join(lasting, " and ") + " may do the same from then on."
		}
	}
	return list
}

// scopeWords says how long a scope lasts.
func scopeWords(scope string) string {
	switch scope {
	case domain.ScopeChat:
		return "in this Chat"
	case domain.ScopeLifetime:
		return "until revoked"
	}
	return "once"
}

// outcomeOf says how a Request ended, for this person; nil while it is open.
func outcomeOf(r domain.Request, me domain.MemberID, n names) *web.Outcome {
	if r.Status == domain.RequestPending {
		return nil
	}
	out := &web.Outcome{Good: r.Status == domain.RequestAllowed, Title: "Cancelled, because its work was stopped"}
	d := r.Decision
	if d == nil {
		return out
	}
	word := "Denied"
	switch {
	case r.Status == domain.RequestAllowed:
		word = "Allowed"
	case d.Decision == domain.DecisionAsk:
		word = "Stopped with a question"
	}
	out.Title = word + " by " + n.actor(d.By, me)
	if d.By.Tag != domain.TagExpiry {
		out.Title += ", " + scopeWords(d.Scope)
	}
	if d.Scope != domain.ScopeOnce && d.By.Tag != domain.TagExpiry {
		out.Words = "It holds for " + every(r.Capability, n.bot(r.Bot), n) + "."
		if r.Member != me {
			out.Words += " Only the Member whose work it is can revoke it."
		}
	}
	if d.Reason != nil {
		out.Reason = *d.Reason
	}
	if d.Rule != nil {
		out.Rule = *d.Rule
	}
	return out
}

// explain says what the tags and the taint add to a Request.
func explain(v *web.Request, r domain.Request, n names) {
	v.Resource = r.Resource
	if r.TagLine.Effect == domain.TagEffectHuman {
		v.ForPeople = r.TagLine.Tag
	}
	for _, source := range r.Taint {
		name := source.String()
		if source.Connection != "" {
			name = "the App " + n.connection(source.Connection)
		}
		v.Taint = append(v.Taint, name)
	}
	if len(r.Taint) > 0 {
		v.Held = r.TaintedTag
	}
}
