// Package apps reaches outside services. It owns the MCP client, the sessions that
// it keeps open, the guard that keeps outgoing HTTP away from private addresses, and
// the encryption of a Connection's secrets.
//
// It never decides whether a call may run, never sends a call a second time, never
// follows a redirect, and never trusts what an App says: names, schemas, notes and
// results are data that is cut, cleaned and handed on.
//
// Whether a call went out is seen where the bytes leave, not guessed from an error:
// see shot.
package apps
