package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/presence"
)

// troubles returns the problems that bridges report with their targets, one a line.
func troubles(ctx context.Context, b *bus.Bus, bridges []presence.Running) (lines []string, err error) {
	if len(bridges) == 0 {
		return nil, nil
	}
	stated, err := b.Stated(ctx, "bridge")
	if err != nil {
		return nil, err
	}
	for _, running := range bridges {
		var stats bridge.Stats
		if json.Unmarshal(stated[running.ID], &stats) != nil { // it is too busy, or another kind of program
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

// checkAllMCP runs checkMCP for all files, and then returns an error if one
// failed.
func (d doctorCommand) checkAllMCP(ctx context.Context, s streams, full *Full) (ended error) {
	for _, file := range d.MCP {
		err := d.checkMCP(ctx, s, full, file)
		var differs *statusError
		if err != nil && !errors.As(err, &differs) {
			fmt.Fprintf(s.err, "refold: %v\n", err)
		}
		if err != nil {
			ended = &statusError{statusFailed, ""}
		}
	}
	return ended
}

// checkMCP prints which tools of a file's servers differ from the imported ones,
// and returns an error if any does.
func (d doctorCommand) checkMCP(ctx context.Context, s streams, full *Full, file string) error {
	ctx, cancel := context.WithTimeout(ctx, d.MCPWithin)
	defer cancel()
	shown := newDisplay(s)
	shown.show(fmt.Sprintf("connecting to the servers of %s, for %s at most", file, d.MCPWithin))
	findings, same, err := full.CheckMCP(ctx, file)
	shown.show("")
	if err != nil {
		return err
	}
	if d.JSON {
		printFindingsJSON(s.out, file, findings, same)
	} else {
		printFindings(s.out, file, findings, same)
	}
	if len(findings) > 0 {
		return &statusError{statusFailed, ""}
	}
	return nil
}

// findingJSON is a problem with a server or a tool as JSON.
type findingJSON struct {
	MCP    string `json:"mcp"` // the file
	Server string `json:"server,omitempty"`
	Tool   string `json:"tool,omitempty"`
	ToolID string `json:"tool_id,omitempty"`
	What   string `json:"what"`
}

// printFindingsJSON prints an object a finding, then the number of unchanged
// tools.
func printFindingsJSON(out io.Writer, file string, findings []MCPFinding, same int) {
	for _, f := range findings {
		printJSON(out, findingJSON{file, f.Server, f.Tool, f.ToolID, f.What})
	}
	printJSON(out, struct {
		MCP       string `json:"mcp"`
		Unchanged int    `json:"unchanged"`
	}{file, same})
}

// printFindings prints a line for each finding, then the number of unchanged tools.
func printFindings(out io.Writer, file string, findings []MCPFinding, same int) {
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
		fmt.Fprintf(out, "mcp: calls of changed tools are refused: review them, then refold tools import mcp %s | refold install -, and start the bridges again\n", file)
	}
	fmt.Fprintf(out, "mcp: %d imported tools are unchanged\n", same)
}
