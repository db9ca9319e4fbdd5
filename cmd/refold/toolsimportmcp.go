package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/tools/mcp"
)

// importMCPCommand asks MCP servers for their tools.
type importMCPCommand struct {
	File   string `arg:"" type:"existingfile" help:"YAML file that says which servers there are."`
	Target string `default:"mcp" help:"Who carries out the tools of servers that name no target: the NAME of bridge --tools NAME=mcp:FILE."`
	addTo
}

// Help is what the help says beside the flags.
func (importMCPCommand) Help() string {
	return `It starts the servers, lists their tools, and writes what it found to FILE.lock: a
bridge runs a tool only as long as it is what was imported. docs/tools.md has the
file. What is printed changes nothing until it is published:

    refold tools import mcp servers.yaml | refold install -
    bridge --tools mcp:servers.yaml             serves them

    refold tools import mcp servers.yaml --pack crm   writes the pack crm
    bridge --tools crm-v1=mcp:servers.yaml            carries its tools out`
}

// Run prints a record, or a registry, and writes the lock.
func (c importMCPCommand) Run(ctx context.Context, s streams, conn connection) error {
	if err := c.usage("mcp"); err != nil {
		return err
	}
	found, err := importMCP(ctx, s, c.File, c.Target)
	if err != nil {
		return err
	}
	functions := make([]*bridge.Function, len(found.Tools))
	for i, t := range found.Tools {
		functions[i] = t.Function
	}
	var b *bus.Bus
	err = c.print(ctx, s, func() (*bus.Bus, error) {
		b, err = conn.dial(ctx)
		return b, err
	}, functions)
	if b != nil {
		b.Close()
	}
	if err != nil {
		return err
	}
	return mcp.WriteLock(c.File, found.Lock)
}

// importMCP asks the servers of a file, and says what it found and what changed
// since the last time.
func importMCP(ctx context.Context, s streams, file, target string) (*mcp.Imported, error) {
	env := settings.ReadEnvironment(os.Environ())
	config, err := mcp.Load(file, env)
	if err != nil {
		return nil, err
	}
	before, err := mcp.ReadLock(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	servers, err := mcp.New(config, nil, mcp.Options{Target: target, Env: env, Version: settings.Version()})
	if err != nil {
		return nil, err
	}
	defer servers.Close()
	found, err := servers.Import(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, t := range found.Tools {
		fmt.Fprintf(s.err, "%s: tool %s of server %s, called %s\n", t.Function.ToolID(), t.Name, t.Server, t.Function.ToolName())
	}
	for _, p := range found.Problems {
		fmt.Fprintf(s.err, "refold: left out: %v\n", p)
	}
	for _, note := range append(found.Notes, found.Lock.Since(before)...) {
		fmt.Fprintf(s.err, "refold: %s\n", note)
	}
	if len(found.Tools) == 0 {
		return nil, fmt.Errorf("%s: no tool can be used", file)
	}
	return found, nil
}
