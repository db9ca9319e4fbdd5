// Package mcp makes tools of MCP servers, as programs that it starts and speaks
// to over standard input and output, or over streamable HTTP.
//
//	config, err := mcp.Load("servers.yaml", environment)
//	lock, err := mcp.ReadLock("servers.yaml")
//	servers, err := mcp.New(config, lock, mcp.Options{})
//	for target, executor := range servers.Executors() {
//		err = b.Tool(target, executor)
//	}
//	defer servers.Close()
//
// # Path
//
// A file says which servers there are (config.go). Import asks them for their
// tools, and what can be used of them becomes Tools (find.go, schema.go), with
// pins of what calls rely on, which are kept in a lock file (lock.go). A call
// takes the session of its server (server.go, session.go), which is begun with
// the first call, over a program's pipes (stdio.go) or HTTP (http.go). The tool
// as it is listed now is held against its pin, the call is sent (call.go), and
// its answer becomes a result (result.go), with the numbers that the server
// wrote (exact.go). progress.go records how far a call got.
//
// # Laws
//
//   - No tool runs that was not imported, and none that is not as it was: its
//     schema, and what its server hints of its safety. What changed is logged
//     once, and calls are refused.
//   - What did not arrive, and what the server did not take, is sent again, also
//     if it is not retry-safe. What may have arrived is sent again only if it is;
//     else the call's outcome is unknown.
//   - All calls of a server share one session. One of which a call was lost gets
//     no new calls, and does not break off the others.
//   - A program ends with its session, and with it all that it started, as far as
//     it stays in its process group.
//   - Secrets come from the environment, and go into headers of requests to the
//     server's own address, and into the environment of a program that names
//     them; into nothing else. What a server says of those in headers is shown,
//     stored and logged without them (secrets.go).
//   - A server can ask nothing of the user, of the model or of files: no
//     capability says so.
//
// # Testing
//
// The test binary is a server too, made with the same SDK, over pipes and over
// HTTP. Package e2e runs servers from npm that others wrote: make check-peers.
package mcp
