package apps

import (
	"bytes"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// eventEar listens to a stream of server-sent events on its way to the MCP library
// and tells the shot when its answer went by, or something that is no message. The
// library reports both as a broken session without saying which.
type eventEar struct {
	shot *shot
	line []byte
	data []byte
}

func (e *eventEar) hear(p []byte) {
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			e.line = append(e.line, p...)
			return
		}
		line := p[:i]
		if len(e.line) > 0 {
			line = append(e.line, line...)
		}
		e.take(bytes.TrimRight(line, "\r"))
		e.line = e.line[:0]
		p = p[i+1:]
	}
}

func (e *eventEar) take(line []byte) {
	if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
		if len(e.data) > 0 {
			e.data = append(e.data, '\n')
		}
		e.data = append(e.data, bytes.TrimPrefix(value, []byte(" "))...)
		return
	}
	if len(line) > 0 || len(e.data) == 0 {
		return
	}
	message, err := jsonrpc.DecodeMessage(e.data)
	e.data = e.data[:0]
	if err != nil {
		e.shot.judge(badAnswer("The App answered something that is not an MCP message; whether the call ran is not known"))
		return
	}
	e.shot.hear(message)
}
