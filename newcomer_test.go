//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// newcomer is somebody who follows README.md word for word: one terminal in which the
// server runs, and one for what is pasted.
type newcomer struct {
	*client
	data, listen string
	server       *exec.Cmd
	pasted       string // the lines for a terminal that the first start printed
	link         string // the printed link that signs in
	chat         string
	took         time.Duration // of what was pasted
}

var (
	linesToPaste = regexp.MustCompile(`(?m)^  ((?:export OPENBOT=|[a-z]+\(\) \{).*)$`)
	linkToOpen   = regexp.MustCompile(`(?m)^  (http://\S+/login\?link=\S+)$`)
	variable     = regexp.MustCompile(`([A-Z_]+)=(\S+)`)
)

// makeRun starts the server with the variables that stand before "make run". It returns
// when the server listens and has printed all that it prints.
func (n *newcomer) makeRun(line string, more ...string) {
	n.t.Helper()
	variables, ok := strings.CutSuffix(line, "make run")
	if !ok {
		n.t.Fatalf("%q does not end in make run", line)
	}
	n.server = exec.Command(os.Args[0], "serve")
	n.server.Env = append([]string{asProgram + "=1", "PATH=" + os.Getenv("PATH"), "OPENBOT_DATA=" + n.data, "OPENBOT_LISTEN=" + n.listen}, more...)
	for _, v := range variable.FindAllStringSubmatch(variables, -1) {
		n.server.Env = append(n.server.Env, v[1]+"="+strings.ReplaceAll(v[2], "…", "key-of-a-newcomer"))
	}
	said, err := n.server.StdoutPipe()
	must(n.t, err)
	must(n.t, n.server.Start())
	n.t.Cleanup(n.ctrlC)
	last := "README.md goes on from here"
	if n.pasted != "" {
		last = "OpenBot listens on "
	}
	var printed strings.Builder
	for lines := bufio.NewScanner(said); !strings.Contains(printed.String(), last); {
		if !lines.Scan() {
			n.t.Fatalf("the server ended after it printed:\n%s", printed.String())
		}
		printed.WriteString(lines.Text() + "\n")
	}
	if n.pasted != "" {
		return
	}
	for _, found := range linesToPaste.FindAllStringSubmatch(printed.String(), -1) {
		n.pasted += found[1] + "\n"
	}
	if found := linkToOpen.FindStringSubmatch(printed.String()); found != nil {
		n.link = found[1]
	}
	if strings.Count(n.pasted, "\n") != 4 || n.link == "" {
		n.t.Fatalf("four lines to paste and a link are not in:\n%s", printed.String())
	}
	found := regexp.MustCompile(`^export OPENBOT=(\S+) OPENBOT_TOKEN='(\S+)' CHAT=(\S+)\n`).FindStringSubmatch(n.pasted)
	if found == nil {
		n.t.Fatalf("the first line to paste is not as expected:\n%s", n.pasted)
	}
	n.client = &client{t: n.t, base: found[1], token: found[2]}
	n.chat = found[3]
}

// ctrlC stops the server as a person does.
func (n *newcomer) ctrlC() {
	if n.server == nil {
		return
	}
	_ = n.server.Process.Signal(syscall.SIGINT)
	if err := n.server.Wait(); err != nil {
		n.t.Errorf("the server ended with: %v", err)
	}
	n.server = nil
}

// paste runs commands in the second terminal, as they stand.
func (n *newcomer) paste(commands string) {
	n.t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(n.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", n.pasted+commands)
	cmd.WaitDelay = time.Second
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	n.took += time.Since(began)
	n.t.Logf("$ %s%s", commands, out)
	if err != nil || strings.Contains(string(out), `"_tag":"InvalidInput"`) || strings.Contains(string(out), `"status":4`) {
		n.t.Fatalf("what README.md says to paste does not work: %v\n%s\n%s", err, commands, out)
	}
}

// over waits until the newest Turn of the Chat is over and as it must be.
func (n *newcomer) over(what string, so func(turn object) bool) {
	n.t.Helper()
	n.poll(what, 30*time.Second, func() bool {
		turns := n.list("/v1/chats/" + n.chat + "/turns")
		return len(turns) > 0 && turns[0]["status"] == "Completed" && so(turns[0])
	})
}

func answered(part string) func(object) bool {
	return func(turn object) bool { return strings.Contains(turn["answer"].(string), part) }
}

// blocks gives the fenced blocks of one section of a document.
func blocks(t *testing.T, file, heading string) []string {
	t.Helper()
	raw, err := os.ReadFile(file)
	must(t, err)
	_, section, found := strings.Cut(string(raw), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("%s has no section %q", file, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var out []string
	for i, part := range strings.Split(section, "\n```") {
		if i%2 == 1 {
			out = append(out, strings.TrimPrefix(part, "\n")+"\n")
		}
	}
	return out
}

// The ten minutes of README.md, as they stand there: every fenced block is run, on a
// server without any data, and does what the text beside it says.
func TestTheNewcomersTenMinutes(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed: what README.md says is NOT tried")
	}
	steps := blocks(t, "README.md", "Ten minutes")
	if len(steps) != 8 {
		t.Fatalf("README.md has %d blocks of commands, this test knows 8:\n%s", len(steps), strings.Join(steps, "\n---\n"))
	}
	runs := strings.Split(strings.TrimSpace(steps[6]), "\n")
	for i, protocol := range []string{"OPENAI", "ANTHROPIC"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			n := &newcomer{client: &client{t: t}, data: t.TempDir(), listen: freeAddress(t)}
			n.makeRun(strings.TrimSpace(steps[0]))
			n.opensTheLink()

			n.paste(steps[1])
			n.paste(steps[2])
			n.over("the mail is sent", answered("Sent to ops@example.test"))
			outbox, err := os.ReadFile(n.data + "/example/outbox.jsonl")
			if err != nil || !strings.Contains(string(outbox), "My first mail.") {
				t.Errorf("the mail is not where README.md says: %v %s", err, outbox)
			}

			n.paste(steps[3])
			n.over("the deletion is denied", answered("Denied by a person. Reason: Notes are kept."))
			n.paste(steps[4])
			n.over("the Rule denies", answered("Denied by a Rule. The Rule says: Never delete_note"))
			if _, err := os.Stat(n.data + "/example/notes/todo.md"); err != nil {
				t.Errorf("the note is gone: %v", err)
			}

			n.paste(steps[5])
			n.over("the result of the work comes back", answered("I looked at the Bots."))
			work := n.list("/v1/chats/" + n.chat + "/delegations")
			if len(work) != 1 || work[0]["status"] != "completed" {
				t.Errorf("the given work is %v", work)
			}

			n.ctrlC()
			server := newModelServer(t)
			n.makeRun(runs[i], "OPENAI_BASE_URL="+server.URL+"/v1", "ANTHROPIC_BASE_URL="+server.URL)
			n.paste(steps[7])
			n.over("the model's mail is sent", answered("The mail is out."))
			if want := []string{"judge", "turn"}; !slices.Equal(server.asked(), want) {
				t.Errorf("the model was asked for %v, want %v", server.asked(), want)
			}
			t.Logf("what was pasted took %s", n.took.Round(time.Millisecond))
		})
	}
}

