package refold

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/inside"
	"github.com/refold/refold/planner"
)

func init() { inside.Of = func(rt any) inside.Runtime { return within{rt.(*Runtime)} } }

// within is a runtime as other packages of this module see it.
type within struct{ rt *Runtime }

// Client implements inside.Runtime.
func (w within) Client() *client.Client { return w.rt.client }

// Act implements inside.Runtime.
func (w within) Act(operator, approver, eraser *client.Client) {
	w.rt.operator, w.rt.approver, w.rt.eraser = operator, approver, eraser
}

// Operator implements inside.Runtime.
func (w within) Operator() *client.Client { return cmp.Or(w.rt.operator, w.rt.client) }

// Approver implements inside.Runtime.
func (w within) Approver() *client.Client { return cmp.Or(w.rt.approver, w.rt.operator, w.rt.client) }

// Eraser implements inside.Runtime.
func (w within) Eraser() *client.Client { return cmp.Or(w.rt.eraser, w.rt.client) }

// Agents implements inside.Runtime.
func (w within) Agents() []string {
	w.rt.mu.Lock()
	defer w.rt.mu.Unlock()
	return slices.Sorted(maps.Keys(w.rt.agents))
}

// Define implements inside.Runtime.
func (w within) Define(name string, config, registry json.RawMessage) error {
	if !planner.IsName(name) {
		return fmt.Errorf("agent %s: its name is not 1 to 64 of A-Za-z0-9_-", name)
	}
	var of session.RunConfig
	packed, err := codec.FromJSON(config)
	if err == nil {
		err = codec.Decode(packed, &of)
	}
	if err != nil {
		return fmt.Errorf("agent %s: config: %w", name, err)
	}
	bare, err := json.Marshal(map[string]string{"provider": of.Provider, "model": of.Model})
	if err != nil {
		return fmt.Errorf("agent %s: %w", name, err)
	}
	hash, err := client.DefinitionOf(config, registry)
	if err != nil {
		return fmt.Errorf("agent %s: %w", name, err)
	}
	w.rt.mu.Lock()
	defer w.rt.mu.Unlock()
	if w.rt.agents[name] != nil {
		return fmt.Errorf("agent %s: this runtime has an agent of that name", name)
	}
	w.rt.agents[name] = &Agent{rt: w.rt, name: name, config: config, bare: bare, tools: registry, hash: hash.String(), defined: map[string]bool{}}
	return nil
}

func (w within) agent(name string) (*Agent, error) {
	w.rt.mu.Lock()
	defer w.rt.mu.Unlock()
	if a := w.rt.agents[name]; a != nil {
		return a, nil
	}
	return nil, fmt.Errorf("this runtime has no agent %s", name)
}

// Set implements inside.Runtime.
func (w within) Set(ctx context.Context, agent, sid string) error {
	a, err := w.agent(agent)
	if err != nil {
		return err
	}
	a.forget(sid) // another program may have changed it
	return a.define(ctx, sid)
}

// Ask implements inside.Runtime.
func (w within) Ask(ctx context.Context, agent, sid, text string, o client.RunOptions, tools ...json.RawMessage) (inside.Asked, error) {
	s := &Session{rt: w.rt, id: sid}
	if agent == "" {
		return asked(s.request(ctx, text, o))
	}
	var err error
	if s.agent, err = w.agent(agent); err != nil {
		return inside.Asked{}, err
	}
	var left []string
	if len(tools) > 0 {
		if s.agent, left, err = s.agent.with(tools); err != nil {
			return inside.Asked{}, fmt.Errorf("agent %s: %w", agent, err)
		}
	}
	o.Agent = s.agent.hash
	run, err := asked(s.ask(ctx, text, o))
	run.Left = left
	return run, err
}

// with returns the agent with more tools, which nobody serves, and the names of those
// that it has already.
func (a *Agent) with(tools []json.RawMessage) (more *Agent, left []string, err error) {
	type spec struct {
		ID   string `json:"tool_id"`
		Name string `json:"tool_name"`
	}
	registry, config, has := map[string]json.RawMessage{}, map[string]json.RawMessage{}, map[string]bool{}
	var all, named []json.RawMessage
	if err := errors.Join(json.Unmarshal(a.tools, &registry), json.Unmarshal(a.config, &config), json.Unmarshal(registry["tools"], &all)); err != nil {
		return nil, nil, err
	}
	own := len(all)
	for i, raw := range slices.Concat(all, tools) {
		var tool spec
		switch err := json.Unmarshal(raw, &tool); {
		case err != nil:
			return nil, nil, err
		case i < own:
		case has[tool.ID], has[tool.Name]:
			left = append(left, tool.Name)
			continue
		default:
			all = append(all, raw)
			named = append(named, json.RawMessage(`"`+tool.ID+`"`))
		}
		has[tool.ID], has[tool.Name] = true, true
	}
	if err := offer(registry, config, named); err != nil {
		return nil, nil, err
	}
	more = &Agent{rt: a.rt, name: a.name, bare: a.bare, defined: map[string]bool{}}
	registry["tools"], _ = json.Marshal(all)
	more.tools, _ = json.Marshal(registry)
	more.config, _ = json.Marshal(config)
	hash, err := client.DefinitionOf(more.config, more.tools)
	if err != nil {
		return nil, nil, &client.RejectedError{Code: session.RejectInvalidRegistry, Detail: err.Error()}
	}
	more.hash = hash.String()
	return more, left, nil
}

func asked(r *Run, seq uint64, err error) (inside.Asked, error) {
	if err != nil {
		return inside.Asked{}, err
	}
	return inside.Asked{Seq: seq, Run: r.number, Began: r.began}, nil
}

// offer adds tools to what a config names, its list of tools or its profile. Without
// either, the model is shown the whole registry.
func offer(registry, config map[string]json.RawMessage, tools []json.RawMessage) error {
	if config["active_tools"] != nil {
		var active []json.RawMessage
		err := json.Unmarshal(config["active_tools"], &active)
		config["active_tools"], _ = json.Marshal(append(active, tools...)) // JSON can be encoded
		return err
	}
	if registry["profiles"] == nil {
		return nil
	}
	var profiles []map[string]json.RawMessage
	err := json.Unmarshal(registry["profiles"], &profiles)
	for _, p := range profiles {
		var has []json.RawMessage
		if string(p["profile"]) == string(config["profile"]) {
			err = errors.Join(err, json.Unmarshal(p["tools"], &has))
			p["tools"], _ = json.Marshal(append(has, tools...))
		}
	}
	registry["profiles"], _ = json.Marshal(profiles)
	return err
}

// Hold implements inside.Runtime.
func (w within) Hold(ctx context.Context, sid string, seq uint64) (leave func(), ok bool, err error) {
	f := w.rt.join(ctx, w.rt.Session(sid), seq)
	if f == nil {
		return nil, false, nil
	}
	leave = sync.OnceFunc(func() { w.rt.leave(f) })
	select {
	case <-f.ready:
		return leave, true, nil
	case <-ctx.Done():
		leave()
		return nil, false, ctx.Err()
	}
}

// Before implements inside.Runtime.
func (w within) Before(seq uint64) string { return position{seq: seq}.String() }

// Place implements inside.Runtime.
func (w within) Place(text string) (seq uint64, n int, ok bool) {
	p, err := parsePosition(text)
	return p.seq, p.n, err == nil && text != ""
}
