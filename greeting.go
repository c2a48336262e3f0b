package main

import (
	"fmt"
	"net"
	"os"
	"time"

	"openbot/api"
)

// greet prints, once, where the server is, the token of a first start, and three
// commands to try in the Chat that the first start made.
func (a *App) greet(secret, chat string) {
	out := a.options.Out
	if out == nil {
		return
	}
	address := a.reachable()
	fmt.Fprintf(out, "\nOpenBot listens on %s\n", address)
	if secret == "" {
		return
	}
	if a.options.Config.Token.IsZero() {
		fmt.Fprintf(out, "\nYour token, shown this once. Log in with it in a browser, or use it in scripts:\n\n  %s\n", secret)
		if link, err := api.LoginLink(a.session, secret, time.Now()); err == nil {
			fmt.Fprintf(out, "\nOr open this link, which signs one browser in, once and within 15 minutes:\n\n  %s%s\n", address, link)
		}
	} else {
		secret = "(the one in OPENBOT_TOKEN)"
	}
	if chat == "" {
		return
	}
	fmt.Fprintf(out, `
To try it, open another terminal and paste these two lines first:

  export OPENBOT=%s OPENBOT_TOKEN='%s'
  ob() { curl -sS -H "Authorization: Bearer $OPENBOT_TOKEN" -H 'Content-Type: application/json' "$OPENBOT$1" "${@:2}"; echo; }

1. Ask your Bot for a mail. The call of the example App waits for you:

  ob /v1/chats/%s/messages -d '{"text":"/call example__send_email {\"to\":\"ops@example.test\",\"subject\":\"Hello\",\"body\":\"My first mail.\",\"openbot_reason\":\"You asked for it.\"}"}'

2. See what waits, and allow it (or do it at %s):

  ob '/v1/requests?status=pending'; ob /v1/requests/$(ob '/v1/requests?status=pending' | grep -o 'req_[0-9a-f]*' | head -1) -d '{"expected":0,"decision":"allow"}'

3. Read what became of it:

  ob /v1/chats/%s/turns

`, address, secret, chat, address, chat)
}

// reachable is the address as a person on this machine would type it.
func (a *App) reachable() string {
	host, port, err := net.SplitHostPort(a.listener.Addr().String())
	if err != nil {
		return a.Address()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		if host, err = os.Hostname(); err != nil {
			host = "localhost"
		}
	}
	return "http://" + net.JoinHostPort(host, port)
}
