// Package api is the HTTP door of the server: it decodes what comes in, calls the
// engine, and encodes what it gives. It owns routes, wire forms, problems, paging,
// authentication and the plain page; it keeps no state and decides nothing about
// Bots, Turns or Requests. Why it is built this way stands in
// docs/decisions/0006-http.md.
package api
