// Package mcp provides the tools of MCP servers. It starts a server as a
// program and uses its standard input and output, or it uses streamable HTTP.
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
// A file lists the servers (config.go). Import requests their tools, makes Tools of
// the usable ones (find.go, schema.go), and pins what calls rely on; the pins are
// kept in a lock file (lock.go). A call uses the session of its server (server.go,
// session.go), which begins with the first call, over a program's pipes (stdio.go)
// or HTTP (http.go), and messages that the SDK can't decode are made readable for it
// (readable.go; over HTTP, answer.go). The tool as it is listed now is compared with its pin, the
// call is sent (call.go), and its answer becomes a result (result.go), with numbers
// as the server wrote them (exact.go). progress.go records how far a call got.
//
// # Laws
//
//   - A tool runs only if it was imported, and its schema and its server's
//     hints of safety have not changed since. A change is logged once, and
//     calls are refused.
//   - A call that did not arrive, or that the server refused, is sent again,
//     even if it is not retry-safe. A call that may have arrived is sent again
//     only if it is retry-safe; otherwise its outcome is unknown.
//   - All calls of a server share one session. After a lost call the session
//     gets no new calls, but its other calls continue. An answer that is no message
//     costs its call alone.
//   - A program ends with its session, and so do its children in the same
//     process group.
//   - Secrets come from the environment. They go only into headers of requests
//     to the server's own address, and into the environment of a program that
//     names them. A server's text is shown, stored and logged without the
//     secrets in its headers (secrets.go).
//   - A server can request nothing of the user, of the model or of files: no
//     such capability is announced.
//
// # Testing
//
// The test binary is a server too, made with the same SDK, over pipes and over
// HTTP. Package e2e runs third-party servers from npm: make check-peers.
package mcp
