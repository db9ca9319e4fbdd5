package full

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/refold/refold/bridge/function"
	"github.com/refold/refold/cmd/refold/cli"
	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/secrets"
	"github.com/refold/refold/internal/tools/mcp"
)

// importMCP lists the servers' tools, and prints them and the changes since last time.
func importMCP(ctx context.Context, out io.Writer, file, target string, files map[string]string) (*cli.MCPImport, error) {
	env := settings.ReadEnvironment(os.Environ())
	catalog, err := secrets.NewCatalog(env.Lookup)
	if err != nil {
		return nil, err
	}
	given := secrets.Chain{secrets.Func(func(_ context.Context, _, name string) (string, error) {
		if files[name] == "" {
			return "", nil
		}
		return secrets.ReadFile(files[name])
	}), catalog}
	config, err := mcp.Load(file, env)
	if err != nil {
		return nil, err
	}
	before, err := mcp.ReadLock(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	found, err := mcp.Import(ctx, config, mcp.Options{Target: target, Env: env, Secrets: given, Version: settings.Version(), Silent: func(server, request string) {
		fmt.Fprintf(out, "refold: server %s has not answered %s yet: still waiting\n", server, request)
	}})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	all := &cli.MCPImport{Functions: functions(found), Needs: map[string][]string{}, Keep: func() error { return mcp.WriteLock(file, found.Lock) }}
	for _, t := range found.Tools {
		all.Needs[t.Function.ToolID()] = t.Needs
		fmt.Fprintf(out, "%s: tool %s of server %s, called %s\n", t.Function.ToolID(), t.Name, t.Server, t.Function.ToolName())
	}
	for _, p := range found.Problems {
		fmt.Fprintf(out, "refold: left out: %v\n", p)
	}
	for _, note := range append(found.Notes, found.Lock.Since(before)...) {
		fmt.Fprintf(out, "refold: %s\n", note)
	}
	if len(found.Tools) == 0 {
		return nil, fmt.Errorf("%s: no tool can be used", file)
	}
	return all, nil
}

func functions(found *mcp.Imported) []*function.Function {
	all := make([]*function.Function, len(found.Tools))
	for i, t := range found.Tools {
		all[i] = t.Function
	}
	return all
}

// checkMCP compares the servers' tools with the imported ones.
func checkMCP(ctx context.Context, file string) (all []cli.MCPFinding, same int, err error) {
	env := settings.ReadEnvironment(os.Environ())
	servers, err := mcp.Open(file, mcp.Options{Env: env, Version: settings.Version()})
	if err != nil {
		return nil, 0, err
	}
	defer servers.Close()
	findings, same := servers.Check(ctx)
	for _, f := range findings {
		all = append(all, cli.MCPFinding(f))
	}
	return all, same, nil
}

// startMCP starts a server on a directory and imports its tools.
func startMCP(ctx context.Context, out io.Writer, program, dir string) (*cli.MCPServer, error) {
	server, err := filesystemServer(program, dir)
	if err != nil {
		return nil, err
	}
	config := &mcp.Config{Servers: map[string]mcp.Server{"files": server}}
	o := mcp.Options{Env: settings.ReadEnvironment(os.Environ()), Version: settings.Version()}
	fmt.Fprintf(out, "Starting the MCP server: %s %s\n", server.Command, strings.Join(server.Args, " "))
	began := time.Now()
	found, err := mcp.Import(ctx, config, o)
	if err != nil {
		return nil, fmt.Errorf("demo --mcp: %w", err)
	}
	fmt.Fprintf(out, "%d of its tools are imported, after %.1f s.\n", len(found.Tools), time.Since(began).Seconds())
	servers, err := mcp.New(config, found.Lock, o)
	if err != nil {
		return nil, err
	}
	return &cli.MCPServer{Functions: functions(found), Executors: servers.Executors(), Close: servers.Close}, nil
}

// filesystemPackage is the npm package of the server that the demo starts.
const filesystemPackage = "@modelcontextprotocol/server-filesystem@2026.8.31"

// filesystemServer returns how to start the server on a directory.
func filesystemServer(program, dir string) (mcp.Server, error) {
	never := "never" // the server declares writing destructive, and no person could approve
	server := mcp.Server{Tools: map[string]mcp.Override{"write_file": {Approval: &never}}}
	needs := "npx"
	switch {
	case program == "":
		server.Command, server.Args = "npx", []string{"--yes", filesystemPackage, dir}
	case strings.HasSuffix(program, "js"):
		needs = "node"
		server.Command, server.Args = "node", []string{program, dir}
	default:
		server.Command, server.Args = program, []string{dir}
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