// opensTheLink follows the printed link in a browser of its own and sees the inbox.
func (n *newcomer) opensTheLink() {
	n.t.Helper()
	jar, err := cookiejar.New(nil)
	must(n.t, err)
	browser := &http.Client{Jar: jar}
	link, err := url.Parse(n.link)
	must(n.t, err)
	shown, err := browser.Get(n.link)
	must(n.t, err)
	page := pageOf(n.t, shown)
	if !strings.Contains(page, ">Go on</button>") {
		n.t.Fatalf("the link does not show the button that README.md names:\n%s", page)
	}
	inbox, err := browser.PostForm(n.base+"/login", url.Values{"link": {link.Query().Get("link")}})
	must(n.t, err)
	if page := pageOf(n.t, inbox); !strings.Contains(page, "Nothing waits for your answer") {
		n.t.Fatalf("the link does not lead to the inbox:\n%s", page)
	}
	chats, err := browser.Get(n.base + "/chats")
	must(n.t, err)
	if page := pageOf(n.t, chats); !strings.Contains(page, "A first try") {
		n.t.Fatalf("the Chat that README.md names is not there:\n%s", page)
	}
}

func pageOf(t testing.TB, response *http.Response) string {
	t.Helper()
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	must(t, err)
	return string(raw)
}

// modelServer speaks both protocols: asked with tools it calls the one that sends mail,
// shown a result it is done, and as a judge it quotes nothing.
type modelServer struct {
	*httptest.Server
	mu       sync.Mutex
	purposes map[string]bool
}

func newModelServer(t *testing.T) *modelServer {
	m := &modelServer{purposes: map[string]bool{}}
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return m
}

// asked gives what it was asked for.
func (m *modelServer) asked() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []string
	for purpose := range m.purposes {
		out = append(out, purpose)
	}
	slices.Sort(out)
	return out
}

const mailOfTheModel = `{"to":"ops@example.test","subject":"Hello","body":"Hello!","openbot_reason":"The person asked."}`

func (m *modelServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	openAI := r.URL.Path == "/v1/chat/completions" && r.Header.Get("Authorization") == "Bearer key-of-a-newcomer"
	anthropic := r.URL.Path == "/v1/messages" && r.Header.Get("X-Api-Key") == "key-of-a-newcomer"
	var asked struct {
		Model    string
		Tools    []json.RawMessage
		Messages []json.RawMessage
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || !openAI && !anthropic || len(asked.Messages) == 0 {
		http.Error(w, `{"error":{"message":"this is no call of a model"}}`, http.StatusBadRequest)
		return
	}
	last := string(asked.Messages[len(asked.Messages)-1])
	purpose, text, call := "turn", "The mail is out.", false
	switch {
	case len(asked.Tools) == 0:
		purpose, text = "judge", `{"quotes":[]}`
	case !strings.Contains(last, "Sent to ops@example.test"):
		text, call = "", true
	}
	m.mu.Lock()
	m.purposes[purpose] = true
	m.mu.Unlock()
	message, finish := object{"role": "assistant", "content": text}, "stop"
	content, stop := []object{{"type": "text", "text": text}}, "end_turn"
	if call {
		message, finish = object{"role": "assistant", "content": nil, "tool_calls": []object{
			{"id": "call_1", "type": "function", "function": object{"name": "example__send_email", "arguments": mailOfTheModel}}}}, "tool_calls"
		content, stop = []object{{"type": "tool_use", "id": "toolu_1", "name": "example__send_email", "input": json.RawMessage(mailOfTheModel)}}, "tool_use"
	}
	reply := object{"id": "c", "object": "chat.completion", "model": asked.Model, "choices": []object{{"index": 0, "message": message, "finish_reason": finish}},
		"usage": object{"prompt_tokens": 10, "completion_tokens": 5}}
	if anthropic {
		reply = object{"id": "m", "type": "message", "role": "assistant", "model": asked.Model, "content": content, "stop_reason": stop,
			"usage": object{"input_tokens": 10, "output_tokens": 5}}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(reply)
}
