package refold

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/tools/sessiontools"
	"github.com/refold/refold/planner"
)

// RunConfig is how runs behave: their budget, deadlines, retries, prices, step rules.
type RunConfig = session.RunConfig

// Step is what a function of PrepareStep is given.
type Step = executor.StepRequest

// StepChoice is what a function of PrepareStep returns.
type StepChoice = executor.StepChoice

// Agent is a model, a system text and tools: the definition of it. Sessions get the
// definition with their next Ask, also those that have another one of the same agent.
type Agent struct {
	rt     *Runtime
	name   string
	config json.RawMessage // a RunConfig
	bare   json.RawMessage // one that names the model alone
	tools  json.RawMessage // a registry
	hash   string          // of both

	mu      sync.Mutex
	defined map[string]bool // sessions that had the definition when they were last asked, or not
}

// definedMax is how many sessions an agent remembers as defined. Of others it asks the
// log.
const definedMax = 10_000

// AgentOption is an option of Runtime.Agent.
type AgentOption func(*definition)

// definition is an agent under construction.
type definition struct {
	model     ModelRef
	config    RunConfig
	system    *string
	fallback  []ModelRef
	tools     []*Tool
	sources   []ToolSource
	hook      executor.PrepareStep
	elsewhere bool
}

// Model sets the model. It is required.
func Model(m ModelRef) AgentOption { return func(d *definition) { d.model = m } }

// Fallback adds models that are asked when the one before fails, in this order: at once, in
// the same turn, and to the end of the run. This process serves them, too. Config.Fallback
// says more of a model with the same provider and name: after which codes it is asked, with
// which params, and for how long.
func Fallback(models ...ModelRef) AgentOption {
	return func(d *definition) { d.fallback = append(d.fallback, models...) }
}

// System sets the system text of every run.
func System(text string) AgentOption { return func(d *definition) { d.system = &text } }

// Tools adds tools. The target of a tool without the option function.Target is the
// agent's name, so that programs with tools of the same id don't take each other's
// calls.
func Tools(tools ...*Tool) AgentOption {
	return func(d *definition) { d.tools = append(d.tools, tools...) }
}

// Config sets the rest of the config of every run. Model, System and PrepareStep win
// over its fields. Without a Context it gets one with the model's Tokens, so that no
// session ends because its transcript is long.
func Config(c RunConfig) AgentOption { return func(d *definition) { d.config = c } }

// PrepareStep calls fn before each turn, to choose its tools, system text and model.
// The session records the choice. If fn fails, the turn has the agent's own, unless
// Config has a step_hook with the fallback fail.
func PrepareStep(fn func(context.Context, Step) (StepChoice, error)) AgentOption {
	return func(d *definition) { d.hook = fn }
}

// ServedElsewhere is for a process that only asks: others serve the agent, with the
// same definition.
func ServedElsewhere() AgentOption { return func(d *definition) { d.elsewhere = true } }

// Agent checks a whole definition, and then serves its tools and its model from this
// process until Close. name is a subject's token, 1 to 64 of A-Za-z0-9_-. The error
// reports every problem, and nothing is served then.
func (rt *Runtime) Agent(name string, o ...AgentOption) (*Agent, error) {
	var d definition
	apply(&d, o)
	a, err := d.open(rt, name)
	if err != nil {
		return nil, fmt.Errorf("agent %s: %w", name, err)
	}
	return a, nil
}

