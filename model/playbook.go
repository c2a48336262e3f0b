package model

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"openbot/domain"
)

// outcomeLength is how much of a result the playbook's own answer shows, in
// characters.
const outcomeLength = 500

// playbook answers from the script alone: the same script gives the same answer,
// in any process and however often a step is taken again.
func playbook(ctx context.Context, request domain.ModelRequest) (domain.ModelReply, error) {
	var reply domain.ModelReply
	switch request.Purpose {
	case domain.PurposeReview:
		reply = reviewByScript(request.Script)
	case domain.PurposeJudge:
		reply = judgeByScript(request.Script)
	case domain.PurposeReviewer:
		reply = verdictByScript(request.Script)
	default:
		var err error
		if reply, err = turnByScript(ctx, request.Script); err != nil {
			return domain.ModelReply{}, err
		}
	}
	reply.Usage = countWords(request.Messages, reply)
	return reply, nil
}

func turnByScript(ctx context.Context, script domain.Script) (domain.ModelReply, error) {
	plan := parseScript(script.Inputs)
	number := max(script.StepsDone, 0)
	step := plan.last
	if number < len(plan.steps) {
		step = plan.steps[number]
	}
	if err := pause(ctx, step.sleep); err != nil {
		return domain.ModelReply{}, err
	}
	if step.fails {
		return domain.ModelReply{}, &domain.ModelError{Message: step.failure}
	}
	if len(step.calls) == 0 {
		return domain.ModelReply{Text: plan.answer(script)}, nil
	}
	reply := domain.ModelReply{}
	for i, call := range step.calls {
		reply.Calls = append(reply.Calls, domain.ModelCall{
			ID: fmt.Sprintf("call_%d_%d", number+1, i+1), Name: call.name, Arguments: json.RawMessage(call.arguments),
		})
	}
	return reply, nil
}

// answer is the text that ends the Turn.
func (p plan) answer(script domain.Script) string {
	switch {
	case p.says:
		return p.say
	case !p.directed && len(script.Inputs) == 0:
		return "You said: " + clip(strings.Join(script.Notices, "\n"), outcomeLength)
	case !p.directed:
		return "You said: " + strings.Join(script.Inputs, "\n")
	case len(script.Outcomes) == 0:
		return "Done. No call was made."
	}
	lines := make([]string, 0, len(script.Outcomes))
	for _, outcome := range script.Outcomes {
		lines = append(lines, outcome.Name+": "+clip(strings.TrimSpace(outcome.Text), outcomeLength))
	}
	return strings.Join(lines, "\n")
}

// pause waits as a slow model would.
func pause(ctx context.Context, length time.Duration) error {
	if length > 0 {
		timer := time.NewTimer(length)
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
	}
	if err := ctx.Err(); err != nil {
		return &domain.ModelError{Temporary: true, Message: "the playbook was stopped before it answered", Err: err}
	}
	return nil
}

// reviewByScript follows the last /decide line of the deciding Bot's instructions.
// It decides in its first step only: a decision that was refused is not repeated.
func reviewByScript(script domain.Script) domain.ModelReply {
	decision, scope, reason := "none", "", ""
	for _, line := range lines(script.Instructions) {
		rest, ok := directive(line, "/decide")
		if !ok {
			continue
		}
		decision, rest = word(rest)
		scope, reason = "", rest
		switch first, after := word(rest); first {
		case "once", "chat", "lifetime":
			scope, reason = first, after
		case "session":
			scope, reason = "chat", after
		}
	}
	if decision != "allow" && decision != "deny" {
		return domain.ModelReply{Text: "I do not decide this."}
	}
	if script.StepsDone > 0 {
		return domain.ModelReply{Text: "I have given my decision."}
	}
	arguments, err := encode(struct {
		Decision string `json:"decision"`
		Scope    string `json:"scope,omitempty"`
		Reason   string `json:"reason,omitempty"`
	}{decision, scope, reason})
	if err != nil {
		return domain.ModelReply{Text: "I do not decide this."}
	}
	return domain.ModelReply{Calls: []domain.ModelCall{{
		ID: "call_1_1", Name: "openbot_decide", Arguments: json.RawMessage(strings.TrimSpace(string(arguments))),
	}}}
}

// countWords makes a token of each word: input is the history, output the answer.
func countWords(history []domain.ModelMessage, reply domain.ModelReply) domain.ModelUsage {
	count := func(text string, calls []domain.ModelCall) int64 {
		words := len(strings.Fields(text))
		for _, call := range calls {
			words += len(strings.Fields(call.Name)) + len(strings.Fields(string(call.Arguments)))
		}
		return int64(words)
	}
	var usage domain.ModelUsage
	for _, message := range history {
		usage.InputTokens += count(message.Text, message.Calls)
	}
	usage.OutputTokens = count(reply.Text, reply.Calls)
	return usage
}
