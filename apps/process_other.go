//go:build !unix

package apps

import (
	"context"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// process is a command as an App, which needs process groups.
type process struct{}

func startProcess(string, []string, map[string]string) (*process, error) {
	return nil, errors.New("commands as Apps need a Unix system")
}

func (*process) Connect(context.Context) (mcp.Connection, error) {
	return nil, errors.New("commands as Apps need a Unix system")
}

func (*process) Close() error    { return nil }
func (*process) kill()           {}
func (*process) trouble() string { return "" }
