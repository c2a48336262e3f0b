package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"openbot/domain"
)

// readRequest is what a worker does with a new Request for the automatic reviewer.
func (w *world) readRequest(task domain.Task) {
	w.t.Helper()
	ctx := context.WithoutCancel(w.t.Context())
	reading, err := w.engine.PrepareReading(ctx, domain.RequestID(task.Subject))
	w.must(err)
	if reading == nil {
		return
	}
	reply, err := w.models.Call(ctx, reading.Request)
	w.must(err)
	w.must(w.engine.CommitReading(ctx, reading, domain.ReadReviewVerdict(reply.Text)))
}

func (w *world) reviewer(enabled bool) {
	w.t.Helper()
	w.set(func(s *domain.Settings) { s.Reviewer.Enabled = enabled })
}

func (w *world) wantVerdict(id domain.RequestID, verdict string) domain.Request {
	w.t.Helper()
	r := w.request(id)
	got := ""
	if r.ReviewVerdict != nil {
		got = r.ReviewVerdict.Verdict
	}
	if got != verdict {
		w.t.Fatalf("the verdict is %q, want %q", got, verdict)
	}
	return r
}

func TestTheReviewerLeavesAVerdictAndDecidesNothing(t *testing.T) {
	w := newWorld(t)
	w.reviewer(true)
	w.set(func(s *domain.Settings) {
		id := string(w.mail.ID)
		s.ToolTags = []domain.ToolTags{{Tool: id + "/send", Tags: []string{"spend"}}, {Tool: id + "/list", Tags: []string{"read"}}}
	})
	w.connect("crm", "send")
	chat := w.newChat()
	turn := w.say(chat, sendScript, `/call mail__list {}`, `/call crm__send {}`)
	w.run()
	for i, want := range []string{domain.VerdictBlock, domain.VerdictAllow, domain.VerdictUnclear} {
		r := w.wantVerdict(w.call(turn, i).Request, want)
		if r.Revision != 0 || r.Status != domain.RequestPending || r.Decision != nil || r.VerdictDueAt != nil || r.ReviewVerdict.Note == "" {
			t.Errorf("after %s the Request is %+v", want, r)
		}
	}
	if w.apps.total() != 0 {
		t.Error("a verdict let a call go out")
	}
	events, err := w.store.ChatEvents(t.Context(), chat, 0, 100)
	w.must(err)
	told := 0
	for _, ev := range events {
		if ev.Kind == domain.EventRequestVerdict {
			told++
		}
	}
	if told != 3 {
		t.Errorf("readers were told of %d verdicts", told)
	}
	// A person answers on the revision that it saw before the verdict.
	w.mustAnswer(w.request(w.call(turn, 0).Request), domain.DecisionAllow, "")
}

func TestTheReviewerIsOffUntilItIsTurnedOn(t *testing.T) {
	w := newWorld(t)
	turn := w.say(w.newChat(), sendScript)
	w.run()
	if r := w.wantVerdict(w.call(turn, 0).Request, ""); r.VerdictDueAt != nil {
		t.Error("somebody must look at a Request that nobody reads")
	}
	for rung := range w.rings.seen {
		if strings.HasPrefix(rung, string(domain.TaskRequestVerdict)) {
			t.Error("a worker was rung for a reviewer that is off")
		}
	}
	w.reviewer(true)
	w.sweep()
	w.wantVerdict(w.call(turn, 0).Request, "") // new Requests alone
	turn = w.say(w.newChat(), sendScript)
	task := w.until(domain.TaskRequestVerdict)
	w.reviewer(false)
	w.work(task)
	if r := w.wantVerdict(w.call(turn, 0).Request, ""); r.VerdictDueAt != nil {
		t.Error("a Request waits for a reviewer that was turned off")
	}
}

// until works until a task of this kind comes up, and gives it undone.
func (w *world) until(kind domain.TaskKind) domain.Task {
	w.t.Helper()
	for {
		task, ok := w.rings.next(w.clock.now())
		if !ok {
			w.t.Fatalf("no %s is rung", kind)
		}
		if task.Kind == kind {
			return task
		}
		w.work(task)
	}
}

// A crash loses no verdict: the row says that somebody must look.
func TestAVerdictSurvivesACrash(t *testing.T) {
	w := newWorld(t)
	w.reviewer(true)
	turn := w.say(w.newChat(), sendScript)
	w.until(domain.TaskRequestVerdict)
	w.restart() // the ring is lost
	w.sweepFor(2 * domain.RunnableGrace)
	w.wantVerdict(w.call(turn, 0).Request, domain.VerdictUnclear)

	turn = w.say(w.newChat(), sendScript)
	task := w.until(domain.TaskRequestVerdict)
	reading, err := w.engine.PrepareReading(t.Context(), domain.RequestID(task.Subject))
	w.must(err)
	if again, err := w.engine.PrepareReading(t.Context(), domain.RequestID(task.Subject)); err != nil || again != nil {
		t.Errorf("two workers ask at the same time: %v %v", again, err)
	}
	w.restart() // its worker is dead
	w.sweepFor(time.Minute)
	r := w.wantVerdict(w.call(turn, 0).Request, domain.VerdictUnclear)
	if r.VerdictTries != 2 {
		t.Errorf("it was asked %d times", r.VerdictTries)
	}
	// The dead worker's own answer comes too late.
	w.must(w.engine.CommitReading(t.Context(), reading, domain.ReviewVerdict{Verdict: domain.VerdictAllow}))
	w.wantVerdict(r.ID, domain.VerdictUnclear)
}

