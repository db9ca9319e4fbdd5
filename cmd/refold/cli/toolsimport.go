package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/function"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/tools/service"
)

// importCommand prints an external source's tools in the form of a registry.
type importCommand struct {
	Services importServicesCommand `cmd:"" help:"Print the install record with the tools of NATS services added to it."`
	MCP      importMCPCommand      `cmd:"" name:"mcp" help:"Print the install record with the tools of MCP servers added to it."`
}

// importServicesCommand discovers services that are tools.
type importServicesCommand struct {
	Service []string `arg:"" optional:"" help:"Names of the services to import. Default: all."`
	Target  string   `default:"services" help:"Executor of the tools: the NAME of refold bridge serve --tools NAME=services."`
	Partly  bool     `help:"Print the usable tools even if some endpoints can't be used."`
	addTo
}

// addTo has the flags for where imported tools go.
type addTo struct {
	Base     string `placeholder:"FILE" help:"Record to add them to, JSON or msgpack; - reads standard input. Default: what new sessions pin, or the built-in one."`
	Pack     string `placeholder:"DIR" help:"Write a pack of these tools into this folder instead: its index and bindings. An existing index keeps its name and version."`
	Registry bool   `help:"Print a registry of these tools only instead, for client.SetRegistry."`

	needs map[string][]string // what a pack's tools need, by tool_id
}

// Help returns the help text above the flags.
func (importServicesCommand) Help() string {
	return `A NATS micro service is a tool if the metadata of its endpoint has refold.tool; see
docs/tools.md. The output changes nothing until it is published:

    refold tools import services | refold install -
    refold bridge serve --tools services            serves them

    refold tools import services --pack shop        writes the pack shop
    refold bridge serve --tools shop-v1=services    carries its tools out`
}

func (c importServicesCommand) Run(ctx context.Context, s streams, conn connection) error {
	if err := c.usage("services"); err != nil {
		return err
	}
	b, err := conn.dial(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	found, err := b.Services(ctx)
	if err != nil {
		return err
	}
	tools, problems := service.Find(found, c.Target, b.Names().Prefix(), c.Service, nil)
	for _, p := range problems {
		fmt.Fprintf(s.err, "refold: %v\n", p)
	}
	switch {
	case len(problems) > 0 && !c.Partly:
		return errors.New("nothing is printed: correct the services, or give --partly")
	case len(tools) == 0:
		return fmt.Errorf("no service is a tool: start one whose endpoint has the metadata %s (see docs/tools.md); nats micro ls lists the running services", service.MetadataKey)
	}
	functions := make([]*function.Function, len(tools))
	for i, t := range tools {
		functions[i] = t.Function
		fmt.Fprintf(s.err, "%s: service %s %s, endpoint %s, subject %s\n", t.Function.ToolID(), t.Service, t.Version, t.Endpoint, t.Subject)
	}
	return c.print(ctx, s, func() (*bus.Bus, error) { return b, nil }, functions)
}

// usage returns an error if the arguments don't go together.
func (c addTo) usage(what string) error {
	if c.Registry && c.Base != "" || c.Pack != "" && (c.Registry || c.Base != "") {
		return &statusError{statusUsage, "tools import " + what + ": one of --base, --registry and --pack"}
	}
	return nil
}

// print prints the tools as the flags say. It calls dial to read the present
// record.
func (c addTo) print(ctx context.Context, s streams, dial func() (*bus.Bus, error), tools []*function.Function) error {
	if err := tellSchemas(s.err, tools); err != nil {
		return err
	}
	if c.Pack != "" {
		return writePack(ctx, s, c.Pack, tools, c.needs)
	}
	text, err := c.text(ctx, s, dial, tools)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s\n", strings.TrimSuffix(string(text), "\n"))
	return nil
}

// text returns the tools as a registry or in a record.
func (c addTo) text(ctx context.Context, s streams, dial func() (*bus.Bus, error), tools []*function.Function) ([]byte, error) {
	if c.Registry {
		return function.Specs(tools...)
	}
	base := session.BuiltinInstall()
	if c.Base != "" {
		var err error
		if base, err = readRecord(c.Base, s.in); err != nil {
			return nil, err
		}
	} else {
		b, err := dial()
		if err != nil {
			return nil, err
		}
		p, found, err := pinned(ctx, b)
		if err != nil {
			return nil, err
		}
		if found {
			base = p.canonical
		}
	}
	canonical, err := codec.Canonicalize(base)
	if err != nil {
		return nil, err
	}
	if base, err = codec.ToJSON(canonical); err != nil {
		return nil, err
	}
	return function.InstallRecord(base, tools...)
}
