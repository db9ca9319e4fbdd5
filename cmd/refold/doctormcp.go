package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/tools/mcp"
)

// troubles returns what bridges say is wrong with what they serve, a line each.
func troubles(ctx context.Context, b *bus.Bus, bridges []bus.Running) (lines []string, err error) {
	if len(bridges) == 0 {
		return nil, nil
	}
	stated, err := b.Stated(ctx, "bridge")
	if err != nil {
		return nil, err
	}
	for _, running := range bridges {
		var stats bridge.Stats
		if json.Unmarshal(stated[running.ID], &stats) != nil { // it is too busy, or another program's
			continue
		}
		for _, target := range slices.Sorted(maps.Keys(stats.Targets)) {
			for _, what := range stats.Targets[target].Troubles {
				lines = append(lines, fmt.Sprintf("trouble: %s (%s): %s", target, running.Metadata["name"], what))
			}
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines), nil
}

// checkAllMCP is checkMCP for several files. Their errors end the program with
// its status after the last.
func checkAllMCP(ctx context.Context, s streams, files []string, within time.Duration) (ended error) {
	for _, file := range files {
		err := checkMCP(ctx, s.out, file, within)
		var said *statusError
		if err != nil && !errors.As(err, &said) {
			fmt.Fprintf(s.err, "refold: %v\n", err)
		}
		if err != nil {
			ended = &statusError{statusFailed, ""}
		}
	}
	return ended
}

// checkMCP prints which tools of a file's servers are not what was imported. The
// error says that there are some.
func checkMCP(ctx context.Context, out io.Writer, file string, within time.Duration) error {
	env := settings.ReadEnvironment(os.Environ())
	config, err := mcp.Load(file, env)
	if err != nil {
		return err
	}
	lock, err := mcp.ReadLock(file)
	if err != nil {
		return err
	}
	servers, err := mcp.New(config, lock, mcp.Options{Env: env, Version: settings.Version()})
	if err != nil {
		return err
	}
	defer servers.Close()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	findings, same := servers.Check(ctx)
	changed := false
	for _, f := range findings {
		switch {
		case f.Tool == "":
			fmt.Fprintf(out, "mcp: server %s: %s\n", f.Server, f.What)
		case f.Server == "":
			fmt.Fprintf(out, "mcp: %s: %s\n", f.ToolID, f.What)
		default:
			fmt.Fprintf(out, "mcp: server %s, tool %s (%s): %s\n", f.Server, f.Tool, f.ToolID, f.What)
		}
		changed = changed || f.Tool != ""
	}
	if changed {
		fmt.Fprintf(out, "mcp: calls of what has changed are refused: look at it, then refold tools import mcp %s | refold install -, and start the bridges again\n", file)
	}
	fmt.Fprintf(out, "mcp: %d imported tools are as they were\n", same)
	if len(findings) > 0 {
		return &statusError{statusFailed, ""}
	}
	return nil
}
