package main

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/llm/recorded"
	"github.com/refold/refold/internal/secrets"
	"github.com/refold/refold/internal/spacefiles"
	"github.com/refold/refold/internal/tools/hosting"
	"github.com/refold/refold/internal/tools/mcp"
	"github.com/refold/refold/internal/tools/service"
)

// The values of --tools, besides recorded and mcp.
const (
	kindHost     = "host"
	kindServices = "services"
)

// offer is one value of --model or --tools: [NAME=]KIND[:FILE], or for a model
// of the network [NAME=]KIND[:URL].
type offer struct{ name, kind, file string }

func parseOffer(text string) offer {
	of, file, _ := strings.Cut(text, ":")
	name, kind, named := strings.Cut(of, "=")
	if !named {
		kind = name
	}
	return offer{name: name, kind: kind, file: file}
}

// offers is what the flags name, opened.
type offers struct {
	models   map[string]executor.Model
	tools    map[string]executor.Executor
	services []*service.Tools   // the tools that discover services
	mcp      []*mcp.Servers     // the tools of MCP servers
	hosts    []*hosting.Host    // the host tools: workers of fleets
	spaces   *spacefiles.Config // nil: none
	secrets  secrets.Chain
	ledger   *recorded.Ledger // nil: none

	shellDials bool // commands of the host tools may use the network
}

func (o *offers) close() error {
	for _, servers := range o.mcp {
		servers.Close()
	}
	if o.ledger == nil {
		return nil
	}
	return o.ledger.Close()
}

// open opens what the flags name, without the network. The error reports every
// problem; nothing stays open then.
func open(f *flags, env settings.Environment, log *slog.Logger) (*offers, error) {
	o := &offers{models: make(map[string]executor.Model), tools: make(map[string]executor.Executor)}
	var all []error
	for _, text := range f.Models {
		of := parseOffer(text)
		model, err := openModel(of, f, env, log)
		if _, twice := o.models[of.name]; err == nil && twice {
			err = fmt.Errorf("%s is served twice", of.name)
		}
		if err != nil {
			all = append(all, fmt.Errorf("--model %s: %w", text, err))
			continue
		}
		o.models[of.name] = model
	}
	if f.Spaces != "" {
		var err error
		if o.spaces, err = spacefiles.LoadConfig(f.Spaces); err != nil {
			all = append(all, fmt.Errorf("--spaces: %w", err))
		}
	}
	catalog, err := secrets.NewCatalog(env.Lookup, f.SecretsCatalog...)
	if err != nil {
		all = append(all, fmt.Errorf("--secrets-catalog: %w", err))
	}
	for _, s := range o.given(f, env) {
		o.secrets = append(o.secrets, s)
	}
	o.secrets = append(o.secrets, catalog)
	for _, text := range f.Tools {
		of := parseOffer(text)
		if err := o.openTools(of, f, env, log); err != nil {
			all = append(all, fmt.Errorf("--tools %s: %w", text, err))
		}
	}
	if len(all) > 0 {
		return nil, errors.Join(append(all, o.close())...)
	}
	return o, nil
}

// free returns an error if the tools of a target are served already.
func (o *offers) free(target string) error {
	_, twice := o.tools[target]
	if twice || slices.ContainsFunc(o.hosts, func(h *hosting.Host) bool { return h.Fleet.Target == target }) {
		return fmt.Errorf("%s is served twice", target)
	}
	return nil
}

// add makes e execute the tools of a target.
func (o *offers) add(target string, e executor.Executor) error {
	if err := o.free(target); err != nil {
		return err
	}
	o.tools[target] = e
	return nil
}

func (o *offers) openTools(of offer, f *flags, env settings.Environment, log *slog.Logger) error {
	switch of.kind {
	case kindHost:
		return o.openHost(of, f, log)
	case kindMCP:
		return o.openMCP(of, env, log)
	}
	tools, err := o.openExecutor(of, f, log)
	if err != nil {
		return err
	}
	return o.add(of.name, tools)
}

func (o *offers) openExecutor(of offer, f *flags, log *slog.Logger) (executor.Executor, error) {
	switch of.kind {
	case kindServices:
		return o.openServices(of, f, log)
	case kindRecorded:
		if of.file == "" {
			return nil, errors.New("name the file: recorded:FILE")
		}
		recording, err := recorded.Load(of.file)
		if err != nil {
			return nil, err
		}
		if o.ledger == nil {
			if o.ledger, err = recorded.OpenLedger(f.Ledger); err != nil {
				return nil, err
			}
		}
		return recorded.NewExecutor(recording, o.ledger), nil
	}
	return nil, errors.New("no such tools: host, services, mcp:FILE or recorded:FILE")
}

// serve registers all that was opened with b.
func (o *offers) serve(b *bridge.Bridge, f *flags, env settings.Environment) error {
	var all []error
	for _, text := range f.Models {
		of := parseOffer(text)
		all = append(all, b.Model(of.name, o.models[of.name], f.optionsOf(of)...))
	}
	for _, h := range o.hosts {
		all = append(all, h.Serve(b, f.options("tool/"+h.Fleet.Target)...))
	}
	for name, tools := range o.tools {
		all = append(all, b.Tool(name, tools, f.options("tool/"+name)...))
	}
	all = append(all, serveSpaces(b, o.spaces, f))
	return errors.Join(all...)
}
