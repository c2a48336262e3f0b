//go:build unix

// Command testenv runs a command beside a PostgreSQL and a Redis of its own:
//
//	go run ./build/testenv [--durable] [--chromium] -- go test ./...
//
// The command finds their addresses in OPENBOT_TEST_DATABASE_URL and
// OPENBOT_TEST_REDIS_URL. Its exit code is passed on. Whatever it leaves running in
// its process group is killed when it ends, and both servers and their files go
// with it, also after Ctrl-C or SIGTERM.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"openbot/build/testenv/services"
)

// exitFault is the exit code when the command was not run at all.
const exitFault = 125

func main() {
	flags := flag.NewFlagSet("testenv", flag.ExitOnError)
	durable := flags.Bool("durable", false, "PostgreSQL waits for the disk at each commit (for measurements)")
	chromium := flags.Bool("chromium", false, "install Chromium if it is missing; its path is in OPENBOT_TEST_CHROMIUM")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: testenv [--durable] [--chromium] -- COMMAND [ARGUMENT...]")
		flags.PrintDefaults()
	}
	_ = flags.Parse(os.Args[1:]) // ExitOnError ends the program itself
	if flags.NArg() == 0 {
		flags.Usage()
		os.Exit(exitFault)
	}
	code, err := run(flags.Args(), *durable, *chromium)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testenv:", err)
	}
	os.Exit(code)
}

func run(command []string, durable, chromium bool) (code int, err error) {
	parent := os.Getppid() // before anything starts: it may die at any time after
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)

	environ := os.Environ()
	browser, err := installMissing(chromium)
	if err != nil {
		return exitFault, err
	}
	if browser != "" {
		environ = append(environ, "OPENBOT_TEST_CHROMIUM="+browser)
	}
	database, queue, err := startServices(durable)
	if err != nil {
		return exitFault, err
	}
	defer func() {
		// A server that died explains every failure after it.
		err = errors.Join(err, database.Fault(), queue.Fault(), database.Stop(), queue.Stop())
	}()
	environ = append(environ, "OPENBOT_TEST_DATABASE_URL="+database.URL(), "OPENBOT_TEST_REDIS_URL="+queue.URL())
	if folder, remove := inMemory(); folder != "" {
		defer remove()
		// The databases of tests forget themselves; waiting for a disk would be most of
		// their time. Programs are still built and run where files may be programs.
		environ = append(environ, "TMPDIR="+folder, "GOTMPDIR="+os.TempDir())
	}
	return runCommand(command, environ, signals, parent)
}

// startServices starts both at the same time: PostgreSQL takes a second or two.
func startServices(durable bool) (*services.Postgres, *services.Redis, error) {
	var (
		group                     sync.WaitGroup
		database                  *services.Postgres
		queue                     *services.Redis
		databaseFault, queueFault error
	)
	group.Go(func() {
		database, databaseFault = services.StartPostgres("", services.PostgresOptions{Durable: durable})
	})
	group.Go(func() { queue, queueFault = services.StartRedis("", services.RedisOptions{}) })
	group.Wait()
	fault := errors.Join(databaseFault, queueFault)
	if fault != nil && databaseFault == nil {
		fault = errors.Join(fault, database.Stop())
	}
	if fault != nil && queueFault == nil {
		fault = errors.Join(fault, queue.Stop())
	}
	return database, queue, fault
}

// runCommand runs the command in a group of its own, passes signals on to all of
// it, and leaves nothing of it behind. An orphan, one whose parent is not the given
// process any more, ends it.
func runCommand(arguments, environ []string, signals <-chan os.Signal, parent int) (int, error) {
	command := exec.Command(arguments[0], arguments[1:]...)
	command.Env = environ
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		return exitFault, err
	}
	group := -command.Process.Pid
	defer func() { _ = syscall.Kill(group, syscall.SIGKILL) }()

	ended := make(chan struct{})
	go func() {
		_ = command.Wait() // its state says how it ended
		close(ended)
	}()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ended:
			return exitCode(command.ProcessState), nil
		case received := <-signals:
			_ = syscall.Kill(group, received.(syscall.Signal))
		case <-ticker.C:
			// "go run" does not pass SIGTERM on; it only leaves.
			if os.Getppid() != parent {
				_ = syscall.Kill(group, syscall.SIGKILL)
			}
		}
	}
}

// exitCode follows the shells: 128 and the signal for what a signal ended.
func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}
