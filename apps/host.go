package apps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"

	"openbot/domain"
)

// hostCall is the body of a call to a tool of the host.
type hostCall struct {
	Tool      string          `json:"tool"`
	Call      domain.CallID   `json:"call"`
	Chat      domain.ChatID   `json:"chat"`
	Turn      domain.TurnID   `json:"turn"`
	Arguments json.RawMessage `json:"arguments"`
}

// CallHost sends one call to a tool of the host once: a POST signed as Standard
// Webhooks wants it, whose webhook-id is the ID of the call, so that the host can
// tell a repeat. Its answer, whatever its form, is text for the model.
func (a *Apps) CallHost(ctx context.Context, tool domain.HostTool, call domain.Call, ready func() error) (domain.AppResult, error) {
	body, err := json.Marshal(hostCall{Tool: tool.Name, Call: call.ID, Chat: call.Chat, Turn: call.Turn, Arguments: call.Arguments})
	if err != nil {
		return domain.AppResult{}, notSent("The call was not sent: its arguments are no JSON", err)
	}
	request, err := a.signed(tool, call, body)
	if err != nil {
		return domain.AppResult{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, a.options.CallTimeout)
	defer cancel()
	var refused error
	out := false
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if refused = ready(); refused != nil || out {
			_ = info.Conn.Close()
			return
		}
		out = true
	}}
	// A connection of its own: one that is kept could be closed by the host the very
	// moment the call goes out.
	network := newNetwork(a.options.AllowPrivate)
	network.DisableKeepAlives = true
	network.TLSClientConfig = a.hostTLS
	defer network.CloseIdleConnections()
	client := &http.Client{Transport: network, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request.WithContext(httptrace.WithClientTrace(ctx, trace)))
	switch {
	case refused != nil:
		return domain.AppResult{}, refused
	case err != nil && !out:
		return domain.AppResult{}, notSent("The host's tool could not be reached. The call was not sent", err)
	case err != nil:
		return domain.AppResult{}, noAnswer("The host's tool gave no answer; whether the call ran is not known", err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil && !errors.Is(err, io.EOF) {
		return domain.AppResult{}, noAnswer("The host's tool broke off its answer; whether the call ran is not known", err)
	}
	if response.StatusCode/100 != 2 {
		return domain.AppResult{}, badAnswer(fmt.Sprintf("The host's tool answered with HTTP status %d: %s", response.StatusCode, cleanLine(string(answer), maxFault)))
	}
	return a.result(string(answer), false), nil
}

func (a *Apps) signed(tool domain.HostTool, call domain.Call, body []byte) (*http.Request, error) {
	secret, err := a.options.Sealer.Open(tool.Sealed, tool.Organization, string(tool.ID))
	if err != nil {
		return nil, notSent("The call was not sent: the secret of the host's tool cannot be opened. Register the tool again", err)
	}
	request, err := signedPost(string(secret), tool.Endpoint, string(call.ID), body)
	if err != nil {
		return nil, notSent("The call was not sent: the secret or the endpoint of the host's tool is broken. Register the tool again", nil)
	}
	return request, nil
}