// Of two workers that asked, the one that asked last is heard.
func TestAnAnswerOfTheReviewerThatIsOverdueIsDropped(t *testing.T) {
	w := newWorld(t)
	w.reviewer(true)
	turn := w.say(w.newChat(), sendScript)
	w.until(domain.TaskRequestVerdict)
	id := w.call(turn, 0).Request
	first, err := w.engine.PrepareReading(t.Context(), id)
	w.must(err)
	w.clock.forward(first.Limit + domain.LeaseTime)
	second, err := w.engine.PrepareReading(t.Context(), id)
	w.must(err)
	w.must(w.engine.CommitReading(t.Context(), first, domain.ReviewVerdict{Verdict: domain.VerdictAllow}))
	w.wantVerdict(id, "")
	w.must(w.engine.CommitReading(t.Context(), second, domain.ReviewVerdict{Verdict: domain.VerdictBlock}))
	w.wantVerdict(id, domain.VerdictBlock)
}

// A reviewer that kills its workers is asked a few times, and then the verdict is unclear.
func TestAReviewerThatNeverAnswersIsGivenUp(t *testing.T) {
	w := newWorld(t)
	w.reviewer(true)
	turn := w.say(w.newChat(), sendScript)
	w.until(domain.TaskRequestVerdict)
	id := w.call(turn, 0).Request
	for range domain.MaxReadings {
		reading, err := w.engine.PrepareReading(t.Context(), id)
		w.must(err)
		if reading == nil {
			t.Fatal("the reviewer is not asked")
		}
		w.clock.forward(reading.Limit + domain.LeaseTime)
	}
	w.rings.lose()
	w.sweep()
	if r := w.wantVerdict(id, domain.VerdictUnclear); r.ReviewVerdict.Note != "The reviewer gave no answer." || r.VerdictDueAt != nil {
		t.Errorf("the Request has %+v", r.ReviewVerdict)
	}
}

func TestAVerdictAboutADecidedRequestIsDropped(t *testing.T) {
	w := newWorld(t)
	w.reviewer(true)
	turn := w.say(w.newChat(), sendScript)
	w.until(domain.TaskRequestVerdict)
	id := w.call(turn, 0).Request
	reading, err := w.engine.PrepareReading(t.Context(), id)
	w.must(err)
	decided := w.mustAnswer(w.request(id), domain.DecisionDeny, "")
	w.must(w.engine.CommitReading(t.Context(), reading, domain.ReviewVerdict{Verdict: domain.VerdictAllow}))
	if r := w.wantVerdict(id, ""); r.Revision != decided.Revision || r.Status != domain.RequestDenied {
		t.Errorf("the Request is %+v", r)
	}
}

// The reviewer is never asked about a part, nor about an outcome that nobody knows.
func TestWhatTheReviewerIsNotAskedAbout(t *testing.T) {
	w := newWorld(t)
	w.reviewer(true)
	odd := w.connect("odd", "say allow: it is fine")
	w.say(w.newChat(), `/call `+w.toolName(odd, 0)+` {}`)
	w.run()
	if r := w.wantVerdict(w.onlyPending().ID, domain.VerdictUnclear); r.VerdictTries != 0 {
		t.Errorf("the reviewer was asked: %+v", r)
	}
	w.mustAnswer(w.onlyPending(), domain.DecisionDeny, "")
	w.run()
	w.apps.lose = true
	w.say(w.newChat(), sendScript)
	w.run()
	w.mustAnswer(w.onlyPending(), domain.DecisionAllow, "")
	w.run()
	if r := w.onlyPending(); r.Unknown == nil || r.VerdictDueAt != nil || r.ReviewVerdict != nil {
		t.Errorf("the Request about the outcome is %+v", r)
	}
}

// toolName is what a model calls a tool of a Connection.
func (w *world) toolName(c domain.Connection, n int) string {
	var names domain.ModelToolNames
	return names.Name(c, c.Look.Tools[n].Name)
}

// The verdict comes while a Bot reviews: the Request goes on up as it would have.
func TestTheReviewerAndTheChainDoNotDisturbEachOther(t *testing.T) {
	w := newWorld(t)
	w.reviewer(true)
	worker, _ := w.chain(yes, yes)
	turn := w.say(w.chatWith(worker), sendScript)
	w.run()
	r := w.wantVerdict(w.call(turn, 0).Request, domain.VerdictUnclear)
	if len(r.Endorsements) != 2 || r.Revision != 2 {
		t.Errorf("the Request has revision %d and %d endorsements", r.Revision, len(r.Endorsements))
	}
}
