package cli

import (
	"cmp"
	"context"

	"github.com/refold/refold/internal/bus"
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
func (c importMCPCommand) Run(ctx context.Context, s streams, conn connection, full *Full) error {
	if err := c.usage("mcp"); err != nil {
		return err
	}
	found, err := full.ImportMCP(ctx, s.err, c.File, c.Target, c.Secret)
	if err != nil {
		return err
	}
	c.needs = found.Needs
	var b *bus.Bus
	err = c.print(ctx, s, func() (*bus.Bus, error) {
		b, err = conn.dial(ctx)
		return b, err
	}, found.Functions)
	if b != nil {
		b.Close()
	}
	if err = cmp.Or(err, ctx.Err()); err != nil { // nothing is imported if it could not be printed
		return err
	}
	return found.Keep()
}
