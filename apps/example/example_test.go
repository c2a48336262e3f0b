package example_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"openbot/apps"
	"openbot/apps/example"
	"openbot/domain"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var endpoint = domain.AppEndpoint{Connection: "con_1", Organization: "org_1", Revision: 1,
	Transport: domain.TransportHTTP, URL: "http://example.openbot.internal/mcp"}

// open serves the App from dir in this process, the way the server does.
func open(t *testing.T, dir string) *apps.Apps {
	t.Helper()
	handler, err := example.Handler(dir)
	if err != nil {
		t.Fatal(err)
	}
	a := apps.New(apps.Options{InProcess: map[string]http.Handler{"example.openbot.internal": handler}})
	t.Cleanup(func() { _ = a.Close() })
	return a
}

func use(t *testing.T, a *apps.Apps, tool string, arguments any) domain.AppResult {
	t.Helper()
	data, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	result, err := a.Call(t.Context(), endpoint, domain.AppCall{Tool: tool, Arguments: data}, ready)
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return result
}

func TestLookAtTheExample(t *testing.T) {
	a := open(t, t.TempDir())
	look, err := a.Look(t.Context(), endpoint)
	if err != nil {
		t.Fatal(err)
	}
	if len(look.Tools) != 7 || len(look.Resources) != 2 || len(look.Templates) != 1 || len(look.Prompts) != 1 || len(look.Skipped) != 0 {
		t.Errorf("the look is %+v", look)
	}
	for _, tool := range look.Tools {
		reads := strings.HasPrefix(tool.Name, "list_") || strings.HasPrefix(tool.Name, "read_")
		if says := tool.Hints.ReadOnly != nil && *tool.Hints.ReadOnly; says != reads {
			t.Errorf("%s says that it only reads: %v", tool.Name, says)
		}
	}
	use(t, a, "write_note", map[string]string{"name": "new", "text": "n"})
	again, err := a.Look(t.Context(), endpoint)
	if err != nil || len(again.Resources) != 3 {
		t.Errorf("a new note is no resource: %+v, %v", again.Resources, err)
	}
	if again.Digest != look.Digest {
		t.Error("writing a note changes the digest, which would void every waiting call")
	}
}

func TestMail(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir)
	if got := use(t, a, "list_mail", map[string]string{}); !strings.Contains(got.Text, "Weekly digest") || strings.Contains(got.Text, "Last week") {
		t.Errorf("list_mail gives %s", got.Text)
	}
	if got := use(t, a, "read_mail", map[string]string{"id": "mail-1"}); !strings.Contains(got.Text, "Last week") {
		t.Errorf("read_mail gives %s", got.Text)
	}
	if got := use(t, a, "read_mail", map[string]string{"id": "../inbox"}); !got.IsError {
		t.Errorf("a mail that is not there gives %s", got.Text)
	}
	for _, bad := range []map[string]string{
		{"to": "nobody", "subject": "s", "body": "b"},
		{"to": "ops@example.test", "subject": "a\nBcc: x@example.test", "body": "b"},
		{"to": "ops@example.test", "subject": "", "body": "b"},
		{"to": "ops@example.test", "subject": "s", "body": strings.Repeat("b", 65<<10)},
	} {
		if got := use(t, a, "send_email", bad); !got.IsError {
			t.Errorf("%.80v is sent: %s", bad, got.Text)
		}
	}
	var wait sync.WaitGroup
	for i := range 20 {
		wait.Go(func() {
			got := use(t, a, "send_email", map[string]string{"to": "ops@example.test", "subject": fmt.Sprint("s", i), "body": "b"})
			if got.IsError || !strings.HasPrefix(got.Text, "Sent to ops@example.test with id sent-") {
				t.Errorf("send_email gives %s", got.Text)
			}
		})
	}
	wait.Wait()
	sent, err := example.ReadOutbox(dir)
	if err != nil || len(sent) != 20 {
		t.Errorf("the outbox holds %d mails, want 20 (%v)", len(sent), err)
	}
}

func TestNotes(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(filepath.Dir(dir), "outside.md")
	a := open(t, dir)
	for _, name := range []string{"", ".", "..", "../outside", "a/b", `a\b`, "a.md", "ü", "con\x00", strings.Repeat("a", 65), ".tmp-x"} {
		for _, tool := range []string{"read_note", "delete_note"} {
			if got := use(t, a, tool, map[string]string{"name": name}); !got.IsError {
				t.Errorf("%s takes the name %q", tool, name)
			}
		}
		if got := use(t, a, "write_note", map[string]string{"name": name, "text": "x"}); !got.IsError {
			t.Errorf("write_note takes the name %q", name)
		}
	}
	if _, err := os.Stat(outside); err == nil {
		t.Error("a note was written outside of the directory")
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "notes", "link.md")); err != nil {
		t.Fatal(err)
	}
	if got := use(t, a, "read_note", map[string]string{"name": "link"}); !got.IsError {
		t.Errorf("a link out of the directory is followed: %s", got.Text)
	}
	var wait sync.WaitGroup
	for i := range 20 {
		wait.Go(func() {
			use(t, a, "write_note", map[string]string{"name": "shared", "text": strings.Repeat(fmt.Sprint(i%10), 1000)})
		})
	}
	wait.Wait()
	if got := use(t, a, "read_note", map[string]string{"name": "shared"}); len(got.Text) != 1000 || strings.Trim(got.Text, got.Text[:1]) != "" {
		t.Errorf("two writers mixed their notes: %.40s", got.Text)
	}
	if got, err := a.ReadResource(t.Context(), endpoint, "note:///todo", ready); err != nil || !strings.Contains(got.Text, "# To do") {
		t.Errorf("the resource gives %+v, %v", got, err)
	}
	if _, err := a.ReadResource(t.Context(), endpoint, "note:///../inbox", ready); err == nil {
		t.Error("a resource outside of the notes is read")
	}
	prompt, err := a.GetPrompt(t.Context(), endpoint, "answer_mail", map[string]string{"id": "mail-1"}, ready)
	if err != nil || !strings.Contains(prompt.Text, `"mail-1"`) {
		t.Errorf("the prompt gives %+v, %v", prompt, err)
	}
	use(t, a, "delete_note", map[string]string{"name": "shared"})
	for i := range 250 {
		use(t, a, "write_note", map[string]string{"name": fmt.Sprint("n", i), "text": "x"})
	}
	if got := use(t, a, "list_notes", map[string]string{}); strings.Count(got.Text, "\n")-1 != 200 {
		t.Errorf("there are %d notes, want 200", strings.Count(got.Text, "\n")-1)
	}
}

func TestWhatWasWrittenStays(t *testing.T) {
	dir := t.TempDir()
	use(t, open(t, dir), "delete_note", map[string]string{"name": "todo"})
	if got := use(t, open(t, dir), "read_note", map[string]string{"name": "todo"}); !got.IsError {
		t.Error("a deleted note came back with a restart")
	}
}

func ready() error { return nil }
