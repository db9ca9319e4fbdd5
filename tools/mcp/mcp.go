// Package mcp has the tools of MCP servers, for an agent of package refold:
//
//	helper, err := rt.Agent("helper", refold.Model(…), refold.ToolsFrom(mcp.File("servers.yaml")))
//
// The file lists the servers: programs that this process starts, and addresses of
// running ones. docs/tools.md describes it. The bridge's --tools mcp:FILE reads the
// same file.
//
// # Path
//
// Runtime.Agent starts every server of the file, asks for its tools, and stops it
// again: the tools get into the agent's definition. A server is started once more by
// the first call of one of its tools, again if it ends, and stopped by Runtime.Close.
//
// # Laws
//
//   - The first start pins the tools in a file beside the given one, servers.yaml.lock.
//     Later starts refuse a tool that has changed since, and leave out a new one: look
//     at it, and import the tools again, with refold tools import mcp servers.yaml, or
//     remove the file.
//   - A tool that changes while this process runs is not called: tool_changed.
//   - A call that did not arrive is sent again. One that may have arrived is sent again
//     only if the tool is retry-safe; else its outcome is unknown.
//   - The tools of two agents have two targets, so that no process takes the calls of a
//     server that it does not have. A target in the file is shared by all that name it.
package mcp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/refold/refold"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/internal/source"
	"github.com/refold/refold/internal/tools/mcp"
)

// File returns the tools of the servers in a file. Its values refer to the environment
// of this process. Runtime.Agent reports a mistake in the file with its line and key,
// and which server does not start.
func File(path string) refold.ToolSource { return file(path) }

type file string

// OpenTools asks the servers for their tools. It does not return before each has
// answered, or failed, which takes two minutes at most for each.
func (f file) OpenTools(ctx context.Context, o source.ToolOptions) (*source.Tools, error) {
	tools, err := f.open(ctx, o)
	if err != nil && !strings.Contains(err.Error(), string(f)) {
		return nil, fmt.Errorf("%s: %w", string(f), err)
	}
	return tools, err
}

func (f file) open(ctx context.Context, o source.ToolOptions) (*source.Tools, error) {
	options := mcp.Options{Env: environment(), Logger: o.Logger}
	var err error
	if options.Target, err = o.Target("mcp"); err != nil {
		return nil, err
	}
	config, err := mcp.Load(string(f), options.Env)
	if err != nil {
		return nil, err
	}
	found, err := imported(ctx, config, options)
	if err != nil {
		return nil, err
	}
	lock, err := f.lock(found, o.Logger)
	if err != nil {
		return nil, err
	}
	tools := &source.Tools{}
	for _, t := range found.Tools {
		if _, ok := lock[t.Function.ToolID()]; !ok {
			continue
		}
		spec, err := t.Function.Spec()
		if err != nil {
			return nil, err
		}
		tools.Specs = append(tools.Specs, spec)
	}
	if !o.Serves {
		return tools, nil
	}
	servers, err := mcp.New(config, lock, options)
	if err != nil {
		return nil, err
	}
	executors := servers.Executors()
	tools.Targets, tools.Close = slices.Sorted(maps.Keys(executors)), servers.Close
	tools.Serve = func(b *bridge.Bridge) error {
		for _, target := range tools.Targets {
			if err := b.Tool(target, executors[target]); err != nil {
				return err
			}
		}
		return nil
	}
	return tools, nil
}

// imported returns the tools that the servers list now.
func imported(ctx context.Context, config *mcp.Config, o mcp.Options) (*mcp.Imported, error) {
	found, err := mcp.Import(ctx, config, o)
	if err != nil {
		return nil, err
	}
	var problems []error
	for _, p := range found.Problems {
		o.Logger.Warn("mcp_tool_left_out", "server", p.Server, "tool", p.Tool, "why", p.Err.Error())
		problems = append(problems, p)
	}
	for _, note := range found.Notes {
		o.Logger.Warn("mcp_import_note", "note", note)
	}
	if len(found.Tools) == 0 {
		return nil, errors.Join(append([]error{errors.New("no tool can be used")}, problems...)...)
	}
	return found, nil
}

// lock returns the pins of the tools that may be called: those that were imported and
// have not changed. The first import pins all.
func (f file) lock(found *mcp.Imported, log *slog.Logger) (mcp.Lock, error) {
	pinned, err := mcp.ReadLock(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		if err := mcp.WriteLock(string(f), found.Lock); err != nil {
			return nil, fmt.Errorf("pin the tools: %w; or write the file elsewhere, with refold tools import mcp %s, and keep it beside %s", err, f, f)
		}
		return found.Lock, nil
	}
	if err != nil {
		return nil, err
	}
	lock := mcp.Lock{}
	var wrong []error
	for _, t := range found.Tools {
		id := t.Function.ToolID()
		pin, ok := pinned[id]
		if !ok {
			log.Warn("mcp_tool_left_out", "server", t.Server, "tool", t.Name, "why", "it was not imported: refold tools import mcp "+string(f))
			continue
		}
		for _, note := range found.Lock.Since(mcp.Lock{id: pin}) {
			wrong = append(wrong, fmt.Errorf("server %s: %s: look at what changed, then import the tools again, with refold tools import mcp %s, or remove %s", t.Server, note, f, mcp.LockFile(string(f))))
		}
		lock[id] = pin
	}
	return lock, errors.Join(wrong...)
}

// environment returns the environment of this process.
func environment() map[string]string {
	env := map[string]string{}
	for _, pair := range os.Environ() {
		if name, value, ok := strings.Cut(pair, "="); ok {
			env[name] = value
		}
	}
	return env
}
