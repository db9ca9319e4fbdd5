package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/refold/refold/bridge/function"
	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/secrets"
	"github.com/refold/refold/internal/tools/mcp"
)

// importMCPCommand imports the tools of MCP servers.
type importMCPCommand struct {
	File   string            `arg:"" type:"existingfile" help:"YAML file that lists the servers."`
	Secret map[string]string `placeholder:"NAME=FILE" help:"File with a secret for the servers. May be repeated."`
	Target string            `default:"mcp" help:"Executor of the tools of servers that name no target: the NAME of refold bridge serve --tools NAME=mcp:FILE."`
	addTo
}

// Help returns the help text above the flags.
func (importMCPCommand) Help() string {
	return `It starts the servers, lists their tools, and writes them to FILE.lock: a bridge
refuses calls of a tool that differs from FILE.lock. docs/tools.md describes FILE.
The output changes nothing until it is published:

    refold tools import mcp servers.yaml | refold install -
    refold bridge serve --tools mcp:servers.yaml           serves them

    refold tools import mcp servers.yaml --pack crm        writes the pack crm
    refold bridge serve --tools crm-v1=mcp:servers.yaml    carries its tools out`
}

// Run prints a record, or a registry, and writes the lock.
func (c importMCPCommand) Run(ctx context.Context, s streams, conn connection) error {
	if err := c.usage("mcp"); err != nil {
		return err
	}
	found, err := c.ask(ctx, s)
	if err != nil {
		return err
	}
	functions := make([]*function.Function, len(found.Tools))
	c.needs = map[string][]string{}
	for i, t := range found.Tools {
		functions[i] = t.Function
		c.needs[t.Function.ToolID()] = t.Needs
	}
	var b *bus.Bus
	err = c.print(ctx, s, func() (*bus.Bus, error) {
		b, err = conn.dial(ctx)
		return b, err
	}, functions)
	if b != nil {
		b.Close()
	}
	if err = cmp.Or(err, ctx.Err()); err != nil { // nothing is imported if it could not be printed
		return err
	}
	return mcp.WriteLock(c.File, found.Lock)
}

// ask lists the servers' tools, and prints them and the changes since last time.
func (c importMCPCommand) ask(ctx context.Context, s streams) (*mcp.Imported, error) {
	env, file := settings.ReadEnvironment(os.Environ()), c.File
	catalog, err := secrets.NewCatalog(env.Lookup)
	if err != nil {
		return nil, err
	}
	given := secrets.Chain{secrets.Func(func(_ context.Context, _, name string) (string, error) {
		if c.Secret[name] == "" {
			return "", nil
		}
		return secrets.ReadFile(c.Secret[name])
	}), catalog}
	config, err := mcp.Load(file, env)
	if err != nil {
		return nil, err
	}
	before, err := mcp.ReadLock(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	servers, err := mcp.New(config, nil, mcp.Options{Target: c.Target, Env: env, Secrets: given, Version: settings.Version(), Silent: func(server, request string) {
		fmt.Fprintf(s.err, "refold: server %s has not answered %s yet: still waiting\n", server, request)
	}})
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
