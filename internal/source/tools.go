package source

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/codec/nearest"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/subjects"
)

// ToolOptions are those of the agent that has the tools.
type ToolOptions struct {
	Agent  string       // its name
	Serves bool         // this process serves the agent; else it only asks
	Logger *slog.Logger // not nil
}

// Target returns the target of tools of a kind that this agent's processes serve, so
// that other agents' processes don't take their calls.
func (o *ToolOptions) Target(kind string) (string, error) {
	target := o.Agent + "-" + kind
	if err := subjects.ValidTarget(target); err != nil {
		return "", fmt.Errorf("their target %s: %w: give the agent a shorter name", target, err)
	}
	return target, nil
}

// Tools are tools that are no Go functions of the program.
type Tools struct {
	Specs []json.RawMessage // of the tools, for the agent's registry

	// Of a sub-agent: what is only for its sessions, and who has which tools.
	Inner    []json.RawMessage
	Profiles []Profile

	// The rest is of a process that serves the agent.
	Targets []string                              // that Serve serves
	Serve   func(*bridge.Bridge) error            // nil: others carry the calls out
	Run     func(context.Context, *bridge.Bridge) // runs until ctx ends; may be nil
	Close   func()                                // called once, after all others; may be nil
}

// Profile is the tools of one agent, by their ids.
type Profile struct {
	Profile string   `json:"profile"`
	Tools   []string `json:"tools"`
}

// Names of the tools that open and close a host session, without which no host tool is
// offered.
const (
	openSession  = "open_session"
	closeSession = "close_session"
)

// Shell is the name of the tool that runs commands.
const Shell = "shell"

// BuiltInNames returns the names of the built-in tools of a host.
func BuiltInNames() (names []string) {
	for _, t := range planner.Builtin().Tools {
		if t.Executor.Kind == planner.ExecutorEffect {
			names = append(names, t.ToolName)
		}
	}
	return names
}

// Wait returns the built-in tool of a name that no process carries out: ask_person,
// wait_for or sleep.
func Wait(name string) ([]json.RawMessage, error) {
	return specsOf(func(t *planner.ToolSpec) bool { return t.ToolName == name })
}

// BuiltIn returns built-in tools of a host by the names that models call, all of them
// without names, with those that open and close host sessions. target, if given, is in
// place of their own. The error reports every unknown name, and the known ones.
func BuiltIn(target string, names ...string) ([]json.RawMessage, error) {
	known := BuiltInNames()
	wanted := map[string]bool{}
	for _, name := range known {
		wanted[name] = len(names) == 0 || name == openSession || name == closeSession
	}
	var wrong []string
	for _, name := range names {
		if _, ok := wanted[name]; ok {
			wanted[name] = true
			continue
		}
		text := fmt.Sprintf("%q", name)
		if meant := nearest.Name(name, known); meant != "" {
			text += fmt.Sprintf(" (did you mean %q?)", meant)
		}
		wrong = append(wrong, text)
	}
	if len(wrong) > 0 {
		return nil, fmt.Errorf("no built-in tool is called %s: there are %s", strings.Join(wrong, ", "), strings.Join(known, ", "))
	}
	return specsOf(func(t *planner.ToolSpec) bool {
		if target != "" {
			t.Executor.Target = target
		}
		return wanted[t.ToolName]
	})
}

// specsOf returns those built-in tools that fn, which may change them, wants.
func specsOf(fn func(*planner.ToolSpec) bool) (specs []json.RawMessage, err error) {
	for _, t := range planner.Builtin().Tools {
		if !fn(&t) {
			continue
		}
		packed, err := codec.Marshal(t)
		if err != nil {
			return nil, err
		}
		spec, err := codec.ToJSON(packed)
		if err != nil {
			return nil, err
		}
		specs = append(specs, spec)
	}
	return specs, nil
}
