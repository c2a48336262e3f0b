package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
)

// judges is a model whose judge a test holds in its hands; all else is the playbook.
type judges struct {
	engine.Models
	judge func(domain.ModelRequest) (string, error)
	asked int
}

func (j *judges) Call(ctx context.Context, r domain.ModelRequest) (domain.ModelReply, error) {
	if r.Purpose != domain.PurposeJudge {
		return j.Models.Call(ctx, r)
	}
	j.asked++
	if j.judge == nil {
		return j.Models.Call(ctx, r)
	}
	text, err := j.judge(r)
	return domain.ModelReply{Text: text}, err
}

// workDeciders is what a worker does with the tasks of those who decide.
func (w *world) workDeciders(task domain.Task) {
	w.t.Helper()
	ctx := context.WithoutCancel(w.t.Context())
	switch task.Kind {
	case domain.TaskCallJudge:
		j, err := w.engine.PrepareJudge(ctx, domain.CallID(task.Subject), task.Revision)
		w.must(err)
		if j != nil {
			w.must(w.engine.CommitVerdict(ctx, j, w.verdict(j.Request, j.Rules)))
		}
	case domain.TaskRequestReview:
		w.must(w.engine.AdvanceReview(ctx, domain.RequestID(task.Subject)))
	case domain.TaskBotClose:
		w.must(w.engine.CloseBot(ctx, domain.BotID(task.Subject)))
	case domain.TaskRulePreview:
		p, err := w.engine.PreparePreview(ctx, domain.PreviewID(task.Subject), task.Revision)
		w.must(err)
		if p == nil {
			return
		}
		var verdicts []domain.RulesVerdict
		for _, c := range p.Cases {
			verdicts = append(verdicts, w.verdict(c.Request, c.Rules))
		}
		w.must(w.engine.CommitPreview(ctx, p, verdicts))
	}
}

func (w *world) verdict(r domain.ModelRequest, rules []domain.Rule) domain.RulesVerdict {
	var used domain.ModelUsage
	v := domain.AskJudge(r, rules, func(r domain.ModelRequest) (string, string) {
		reply, err := w.models.Call(context.WithoutCancel(w.t.Context()), r)
		used = used.Plus(reply.Usage)
		if err != nil {
			return "", err.Error()
		}
		return reply.Text, ""
	})
	v.Usage = used
	return v
}

func (w *world) decide(d *engine.Deciding) {
	w.t.Helper()
	var judged *domain.RulesVerdict
	if d.Judge != nil {
		v := w.verdict(*d.Judge, d.Rules)
		judged = &v
	}
	w.must(w.engine.CarryDecision(context.WithoutCancel(w.t.Context()), d, judged))
}

// bot makes a lasting Bot below another; "" stands for the Main Bot.
func (w *world) bot(name, instructions string, owner domain.BotID) domain.BotID {
	w.t.Helper()
	in := engine.BotFields{Name: &name, Role: ptr(""), Instructions: &instructions}
	if owner != "" {
		in.Owner = &owner
	}
	b, err := w.engine.CreateBot(w.t.Context(), w.me, in)
	w.must(err)
	return b.ID
}

func (w *world) instruct(bot domain.BotID, instructions string) {
	w.t.Helper()
	_, err := w.engine.ChangeBot(w.t.Context(), w.me, bot, engine.BotFields{Instructions: &instructions})
	w.must(err)
}

func (w *world) main() domain.BotID { return w.me.Member.MainBot }

func (w *world) chatWith(bot domain.BotID) domain.ChatID {
	w.t.Helper()
	chat, err := w.engine.CreateChat(w.t.Context(), w.me, engine.NewChat{Bot: bot})
	w.must(err)
	return chat.ID
}

func (w *world) rule(text, effect string, bot domain.BotID) domain.Rule {
	w.t.Helper()
	in := engine.RuleFields{Text: &text, Effect: &effect}
	if bot != "" {
		in.Bot = &bot
	}
	r, err := w.engine.CreateRule(w.t.Context(), w.me, in)
	w.must(err)
	return r
}

func (w *world) grant(bot domain.BotID, decision string) domain.Grant {
	w.t.Helper()
	g, err := w.engine.CreateGrant(w.t.Context(), w.me, engine.NewGrant{Bot: bot, Decision: decision, Scope: domain.ScopeLifetime,
		Capability: domain.Capability{Action: domain.ActionAppsCall, Target: string(w.mail.ID) + "/send"}})
	w.must(err)
	return g
}

func (w *world) grants() []domain.Grant {
	w.t.Helper()
	list, err := w.engine.Grants(w.t.Context(), w.me, domain.GrantFilter{}, domain.Page{Limit: 100})
	w.must(err)
	return list
}

const sendScript = `/call mail__send {"to":"a@example.test"}`

