package engine_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"openbot/domain"
	"openbot/domain/engine"
)

// act lets one thing happen.
func (f *forest) act() {
	f.t.Helper()
	acts := []struct {
		name   string
		weight int
		do     func()
	}{
		{"task", 18, f.takeTask}, {"reply", 14, f.takeReply}, {"app", 5, f.takeAnswer}, {"say", 3, f.saySomething}, {"decide", 5, f.decideSomething},
		{"forward", 4, func() {
			f.forward(rapid.SampledFrom([]time.Duration{0, time.Millisecond, time.Second, 3 * time.Second, 11 * time.Second, time.Minute, time.Hour}).Draw(f.rapid, "time"))
		}},
		{"sweep", 3, func() { f.sweepOnce() }}, {"stop", 2, f.stopSomething}, {"crash", 1, func() { f.reached["crash"]++; f.crash() }},
	}
	total := 0
	for _, a := range acts {
		total += a.weight
	}
	n := f.draw("act", total)
	for _, a := range acts {
		if n -= a.weight; n < 0 {
			a.do()
			return
		}
	}
}

// grow lets a chain or a fan of work come about before anything else happens.
func (f *forest) grow() {
	for n := 0; n < 60 && f.most > 9 && len(f.order) < f.most; n++ {
		f.quiet = true
		f.takeReply()
		f.load()
	}
	f.quiet = false
}

// takeTask does one task that was rung, in any order.
func (f *forest) takeTask() {
	f.rings.mu.Lock()
	var due []int
	for i, task := range f.rings.tasks {
		if !f.clock.now().Before(task.At) {
			due = append(due, i)
		}
	}
	if len(due) == 0 {
		f.rings.mu.Unlock()
		f.forward(time.Second)
		return
	}
	i := due[f.draw("task", min(len(due), 8))]
	task := f.rings.tasks[i]
	f.rings.tasks = slices.Delete(f.rings.tasks, i, i+1)
	f.rings.mu.Unlock()
	f.beside1(func() { f.do(task) })
}

// beside1 does something while, now and then, another process does something else
// between what it loads and what it commits.
func (f *forest) beside1(do func()) {
	if f.closing || f.quiet || !f.chance("beside", 3) {
		do()
		return
	}
	what := f.draw("what beside", 4)
	f.store.before = func(int, domain.Commit) error {
		f.store.before = nil
		mine := f.engine
		f.engine = f.other
		defer func() { f.engine = mine }()
		f.reached["beside"]++
		f.load()
		switch what {
		case 0:
			f.stopSomething()
		case 1:
			f.decideSomething()
		case 2:
			f.saySomething()
		default:
			if task, ok := f.rings.next(f.clock.now()); ok {
				f.do(task)
			}
		}
		return nil
	}
	do()
	f.store.before = nil
}

// do is what a worker does with one task; calls of models and Apps stay out for a while.
func (f *forest) do(task domain.Task) {
	f.t.Helper()
	switch task.Kind {
	case domain.TaskTurnStep:
		step, err := f.engine.PrepareStep(f.ctx(), domain.TurnID(task.Subject), task.Revision)
		f.must(err)
		if step == nil {
			return
		}
		f.lawStep(step)
		f.steps = append(f.steps, step)
	case domain.TaskCallSend:
		taking, err := f.engine.TakeCall(f.ctx(), domain.CallID(task.Subject), task.Revision, true)
		f.must(err)
		if taking.Decide != nil {
			f.decide(taking.Decide)
		}
		if taking.Sending != nil {
			f.lawSend(taking.Sending)
			f.sends = append(f.sends, taking.Sending)
		}
	default:
		if task.Kind == domain.TaskWorkElapse || task.Kind == domain.TaskWorkResume || task.Kind == domain.TaskReminderFire {
			f.reached[string(task.Kind)]++
		}
		f.world.work(task)
	}
}

// takeReply lets a model answer, or its worker die.
func (f *forest) takeReply() {
	if len(f.steps) == 0 {
		f.takeTask()
		return
	}
	i := f.draw("step", len(f.steps))
	step := f.steps[i]
	f.steps = slices.Delete(f.steps, i, i+1)
	f.beside1(func() { f.answerStep(step) })
}

