package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"openbot/domain"
	"openbot/domain/engine"
	"openbot/model"
	"openbot/program"
	"openbot/repository"
)

// TestMain makes the test binary its own child, as main does: programs run in it.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == program.ChildArgument {
		os.Exit(program.Main(os.Stdin, os.Stdout))
	}
	goleak.VerifyTestMain(m)
}

// world is an engine on a real store, with everything outside it in the hands of the
// test: time, workers, the model, the App, and when the process dies.
type world struct {
	t      tester
	engine *engine.Engine
	store  *hookedStore
	rings  *ringer
	apps   *app
	// receiver is whoever webhooks tell.
	receiver *receiver
	models   engine.Models
	secret   string
	me       domain.Principal
	mail     domain.Connection
	clock    *clock
	// programs runs programs; nil means as the server does, without its limit of time.
	programs engine.Programs
}

// tester is a test, or one check of a property.
type tester interface {
	rapid.TB
	Context() context.Context
	Cleanup(func())
}

type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) forward(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(by)
}

// hookedStore lets a test stand before and after each commit and in the middle of
// loading.
type hookedStore struct {
	*repository.Store
	mu         sync.Mutex
	commits    int
	before     func(n int, c domain.Commit) error // an error is that of the commit
	after      func(n int)
	stepFacts  func(domain.StepFacts) domain.StepFacts
	beforeTurn func(domain.TurnID)
	callFacts  int // how often a call was loaded
}

func (s *hookedStore) Commit(ctx context.Context, c domain.Commit) error {
	s.mu.Lock()
	n, before, after := s.commits+1, s.before, s.after
	s.mu.Unlock()
	if before != nil {
		if err := before(n, c); err != nil {
			return err
		}
	}
	if err := s.Store.Commit(ctx, c); err != nil {
		return err
	}
	s.mu.Lock()
	s.commits++
	s.mu.Unlock()
	if after != nil {
		after(n)
	}
	return nil
}

func (s *hookedStore) StepFacts(ctx context.Context, id domain.TurnID) (domain.StepFacts, error) {
	f, err := s.Store.StepFacts(ctx, id)
	if err == nil && s.stepFacts != nil {
		f = s.stepFacts(f)
	}
	return f, err
}

func (s *hookedStore) CallFacts(ctx context.Context, id domain.CallID) (domain.CallFacts, error) {
	s.mu.Lock()
	s.callFacts++
	s.mu.Unlock()
	return s.Store.CallFacts(ctx, id)
}

func (s *hookedStore) TurnFacts(ctx context.Context, id domain.TurnID) (domain.TurnFacts, error) {
	if hook := s.beforeTurn; hook != nil {
		s.beforeTurn = nil
		hook(id)
	}
	return s.Store.TurnFacts(ctx, id)
}

func (s *hookedStore) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commits
}

// ringer keeps the tasks that were rung, once each, as the queue does.
type ringer struct {
	mu    sync.Mutex
	tasks []domain.Task
	seen  map[string]bool
	n     int
	after func(n int)
}

func (r *ringer) Ring(_ context.Context, tasks ...domain.Task) {
	r.mu.Lock()
	for _, task := range tasks {
		if key := fmt.Sprint(task.Kind, task.Subject, task.Revision); !r.seen[key] {
			r.seen[key] = true
			r.tasks = append(r.tasks, task)
		}
	}
	r.n++
	n, after := r.n, r.after
	r.mu.Unlock()
	if after != nil {
		after(n)
	}
}

// next gives the oldest task that is due.
func (r *ringer) next(now time.Time) (domain.Task, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, task := range r.tasks {
		if !now.Before(task.At) {
			r.tasks = slices.Delete(r.tasks, i, i+1)
			return task, true
		}
	}
	return domain.Task{}, false
}

func (r *ringer) lose() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tasks = nil
}

type silence struct{}

func (silence) Publish(context.Context, ...string) {}
func (silence) Subscribe(string) (<-chan struct{}, func()) {
	return make(chan struct{}), func() {}
}

// sealed is a Sealer for tests that look at no secret.
type sealed struct{}

