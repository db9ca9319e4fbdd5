package refold

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/refold/refold/internal/source"
	"github.com/refold/refold/planner"
)

// SubAgent is an agent as a tool of others. Each call is a run of a session of its own, the
// child, with the agent's model, system text and tools, and a share of what the calling run's
// budget leaves. The model calls it agent_NAME, with a task, and the answer is the result.
//
// The session of the child closes when its run ends, unless [KeepOpen] says otherwise. A cancel, an interrupt and a deadline
// of the calling run reach it. Give it to [ToolsFrom], with what the model is told of the
// agent.
func SubAgent(a *Agent, description string, o ...SubAgentOption) ToolSource {
	s := &subAgent{agent: a, description: description}
	apply(&s.delegating, o)
	return s
}

// SubAgentOption is an option of SubAgent.
type SubAgentOption func(*delegating)

// delegating is the optional part of a sub-agent.
type delegating struct{ facts, keep bool }

// HandFacts hands the facts of the calling session down to the child.
func HandFacts() SubAgentOption { return func(d *delegating) { d.facts = true } }

// KeepOpen keeps a child open after its run. Its answer tells the model how to go on with that
// conversation in a later call, until the calling session is closed. A session keeps the 64
// children that it used last.
func KeepOpen() SubAgentOption { return func(d *delegating) { d.keep = true } }

type subAgent struct {
	agent       *Agent
	description string
	delegating
}

// registry is that of a definition. It has profiles if the agent has sub-agents: of the
// agent itself, and of all of them.
type registry struct {
	Tools    []json.RawMessage `json:"tools"`
	Profiles []source.Profile  `json:"profiles,omitempty"`
}

// profile returns a profile with all tools of the registry.
func (r *registry) profile(name string) (source.Profile, error) {
	p := source.Profile{Profile: name, Tools: []string{}}
	for _, spec := range r.Tools {
		id, err := idOf(spec)
		if err != nil {
			return p, err
		}
		p.Tools = append(p.Tools, id)
	}
	return p, nil
}

// add adds what a sub-agent needs, unless another one has brought it.
func (r *registry) add(tools []json.RawMessage, profiles []source.Profile) error {
	for _, spec := range tools {
		same := func(other json.RawMessage) bool { return string(other) == string(spec) }
		if !slices.ContainsFunc(r.Tools, same) {
			r.Tools = append(r.Tools, spec)
		}
	}
	for _, p := range profiles {
		at := slices.IndexFunc(r.Profiles, func(other source.Profile) bool { return other.Profile == p.Profile })
		switch {
		case at < 0:
			r.Profiles = append(r.Profiles, p)
		case !slices.Equal(r.Profiles[at].Tools, p.Tools):
			return fmt.Errorf("two agents are called %s", p.Profile)
		}
	}
	return nil
}

// idOf returns the id of a tool.
func idOf(spec json.RawMessage) (string, error) {
	var t struct {
		ID string `json:"tool_id"`
	}
	err := json.Unmarshal(spec, &t)
	return t.ID, err
}

// taskSchema returns the schema of a sub-agent's arguments.
func taskSchema(keep bool) map[string]any {
	properties := map[string]any{
		"input": map[string]any{"type": "string", "minLength": 1, "description": "The task, with all that the agent must know: it sees nothing else."},
	}
	if keep {
		properties["continue"] = map[string]any{"type": "string", "description": "The call whose conversation goes on, as its result names it. Without it the agent begins anew."}
	}
	return map[string]any{"type": "object", "properties": properties, "required": []string{"input"}, "additionalProperties": false}
}

// OpenTools returns the tool, and the tools of the agent, which only its children have.
func (s *subAgent) OpenTools(context.Context, source.ToolOptions) (*source.Tools, error) {
	if s.agent == nil {
		return nil, errors.New("a sub-agent is nil")
	}
	if s.description == "" {
		return nil, fmt.Errorf("sub-agent %s: without a description no model knows what to ask it", s.agent.name)
	}
	var own registry
	var config map[string]any
	for text, into := range map[*json.RawMessage]any{&s.agent.tools: &own, &s.agent.config: &config} {
		if err := json.Unmarshal(*text, into); err != nil {
			return nil, fmt.Errorf("sub-agent %s: %w", s.agent.name, err)
		}
	}
	t := &source.Tools{Inner: own.Tools, Profiles: own.Profiles}
	if len(own.Profiles) == 0 { // the agent has no sub-agents
		profile, err := own.profile(s.agent.name)
		if err != nil {
			return nil, err
		}
		t.Profiles = []source.Profile{profile}
	}
	if config["active_tools"] == nil && config["tool_refs"] == nil {
		config["profile"] = s.agent.name
	}
	executor := map[string]any{"kind": planner.ExecutorSession, "agent": config}
	if s.facts {
		executor["inherit"] = []string{planner.InheritFacts}
	}
	if s.keep {
		executor["keep"] = true
	}
	spec, err := json.Marshal(map[string]any{
		"tool_id": "agent." + s.agent.name, "tool_name": "agent_" + s.agent.name, "description": s.description,
		"args_schema": taskSchema(s.keep), "executor": executor, "parallel_safe": true,
	})
	t.Specs = []json.RawMessage{spec}
	return t, err
}