func (f *forest) answerStep(step *engine.Step) {
	f.t.Helper()
	if step.Reply != nil {
		f.reached["held reply used"]++
		f.must(f.engine.CommitStep(f.ctx(), step, *step.Reply))
		return
	}
	if !f.closing && !f.quiet {
		switch f.draw("fails", 14) {
		case 0:
			f.must(f.engine.FailStep(f.ctx(), step, &domain.ModelError{Message: "The model is broken."}))
			return
		case 1:
			f.must(f.engine.FailStep(f.ctx(), step, &domain.ModelError{Temporary: true, Message: "The model is busy."}))
			return
		}
	}
	reply := f.reply(step)
	reply.Usage = domain.ModelUsage{InputTokens: int64(f.draw("tokens", 5)) * 300, OutputTokens: 7}
	f.load()
	open := map[domain.DelegationID]bool{}
	for _, id := range f.order {
		open[id] = f.work[id].Open() && f.work[id].StoppingAt == nil
	}
	f.must(f.engine.CommitStep(f.ctx(), step, reply))
	f.load()
	for _, c := range reply.Calls {
		if c.Name != "openbot_cancel_delegation" {
			continue
		}
		var in struct{ Delegation domain.DelegationID }
		f.must(json.Unmarshal(c.Arguments, &in))
		if g := f.work[in.Delegation]; open[g.ID] && g.StoppingAt != nil && g.Notice == domain.NoticeNone {
			f.silent[g.ID] = true
			f.reached["stopped by its giver"]++
		}
	}
}

// reply makes up what a Bot does in a step.
func (f *forest) reply(step *engine.Step) domain.ModelReply {
	if step.Request.Purpose == domain.PurposeReview {
		return domain.ModelReply{Text: "so", Calls: f.calls("openbot_decide", map[string]any{"decision": rapid.SampledFrom([]string{"allow", "allow", "deny"}).Draw(f.rapid, "review")})}
	}
	if f.closing || !f.quiet && f.chance("says", 4) {
		return domain.ModelReply{Text: "done"}
	}
	reply := domain.ModelReply{Text: "well"}
	if f.chain && len(f.order) < f.most {
		return domain.ModelReply{Text: "well", Calls: f.toolCall(step.Chat())}
	}
	for range f.draw("calls", 3) + 1 {
		reply.Calls = append(reply.Calls, f.toolCall(step.Chat())...)
	}
	return reply
}

func (f *forest) calls(name string, arguments map[string]any) []domain.ModelCall {
	raw, err := json.Marshal(arguments)
	f.must(err)
	return []domain.ModelCall{{ID: "c", Name: name, Arguments: raw}}
}

func (f *forest) toolCall(chat domain.ChatID) []domain.ModelCall {
	var given []domain.DelegationID
	for _, id := range f.order {
		if f.work[id].Parent.Chat == chat {
			given = append(given, id)
		}
	}
	if f.chain {
		if len(given) > 0 {
			return nil
		}
		return f.calls("openbot_delegate", map[string]any{"task": "work", "limits": f.limits()})
	}
	switch f.draw("tool", 14) {
	case 0, 5:
		return f.calls("mail__send", map[string]any{"to": "ann", "openbot_reason": "why not"})
	case 1:
		return f.calls("mail__list", map[string]any{"n": 1})
	case 2:
		if f.chance("reminds", 2) {
			return f.calls("openbot_remind", map[string]any{"text": "look", "afterMs": rapid.SampledFrom([]int{0, 5000, 3_000_000}).Draw(f.rapid, "afterMs")})
		}
		return f.calls("openbot_list_bots", map[string]any{})
	case 3, 6:
		if len(given) > 0 {
			return f.calls("openbot_cancel_delegation", map[string]any{"delegation": given[f.draw("given", len(given))]})
		}
	case 4:
		if len(given) > 0 {
			return f.calls("openbot_delegate", map[string]any{"task": "more", "reason": "why not", "limits": f.limits(), "delegation": given[f.draw("given", len(given))]})
		}
	}
	var out []domain.ModelCall
	gives := f.draw("gives", f.fan) + 1
	if f.quiet {
		gives = f.fan
	}
	for range gives {
		if len(f.order)+len(out) >= f.most {
			break
		}
		fields := map[string]any{"task": "work", "reason": "why not", "limits": f.limits()}
		if f.chance("other Bot", 4) {
			fields["bot"] = f.bots[f.draw("bot", len(f.bots))]
		}
		out = append(out, f.calls("openbot_delegate", fields)...)
	}
	return out
}

func (f *forest) limits() map[string]any {
	limits := map[string]any{"timeMs": rapid.SampledFrom([]int{1000, 10_000, 60_000, 86_400_000}).Draw(f.rapid, "timeMs")}
	if f.chance("steps limit", 3) {
		limits["steps"] = f.draw("steps", 3) + 1
	}
	if f.chance("budget limit", 3) {
		limits["budgetMicros"] = f.draw("budget", 3) + 1
	}
	return limits
}

// takeAnswer lets an App answer, or not, or its worker die.
func (f *forest) takeAnswer() {
	if len(f.sends) == 0 {
		f.takeTask()
		return
	}
	i := f.draw("send", len(f.sends))
	out := f.sends[i]
	f.sends = slices.Delete(f.sends, i, i+1)
	switch f.draw("comes back", 4) {
	case 0:
		f.reached["lost call"]++
		f.must(f.engine.LoseCall(f.ctx(), out))
	case 1: // its worker dies
	default:
		f.beside1(func() { f.must(f.engine.SettleCall(f.ctx(), out, f.chance("failed", 4), "so")) })
	}
}

