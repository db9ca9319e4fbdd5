package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/function"
	"github.com/refold/refold/client"
	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/llm/scripted"
	"github.com/refold/refold/internal/tools/mcp"
)

// mcpPackage is the npm package of the server that the demo starts.
const mcpPackage = "@modelcontextprotocol/server-filesystem@2026.8.31"

const mcpInput = "Write down that I need tea and bread, and tell me what is in the directory."

// mcpScript scripts the demo's model; %[1]q is the note, %[2]q its directory.
const mcpScript = `
turns:
  - shown: {last: user, tools: {include: [files_write_file, files_read_text_file, files_list_directory]}}
    say: I write it down, and read it again.
    calls:
      - {tool: files_write_file, arguments: {path: %[1]q, content: "tea\nbread\n"}}
      - {tool: files_read_text_file, arguments: {path: %[1]q}}
      - {tool: files_list_directory, arguments: {path: %[2]q}}
  - shown:
      results:
        - {tool: files_write_file, error: false}
        - {tool: files_read_text_file, error: false, text: bread}
        - {tool: files_list_directory, error: false, text: shopping.txt}
    say: "It is written down. The directory has: ${result}"
`

// mcpModel starts the server, imports its tools, and returns their model.
func (d demoCommand) mcpModel(ctx context.Context, s streams, work string) (*model, error) {
	work, err := filepath.EvalSymlinks(work)
	if err != nil {
		return nil, err
	}
	server, err := d.mcpServer(work)
	if err != nil {
		return nil, err
	}
	script, err := scripted.Parse("demo", fmt.Appendf(nil, mcpScript, filepath.Join(work, "shopping.txt"), work))
	if err != nil {
		return nil, err
	}
	config := &mcp.Config{Servers: map[string]mcp.Server{"files": server}}
	o := mcp.Options{Env: settings.ReadEnvironment(os.Environ()), Version: settings.Version()}
	first, err := mcp.New(config, nil, o)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(s.out, "Starting the MCP server: %s %s\n", server.Command, strings.Join(server.Args, " "))
	began := time.Now()
	found, err := first.Import(ctx)
	first.Close()
	if err != nil {
		return nil, fmt.Errorf("demo --mcp: %w", err)
	}
	functions := make([]*function.Function, len(found.Tools))
	for i, t := range found.Tools {
		functions[i] = t.Function
	}
	record, err := function.InstallRecord([]byte(`{"config": {"provider": "scripted", "model": "scripted"}}`), functions...)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(s.out, "%d of its tools are imported, after %.1f s.\n", len(functions), time.Since(began).Seconds())
	servers, err := mcp.New(config, found.Lock, o)
	if err != nil {
		return nil, err
	}
	return &model{
		install: record,
		close:   func() error { servers.Close(); return nil },
		serve: func(b *bridge.Bridge) error {
			all := []error{b.Model("scripted", scripted.NewModel(script))}
			for target, executor := range servers.Executors() {
				all = append(all, b.Tool(target, executor))
			}
			return errors.Join(all...)
		},
	}, nil
}

// mcpServer returns how to start the server on a directory.
func (d demoCommand) mcpServer(work string) (mcp.Server, error) {
	never := "never" // the server declares writing destructive, and no person could approve
	server := mcp.Server{Tools: map[string]mcp.Override{"write_file": {Approval: &never}}}
	needs := "npx"
	switch {
	case d.MCPServer == "":
		server.Command, server.Args = "npx", []string{"--yes", mcpPackage, work}
	case strings.HasSuffix(d.MCPServer, "js"):
		needs = "node"
		server.Command, server.Args = "node", []string{d.MCPServer, work}
	default:
		server.Command, server.Args = d.MCPServer, []string{work}
		return server, nil
	}
	if _, err := exec.LookPath(needs); err != nil {
		return server, fmt.Errorf("demo --mcp runs a server of Node.js, and there is no %s in the PATH: install Node.js 20 or later (https://nodejs.org), or name another filesystem server with --mcp-server FILE", needs)
	}
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "npm_config_") || strings.HasSuffix(lower, "_proxy") {
			server.Env = append(server.Env, name)
		}
	}
	return server, nil
}

// note makes the session write a note with the server's tools, and folds it again.
func (d demoCommand) note(ctx context.Context, out io.Writer, c *client.Client, work string) error {
	fmt.Fprintf(out, "A session uses them on %s\n\n", work)
	if err := tellRun(ctx, out, c, demoSession, mcpInput); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nNow all events are folded again, from the first one:")
	return foldAgain(ctx, out, c, demoSession)
}
