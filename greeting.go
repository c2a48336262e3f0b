package main

import (
	"fmt"
	"net"
	"os"
	"time"

	"openbot/api"
)

// greet prints, once, where the server is, the token of a first start, and what
// to paste into a terminal to try the Chat that the first start made.
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
To try it, open another terminal and paste these four lines first:

  export OPENBOT=%s OPENBOT_TOKEN='%s' CHAT=%s
  ob() { curl -sS -H "Authorization: Bearer $OPENBOT_TOKEN" -H 'Content-Type: application/json' "$OPENBOT$1" "${@:2}"; echo; }
  say() { local text=${1//\\/\\\\}; text=${text//\"/\\\"}; ob "/v1/chats/$CHAT/messages" -d "{\"text\":\"$text\"}"; }
  waits() { until ob '/v1/requests?status=pending' | grep -o 'req_[0-9a-f]*' | head -1 | grep .; do sleep 0.2; done; }

1. Ask your Bot for a mail. The call of the example App waits for you:

  say '/call example__send_email {"to":"ops@example.test","subject":"Hello","body":"My first mail.","openbot_reason":"You asked for it."}'

2. See what waits, and allow it (or do it at %s):

  ob /v1/requests/$(waits)
  ob /v1/requests/$(waits) -d '{"expected":0,"decision":"allow"}'

3. Read what became of it:

  ob /v1/chats/$CHAT/turns

README.md goes on from here, with Rules, given work and a real model.

`, address, secret, chat, address)
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