func (sealed) Seal(plain []byte, _ domain.OrganizationID, _ string) ([]byte, error) {
	return append([]byte("sealed:"), plain...), nil
}

func (sealed) Open(box []byte, _ domain.OrganizationID, _ string) ([]byte, error) {
	return box[len("sealed:"):], nil
}

// app counts what reaches the outside world.
type app struct {
	mu    sync.Mutex
	sends map[domain.CallID]int
	args  []string
	lose  bool // it takes calls and never answers
}

func (a *app) send(c domain.Call) (domain.AppResult, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sends[c.ID]++
	a.args = append(a.args, string(c.Arguments))
	if a.lose {
		return domain.AppResult{}, &domain.AppError{NoAnswer: true, Message: "no answer"}
	}
	return domain.AppResult{Text: "did " + c.Tool + " " + string(c.Arguments)}, nil
}

func (a *app) total() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, sends := range a.sends {
		n += sends
	}
	return n
}

// most gives how often the call that went out most went out.
func (a *app) most() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, sends := range a.sends {
		n = max(n, sends)
	}
	return n
}

// emptyDatabase is the file of a database that holds the schema and nothing else. It is
// made once: migrating for every test took most of their time.
var emptyDatabase = sync.OnceValues(func() ([]byte, error) {
	folder, err := os.MkdirTemp("", "openbot-schema")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "openbot.db")
	store, err := repository.Open(context.Background(), repository.Options{File: file})
	if err != nil {
		return nil, err
	}
	if err := store.Migrate(context.Background()); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	if err := store.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
})

// newWorld makes a world beside others: most of a test's time is the disk's.
func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return newWorldAlone(t)
}

// newWorldAlone is for subtests whose outcome the next one needs.
func newWorldAlone(t *testing.T) *world {
	t.Helper()
	file := filepath.Join(t.TempDir(), "openbot.db")
	schema, err := emptyDatabase()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, schema, 0o600); err != nil {
		t.Fatal(err)
	}
	w := worldIn(t, file)
	w.begin()
	t.Cleanup(func() {
		if !t.Failed() {
			w.accounted()
		}
	})
	return w
}

// worldIn makes a world on a database that may have been there before.
func worldIn(t tester, file string) *world {
	t.Helper()
	store, err := repository.Open(t.Context(), repository.Options{File: file})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	models := model.New(model.Options{})
	t.Cleanup(models.Close)
	w := &world{t: t, store: &hookedStore{Store: store}, apps: &app{sends: map[domain.CallID]int{}}, receiver: &receiver{status: 200}, models: models,
		clock: &clock{at: time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)}}
	w.restart()
	return w
}

// begin makes the first Member of an empty database, with an App.
func (w *world) begin() {
	w.t.Helper()
	w.must(w.store.Migrate(w.t.Context()))
	var err error
	w.secret, err = w.engine.FirstStart(w.t.Context(), "")
	w.must(err)
	w.me, err = w.engine.Authenticate(w.t.Context(), w.secret)
	w.must(err)
	w.mail = w.connect("mail", "send", "list")
}

// restart is a new process on the same database: whatever was rung is lost.
func (w *world) restart() {
	w.rings = &ringer{seen: map[string]bool{}}
	w.store.before, w.store.after = nil, nil
	w.engine = engine.New(engine.Options{Store: w.store, Ringer: w.rings, Live: silence{}, Models: w.models, Sealer: sealed{},
		Clock: w.clock.now, DefaultModel: "playbook"})
}

const anyObject = `{"type":"object","properties":{"to":{"type":"string"},"n":{}}}`

// connect saves an App that was just looked at.
func (w *world) connect(name string, tools ...string) domain.Connection {
	w.t.Helper()
	now := w.clock.now()
	id := domain.ConnectionID(fmt.Sprintf("con_%032x", w.store.count()+1))
	c := domain.Connection{ID: id, Organization: w.me.Organization, Member: w.me.Member.ID, Name: name, Transport: domain.TransportHTTP,
		URL: "https://app.example/mcp", Revision: 1, Health: domain.HealthOK, LookedAt: &now, CreatedAt: now, UpdatedAt: now}
	c.Look.Digest = "d1"
	for _, tool := range tools {
		c.Look.Tools = append(c.Look.Tools, domain.AppTool{Name: tool, Schema: json.RawMessage(anyObject)})
	}
	w.must(w.store.Commit(w.t.Context(), domain.Commit{At: now, Rows: []domain.Row{&c}}))
	return c
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) newChat() domain.ChatID {
	w.t.Helper()
	chat, err := w.engine.CreateChat(w.t.Context(), w.me, engine.NewChat{})
	w.must(err)
	return chat.ID
}

