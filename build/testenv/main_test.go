//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary stand for the command itself.
func TestMain(m *testing.M) {
	if os.Getenv("TESTENV_AS_COMMAND") != "" {
		main()
	}
	os.Exit(m.Run())
}

// testenv gives the command, and the folder in which it makes its temporary files.
func testenv(t *testing.T, arguments ...string) (command *exec.Cmd, folder string) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder = t.TempDir()
	command = exec.CommandContext(t.Context(), program, arguments...)
	command.Env = append(os.Environ(), "TESTENV_AS_COMMAND=1", "TMPDIR="+folder)
	command.Stderr = os.Stderr
	return command, folder
}

func wantNothingLeft(t *testing.T, folder string) {
	t.Helper()
	if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
		t.Errorf("%v were left behind, %v", left, err)
	}
}

func TestTheCommandGetsBothAddressesAndItsExitCodeIsPassedOn(t *testing.T) {
	command, folder := testenv(t, "--", "sh", "-c", `echo "$OPENBOT_TEST_DATABASE_URL"; echo "$OPENBOT_TEST_REDIS_URL"; exit 7`)
	output, _ := command.Output()
	if code := command.ProcessState.ExitCode(); code != 7 {
		t.Errorf("exit code %d, want 7", code)
	}
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "postgres://") || !strings.HasPrefix(lines[1], "redis://") {
		t.Errorf("got %q, want two addresses", lines)
	}
	wantNothingLeft(t, folder)
}

func TestASignalReachesTheCommandAndNothingIsLeft(t *testing.T) {
	// The command starts a child that ignores the signal, and leaves it behind. It speaks
	// when its own trap is set: a signal before would be ignored.
	command, folder := testenv(t, "--", "sh", "-c", `trap '' TERM; sleep 600 & trap 'exit 3' TERM; echo $!; wait`)
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait()
	if code := command.ProcessState.ExitCode(); code != 3 {
		t.Errorf("exit code %d, want 3", code)
	}
	if state := stateOf(child); state != "" && state != "Z" {
		t.Errorf("the child of the command is still there, state %s", state)
	}
	wantNothingLeft(t, folder)
}

// stateOf gives the letter of a process's state, "" when there is none.
func stateOf(pid int) string {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(string(content), ") ")
	return after[:1]
}

func TestDeathOfTheCommandBySignalIsPassedOn(t *testing.T) {
	for script, want := range map[string]int{"kill -9 $$": 137, "exit 0": 0} {
		signals := make(chan os.Signal)
		got, err := runCommand([]string{"sh", "-c", script}, os.Environ(), signals, os.Getppid())
		if err != nil || got != want {
			t.Errorf("%s: got %d and %v, want %d", script, got, err, want)
		}
	}
	if got, err := runCommand([]string{filepath.Join(t.TempDir(), "absent")}, nil, nil, os.Getppid()); err == nil || got != exitFault {
		t.Errorf("got %d and %v, want a fault", got, err)
	}
}

func TestWithoutACommandItSaysHow(t *testing.T) {
	command, _ := testenv(t)
	var words strings.Builder
	command.Stderr = &words
	_ = command.Run()
	if code := command.ProcessState.ExitCode(); code != exitFault || !strings.Contains(words.String(), "usage:") {
		t.Errorf("exit code %d, %q", code, words.String())
	}
}

func TestServicesAreForbiddenOnlyMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy-rc.d")
	restore, err := forbidServices(path)
	if err != nil {
		t.Fatal(err)
	}
	// Another test may be forking while the file is still open for writing in its
	// child; the shell reads it without that trouble.
	command := exec.Command("sh", path, "redis-server", "start")
	_ = command.Run()
	if code := command.ProcessState.ExitCode(); code != 101 {
		t.Errorf("the policy answers %d, want 101", code)
	}
	// A second one finds a policy and must leave it alone.
	again, err := forbidServices(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := again(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error("the policy of somebody else was removed")
	}
	if err := restore(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("got %v, want %v", err, fs.ErrNotExist)
	}
}

func TestTheParentsDeathEndsTheCommand(t *testing.T) {
	// A shell in between dies; testenv must notice that it is an orphan.
	command, folder := testenv(t, "--", "sh", "-c", "echo $$; exec sleep 600")
	between := exec.CommandContext(t.Context(), "sh", append([]string{"-c", `"$@" & wait`, "sh"}, command.Args...)...)
	between.Env, between.Stderr = command.Env, os.Stderr
	output, err := between.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := between.Start(); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(output)
	if _, err := reader.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := between.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// The pipe ends when the last one that holds it has ended: the command, then
	// testenv, which removes its files before.
	ended := make(chan error, 1)
	go func() {
		_, err := reader.ReadString('\n')
		ended <- err
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("the command goes on without its parent")
	}
	_ = between.Wait()
	wantNothingLeft(t, folder)
}