func (d *definition) open(rt *Runtime, name string) (*Agent, error) {
	var unnamed error
	if !planner.IsName(name) {
		unnamed = errors.New("its name is not 1 to 64 of A-Za-z0-9_-")
	}
	problems := []error{unnamed, d.model.validate()}
	for i := range d.fallback {
		problems = append(problems, d.fallback[i].validate())
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	tools, err := d.toolset(rt, name)
	if err != nil {
		return nil, err
	}
	a, err := d.agent(rt, name, tools)
	if err == nil {
		err = rt.add(a, d, tools)
	}
	if err != nil || d.elsewhere {
		tools.close()
	}
	return a, err
}

// add serves an agent, unless other processes do.
func (rt *Runtime) add(a *Agent, d *definition, tools *toolset) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	switch {
	case rt.closed:
		return errClosed
	case rt.agents[a.name] != nil:
		return errors.New("this runtime has an agent of that name")
	}
	if !d.elsewhere {
		if err := d.serve(rt, a.name, tools); err != nil {
			return err
		}
	}
	rt.agents[a.name] = a
	return nil
}

// agent returns the agent with its definition.
func (d *definition) agent(rt *Runtime, name string, tools *toolset) (*Agent, error) {
	a := &Agent{rt: rt, name: name, defined: map[string]bool{}}
	registry, err := tools.registry(name)
	if err != nil {
		return nil, err
	}
	if a.tools, err = json.Marshal(registry); err != nil {
		return nil, err
	}
	config := d.config
	if len(registry.Profiles) > 0 && config.ActiveTools == nil && config.ToolRefs == nil {
		config.Profile = name
	}
	config.Provider, config.Model = d.model.Provider, d.model.Model
	if config.Context == nil { // or a session would end with its context
		config.Context = &session.ContextConfig{Tokens: d.model.Tokens}
	}
	config.Fallback = d.fallbackOf(config)
	if d.system != nil {
		config.System = *d.system
	}
	if d.hook != nil {
		hook := session.StepHook{}
		if config.StepHook != nil {
			hook = *config.StepHook
		}
		hook.Hook = name
		config.StepHook = &hook
	}
	for to, of := range map[*json.RawMessage]RunConfig{&a.config: config, &a.bare: {Provider: config.Provider, Model: config.Model}} {
		packed, err := codec.Marshal(of)
		if err == nil {
			*to, err = codec.ToJSON(packed)
		}
		if err != nil {
			return nil, fmt.Errorf("config: %w", err)
		}
	}
	hash, err := client.DefinitionOf(a.config, a.tools)
	a.hash = hash.String()
	return a, err
}

// fallbackOf returns the models of Fallback, with what a config says of them, and then the
// config's others.
func (d *definition) fallbackOf(c RunConfig) (all []session.FallbackModel) {
	rest := slices.Clone(c.Fallback)
	for _, m := range d.fallback {
		entry := session.FallbackModel{Provider: m.Provider, Model: m.Model}
		if i := slices.IndexFunc(rest, func(f session.FallbackModel) bool { return f.Provider == m.Provider && f.Model == m.Model }); i >= 0 {
			entry = rest[i]
			rest = slices.Delete(rest, i, i+1)
		}
		if entry.Context == nil && m.Tokens > 0 {
			context := *c.Context
			context.Tokens = m.Tokens
			entry.Context = &context
		}
		all = append(all, entry)
	}
	return append(all, rest...)
}

// unserved returns the agent's models that no agent of this process serves yet, one for
// each provider.
func (d *definition) unserved(rt *Runtime) (all []ModelRef, err error) {
	accounts := maps.Clone(rt.models)
	for _, m := range append([]ModelRef{d.model}, d.fallback...) {
		served, has := accounts[m.Provider]
		switch {
		case has && served != m.Account:
			return nil, fmt.Errorf("another model of this process calls %s with another address or key: give one of the two another name of its provider, with As", m.Provider)
		case !has && m.Open == nil:
			return nil, fmt.Errorf("model %s of %s: this process can't call it: take it from a package of a provider, or give the option ServedElsewhere", m.Model, m.Provider)
		case !has:
			accounts[m.Provider] = m.Account
			all = append(all, m)
		}
	}
	return all, nil
}

