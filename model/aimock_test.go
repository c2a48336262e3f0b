package model_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"openbot/domain"
	"openbot/model"
)

const aimockFixtures = `{"fixtures": [
	{"match": {"userMessage": "weather", "systemMessage": "Be brief.", "hasToolResult": false}, "response": {
		"content": "I look.",
		"toolCalls": [{"name": "get_weather", "arguments": "{\"city\":\"Rome\"}"}, {"name": "get_time", "arguments": "{}"}],
		"usage": {"prompt_tokens": 1000, "completion_tokens": 100, "input_tokens": 1000, "output_tokens": 100}}},
	{"match": {"userMessage": "weather", "hasToolResult": true}, "response": {"content": "It rains."}},
	{"match": {"userMessage": "busy"}, "response": {"error": {"message": "come back later", "type": "server_error"}, "status": 503}},
	{"match": {"userMessage": "long"}, "response": {"content": "half", "finishReason": "length"}}
]}`

var listening = regexp.MustCompile(`listening on (http://\S+)`)

// startAimock runs the mock server of the npm package and gives its address.
func startAimock(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("OPENBOT_NPM_DIR")
	if folder == "" {
		t.Skip("NOT TESTED against a foreign server: set OPENBOT_NPM_DIR to a folder in which npm has installed @copilotkit/aimock@1.43.0")
	}
	fixtures := filepath.Join(t.TempDir(), "fixtures.json")
	if err := os.WriteFile(fixtures, []byte(aimockFixtures), 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(folder, "node_modules", "@copilotkit", "aimock", "dist", "cli.js")
	command := exec.CommandContext(t.Context(), "node", program, "-p", "0", "-f", fixtures, "--strict", "--validate-on-load")
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = command.Stdout
	if err := command.Start(); err != nil {
		t.Fatalf("aimock does not start: %v", err)
	}
	drained := make(chan struct{})
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-drained
		_ = command.Wait()
	})
	address := make(chan string, 1)
	go func() {
		defer close(drained)
		defer close(address)
		var lines []string
		found := false
		for scanner := bufio.NewScanner(output); scanner.Scan(); {
			lines = append(lines, scanner.Text())
			if match := listening.FindStringSubmatch(scanner.Text()); match != nil && !found {
				found = true
				address <- match[1]
			}
		}
		if !found {
			t.Errorf("aimock ended before it listened: %s", strings.Join(lines, "\n"))
		}
	}()
	return <-address
}

// A server that others wrote, and test other clients with, understands both
// protocols as this package speaks them.
func TestAgainstAimock(t *testing.T) {
	address := startAimock(t)
	if address == "" {
		t.FailNow()
	}
	models := model.New(model.Options{
		OpenAIKey: openAIKey, OpenAIBaseURL: address + "/v1", AnthropicKey: anthropicKey, AnthropicBaseURL: address,
	})
	t.Cleanup(models.Close)
	for _, protocol := range protocols {
		t.Run(protocol.name, func(t *testing.T) {
			request := ask(protocol.model)
			request.Messages[0].Text = "What is the weather?"
			request.Tools = []domain.ModelTool{
				{Name: "get_weather", Description: "Looks out", Schema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}}}`)},
				{Name: "get_time", Description: "Looks up", Schema: json.RawMessage(`{}`)},
			}
			reply, err := models.Call(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			if len(reply.Calls) != 2 || reply.Calls[0].Name != "get_weather" || string(reply.Calls[0].Arguments) != `{"city":"Rome"}` ||
				reply.Calls[1].Name != "get_time" || reply.Calls[0].ID == "" || reply.Calls[0].ID == reply.Calls[1].ID {
				t.Fatalf("got %+v", reply)
			}
			if want := (domain.ModelUsage{InputTokens: 1000, OutputTokens: 100}); reply.Text != "I look." || reply.Usage != want {
				t.Errorf("got %q %+v", reply.Text, reply.Usage)
			}

			request.Messages = append(request.Messages,
				domain.ModelMessage{Role: domain.RoleAssistant, Text: reply.Text, Calls: reply.Calls},
				domain.ModelMessage{Role: domain.RoleTool, CallID: reply.Calls[0].ID, Text: "rain"},
				domain.ModelMessage{Role: domain.RoleTool, CallID: reply.Calls[1].ID, Text: "denied", Failed: true})
			reply, err = models.Call(t.Context(), request)
			if err != nil || reply.Text != "It rains." || len(reply.Calls) != 0 {
				t.Errorf("got %+v %v", reply, err)
			}

			request = ask(protocol.model)
			request.Messages[0].Text = "Are you busy?"
			_, err = models.Call(t.Context(), request)
			if found := failure(t, err); !found.Temporary || !strings.Contains(found.Message, "come back later") {
				t.Errorf("got %v", err)
			}

			request.Messages[0].Text = "A long story"
			reply, err = models.Call(t.Context(), request)
			if err != nil || !strings.HasPrefix(reply.Text, "half") || !strings.Contains(reply.Text, "cut here") {
				t.Errorf("got %+v %v", reply, err)
			}
		})
	}
	limitRate(t, address)
	for _, protocol := range protocols {
		_, err := models.Call(t.Context(), ask(protocol.model))
		if found := failure(t, err); !found.Temporary || !strings.Contains(found.Message, "429") {
			t.Errorf("%s: got %v", protocol.name, err)
		}
	}
}

// limitRate makes the mock server answer 429 from now on.
func limitRate(t *testing.T, address string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Post(address+"/__aimock/chaos", "application/json", strings.NewReader(`{"rateLimitRate": 1}`))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("aimock does not limit the rate: %s", response.Status)
	}
}
