package engine

import (
	"context"
	"time"

	"openbot/domain"
)

// DefaultJudgeLimit is how long the judge may take about one attempt.
const DefaultJudgeLimit = 15 * time.Second

// Judgement is one reading of Rules that a worker may ask the judge for.
type Judgement struct {
	Request domain.ModelRequest
	Limit   time.Duration
	Rules   []domain.Rule
	call    domain.CallID
	chat    domain.ChatID
	version int64
}

// Call and Chat give the IDs of the judged call and its Chat, for logs.
func (j *Judgement) Call() domain.CallID { return j.call }

// Chat gives the ID of the Chat of the judged call.
func (j *Judgement) Chat() domain.ChatID { return j.chat }

// PrepareJudge loads a call for the judge and notes that it is being asked. It gives
// nil when the judge is not wanted any more; a call about which it was asked often
// enough, or about which it cannot be asked, goes on without it.
func (e *Engine) PrepareJudge(ctx context.Context, id domain.CallID, version int64) (*Judgement, error) {
	var asked *Judgement
	var row *domain.Call
	err := e.decideCall(ctx, id, func(d *draft, f *domain.CallFacts) error {
		asked, row = nil, nil
		if f.Call.Status != domain.CallChecking || f.Call.Version != version || f.Judging == nil {
			return nil
		}
		w := e.callWork(ctx, d, f)
		if w.stopped() {
			return w.move(domain.CallStopped{At: d.at, Result: domain.TextCancelled()})
		}
		if held, err := w.heldUp(); held || err != nil {
			return err
		}
		a := judgedAttempt(d.at, f)
		judge := judgeCase(a, f.Call.Tool, f.Call.Arguments, f.Call.Reason)
		switch {
		case f.Call.Judgings >= domain.MaxJudgings:
			return w.checked(domain.Ask(a, "the judge gave no answer"))
		case !judge.Fits():
			return w.checked(domain.Ask(a, "the attempt cannot be shown to the judge as a whole"))
		case len(judge.Rules) == 0:
			return w.checked(domain.Check(a))
		}
		next, err := domain.DecideCall(f.Call, domain.Judging{At: d.at})
		if err != nil {
			return err
		}
		row = &next
		d.put(row) // alone: a reading moves nothing in the Chat
		asked = &Judgement{Request: e.judgeRequest(f.Organization.Settings, judge), Limit: e.JudgeLimit, Rules: judge.Rules,
			call: f.Call.ID, chat: f.Chat.ID}
		return nil
	})
	if err != nil || asked == nil {
		return nil, err
	}
	asked.version = row.Version
	return asked, nil
}

// PushJudge says that the judge is still being asked. It reports false when its
// verdict is not wanted any more.
func (e *Engine) PushJudge(ctx context.Context, j *Judgement) (bool, error) {
	return e.Store.PushCall(ctx, j.call, j.version, e.now().Add(domain.LeaseTime))
}

// CommitVerdict goes on with the check of a call with what the judge read. All else
// is loaded and checked again: what was granted or taken away meanwhile counts.
func (e *Engine) CommitVerdict(ctx context.Context, j *Judgement, verdict domain.RulesVerdict) error {
	return e.decideCall(ctx, j.call, func(d *draft, f *domain.CallFacts) error {
		e.noteJudge(d, f, j.Request.Model, verdict.Usage)
		if f.Call.Status != domain.CallChecking || f.Call.Version != j.version || f.Judging == nil {
			return nil
		}
		w := e.callWork(ctx, d, f)
		if w.stopped() {
			return w.move(domain.CallStopped{At: d.at, Result: domain.TextCancelled()})
		}
		a := judgedAttempt(d.at, f)
		a.Judged = &verdict
		v := domain.Check(a)
		if v.Outcome == domain.OutcomeJudge && f.Call.Judgings >= domain.MaxJudgings {
			v = domain.Ask(a, "the Rules changed while the judge read them")
		}
		return w.checked(v)
	})
}

// judgedAttempt is the attempt of a call that waits for the judge.
func judgedAttempt(at time.Time, f *domain.CallFacts) domain.Attempt {
	a := callAttempt(at, f)
	a.Rules = f.Judging.Rules
	a.Deciders = domain.Deciders(domain.OwnerChain(f.Judging.Bot, f.Judging.MainBot, f.Judging.Owners))
	return a
}

// checked moves a call by the outcome of its check and makes the Request that this
// needs.
func (w *callWork) checked(v domain.Verdict) error {
	ev := domain.Checked{At: w.d.at, Verdict: v, Result: domain.TextDenied(v.Decided, v.Reason)}
	var request *domain.Request
	if v.Outcome == domain.OutcomeAsk {
		j := w.f.Judging
		request = newRequest(w.d.at, &w.f.Call, w.f.Parent, &w.f.Chat, w.f.Organization.Settings, j.Bot.ID,
			domain.OwnerChain(j.Bot, j.MainBot, j.Owners), v)
		ev.Request = request.ID
	}
	if err := w.move(ev); err != nil || request == nil {
		return err
	}
	w.d.request(request)
	return nil
}

// judgeCase is what the judge reads about an attempt: the Rules that apply to it.
func judgeCase(a domain.Attempt, tool string, arguments []byte, reason string) domain.JudgeCase {
	c := domain.JudgeCase{Bot: a.Bot, Capability: a.Capability, Tool: tool, Arguments: arguments, Reason: reason}
	for _, r := range a.Rules {
		if r.Applies(a.Bot, a.Member) {
			c.Rules = append(c.Rules, r)
		}
	}
	return c
}

// judgeRequest is the model call that asks the judge.
func (e *Engine) judgeRequest(s domain.Settings, c domain.JudgeCase) domain.ModelRequest {
	model := e.JudgeModel
	if s.JudgeModel != nil && *s.JudgeModel != "" {
		model = *s.JudgeModel
	}
	return domain.ModelRequest{Model: model, Purpose: domain.PurposeJudge, System: domain.JudgeSystem,
		Messages: []domain.ModelMessage{{Role: domain.RoleUser, Text: domain.TextJudge(c)}}, Script: domain.Script{Judge: &c}}
}