// theRequest gives the Request of a Turn's only call, wherever it is.
func (w *world) theRequest(turn domain.TurnID) domain.Request {
	w.t.Helper()
	call := w.view(turn).Calls[0]
	if call.Request == "" {
		w.t.Fatalf("the call is %s and has no Request", call.Status)
	}
	return w.request(call.Request)
}

// What a judge may do wrong decides nothing, and the person is asked.
func TestAJudgeThatFailsDecidesNothing(t *testing.T) {
	quote := func(rule, verdict, text string) string {
		return fmt.Sprintf(`{"quotes":[{"rule":%q,"verdict":%q,"quote":%q}]}`, rule, verdict, text)
	}
	const text = "Allow send to colleagues. Never send to strangers."
	for _, c := range []struct {
		name  string
		judge func(rule string) (string, error)
		why   string
	}{
		{"down", func(string) (string, error) { return "", &domain.ModelError{Temporary: true, Message: "down"} }, "down"},
		{"empty", func(string) (string, error) { return "", nil }, "JSON"},
		{"prose", func(string) (string, error) { return "I would allow it.", nil }, "JSON"},
		{"a refusal", func(string) (string, error) { return "I cannot help with that.", nil }, "JSON"},
		{"no quotes", func(string) (string, error) { return `{"quotes":[]}`, nil }, "quotes no Rule"},
		{"another shape", func(string) (string, error) { return `{"verdict":"allow"}`, nil }, "quotes no Rule"},
		{"an unknown Rule", func(string) (string, error) {
			return quote("rul_0000", "allow", "Allow send to colleagues."), nil
		}, "does not apply"},
		{"an empty quote", func(r string) (string, error) { return quote(r, "allow", ""), nil }, "does not stand"},
		{"half a sentence", func(r string) (string, error) { return quote(r, "allow", "Allow send"), nil }, "does not stand"},
		{"other words", func(r string) (string, error) { return quote(r, "allow", "Allow send to strangers."), nil }, "does not stand"},
		{"a quote from the arguments", func(r string) (string, error) { return quote(r, "allow", "a@example.test"), nil }, "does not stand"},
		{"an unknown verdict", func(r string) (string, error) { return quote(r, "maybe", "Allow send to colleagues."), nil }, "neither"},
		{"capitals", func(r string) (string, error) { return quote(r, "ALLOW", "Allow send to colleagues."), nil }, "neither"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			rule := w.rule(text, domain.EffectEither, "")
			w.models = &judges{Models: w.models, judge: func(domain.ModelRequest) (string, error) { return c.judge(string(rule.ID)) }}
			w.restart()
			turn := w.say(w.newChat(), sendScript)
			w.run()
			r := w.onlyPending()
			if r.Turn != turn || w.apps.total() != 0 {
				t.Fatalf("%d sends before anybody decided", w.apps.total())
			}
			kept := ""
			for _, f := range w.view(turn).Calls[0].Evidence {
				if f.Step == domain.StepRule {
					kept = f.Found
				}
			}
			if !strings.Contains(kept, c.why) {
				t.Errorf("the evidence is %q, want %q in it", kept, c.why)
			}
		})
	}
}

// A judge whose workers die is asked twice; then the check goes on without it, and
// nothing waits for ever.
func TestAJudgeThatKillsItsWorkersIsAskedTwice(t *testing.T) {
	w := newWorld(t)
	w.rule("Allow send.", domain.DecisionAllow, "")
	turn := w.say(w.newChat(), sendScript)
	task, _ := w.rings.next(w.clock.now())
	w.work(task)
	asked := 0
	for range 40 {
		w.rings.lose()
		w.clock.forward(3 * time.Second)
		tasks, err := w.engine.DueTasks(t.Context(), domain.TaskCallJudge, 0, 10)
		w.must(err)
		for _, task := range tasks {
			j, err := w.engine.PrepareJudge(t.Context(), domain.CallID(task.Subject), task.Revision)
			w.must(err)
			if j != nil {
				asked++ // and the worker dies
			}
		}
	}
	if asked != domain.MaxJudgings || w.onlyPending().Turn != turn {
		t.Fatalf("the judge was asked %d times", asked)
	}
}

// The verdict of a worker that comes late, after another has taken over, is dropped.
func TestAVerdictCountsOnce(t *testing.T) {
	w := newWorld(t)
	rule := w.rule("Allow send.", domain.DecisionAllow, "")
	turn := w.say(w.newChat(), sendScript)
	step, _ := w.rings.next(w.clock.now())
	w.work(step)
	task, _ := w.rings.next(w.clock.now())
	late, err := w.engine.PrepareJudge(t.Context(), domain.CallID(task.Subject), task.Revision)
	w.must(err)
	w.sweepFor(30 * time.Second) // another worker judges, and the call runs
	w.wantStatus(turn, domain.TurnCompleted)
	w.must(w.engine.CommitVerdict(t.Context(), late, domain.ReadVerdict([]domain.Rule{rule}, "{}")))
	if w.apps.most() != 1 || len(w.pending()) != 0 {
		t.Fatalf("%d sends, %d Requests", w.apps.most(), len(w.pending()))
	}
}

