package apps_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestConformance runs the client through the MCP conformance suite. What is left out
// is left out on purpose: there is no OAuth, and a question that an App asks back is
// never answered by sending the call again.
func TestConformance(t *testing.T) {
	const suite = "@modelcontextprotocol/conformance"
	dir := npmDir(t, suite)
	binary := filepath.Join(t.TempDir(), "conformance")
	if out, err := exec.Command("go", "build", "-o", binary, "./appstest/conformance").CombinedOutput(); err != nil {
		t.Fatalf("building the client: %v: %s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, node(t, dir), filepath.Join(dir, "node_modules", suite, "dist/index.js"),
		"client", "--command", binary, "--requirements", "2026-07-28")
	command.Dir = t.TempDir()
	out, _ := command.CombinedOutput() // it fails as a whole because of what is left out
	scores := regexp.MustCompile(`(?m)^(✓|✗) (\S+): (\d+) passed, (\d+) failed`).FindAllStringSubmatch(string(out), -1)
	passed := map[string]bool{}
	for _, score := range scores {
		scenario, ok := score[2], score[1] == "✓"
		passed[scenario] = ok
		if !ok && !strings.HasPrefix(scenario, "auth/") && scenario != "sep-2322-client-request-state" {
			t.Errorf("%s: %s passed, %s failed", scenario, score[3], score[4])
		}
	}
	for _, scenario := range []string{"tools_call", "request-metadata", "http-standard-headers", "http-custom-headers",
		"http-invalid-tool-headers", "json-schema-ref-no-deref", "json-schema-2020-12-preservation"} {
		if !passed[scenario] {
			t.Errorf("%s did not pass", scenario)
		}
	}
	if t.Failed() {
		t.Logf("the suite says:\n%s", out)
	}
}