func (w *world) say(chat domain.ChatID, lines ...string) domain.TurnID {
	w.t.Helper()
	posted, err := w.engine.PostMessage(w.t.Context(), w.me, chat, strings.Join(lines, "\n"))
	w.must(err)
	return posted.Turn
}

// work is what a worker does with one task.
func (w *world) work(task domain.Task) {
	w.t.Helper()
	ctx := context.WithoutCancel(w.t.Context())
	switch task.Kind {
	case domain.TaskTurnStep:
		step, err := w.engine.PrepareStep(ctx, domain.TurnID(task.Subject), task.Revision)
		w.must(err)
		if step != nil {
			w.finish(step)
		}
	case domain.TaskCallSend:
		taking, err := w.engine.TakeCall(ctx, domain.CallID(task.Subject), task.Revision, false)
		w.must(err)
		if taking.Look != nil {
			w.must(w.engine.SaveLook(ctx, *taking.Look, taking.Look.Look, nil))
			taking, err = w.engine.TakeCall(ctx, domain.CallID(task.Subject), task.Revision, true)
			w.must(err)
		}
		if taking.Decide != nil {
			w.decide(taking.Decide)
		}
		if taking.Sending != nil {
			w.carry(taking.Sending)
		}
	case domain.TaskProgramRun:
		run, err := w.engine.PrepareProgram(ctx, domain.CallID(task.Subject), task.Revision)
		w.must(err)
		if run != nil {
			w.must(w.engine.CommitProgram(ctx, run, w.runProgram(run)))
		}
	case domain.TaskCallJudge, domain.TaskRequestReview, domain.TaskBotClose, domain.TaskRulePreview:
		w.workDeciders(task)
	case domain.TaskRequestVerdict:
		w.readRequest(task)
	case domain.TaskCallLapse:
		w.must(w.engine.LapseCall(ctx, domain.CallID(task.Subject)))
	case domain.TaskRequestElapse:
		w.must(w.engine.ElapseRequest(ctx, domain.RequestID(task.Subject)))
	case domain.TaskRequestFollowUp:
		w.must(w.engine.FollowUpRequest(ctx, domain.RequestID(task.Subject)))
	case domain.TaskGrantSettle:
		w.must(w.engine.SettleGrant(ctx, domain.GrantID(task.Subject)))
	case domain.TaskReminderFire:
		w.must(w.engine.FireReminder(ctx, domain.ReminderID(task.Subject)))
	case domain.TaskTokenClose:
		w.must(w.engine.CloseRights(ctx, task.Subject))
	case domain.TaskTriggerFire:
		w.must(w.engine.FireTrigger(ctx, domain.TriggerID(task.Subject)))
	case domain.TaskWorkElapse:
		w.must(w.engine.ElapseWork(ctx, domain.DelegationID(task.Subject)))
	case domain.TaskWorkNotify:
		w.must(w.engine.NotifyWork(ctx, domain.DelegationID(task.Subject)))
	case domain.TaskWorkClose:
		w.must(w.engine.CloseWork(ctx, domain.DelegationID(task.Subject)))
	case domain.TaskWorkResume:
		w.must(w.engine.ResumeWork(ctx, domain.DelegationID(task.Subject)))
	case domain.TaskWebhookDeliver:
		w.deliver(task)
	case domain.TaskConnectionLook:
		c, err := w.engine.LookTarget(ctx, domain.ConnectionID(task.Subject))
		w.must(err)
		if c != nil {
			w.must(w.engine.SaveLook(ctx, *c, c.Look, nil))
		}
	default:
		w.t.Fatalf("no worker does %s", task.Kind)
	}
}