// serve starts a bridge with what the agent needs and no other agent of this process
// serves. The caller holds the runtime's lock.
func (d *definition) serve(rt *Runtime, name string, tools *toolset) error {
	models, err := d.unserved(rt)
	if err != nil {
		return err
	}
	targets := tools.targets()
	for target, tool := range targets {
		if other := rt.targets[target]; other != "" {
			return fmt.Errorf("tool %s: agent %s of this process serves the target %s already: give one of them another, with function.Target", tool, other, target)
		}
	}
	if len(models) == 0 && !tools.serves() && d.hook == nil {
		return nil // nothing is left to serve
	}
	b, err := rt.connectBridge(rt.serving, name)
	if err != nil {
		return err
	}
	err = d.addTo(b, name, tools, models)
	if err == nil && !rt.sessionTools {
		err = sessiontools.Serve(rt.serving, b, rt.options.logger)
	}
	if err != nil {
		b.Close()
		return err
	}
	rt.sessionTools = true
	for _, m := range models {
		rt.models[m.Provider] = m.Account
	}
	for target := range targets {
		rt.targets[target] = name
	}
	rt.serve(name, b, tools)
	return nil
}

func (d *definition) addTo(b *bridge.Bridge, name string, tools *toolset, models []ModelRef) error {
	if err := tools.addTo(b); err != nil {
		return err
	}
	if d.hook != nil {
		if err := b.Step(name, d.hook); err != nil {
			return err
		}
	}
	for _, m := range models {
		opened, err := m.Open()
		if err == nil {
			err = b.Model(m.Provider, opened, m.Serve...)
		}
		if err != nil {
			return fmt.Errorf("model %s of %s: %w", m.Model, m.Provider, err)
		}
	}
	return nil
}

// Session returns a handle on a session with this agent. It does no I/O: the session
// opens with its first Ask. An id is 1 to 64 of A-Za-z0-9_-.
func (a *Agent) Session(id string) *Session { return &Session{rt: a.rt, agent: a, id: id} }

// Name returns the agent's name.
func (a *Agent) Name() string { return a.name }

// define gives a session the agent's definition, unless it has it.
func (a *Agent) define(ctx context.Context, sid string) error {
	a.mu.Lock()
	known, asked := a.defined[sid]
	a.mu.Unlock()
	if known || !asked && a.rt.unread != nil { // the session tells
		return nil
	}
	c := a.rt.client
	var has codec.Hash
	if a.rt.unread == nil {
		var err error
		if has, err = c.Definition(ctx, sid); err != nil {
			return err
		}
	}
	if has.String() != a.hash {
		if err := a.set(ctx, sid, !has.IsZero()); err != nil {
			return fmt.Errorf("set the definition of agent %s: %w", a.name, err)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.defined) >= definedMax {
		clear(a.defined)
	}
	a.defined[sid] = true
	return nil
}

// set sets a session's registry and then its config, which may name tools of it. If the
// session has a config of its own that names a tool which the registry lacks, a config
// comes first: the agent's, or else one that names nothing.
func (a *Agent) set(ctx context.Context, sid string, configured bool) error {
	c := within{a.rt}.Operator()
	taken := func(seq uint64, err error) error {
		if err == nil {
			_, err = c.Taken(ctx, sid, seq)
		}
		return err
	}
	registry := func() error { return taken(c.SetRegistry(ctx, sid, a.tools, "")) }
	config := func(json json.RawMessage) error { return taken(c.Configure(ctx, sid, json, "")) }
	err := registry()
	if configured && rejectedAs(err, session.RejectInvalidRegistry) {
		if config(a.config) != nil {
			_ = config(a.bare) // if it fails, the registry says why
		}
		err = registry()
	}
	if err != nil {
		return fmt.Errorf("its tools: %w", err)
	}
	if err := config(a.config); err != nil {
		return fmt.Errorf("its config: %w", err)
	}
	return nil
}

// forget makes the next Ask look at the session's definition again.
func (a *Agent) forget(sid string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.defined[sid] = false
}
