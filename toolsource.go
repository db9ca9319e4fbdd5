package refold

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/function"
	"github.com/refold/refold/internal/source"
)

// ToolSource is tools that are no Go functions of this program: mcp.File of package
// tools/mcp, or host.Dir of package tools/host. Other packages can't implement it.
type ToolSource interface {
	// OpenTools is for Runtime.Agent.
	OpenTools(ctx context.Context, o source.ToolOptions) (*source.Tools, error)
}

// ToolsFrom adds the tools of sources. A definition names all tools that the agent has,
// so those of other agents, or of the servers' install record, are not among them.
func ToolsFrom(sources ...ToolSource) AgentOption {
	return func(d *definition) { d.sources = append(d.sources, sources...) }
}

// BuiltIn adds built-in tools, which work on files of a machine, by the names that
// models call: read_file, grep, write_file, shell. Without names it adds all of them.
// The tools that open and close a directory come with them.
//
// Bridges that serve the target host carry the calls out, as refold bridge serve
// --tools host does. For a directory of this process, give host.Dir of package
// tools/host instead.
func BuiltIn(names ...string) AgentOption { return ToolsFrom(builtIn(names)) }

type builtIn []string

// OpenTools returns the tools, which this process does not serve.
func (names builtIn) OpenTools(context.Context, source.ToolOptions) (*source.Tools, error) {
	specs, err := source.BuiltIn("", names...)
	if err != nil {
		return nil, err
	}
	return &source.Tools{Specs: specs}, nil
}

// toolset is all tools of an agent.
type toolset struct {
	functions []*Tool // with their targets
	opened    []*source.Tools
}

// targets returns what the agent's bridge serves, with the tool that needs it.
func (t *toolset) targets() map[string]string {
	all := map[string]string{}
	for _, f := range t.functions {
		all[f.Target()] = f.ToolID()
	}
	for _, o := range t.opened {
		for _, target := range o.Targets {
			all[target] = target
		}
	}
	return all
}

// serves reports whether the agent's bridge has tools to serve.
func (t *toolset) serves() bool {
	return len(t.functions) > 0 || slices.ContainsFunc(t.opened, func(o *source.Tools) bool { return o.Serve != nil })
}

// registry returns all tools as a session's registry. The agent's own are those of a
// profile of its name if it has sub-agents, whose tools it is not offered.
func (t *toolset) registry(agent string) (all registry, err error) {
	all.Tools = []json.RawMessage{}
	if len(t.functions) > 0 {
		specs, err := function.Specs(t.functions...)
		if err != nil {
			return all, err
		}
		if err := json.Unmarshal(specs, &all); err != nil {
			return all, err
		}
	}
	for _, o := range t.opened {
		all.Tools = append(all.Tools, o.Specs...)
	}
	for i := range all.Tools { // to compare them
		if all.Tools[i], err = json.Marshal(all.Tools[i]); err != nil {
			return all, err
		}
	}
	if !slices.ContainsFunc(t.opened, func(o *source.Tools) bool { return len(o.Profiles) > 0 }) {
		return all, nil
	}
	own, err := all.profile(agent)
	if err != nil {
		return all, err
	}
	all.Profiles = []source.Profile{own}
	for _, o := range t.opened {
		if err := all.add(o.Inner, o.Profiles); err != nil {
			return all, err
		}
	}
	return all, nil
}

// addTo makes a bridge carry the calls out.
func (t *toolset) addTo(b *bridge.Bridge) error {
	if len(t.functions) > 0 {
		if err := b.Functions(t.functions); err != nil {
			return err
		}
	}
	for _, o := range t.opened {
		if o.Serve == nil {
			continue
		}
		if err := o.Serve(b); err != nil {
			return err
		}
	}
	return nil
}

// beside runs what the tools need beside their bridge. end ends it, and closes them.
func (t *toolset) beside(ctx context.Context, b *bridge.Bridge) (end func()) {
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	for _, o := range t.opened {
		if o.Run != nil {
			running.Go(func() { o.Run(ctx, b) })
		}
	}
	return func() {
		stop()
		running.Wait()
		t.close()
	}
}

// close closes what was opened.
func (t *toolset) close() {
	for _, o := range t.opened {
		if o.Close != nil {
			o.Close()
		}
	}
}

// toolset opens all tools of an agent. The error reports every problem, and nothing is
// open then.
func (d *definition) toolset(rt *Runtime, name string) (*toolset, error) {
	t := &toolset{functions: slices.Clone(d.tools)}
	var wrong []error
	for i, f := range t.functions {
		if f == nil {
			wrong = append(wrong, fmt.Errorf("tools[%d]: is nil", i))
			continue
		}
		t.functions[i] = f.ServedBy(name)
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	for _, from := range d.sources {
		if from == nil {
			wrong = append(wrong, errors.New("a source of tools is nil"))
			continue
		}
		o, err := from.OpenTools(rt.serving, source.ToolOptions{Agent: name, Serves: !d.elsewhere, Logger: rt.options.logger.With("agent", name)})
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		t.opened = append(t.opened, o)
	}
	if len(wrong) > 0 {
		t.close()
		return nil, errors.Join(wrong...)
	}
	return t, nil
}
