// Package web serves sessions over HTTP: for browsers, and for programs that know
// nothing of NATS. docs/http.md is its page for users, and openapi.json its document.
//
//	http.Handle("/agents/", web.Handler(rt, web.Options{Base: "/agents", Auth: auth, Hosts: []string{"example.com"}}))
//
// # Path
//
// A request passes the checks of serve (web.go), in this order: its Host and its Origin,
// its token, the rate of the token's requests, the right of its operation. Then the
// operation of its row in the table of routes (routes.go) runs, with a call: the caller,
// the session's id with the caller's scope before it, and the connection. What it
// returns is sent as JSON, and an error as a problem (problem.go). Operations publish
// and read by package client, and follow by package refold. Nothing is kept here that is
// not in the log, so any number of handlers may serve one log.
//
// The pages of the inspector are those of package internal/inspector. Their operations
// (inspect_routes.go) fold a session that is looked at once, and keep a state of each
// 512th of its events (inspect_history.go): the state at any event is a restore and at
// most 511 events. It can all be folded again.
//
// # Protocols of others
//
// A protocol for a page's own library is a file of this package with rows of the table.
// It uses these, and nothing else of the log:
//
//   - call.agent checks the name of an agent, also against the token.
//   - call.enter gives the call a session's id that is not in the path: the scope is put
//     before it. call.strip takes it away.
//   - call.ask requests a run; the submission is the protocol's own id of the request.
//   - call.openBlob turns a handle into a part of an input, and call.put a file, within the
//     quota of the token.
//   - call.stream begins a stream of server-sent events, and stream.send writes one; it
//     fails for a reader that is gone or too slow. call.follow yields updates for it.
//     stream.last sends an error as the protocol has it.
//   - call.keep comes before a request: the text of the answer is kept from its beginning
//     on, also for a reader that comes within a minute after the first one is gone.
//   - call.viewSince has the view as of an update's event or later, and call.output what a
//     call returned.
//
// # Laws
//
//   - A request without a valid token learns nothing but that the server lives.
//   - A token with a scope reads, lists and changes sessions of its scope alone, and sees
//     their ids without it.
//   - Every answer that is no success is a problem with a code, also 404, 405 and a panic.
//   - A POST with the same Idempotency-Key and body takes effect once, whichever server
//     gets it.
//   - A stream of updates can be resumed after any of its events, at any server: each
//     update comes once.
//
// # Limits
//
// See Limits. They count by token and by server. Of sessions that are looked at, the
// latest 16 are kept, in 256 MiB at most, and four are folded at once.
package web
