//go:build unix

package apps

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// maxLine is the longest message of a command, in bytes.
	maxLine = maxBody
	// killAfter is how long a command may take to end after SIGTERM.
	killAfter = 2 * time.Second
	// drainAfter is how long the last output of an ended command is read, in case a
	// child of it holds the pipe open.
	drainAfter = 500 * time.Millisecond
)

var (
	errJunk    = errors.New("the command wrote something other than MCP messages on its standard output")
	errLine    = fmt.Errorf("the command wrote a message of more than %d MiB", maxLine>>20)
	errExited  = errors.New("the command ended")
	errNotSent = &jsonrpc.Error{Code: -32005, Message: "the call was not written"} // the library keeps the session on this code
)

// process is a command that speaks MCP on its standard streams: a transport and the
// one connection over it. The command runs in a process group of its own, with
// nothing of the server's environment but PATH, HOME and LANG, and its standard
// error goes nowhere, since it may hold secrets.
type process struct {
	cmd    *exec.Cmd
	in     *os.File
	out    *os.File
	reader *bufio.Reader
	write  chan struct{} // the lock of in; a channel, so that waiting honours a context
	exited chan struct{}
	closed chan struct{}
	once   sync.Once

	mu    sync.Mutex
	fault error
	shots map[jsonrpc.ID]*shot
}

// startProcess starts a command.
func startProcess(command string, args []string, env map[string]string) (*process, error) {
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		_, _ = childIn.Close(), in.Close()
		return nil, err
	}
	cmd := exec.Command(command, args...)
	cmd.Stdin, cmd.Stdout = childIn, childOut
	cmd.Env = bareEnvironment(env)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	_, _ = childIn.Close(), childOut.Close()
	if err != nil {
		_, _ = in.Close(), out.Close()
		return nil, err
	}
	p := &process{
		cmd: cmd, in: in, out: out, reader: bufio.NewReaderSize(out, 64<<10),
		write: make(chan struct{}, 1), exited: make(chan struct{}), closed: make(chan struct{}),
		shots: make(map[jsonrpc.ID]*shot),
	}
	go func() {
		_ = cmd.Wait()
		p.signal(syscall.SIGKILL) // whatever it left behind in its group
		_ = out.SetReadDeadline(time.Now().Add(drainAfter))
		close(p.exited)
	}()
	return p, nil
}

// bareEnvironment is the environment of a command: what it needs to start, and what
// its Connection sets.
func bareEnvironment(env map[string]string) []string {
	var out []string
	for _, name := range []string{"PATH", "HOME", "LANG"} {
		if value, ok := os.LookupEnv(name); ok {
			if _, set := env[name]; !set {
				out = append(out, name+"="+value)
			}
		}
	}
	for name, value := range env {
		if name != "" && !strings.ContainsAny(name, "=\x00") && !strings.Contains(value, "\x00") {
			out = append(out, name+"="+value)
		}
	}
	return out
}

// Connect implements mcp.Transport.
func (p *process) Connect(context.Context) (mcp.Connection, error) { return p, nil }

// SessionID implements mcp.Connection; a command has one session.
func (p *process) SessionID() string { return "" }

// Read implements mcp.Connection.
func (p *process) Read(context.Context) (jsonrpc.Message, error) {
	for {
		line, err := p.line()
		if err != nil {
			return nil, p.fail(err)
		}
		if len(line) == 0 {
			continue
		}
		message, err := jsonrpc.DecodeMessage(line)
		if err != nil {
			return nil, p.fail(errJunk)
		}
		if response, ok := message.(*jsonrpc.Response); ok {
			p.mu.Lock()
			call := p.shots[response.ID]
			delete(p.shots, response.ID)
			p.mu.Unlock()
			if call != nil {
				call.hear(message)
			}
		}
		return message, nil
	}
}

// line reads one line without its end, of at most maxLine bytes.
func (p *process) line() ([]byte, error) {
	var line []byte
	for {
		part, err := p.reader.ReadSlice('\n')
		if len(line)+len(part) > maxLine {
			return nil, errLine
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return []byte(strings.TrimSpace(string(line))), nil
		case errors.Is(err, bufio.ErrBufferFull):
		case len(line) > 0 && errors.Is(err, io.EOF):
			return nil, errJunk
		default:
			return nil, errExited
		}
	}
}

// Write implements mcp.Connection.
func (p *process) Write(ctx context.Context, message jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(message)
	if err != nil {
		return err
	}
	select {
	case p.write <- struct{}{}:
		defer func() { <-p.write }()
	case <-ctx.Done():
		return ctx.Err()
	case <-p.exited:
		return p.fail(errExited)
	}
	call, isCall := shotOf(ctx, message)
	if isCall {
		id := message.(*jsonrpc.Request).ID
		if err := call.take(id); err != nil {
			return errNotSent
		}
		if err := call.ask(); err != nil {
			return errNotSent
		}
		p.mu.Lock()
		p.shots[id] = call
		p.mu.Unlock()
	}
	// A command that does not read would hold the write for ever.
	unhook := context.AfterFunc(ctx, func() { _ = p.in.SetWriteDeadline(time.Unix(1, 0)) })
	n, err := p.in.Write(append(data, '\n'))
	if !unhook() {
		_ = p.in.SetWriteDeadline(time.Time{})
	}
	if isCall && n > 0 {
		call.leaves()
	}
	if err == nil {
		return nil
	}
	if n > 0 {
		_ = p.fail(errExited) // half a message is out: nothing can follow it
		p.kill()
	}
	return err
}

// fail keeps the first fault and gives it back.
func (p *process) fail(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault == nil {
		p.fault = err
	}
	return p.fault
}

// trouble says in words what went wrong with the command, or "".
func (p *process) trouble() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case errors.Is(p.fault, errJunk):
		return "The App's command wrote something other than MCP messages on its standard output"
	case errors.Is(p.fault, errLine):
		return fmt.Sprintf("The App's command wrote a message of more than %d MiB", maxLine>>20)
	case errors.Is(p.fault, errExited):
		return "The App's command ended"
	}
	return ""
}

// Close implements mcp.Connection: it closes the command's input, asks its group to
// end, and ends it for good after two seconds.
func (p *process) Close() error {
	p.once.Do(func() {
		defer close(p.closed)
		_ = p.in.Close()
		p.signal(syscall.SIGTERM)
		timer := time.AfterFunc(killAfter, p.kill)
		<-p.exited
		timer.Stop()
		_ = p.out.Close()
	})
	<-p.closed
	return nil
}

// kill ends the command and its group at once.
func (p *process) kill() { p.signal(syscall.SIGKILL) }

func (p *process) signal(signal syscall.Signal) {
	_ = syscall.Kill(-p.cmd.Process.Pid, signal)
}
