//go:build unix

package main

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"openbot/apps/appstest"
)

// direct gives a server of its own that a browser reaches by itself.
func direct(t *testing.T) *client {
	t.Helper()
	c, _, _ := startServe(t, backend{}.settings(t.TempDir()))
	return c
}

// underAPath gives one that a browser reaches through a proxy, under a path.
func underAPath(t *testing.T) *client {
	t.Helper()
	_, c := behindProxy(t, true)
	return c
}

// inBrowser runs a script of build/npm/browser in a real browser against a server that
// start gives. Each line that it prints with FAIL is a fault.
func inBrowser(t *testing.T, start func(*testing.T) *client, script string, more ...string) {
	t.Helper()
	chromium := os.Getenv("OPENBOT_TEST_CHROMIUM")
	if chromium == "" {
		t.Skip("OPENBOT_TEST_CHROMIUM is not set: the inbox is NOT tested in a browser (make test sets it)")
	}
	npmProgram(t, "playwright-core/index.mjs")
	for _, name := range []string{script, "browser.mjs"} { // so that a changed script is not taken for one that passed
		_, err := os.ReadFile(filepath.Join("build", "npm", "browser", name))
		must(t, err)
	}
	app := appstest.New(t)
	c := start(t)
	c.connect("desk", app.URL)
	folder, err := filepath.Abs("screenshots")
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", filepath.Join("build", "npm", "browser", script))
	cmd.Env = append(os.Environ(), "OPENBOT_TEST_BASE="+c.base, "OPENBOT_TEST_TOKEN="+c.token, "OPENBOT_TEST_SCREENSHOTS="+folder)
	cmd.Env = append(cmd.Env, more...)
	cmd.Stderr = os.Stderr
	cmd.WaitDelay = 10 * time.Second
	said, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := bufio.NewScanner(said)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if fault, failed := strings.CutPrefix(lines.Text(), "FAIL "); failed {
			t.Error(fault)
		} else {
			t.Log(lines.Text())
		}
	}
	if err := cmd.Wait(); err != nil && !t.Failed() {
		t.Errorf("the browser's script ended with: %v", err)
	}
}

// A person answers in the inbox: live, by keys, many at once, late, on a phone and
// without scripts.
func TestTheInboxInABrowser(t *testing.T) {
	t.Parallel()
	inBrowser(t, direct, "inbox.mjs")
}

// A person stops work with a question, instructs it, stops it, and sees what others did.
func TestWorkInABrowser(t *testing.T) {
	t.Parallel()
	inBrowser(t, direct, "work.mjs")
}

// Every page fits, is accessible and harmless, whatever stands in it; here behind a proxy.
func TestEveryPageInABrowser(t *testing.T) {
	t.Parallel()
	inBrowser(t, underAPath, "pages.mjs")
}

// The tour can be walked, and docs/tour.md shows each of its pictures. With
// OPENBOT_TOUR=1 (make tour) they are taken anew; else they are thrown away.
func TestTheTour(t *testing.T) {
	t.Parallel()
	const shown = "docs/tour"
	folder := t.TempDir()
	if os.Getenv("OPENBOT_TOUR") != "" {
		folder = shown
	}
	inBrowser(t, direct, "tour.mjs", "OPENBOT_TEST_TOUR="+folder)
	text, err := os.ReadFile("docs/tour.md")
	must(t, err)
	taken, err := os.ReadDir(folder)
	must(t, err)
	for _, picture := range taken {
		if !strings.Contains(string(text), "](tour/"+picture.Name()+")") {
			t.Errorf("docs/tour.md does not show %s", picture.Name())
		}
		_, err := os.Stat(filepath.Join(shown, picture.Name()))
		must(t, err)
	}
	if n := strings.Count(string(text), "](tour/"); n != len(taken) || n == 0 {
		t.Errorf("docs/tour.md shows %d pictures, %d were taken", n, len(taken))
	}
}
