package mcp

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refold/refold/bridge/function"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/secrets"
	"github.com/refold/refold/planner"
)

// Tool is a tool listed by a server.
type Tool struct {
	// Function is the tool for registries. Its calls go through Servers.
	Function *function.Function
	Server   string
	Name     string // at the server
	Pin      Pin
	Needs    []string // secrets for the server, as needs of a pack's tool
}

// Problem is a listed tool that can't be used.
type Problem struct {
	Server, Tool string
	ToolID       string
	Err          error // every problem
}

// Error returns the name of the tool and its problems.
func (p *Problem) Error() string {
	return fmt.Sprintf("server %s, tool %s: %s", p.Server, p.Tool, strings.ReplaceAll(p.Err.Error(), "\n", "; "))
}

// Unwrap returns the problems.
func (p *Problem) Unwrap() error { return p.Err }

// find returns the included tools of a list, by tool_id, and the problems of
// others. Once the tools take more than weightMax, it accepts no more. What is cut
// has no secrets.
func find(server string, s *Server, target string, listed []*sdk.Tool, redactor *secrets.Redactor) (tools []*Tool, problems []*Problem) {
	ids := map[string]int{}
	names := map[string]int{}
	var taken []*sdk.Tool
	for i, t := range listed {
		if t == nil || !s.takes(t.Name) {
			continue
		}
		if t.Name == "" {
			problems = append(problems, &Problem{Server: server, Tool: fmt.Sprintf("%d of its list", i+1), Err: errors.New("it has no name, so that nobody could call it")})
			continue
		}
		taken = append(taken, t)
		ids[toolID(server, t.Name)]++
		names[toolName(server, t.Name)]++
	}
	seen := map[string]bool{}
	weight := 0
	for _, t := range taken {
		id, name := toolID(server, t.Name), toolName(server, t.Name)
		if ids[id] > 1 {
			id = unique(id, t.Name, planner.ToolIDBytesMax)
		}
		if names[name] > 1 {
			name = unique(name, t.Name, planner.NameBytesMax)
		}
		var tool *Tool
		err := fmt.Errorf("the server's tools before it take %d MiB of memory already: choose fewer tools", weightMax>>20)
		if weight <= weightMax {
			tool, err = newTool(server, s, target, id, name, t, redactor)
		}
		if err == nil {
			weight += tool.Function.Weight()
		}
		if seen[t.Name] {
			err = errors.New("the server lists two of this name")
		}
		seen[t.Name] = true
		if err != nil {
			problems = append(problems, &Problem{Server: server, Tool: redactor.Clip(t.Name, errorTextMax), ToolID: id, Err: err})
			continue
		}
		tools = append(tools, tool)
	}
	slices.SortFunc(tools, func(a, b *Tool) int { return cmp.Compare(a.Function.ToolID(), b.Function.ToolID()) })
	return tools, problems
}

// idPrefix begins the tool_ids of all tools; in a pack the pack's name replaces it.
const idPrefix = "mcp."

// toolID returns mcp.<server>.<tool>, possibly with a hash to fit the limit.
func toolID(server, tool string) string {
	id := idPrefix + server + "." + legal(tool)
	if len(id) > planner.ToolIDBytesMax || tool == "" {
		return unique(id, tool, planner.ToolIDBytesMax)
	}
	return id
}

// toolName returns the name for the model.
func toolName(server, tool string) string {
	name := server + "_" + legal(tool)
	if len(name) > planner.NameBytesMax {
		return unique(name, tool, planner.NameBytesMax)
	}
	return name
}

// unique returns a name of at most most bytes that is unique to of.
func unique(name, of string, most int) string {
	hash := codec.Sum([]byte(of))
	mark := "_" + hex.EncodeToString(hash[:4])
	return name[:min(len(name), most-len(mark))] + mark
}

// newTool returns the tool of one entry of a list.
func newTool(server string, s *Server, target, id, name string, listed *sdk.Tool, redactor *secrets.Redactor) (*Tool, error) {
	if fault, ok := listed.Meta[metaFault].(string); ok {
		return nil, errors.New(fault)
	}
	pin, err := pinOf(listed)
	if err != nil {
		return nil, err
	}
	schema, err := modern(schemaOf(listed))
	if err != nil {
		return nil, fmt.Errorf("its schema: %w", err)
	}
	t := &Tool{Server: server, Name: listed.Name, Pin: pin}
	for _, name := range s.SecretNames() {
		t.Needs = append(t.Needs, "secret:"+name)
	}
	safe, parallel, approval := safety(pin, s.override(listed.Name))
	own := s.override(listed.Name)
	description := cmp.Or(listed.Description, listed.Title)
	if listed.Annotations != nil {
		description = cmp.Or(description, listed.Annotations.Title)
	}
	options := []function.Option{
		function.Target(target), function.ToolName(name), function.ArgsSchema(schema), function.Tries(1),
		function.Description(redactor.Clip(description, descriptionBytes)), function.Requires(own.Requires...), function.Approval(approval),
	}
	if safe {
		options = append(options, function.RetrySafe())
	}
	if parallel {
		options = append(options, function.ParallelSafe())
	}
	if slices.Contains(pin.Hints, hintReadOnly) {
		options = append(options, function.ReadOnly())
	}
	if own.Deadline > 0 {
		options = append(options, function.Deadline(own.Deadline))
	}
	t.Function = function.New(id, t.request, options...)
	if err := t.Function.Err(); err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "tool "+id+": "))
	}
	return t, nil
}

// safety returns the file's settings for a tool, or else the server's hints.
// The protocol says that a tool without hints may be destructive.
func safety(pin Pin, own Override) (safe, parallel bool, approval string) {
	readOnly := slices.Contains(pin.Hints, hintReadOnly)
	safe, parallel = readOnly || slices.Contains(pin.Hints, hintIdempotent), readOnly
	if slices.Contains(pin.Hints, hintDestructive) {
		approval = planner.ApprovalAlways
	}
	return *cmp.Or(own.RetrySafe, &safe), *cmp.Or(own.ParallelSafe, &parallel), *cmp.Or(own.Approval, &approval)
}

// pinOf returns the properties of a listed tool that a call relies on.
func pinOf(listed *sdk.Tool) (Pin, error) {
	text, err := json.Marshal(schemaOf(listed))
	if err != nil {
		return Pin{}, fmt.Errorf("its schema: %w", err)
	}
	if len(text) > planner.SchemaBytesMax {
		return Pin{}, fmt.Errorf("its schema: %d bytes as JSON, at most %d", len(text), planner.SchemaBytesMax)
	}
	canonical, err := codec.FromJSON(text)
	if err != nil {
		return Pin{}, fmt.Errorf("its schema: %w", err)
	}
	pin := Pin{Tool: listed.Name, Schema: codec.RefOf(canonical), Hints: []string{}}
	a := listed.Annotations
	if a == nil {
		a = &sdk.ToolAnnotations{}
	}
	if a.ReadOnlyHint {
		pin.Hints = append(pin.Hints, hintReadOnly)
	}
	if a.IdempotentHint {
		pin.Hints = append(pin.Hints, hintIdempotent)
	}
	if !a.ReadOnlyHint && (a.DestructiveHint == nil || *a.DestructiveHint) {
		pin.Hints = append(pin.Hints, hintDestructive)
	}
	return pin, nil
}
