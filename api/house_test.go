package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"openbot/api"
	"openbot/domain"
	"openbot/domain/engine"
	"openbot/model"
	"openbot/repository"
)

// house is the HTTP door on the real engine and the real store, with a worker that
// does what is rung when the test says so.
type house struct {
	t        *testing.T
	store    *repository.Store
	engine   *engine.Engine
	handler  http.Handler
	registry *prometheus.Registry
	contract *contract
	file     string
	clock    *clock
	bell     *bell
	limiter  *limiter
	secret   string // of the first token
	me       engineMe
	tool     func(call domain.Call) (text string, failed bool) // the App
	look     func(c domain.Connection) (domain.AppLook, *domain.AppError)
	program  func(run *engine.ProgramRun) domain.ProgramOutcome // what the program of a Bot does
	receives func(m domain.HookMessage) int                     // the status that a receiver of messages answers
}

type engineMe struct {
	organization domain.OrganizationID
	member       domain.MemberID
	mainBot      domain.BotID
	token        domain.TokenID
}

const firstSecret = "test-token-0123456789-0123456789-0123456789"

func newHouse(t *testing.T, change ...func(*api.Options)) *house {
	t.Helper()
	file := filepath.Join(t.TempDir(), "openbot.db")
	must(t, os.WriteFile(file, emptyDatabase(t), 0o600))
	store, err := repository.Open(t.Context(), repository.Options{File: file})
	must(t, err)
	t.Cleanup(func() { must(t, store.Close()) })
	h := &house{t: t, store: store, file: file, clock: &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, bell: &bell{}, limiter: &limiter{},
		registry: prometheus.NewRegistry(), secret: firstSecret}
	models := model.New(model.Options{})
	h.engine = engine.New(engine.Options{Store: store, Ringer: h.bell, Live: newLive(), Limiter: h.limiter, Models: models, Sealer: plainSealer{},
		Clock: h.clock.now, DefaultModel: "playbook", CheckModel: models.Known, CheckURL: checkURL, AllowCommands: true})
	h.bell.look = h.lookAt
	h.bell.now = func(task domain.Task) {
		if err := h.do(context.Background(), task); err != nil {
			t.Error(err)
		}
	}
	h.tool = func(domain.Call) (string, bool) { return "sent", false }
	h.receives = func(domain.HookMessage) int { return 200 }
	h.look = func(domain.Connection) (domain.AppLook, *domain.AppError) { return mailLook(), nil }
	_, err = h.engine.FirstStart(t.Context(), firstSecret)
	must(t, err)
	options := api.Options{Engine: h.engine, Registry: h.registry, Version: "1.2.3", SessionKey: []byte("a session key of more than 16 bytes")}
	for _, c := range change {
		c(&options)
	}
	h.handler, err = api.New(options)
	must(t, err)
	h.contract = readContract(t, h.handler)
	p, err := h.engine.Authenticate(t.Context(), firstSecret)
	must(t, err)
	h.me = engineMe{p.Organization, p.Member.ID, p.Member.MainBot, p.Token.ID}
	t.Cleanup(h.bell.wait)
	return h
}

var (
	emptyOnce  sync.Once
	emptyBytes []byte
)

