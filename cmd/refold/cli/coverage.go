package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec/nearest"
	"github.com/refold/refold/internal/llm/provider"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/internal/transcript"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// coverage is what a registry and a config need, and which of it exists.
type coverage struct {
	registry *planner.Registry
	config   *session.RunConfig // nil: runs bring their own
	spaces   []spaceNeed
	served   map[string]int             // how many bridges serve a target
	heard    []presence.BridgeHeard     // running bridges, with the tools that they report
	absent   map[planner.ToolIndex]bool // tools with a descriptor that is not stored
}

// need is a need of a tool or a config: one row of the table.
type need struct {
	what    string   // a tool_id, or a field of the config
	target  string   // in the form of heartbeats: tool/host
	by      string   // the bridges that serve it
	lacking []string // what is missing, and what to do
}

// target returns the name that heartbeats have for a target.
func target(class session.Class, name string) string { return string(class) + "/" + name }

// targets returns all targets that bridges must serve, each once, in order.
func (c *coverage) targets() []string {
	var all []string
	for _, tool := range c.registry.Tools() {
		if tool.Executor.Kind == planner.ExecutorEffect {
			all = append(all, target(session.ClassTool, tool.Executor.Target))
		}
	}
	for _, n := range c.configNeeds() {
		all = append(all, n.target)
	}
	for i := range c.spaces {
		if !c.spaces[i].embedded {
			all = append(all, target(session.ClassSpace, c.spaces[i].target))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// isServed reports whether each target has a bridge, and each tool.
func (c *coverage) isServed() bool {
	for i := range c.registry.Tools() {
		if c.missingTool(planner.ToolIndex(i)) != "" {
			return false
		}
	}
	return !slices.ContainsFunc(c.targets(), func(target string) bool { return c.served[target] == 0 })
}

// missingTool returns which bridges serve a tool's target without the tool, or "". A
// bridge that reports no tools for the target may have it.
func (c *coverage) missingTool(i planner.ToolIndex) string {
	tool := c.registry.Tool(i)
	of := target(session.ClassTool, tool.Executor.Target)
	if tool.Executor.Kind != planner.ExecutorEffect {
		return ""
	}
	all, without, like := 0, 0, ""
	for _, bridge := range c.heard {
		ids, reported := bridge.Tools[of]
		if slices.Contains(bridge.Targets, of) {
			all++
		}
		if !reported || slices.ContainsFunc(ids, func(id string) bool { return c.isTool(i, id) }) {
			continue
		}
		without++
		like = nearest.Name(tool.ToolID, ids)
	}
	if without == 0 {
		return ""
	}
	text := fmt.Sprintf("%d of %s of %s does not have it", without, transcript.Count(all, "bridge"), of)
	if like != "" {
		text += fmt.Sprintf("; did you mean %q?", like)
	}
	return text
}

// isTool reports whether a bridge's tool_id is that of a tool. In a pack that was
// imported, its name stands for the first part of the bridge's tool_id, or before it.
func (c *coverage) isTool(i planner.ToolIndex, id string) bool {
	own := c.registry.Tool(i).ToolID
	if id == own || c.registry.LayerOf(i) == "" {
		return id == own
	}
	_, rest, _ := strings.Cut(own, ".")
	return id == rest || strings.HasSuffix(id, "."+rest)
}

// needs returns the needs of the tools, by tool_id, the config and the grants.
func (c *coverage) needs() []need {
	var all []need
	for i, tool := range c.registry.Tools() {
		n := need{what: tool.ToolID}
		switch tool.Executor.Kind {
		case planner.ExecutorHostLoop:
			n.target, n.by = planner.ExecutorHostLoop+"/"+tool.Executor.Target, "the program that drives the session"
		case planner.ExecutorReply:
			n.target, n.by = planner.ExecutorReply, "whoever answers: "+tool.Executor.By
		case planner.ExecutorSession:
			n.target, n.by = planner.ExecutorSession, "another session"
		case planner.ExecutorSleep:
			n.target, n.by = planner.ExecutorSleep, "the session itself, when the time has come"
		case planner.ExecutorSpace:
			n.target, n.by = planner.ExecutorSpace+"/"+tool.Executor.Target, "the session itself, and the bridge that reads the pack"
		default:
			c.serve(&n, session.ClassTool, tool.Executor.Target)
			if lack := c.missingTool(planner.ToolIndex(i)); lack != "" {
				n.lacking = append(n.lacking, lack)
			}
		}
		if c.absent[planner.ToolIndex(i)] {
			n.lacking = append(n.lacking, "its descriptor is not stored: a session-actor stores it, start one")
		}
		all = append(all, n)
	}
	return append(append(all, c.configNeeds()...), c.spaceNeeds()...)
}

// configNeeds returns the needs of the config.
func (c *coverage) configNeeds() []need {
	var all []need
	add := func(field string, class session.Class, name string) {
		n := need{what: field}
		c.serve(&n, class, name)
		all = append(all, n)
	}
	if c.config != nil && c.config.Provider != "" {
		add("config.provider", session.ClassLLM, c.config.Provider)
	}
	if c.config != nil && c.config.StepHook != nil {
		add("config.step_hook", session.ClassStep, c.config.StepHook.Hook)
	}
	return all
}

// serve adds the bridges that serve a target to n.
func (c *coverage) serve(n *need, class session.Class, name string) {
	n.target = target(class, name)
	switch count := c.served[n.target]; count {
	case 0:
		n.lacking = append(n.lacking, "no bridge serves it: "+howToServe(class, name))
	case 1:
		n.by = "1 bridge"
	default:
		n.by = fmt.Sprintf("%d bridges", count)
	}
}

// howToServe returns how to start a bridge for a target.
func howToServe(class session.Class, name string) string {
	switch target(class, name) {
	case "tool/refold":
		return "start any bridge: each serves the tools that every session has, unless it has --no-session-tools"
	case "tool/host":
		return "start refold bridge serve --tools host --workdir DIR"
	}
	if _, ok := provider.Of(name); ok && class == session.ClassLLM {
		return "start refold bridge serve --model " + name
	}
	if worker, ok := strings.CutPrefix(name, "host-"); ok && class == session.ClassTool {
		return fmt.Sprintf("start refold bridge serve --tools host --worker %s again, with its --workdir; or start another worker, which reports after --worker-lost that the host session is lost", worker)
	}
	switch class {
	case session.ClassLLM:
		return fmt.Sprintf("start refold bridge serve --model %s=MODEL", name)
	case session.ClassSpace:
		return "start refold bridge serve --spaces FILE with this target in FILE, or a program that serves it with package bridge"
	case session.ClassStep:
		return "start a program that serves it with package bridge"
	}
	return fmt.Sprintf("start refold bridge serve --tools %s=TOOLS, or a program that serves it with package bridge", name)
}

// printNeeds prints each need with the bridges that serve it, and what is missing.
func printNeeds(out io.Writer, needs []need) {
	table := newWholeTable(out, "TOOL", "EXECUTOR", "SERVED BY")
	for _, n := range needs {
		has := n.lacking
		if n.by != "" {
			has = append([]string{n.by}, n.lacking...)
		}
		table.texts(n.what, n.target, strings.Join(has, "; "))
	}
	table.flush()
}

// tally counts the covered tools, config fields and spaces.
func (c *coverage) tally() string {
	has := func(needs []need) int { return len(needs) - len(uncovered(needs)) }
	all, tools := c.needs(), c.registry.Len()
	text := fmt.Sprintf("%d of %d tools", has(all[:tools]), tools)
	config := all[tools : len(all)-len(c.spaces)]
	if len(config) > 0 {
		text += fmt.Sprintf(", %d of %d in the config", has(config), len(config))
	}
	if len(c.spaces) > 0 {
		noun := "workspace"
		if slices.ContainsFunc(c.spaces, func(s spaceNeed) bool { return s.kind == space.Pack }) {
			noun = "space"
		}
		text += fmt.Sprintf(", %d of %s", has(all[tools+len(config):]), transcript.Count(len(c.spaces), noun))
	}
	return text
}

// uncovered returns the needs that lack something.
func uncovered(needs []need) []need {
	return slices.DeleteFunc(slices.Clone(needs), func(n need) bool { return len(n.lacking) == 0 })
}

// warnings returns a line for each missing thing, with the needs that lack it.
func warnings(needs []need) []string {
	var order []string
	who := map[string][]string{}
	for _, n := range needs {
		for _, lack := range n.lacking {
			if strings.HasPrefix(lack, "no bridge") {
				lack = n.target + ": " + lack
			}
			if who[lack] == nil {
				order = append(order, lack)
			}
			who[lack] = append(who[lack], n.what)
		}
	}
	lines := make([]string, len(order))
	for i, lack := range order {
		lines[i] = fmt.Sprintf("%s (%s)", lack, strings.Join(who[lack], ", "))
	}
	return lines
}