func (w *world) finish(step *engine.Step) {
	w.t.Helper()
	ctx := context.WithoutCancel(w.t.Context())
	reply, err := w.models.Call(ctx, step.Request)
	if err == nil {
		w.must(w.engine.CommitStep(ctx, step, reply))
		return
	}
	failure, ok := err.(*domain.ModelError)
	if !ok {
		w.t.Fatal(err)
	}
	w.must(w.engine.FailStep(ctx, step, failure))
}

func (w *world) carry(s *engine.Sending) {
	w.t.Helper()
	ctx := context.WithoutCancel(w.t.Context())
	result, err := w.apps.send(s.Call)
	if err != nil {
		w.must(w.engine.LoseCall(ctx, s))
		return
	}
	w.must(w.engine.SettleCall(ctx, s, result.IsError, result.Text))
}

// run works off what was rung, until nothing is left that is due.
func (w *world) run() {
	w.t.Helper()
	for range 1000 {
		task, ok := w.rings.next(w.clock.now())
		if !ok {
			return
		}
		w.work(task)
	}
	w.t.Fatal("the work does not end")
}

// sweep works off what the scheduler finds in the database, and reports whether that
// was anything.
func (w *world) sweep() bool {
	w.t.Helper()
	any := false
	for _, kind := range domain.TaskKinds() {
		tasks, err := w.engine.DueTasks(w.t.Context(), kind, 0, 100)
		w.must(err)
		for _, task := range tasks {
			any = true
			w.work(task)
		}
	}
	return any
}

// sweepFor lets only the sweep drive the work for a while, every few seconds.
func (w *world) sweepFor(span time.Duration) {
	w.t.Helper()
	for end := w.clock.now().Add(span); w.clock.now().Before(end); w.clock.forward(3 * time.Second) {
		w.rings.lose()
		w.sweep()
	}
	w.rings.lose()
}

func (w *world) view(turn domain.TurnID) engine.TurnView {
	w.t.Helper()
	v, err := w.engine.Turn(w.t.Context(), w.me, turn)
	w.must(err)
	return v
}

func (w *world) wantStatus(turn domain.TurnID, status domain.TurnStatus) engine.TurnView {
	w.t.Helper()
	v := w.view(turn)
	if v.Turn.Status != status {
		w.t.Fatalf("the Turn is %s (%s), want %s", v.Turn.Status, v.Turn.Error, status)
	}
	return v
}

// pending gives the Requests that wait, oldest first.
func (w *world) pending() []domain.Request {
	w.t.Helper()
	list, err := w.engine.Requests(w.t.Context(), w.me, domain.RequestFilter{Status: domain.RequestPending}, domain.Page{Limit: 100})
	w.must(err)
	slices.Reverse(list)
	return list
}

func (w *world) onlyPending() domain.Request {
	w.t.Helper()
	list := w.pending()
	if len(list) != 1 {
		w.t.Fatalf("%d Requests wait, want one", len(list))
	}
	return list[0]
}

func (w *world) answer(r domain.Request, decision, scope string) (domain.Request, error) {
	return w.engine.AnswerRequest(w.t.Context(), w.me, r.ID, engine.Answer{Expected: r.Revision, Decision: decision, Scope: scope})
}

func (w *world) mustAnswer(r domain.Request, decision, scope string) domain.Request {
	w.t.Helper()
	decided, err := w.answer(r, decision, scope)
	w.must(err)
	return decided
}

func (w *world) request(id domain.RequestID) domain.Request {
	w.t.Helper()
	r, err := w.engine.Request(w.t.Context(), w.me, id)
	w.must(err)
	return r
}

func (w *world) wantCode(err error, code domain.Code) {
	w.t.Helper()
	if domain.CodeOf(err) != code {
		w.t.Fatalf("the error is %q (%v), want code %q", domain.CodeOf(err), err, code)
	}
}

// die runs f as a process that may stop at any point of it: nothing after crash
// happens, and nothing is cleaned up but what Go itself does.
func (w *world) die(f func()) (died bool) {
	died = true
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
		died = false
	}()
	<-done
	return died
}

// crash ends the process of die.
func crash() { runtime.Goexit() }