// emptyDatabase is a migrated database without rows, made once for all tests.
func emptyDatabase(t *testing.T) []byte {
	t.Helper()
	emptyOnce.Do(func() {
		file := filepath.Join(t.TempDir(), "empty.db")
		store, err := repository.Open(t.Context(), repository.Options{File: file})
		must(t, err)
		must(t, store.Migrate(t.Context()))
		must(t, store.Close())
		emptyBytes, err = os.ReadFile(file)
		must(t, err)
	})
	return emptyBytes
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// mailLook is what the App of the tests offers.
func mailLook() domain.AppLook {
	yes := true
	return domain.AppLook{Name: "Mail", Version: "1", Digest: "d1",
		Tools: []domain.AppTool{
			{Name: "send_email", Title: "Send a mail", Description: "Sends one mail.", Hints: domain.AppHints{OpenWorld: &yes},
				Schema: json.RawMessage(`{"type":"object","properties":{"to":{"type":"string"},"text":{"type":"string"}},"required":["to"],"additionalProperties":false}`)},
		},
		Resources: []domain.AppResource{{URI: "mail://inbox", Name: "Inbox"}},
		Templates: []domain.AppTemplate{{URITemplate: "mail://{id}", Name: "Mail"}},
		Prompts:   []domain.AppPrompt{{Name: "summary", Arguments: []domain.AppPromptArgument{{Name: "of", Required: true}}}},
		Skipped:   []string{"bad tool: its schema is no JSON Schema"}}
}

func checkURL(address string) error {
	if !strings.HasPrefix(address, "https://") {
		return errors.New("must be an https address")
	}
	return nil
}

// work does what was rung until nothing is left.
func (h *house) work() {
	h.t.Helper()
	for {
		h.bell.wait()
		tasks := h.bell.take()
		if len(tasks) == 0 {
			return
		}
		for _, task := range tasks {
			must(h.t, h.do(h.t.Context(), task))
		}
	}
}

func (h *house) do(ctx context.Context, task domain.Task) error {
	switch task.Kind {
	case domain.TaskTurnStep:
		step, err := h.engine.PrepareStep(ctx, domain.TurnID(task.Subject), task.Revision)
		if err != nil || step == nil {
			return err
		}
		reply, err := h.engine.Models.Call(ctx, step.Request)
		var failure *domain.ModelError
		if errors.As(err, &failure) {
			return h.engine.FailStep(ctx, step, failure)
		}
		if err != nil {
			return err
		}
		return h.engine.CommitStep(ctx, step, reply)
	case domain.TaskCallSend:
		taking, err := h.engine.TakeCall(ctx, domain.CallID(task.Subject), task.Revision, true)
		if err != nil || taking.Sending == nil {
			return err
		}
		text, failed := h.tool(taking.Sending.Call)
		if text == "" {
			return h.engine.LoseCall(ctx, taking.Sending)
		}
		return h.engine.SettleCall(ctx, taking.Sending, failed, text)
	case domain.TaskProgramRun:
		run, err := h.engine.PrepareProgram(ctx, domain.CallID(task.Subject), task.Revision)
		if err != nil || run == nil {
			return err
		}
		return h.engine.CommitProgram(ctx, run, h.program(run))
	case domain.TaskCallJudge:
		j, err := h.engine.PrepareJudge(ctx, domain.CallID(task.Subject), task.Revision)
		if err != nil || j == nil {
			return err
		}
		reply, err := h.engine.Models.Call(ctx, j.Request)
		if err != nil {
			return err
		}
		verdict := domain.ReadVerdict(j.Rules, reply.Text)
		verdict.Usage = reply.Usage
		return h.engine.CommitVerdict(ctx, j, verdict)
	case domain.TaskRulePreview:
		p, err := h.engine.PreparePreview(ctx, domain.PreviewID(task.Subject), task.Revision)
		if err != nil || p == nil {
			return err
		}
		var verdicts []domain.RulesVerdict
		for _, c := range p.Cases {
			reply, err := h.engine.Models.Call(ctx, c.Request)
			if err != nil {
				return err
			}
			verdict := domain.ReadVerdict(c.Rules, reply.Text)
			verdict.Usage = reply.Usage
			verdicts = append(verdicts, verdict)
		}
		return h.engine.CommitPreview(ctx, p, verdicts)
	case domain.TaskRequestVerdict:
		reading, err := h.engine.PrepareReading(ctx, domain.RequestID(task.Subject))
		if err != nil || reading == nil {
			return err
		}
		reply, err := h.engine.Models.Call(ctx, reading.Request)
		if err != nil {
			return err
		}
		return h.engine.CommitReading(ctx, reading, domain.ReadReviewVerdict(reply.Text))
	case domain.TaskRequestReview:
		return h.engine.AdvanceReview(ctx, domain.RequestID(task.Subject))
	case domain.TaskBotClose:
		return h.engine.CloseBot(ctx, domain.BotID(task.Subject))
	case domain.TaskRequestFollowUp:
		return h.engine.FollowUpRequest(ctx, domain.RequestID(task.Subject))
	case domain.TaskGrantSettle:
		return h.engine.SettleGrant(ctx, domain.GrantID(task.Subject))
	case domain.TaskReminderFire:
		return h.engine.FireReminder(ctx, domain.ReminderID(task.Subject))
	case domain.TaskTokenClose:
		return h.engine.CloseRights(ctx, task.Subject)
	case domain.TaskWorkElapse:
		return h.engine.ElapseWork(ctx, domain.DelegationID(task.Subject))
	case domain.TaskWorkNotify:
		return h.engine.NotifyWork(ctx, domain.DelegationID(task.Subject))
	case domain.TaskWorkClose:
		return h.engine.CloseWork(ctx, domain.DelegationID(task.Subject))
	case domain.TaskWorkResume:
		return h.engine.ResumeWork(ctx, domain.DelegationID(task.Subject))
	case domain.TaskWebhookDeliver:
		out, err := h.engine.TakeDelivery(ctx, domain.DeliveryID(task.Subject), task.Revision)
		if err != nil || out == nil {
			return err
		}
		return h.engine.SettleDelivery(ctx, out, h.receives(out.Message), nil)
	}
	return nil
}

// lookAt looks at an App as soon as it is rung: whoever made the Connection waits.
func (h *house) lookAt(id domain.ConnectionID) {
	c, err := h.engine.LookTarget(context.Background(), id)
	if err != nil || c == nil {
		return
	}
	look, failure := h.look(*c)
	if err := h.engine.SaveLook(context.Background(), *c, look, failure); err != nil {
		h.t.Error(err)
	}
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
	script bool // of a route for scripts
}

// call sends one request with the first token.
func (h *house) call(method, path, body string, headers ...string) answer {
	h.t.Helper()
	return h.as(h.secret, method, path, body, headers...)
}

// as sends one request with a token; headers are name and value by turns.
func (h *house) as(secret, method, path, body string, headers ...string) answer {
	h.t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r := httptest.NewRequestWithContext(h.t.Context(), method, path, reader)
	r.RemoteAddr = "203.0.113.7:4000"
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return h.send(r)
}

func (h *house) send(r *http.Request) answer {
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	a := answer{w.Code, w.Header(), w.Body.String(), strings.HasPrefix(r.URL.Path, "/api/v1")}
	h.fits(r, a)
	return a
}

// ok sends a request that must give this status, and decodes the body.
func (h *house) ok(status int, method, path, body string, headers ...string) map[string]any {
	h.t.Helper()
	a := h.call(method, path, body, headers...)
	if a.status != status {
		h.t.Fatalf("%s %s gave %d, not %d: %s", method, path, a.status, status, a.body)
	}
	return a.object(h.t)
}

func (a answer) object(t *testing.T) map[string]any {
	t.Helper()
	if a.body == "" {
		return nil
	}
	var out map[string]any
	if err := json.Unmarshal([]byte(a.body), &out); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	return out
}

func (a answer) list(t *testing.T) []map[string]any {
	t.Helper()
	var out []map[string]any
	if err := json.Unmarshal([]byte(a.body), &out); err != nil || out == nil {
		t.Fatalf("not a list: %v: %s", err, a.body)
	}
	return out
}

func text(v any) string { s, _ := v.(string); return s }

// connect makes the Connection of the tests.
func (h *house) connect() string {
	h.t.Helper()
	return text(h.ok(201, "POST", "/v1/connections", `{"name":"mail","transport":"http","url":"https://mail.example/mcp","headers":{"Authorization":"Bearer hush-hush"}}`)["id"])
}

// chat makes a Chat with a message and does the work that follows.
func (h *house) chat(message string) (chat, turn string) {
	h.t.Helper()
	chat = text(h.ok(201, "POST", "/v1/chats", `{"title":"A Chat"}`)["id"])
	body, err := json.Marshal(map[string]string{"text": message})
	must(h.t, err)
	turn = text(h.ok(202, "POST", "/v1/chats/"+chat+"/messages", string(body))["turn"])
	h.work()
	return chat, turn
}

// asking makes a Chat whose Bot asks to send a mail, and gives the Request.
func (h *house) asking() (chat, turn, request string) {
	h.t.Helper()
	chat, turn = h.chat(`/call mail__send_email {"to":"ann@example.com","text":"Hello <b>Ann</b>","openbot_reason":"Ann asked for it."}`)
	waiting := h.ok(200, "GET", "/v1/turns/"+turn, "")["waitingFor"].([]any)
	if len(waiting) != 1 {
		h.t.Fatalf("the Turn does not wait: %v", h.call("GET", "/v1/turns/"+turn, "").body)
	}
	return chat, turn, text(waiting[0].(map[string]any)["request"])
}

// token makes a token with these scopes.
func (h *house) token(scopes string) (id, secret string) {
	h.t.Helper()
	made := h.ok(201, "POST", "/v1/tokens", `{"name":"a token","scopes":`+scopes+`}`)
	return text(made["id"]), text(made["token"])
}

// stranger makes another Member of the same organization, with a token.
func (h *house) stranger(permissions, scopes string) (member, secret string) {
	h.t.Helper()
	member = text(h.ok(201, "POST", "/v1/members", `{"name":"Stranger","permissions":`+permissions+`}`)["id"])
	made := h.ok(201, "POST", "/v1/tokens", `{"name":"hers","scopes":`+scopes+`,"member":"`+member+`"}`)
	return member, text(made["token"])
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

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// bell remembers what was rung.
type bell struct {
	mu     sync.Mutex
	tasks  []domain.Task
	look   func(domain.ConnectionID)
	now    func(domain.Task) // for what a caller waits for
	flying sync.WaitGroup
}

func (b *bell) Ring(_ context.Context, tasks ...domain.Task) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range tasks {
		if t.Kind == domain.TaskConnectionLook {
			b.flying.Go(func() { b.look(domain.ConnectionID(t.Subject)) })
			continue
		}
		if t.Kind == domain.TaskRulePreview {
			b.flying.Go(func() { b.now(t) })
			continue
		}
		b.tasks = append(b.tasks, t)
	}
}

func (b *bell) wait() { b.flying.Wait() }

func (b *bell) take() []domain.Task {
	b.mu.Lock()
	defer b.mu.Unlock()
	tasks := b.tasks
	b.tasks = nil
	return tasks
}

// live tells readers in this process.
type live struct {
	mu      sync.Mutex
	readers map[string]map[chan struct{}]bool
}

func newLive() *live { return &live{readers: map[string]map[chan struct{}]bool{}} }

func (l *live) Publish(_ context.Context, streams ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range streams {
		for c := range l.readers[s] {
			select {
			case c <- struct{}{}:
			default:
			}
		}
	}
}

func (l *live) Subscribe(stream string) (<-chan struct{}, func()) {
	c := make(chan struct{}, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.readers[stream] == nil {
		l.readers[stream] = map[chan struct{}]bool{}
	}
	l.readers[stream][c] = true
	return c, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.readers[stream], c)
	}
}

// limiter counts for ever: no test lasts a minute.
type limiter struct {
	mu   sync.Mutex
	seen map[string]int
}

func (l *limiter) Allow(_ context.Context, key string, limit int, _ time.Duration) (bool, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil {
		l.seen = map[string]int{}
	}
	l.seen[key]++
	return l.seen[key] <= limit, 7 * time.Second
}

func (l *limiter) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = nil
}

// plainSealer marks what a real one would encrypt.
type plainSealer struct{}

var seal = []byte("sealed:")

func (plainSealer) Seal(plain []byte, _ domain.OrganizationID, _ string) ([]byte, error) {
	return append(bytes.Clone(seal), plain...), nil
}

func (plainSealer) Open(sealed []byte, _ domain.OrganizationID, _ string) ([]byte, error) {
	return bytes.TrimPrefix(sealed, seal), nil
}
