package engine

import "openbot/domain"

// modelRequest builds what the model gets to see in a step.
func (e *Engine) modelRequest(f *domain.StepFacts, box *toolbox) domain.ModelRequest {
	model := f.Bot.Model
	if model == "" {
		model = e.DefaultModel
	}
	request := domain.ModelRequest{Model: model, Purpose: domain.PurposeTurn, System: domain.TextSystem(f.Bot),
		Messages: history(f), Tools: box.order}
	if f.Chat.Kind == domain.ChatReview {
		request.Purpose, request.System = domain.PurposeReview, domain.TextReviewSystem(f.Bot)
	}
	request.Script = domain.Script{Instructions: f.Bot.Instructions}
	directed := func(kind domain.ItemKind, topic domain.Topic, text string) {
		switch {
		case topic == domain.TopicTask:
			request.Script.Inputs = append(request.Script.Inputs, domain.TaskOf(text))
		case kind == domain.ItemMessage && topic == "":
			request.Script.Inputs = append(request.Script.Inputs, text)
		case kind == domain.ItemMessage || kind == domain.ItemNotice || kind == domain.ItemReminder:
			request.Script.Notices = append(request.Script.Notices, text)
		}
	}
	for _, i := range f.Items {
		if i.Turn == f.Turn.ID {
			directed(i.Kind, i.Topic, i.Text)
		}
	}
	for _, i := range f.Inbox {
		directed(i.Kind, i.Topic, i.Text)
	}
	step := 0
	for _, c := range f.Calls {
		if c.Turn == f.Turn.ID && c.Step != step {
			step = c.Step
			request.Script.StepsDone++ // a step without calls uses up none of the script
		}
		if c.Turn == f.Turn.ID && !c.Open() {
			request.Script.Outcomes = append(request.Script.Outcomes, domain.ToolOutcome{Name: c.Name, Text: c.Result})
		}
	}
	return request
}

// history turns items into messages. The calls of one step become one assistant
// message with their results right after it, wherever the results stand: model
// providers insist on that order.
func history(f *domain.StepFacts) []domain.ModelMessage {
	calls := make(map[domain.CallID]domain.AskedCall, len(f.Calls))
	for _, c := range f.Calls {
		calls[c.ID] = c
	}
	var messages []domain.ModelMessage
	for i := 0; i < len(f.Items); i++ {
		item := f.Items[i]
		if _, asked := calls[item.Call]; item.Call != "" && !asked {
			continue // a call of a program: the model reads what the program gave
		}
		switch item.Kind {
		case domain.ItemMessage, domain.ItemNotice, domain.ItemReminder:
			messages = append(messages, inputMessage(item.From, item.Text))
		case domain.ItemAnswer, domain.ItemToolCall:
			said := domain.ModelMessage{Role: domain.RoleAssistant}
			var results []domain.ModelMessage
			last := i
			for j := i; j < len(f.Items) && sameStep(f.Items[j], item); j++ {
				switch f.Items[j].Kind {
				case domain.ItemAnswer:
					said.Text = f.Items[j].Text
				case domain.ItemToolCall:
					c, asked := calls[f.Items[j].Call]
					if !asked {
						break
					}
					said.Calls = append(said.Calls, domain.ModelCall{ID: string(c.ID), Name: c.Name, Arguments: c.Arguments})
					results = append(results, resultOf(c))
				}
				last = j
			}
			messages = append(append(messages, said), results...)
			i = last
		}
	}
	for _, in := range f.Inbox {
		messages = append(messages, inputMessage(in.From, in.Text))
	}
	return messages
}

// inputMessage shows input to the model, in a group chat with its author.
func inputMessage(from, text string) domain.ModelMessage {
	if author, outside := domain.OutsideAuthor(from); outside {
		text = domain.TextChannelMessage(author, text)
	}
	return domain.ModelMessage{Role: domain.RoleUser, Text: text}
}

// sameStep reports whether an item was said in the same model step as first.
func sameStep(item, first domain.Item) bool {
	return item.Turn == first.Turn && item.Step == first.Step && item.Step > 0 &&
		(item.Kind == domain.ItemAnswer || item.Kind == domain.ItemToolCall || item.Kind == domain.ItemToolResult)
}

func resultOf(c domain.AskedCall) domain.ModelMessage {
	text := c.Result
	if c.Open() {
		text = domain.TextStillOut()
	}
	return domain.ModelMessage{Role: domain.RoleTool, CallID: string(c.ID), Text: text, Failed: c.Status != domain.CallSucceeded}
}
