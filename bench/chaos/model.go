//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"time"
)

// Models that the recorder plays, as settings and Bots name them.
const (
	judgeModel   = "openai:judge"
	deciderModel = "openai:decider"
	handModel    = "openai:hand"
)

// ruleText is the one Rule that the judge reads.
const (
	ruleAllows = "Mail to colleagues may go out."
	ruleDenies = "Mail to rivals never goes out."
	ruleText   = ruleAllows + " " + ruleDenies
)

// Ways in which the model fails.
const (
	modelWell    = ""
	modelSlow    = "slow"
	modelBusy    = "busy"    // 429 and 503
	modelGarbage = "garbage" // 200 with what is no answer
	modelTorn    = "torn"    // the answer ends in its middle
	modelDead    = "dead"    // the connection is closed without a byte
)

// recorder is a model server of the shape of OpenAI's that writes down what it is asked
// and follows the stories: as judge, as a deciding Bot and as one that does work.
type recorder struct {
	record *record
	how    atomic.Value // how it fails now
	asked  atomic.Int64
	failed atomic.Int64
	url    string
	server *http.Server
}

func startRecorder(r *record) (*recorder, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m := &recorder{record: r, url: "http://" + listener.Addr().String() + "/v1"}
	m.how.Store(modelWell)
	m.server = &http.Server{Handler: m, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = m.server.Serve(listener) }()
	return m, nil
}

func (m *recorder) close() { _ = m.server.Close() }

type asked struct {
	Model    string
	Messages []struct {
		Role      string
		Content   string
		ToolCalls []json.RawMessage `json:"tool_calls"`
	}
}