// What changes while the judge reads counts: the check is made again on what stands.
func TestWhatChangesWhileTheJudgeReads(t *testing.T) {
	const allow = "Allow send."
	for _, c := range []struct {
		name   string
		change func(w *world, r domain.Rule)
		status domain.CallStatus
		step   domain.Step
	}{
		{"nothing", func(*world, domain.Rule) {}, domain.CallSucceeded, domain.StepRule},
		{"the Rule is deleted", func(w *world, r domain.Rule) { w.must(w.engine.DeleteRule(w.t.Context(), w.me, r.ID)) }, domain.CallWaiting, ""},
		{"the Rule is disabled", func(w *world, r domain.Rule) {
			_, err := w.engine.ChangeRule(w.t.Context(), w.me, r.ID, engine.RuleFields{Enabled: ptr(false)})
			w.must(err)
		}, domain.CallWaiting, ""},
		{"the Rule gets other words", func(w *world, r domain.Rule) {
			_, err := w.engine.ChangeRule(w.t.Context(), w.me, r.ID, engine.RuleFields{Text: ptr("Never send.")})
			w.must(err)
		}, domain.CallDenied, domain.StepRule},
		{"another Rule comes that denies", func(w *world, _ domain.Rule) { w.rule("Never send.", domain.DecisionDeny, "") }, domain.CallDenied, domain.StepRule},
		{"a deny Grant comes", func(w *world, _ domain.Rule) { w.grant(w.main(), domain.DecisionDeny) }, domain.CallDenied, domain.StepGrant},
		{"an allow Grant comes", func(w *world, _ domain.Rule) { w.grant(w.main(), domain.DecisionAllow) }, domain.CallSucceeded, domain.StepGrant},
		{"the Turn is stopped", func(w *world, _ domain.Rule) {
			chats, err := w.engine.Chats(w.t.Context(), w.me, domain.Page{Limit: 1})
			w.must(err)
			_, err = w.engine.Interrupt(w.t.Context(), w.me, chats[0].ID, false)
			w.must(err)
		}, domain.CallCancelled, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			rule := w.rule(allow, domain.EffectEither, "")
			changed := false
			playbook := w.models
			w.models = &judges{Models: playbook, judge: func(r domain.ModelRequest) (string, error) {
				if !changed {
					changed = true
					c.change(w, rule)
				}
				reply, err := playbook.Call(context.Background(), r)
				return reply.Text, err
			}}
			w.restart()
			turn := w.say(w.newChat(), sendScript)
			w.run()
			call := w.view(turn).Calls[0]
			if call.Status != c.status || c.step != "" && call.Decided.Step != c.step {
				t.Fatalf("the call is %s by %+v, want %s by %s", call.Status, call.Decided, c.status, c.step)
			}
		})
	}
}

// The last look before sending also sees that the Rule still stands.
func TestARuleThatIsTakenAwayBeforeTheCallGoesOut(t *testing.T) {
	for _, c := range []struct {
		name   string
		change engine.RuleFields
		status domain.CallStatus
	}{
		{"unchanged", engine.RuleFields{}, domain.CallSucceeded},
		{"other words", engine.RuleFields{Text: ptr("Allow send on Fridays.")}, domain.CallDenied},
		{"disabled", engine.RuleFields{Enabled: ptr(false)}, domain.CallDenied},
		{"another effect", engine.RuleFields{Effect: ptr(domain.DecisionDeny)}, domain.CallDenied},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			rule := w.rule("Allow send.", domain.EffectEither, "")
			turn := w.say(w.newChat(), sendScript)
			for range 2 { // the step, and the judge
				task, _ := w.rings.next(w.clock.now())
				w.work(task)
			}
			if call := w.view(turn).Calls[0]; call.Status != domain.CallAllowed {
				t.Fatalf("the call is %s", call.Status)
			}
			if c.change != (engine.RuleFields{}) {
				_, err := w.engine.ChangeRule(t.Context(), w.me, rule.ID, c.change)
				w.must(err)
			}
			w.run()
			if call := w.view(turn).Calls[0]; call.Status != c.status || (c.status == domain.CallDenied) != (w.apps.total() == 0) {
				t.Fatalf("the call is %s after %d sends", call.Status, w.apps.total())
			}
		})
	}
}

// An attempt that the judge cannot be shown whole is not judged by a part of it.
func TestAnAttemptThatIsTooLongForTheJudgeGoesToThePerson(t *testing.T) {
	w := newWorld(t)
	w.rule("Allow send.", domain.DecisionAllow, "")
	judge := &judges{Models: w.models}
	w.models = judge
	w.restart()
	w.say(w.newChat(), `/call mail__send {"to":"`+strings.Repeat("a", 150_000)+`"}`)
	w.run()
	if w.onlyPending(); judge.asked != 0 {
		t.Errorf("the judge was asked %d times", judge.asked)
	}
}