// sweepOnce does what is overdue in the database, and says whether that moves anything:
// work that is being stopped is looked at again and again while a call of it is out, and
// a Grant lets work go on at its time limit for ever.
func (f *forest) sweepOnce() bool {
	f.t.Helper()
	f.last = nil
	for _, kind := range domain.TaskKinds() {
		tasks, err := f.engine.DueTasks(f.ctx(), kind, 0, 50)
		f.must(err)
		for _, task := range tasks {
			f.last = append(f.last, task)
			f.do(task)
		}
	}
	return slices.ContainsFunc(f.last, func(t domain.Task) bool { return t.Kind != domain.TaskWorkClose && t.Kind != domain.TaskWorkElapse })
}

// refusable takes what a person may be told.
func (f *forest) refusable(err error) {
	f.t.Helper()
	if code := domain.CodeOf(err); err != nil && code != domain.CodeConflict && code != domain.CodeNotFound && code != domain.CodeInvalid {
		f.t.Fatalf("a person is told %q: %v", code, err)
	}
}

func (f *forest) saySomething() {
	f.load()
	all := slices.Clone(f.chats)
	for chat := range f.newest() {
		all = append(all, chat)
	}
	slices.Sort(all)
	chat := all[f.draw("says to", len(all))]
	g, task := f.newest()[chat]
	posted, err := f.engine.PostMessage(f.ctx(), f.me, chat, "hello")
	f.refusable(err)
	if err == nil && task {
		if g.Open() == (posted.Delegation != "") && f.store.before == nil {
			f.t.Fatalf("a message to work that is %s began the round %q", g.Status, posted.Delegation)
		}
		f.reached["message to task Chat"]++
		if posted.Delegation != "" {
			f.reached["new round"]++
		}
	}
}

func (f *forest) decideSomething() {
	list := f.pending()
	if len(list) == 0 {
		return
	}
	f.decideOne(list[f.draw("Request", len(list))])
}

func (f *forest) decideOne(r domain.Request) {
	a := engine.Answer{Expected: r.Revision, Decision: rapid.SampledFrom([]string{domain.DecisionAllow, domain.DecisionAllow, domain.DecisionAllow, domain.DecisionDeny}).Draw(f.rapid, "decision")}
	if r.Capability.Action == domain.ActionDelegationsContinue {
		if f.chance("asks", 8) {
			a.Decision = domain.DecisionAsk
		}
		if f.chance("says why", 2) {
			a.Reason = ptr("go on")
		}
	}
	if r.Unknown == nil && f.chance("keeps it", 5) {
		a.Scope = rapid.SampledFrom([]string{domain.ScopeChat, domain.ScopeLifetime}).Draw(f.rapid, "scope")
	}
	f.load()
	stopping := r.Unknown != nil && domain.HeldBy(f.path(f.newest()[r.Chat].ID)).Stopping != ""
	_, err := f.engine.AnswerRequest(f.ctx(), f.me, r.ID, a)
	f.refusable(err)
	if err == nil && stopping && a.Decision == domain.DecisionAllow {
		f.t.Fatalf("a call of work that is being stopped is sent again")
	}
	if err == nil {
		f.reached[fmt.Sprintf("%s: %s", r.Capability.Action, a.Decision)]++
		if r.Unknown != nil {
			f.reached["unknown: "+a.Decision]++
		}
	}
}

// stopSomething is one of the ways in which a person stops things.
func (f *forest) stopSomething() {
	f.load()
	switch way := f.draw("way", 9); {
	case way == 8:
		if f.chance("archives a Bot", 4) {
			err := f.engine.ArchiveBot(f.ctx(), f.me, f.bots[f.draw("Bot", len(f.bots))])
			f.refusable(err)
			f.reached["archived Bot"]++
		}
	case way < 3 && len(f.order) > 0:
		g := f.work[f.order[f.draw("cancels", len(f.order))]]
		_, err := f.engine.CancelDelegation(f.ctx(), f.me, g.ID, "stop")
		f.refusable(err)
		if err == nil {
			f.reached["cancelled by a person: "+string(g.Status)]++
		}
	case way < 7:
		chat := f.anyChat()
		with := f.chance("with delegations", 2)
		_, err := f.engine.Interrupt(f.ctx(), f.me, chat, with)
		f.refusable(err)
		f.reached[fmt.Sprintf("interrupt, with its work %v", with)]++
	default:
		chat := f.anyChat()
		if slices.Contains(f.chats, chat) && len(f.chats) == 1 && f.chance("keeps the Chat", 2) {
			return
		}
		err := f.engine.DeleteChat(f.ctx(), f.me, chat)
		f.refusable(err)
		if err == nil {
			f.deleted[chat] = true
			f.reached["deleted Chat"]++
		}
	}
}

func (f *forest) anyChat() domain.ChatID {
	all := slices.Clone(f.chats)
	for chat := range f.newest() {
		all = append(all, chat)
	}
	slices.Sort(all)
	return all[f.draw("chat", len(all))]
}