// ServeHTTP answers one chat completion.
func (m *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	var q asked
	if err == nil {
		err = json.Unmarshal(raw, &q)
	}
	if err != nil {
		http.Error(w, "unreadable", http.StatusBadRequest)
		return
	}
	m.asked.Add(1)
	note, message := m.reply(q)
	how, _ := m.how.Load().(string)
	if how != modelWell && how != modelSlow {
		note.said = ""
		m.failed.Add(1)
	}
	// Noted before the answer is out, so that whatever follows from it comes later.
	note.at = time.Now()
	add(m.record, &m.record.advice, note)
	body, err := json.Marshal(object{"id": "1", "object": "chat.completion", "model": q.Model,
		"choices": []object{{"index": 0, "finish_reason": finish(message), "message": message}},
		"usage":   object{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	wait(r.Context(), note.hold)
	m.send(w, r, how, body)
}

// send answers well, or fails in the way of the hour.
func (m *recorder) send(w http.ResponseWriter, r *http.Request, how string, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	switch how {
	case modelSlow:
		wait(r.Context(), 4*time.Second)
	case modelBusy:
		w.WriteHeader([]int{http.StatusTooManyRequests, http.StatusServiceUnavailable}[m.failed.Load()%2])
		body = []byte(`{"error":{"message":"not now"}}`)
	case modelGarbage:
		body = []byte([]string{`<html>Welcome</html>`, `{"choices":[]}`, `{"choices":[{"message":{"role":"assistant","content":"` + ruleAllows + `"}}]}`}[m.failed.Load()%3])
	case modelTorn:
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		body = body[:len(body)/2]
	case modelDead:
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(body)
}

func finish(message object) string {
	if message["tool_calls"] != nil {
		return "tool_calls"
	}
	return "stop"
}

func says(text string) object { return object{"role": "assistant", "content": text} }

type toolCall struct {
	name      string
	arguments object
}

func calls(list ...toolCall) object {
	var out []object
	for i, c := range list {
		raw, err := json.Marshal(c.arguments)
		if err != nil {
			return says(err.Error())
		}
		out = append(out, object{"id": fmt.Sprint("c", i), "type": "function", "function": object{"name": c.name, "arguments": string(raw)}})
	}
	return object{"role": "assistant", "content": nil, "tool_calls": out}
}

// reply plays the asked model.
func (m *recorder) reply(q asked) (advice, object) {
	var text strings.Builder
	for _, said := range q.Messages {
		text.WriteString(said.Content)
		text.WriteByte('\n')
	}
	note := advice{role: q.Model}
	if p, ok := partIn([]byte(text.String())); ok {
		note.part, note.story = p, p.story
	}
	switch q.Model {
	case "judge":
		return m.judge(note, text.String())
	case "decider":
		return m.decide(note)
	case "hand":
		return m.work(note, q, text.String())
	}
	return note, says("I know no such role.")
}

var (
	ruleID = regexp.MustCompile(`rul_[0-9a-f]{32}`)
	quoted = regexp.MustCompile(`"quote":"([^"]*)"`)
)

// Readings of the Rule, by the number of the story.
const (
	readsAllow = "allow"
	readsDeny  = "deny"
	readsFalse = "a quote that does not stand there"
	readsNone  = "nothing"
)

func readingOf(story int) string {
	return []string{readsAllow, readsAllow, readsDeny, readsFalse, readsNone}[story%5]
}

// judge reads the Rule. Asked a second time about a quote alone it stands by it.
func (m *recorder) judge(note advice, text string) (advice, object) {
	rule := ruleID.FindString(text)
	quote, verdict := "", "allow"
	// The last quote: what the judge is told holds one as an example.
	if all := quoted.FindAllStringSubmatch(text, -1); note.story == 0 && len(all) > 0 && !strings.Contains(text, `"rules"`) {
		quote = all[len(all)-1][1]
	} else {
		note.said = readingOf(note.story)
		switch note.said {
		case readsAllow:
			quote = ruleAllows
		case readsDeny:
			quote, verdict = ruleDenies, "deny"
		case readsFalse:
			quote = "Mail to everybody may go out."
		}
	}
	quotes := []object{}
	if quote != "" {
		quotes = append(quotes, object{"rule": rule, "verdict": verdict, "quote": quote})
	}
	raw, err := json.Marshal(object{"quotes": quotes})
	if err != nil {
		return note, says("")
	}
	return note, says(string(raw))
}

// decide answers for a Bot above: most Requests are allowed, some denied, some left
// open.
func (m *recorder) decide(note advice) (advice, object) {
	switch note.story % 7 {
	case 0:
		note.said = "deny"
	case 1:
		note.said = "nothing"
		return note, says("I am not sure.")
	default:
		note.said = "allow"
	}
	scope := "lifetime" // wider than the person's answer will be
	if s := m.record.story(note.story); s == nil || s.kind == kindHeld {
		scope = "once" // what it keeps would decide the next call of the Bot below without it
	}
	if note.said == "deny" {
		scope = "once"
	}
	return note, calls(toolCall{"openbot_decide", object{"decision": note.said, "scope": scope, "reason": "so it is"}})
}

var piece = regexp.MustCompile(`piece (\w+) of story (\d+)`)

// work plays a Bot that does a piece of work, a step for each call of the model.
func (m *recorder) work(note advice, q asked, text string) (advice, object) {
	found := piece.FindStringSubmatch(text)
	if found == nil {
		return note, says("There is nothing to do.")
	}
	note.story = number([]byte(found[2]))
	s := m.record.story(note.story)
	if s == nil {
		return note, says("There is no such story.")
	}
	done := 0
	for _, said := range q.Messages {
		if said.Role == "assistant" && len(said.ToolCalls) > 0 {
			done++
		}
	}
	note.said = fmt.Sprintf("step %d of piece %s", done, found[1])
	if s.limit == "time" && done == 0 {
		note.hold = limitTime + 3*time.Second
	}
	return note, step(s, found[1], done)
}

// step is what the Bot of a piece does next.
func step(s *story, piece string, done int) object {
	mail := func(n int) toolCall {
		return toolCall{"desk__send_email", object{"to": part{s.number, n}.address()}}
	}
	switch {
	case piece == "below" && done == 0:
		return calls(mail(3))
	case piece == "below", done > 1:
		return says(fmt.Sprintf("piece %s of story %d is done", piece, s.number))
	case done == 0 && s.kind == kindTree:
		below := object{"task": fmt.Sprintf("Do piece below of story %d.", s.number), "limits": object{"timeMs": 600_000}}
		return calls(mail(1), toolCall{"openbot_delegate", below})
	}
	return calls(mail(done + 1))
}
