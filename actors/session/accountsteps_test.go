package session_test

// The books of what decides over a turn, kept from outside: which registry it
// has, what of the run a step sees, and so which rule or hook applies; and what
// a host loop is told.

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// stepBooks is what was seen so far.
type stepBooks struct {
	registries   []*planner.Registry // that events set
	next         *planner.Registry   // of the next turn
	turnRegistry *planner.Registry   // of the latest one
	before       *planner.Registry   // of the one before that
	turn         [2]uint32           // run and number of the latest
	used         []string            // tool_ids carried out in earlier steps of the run, sorted
	last         []string            // tool_names carried out in the step before
	lastCalls    []planner.LastCall  // the same calls, without their arguments
	context      codec.Raw           // that the run carries on
	answer       *planner.StepRule   // of the latest turn's hook, if it counts
	held         *planner.StepRule   // what applies to a turn that a pause holds back
	isHeld       bool
	compacting   bool              // a compaction is checked
	said         map[string]uint64 // calls that a settlement named, and the first such event
	planned      map[string]bool   // calls that a host loop was told of
	statuses     map[string]session.CallStatus
}

func newStepBooks(reg *planner.Registry) stepBooks {
	return stepBooks{
		next: reg, turnRegistry: reg, before: reg, said: map[string]uint64{}, planned: map[string]bool{}, statuses: map[string]session.CallStatus{},
	}
}

// countSteps enters what an event says of registries, hooks and results.
func (l *laws) countSteps(e session.Event, env session.Envelope, rejected error) {
	if rejected == nil {
		l.countEvent(e, env)
	}
	if want := registryWith(l.next, nextContext(l.state) != nil); l.state.NextRegistry().Hash() != want.Hash() {
		l.t.Fatalf("the next turn's registry is %s, want %s", l.state.NextRegistry().Hash(), want.Hash())
	}
	t := l.state.Turn
	if t == nil {
		return
	}
	if run := l.state.Run; run != nil && run.Number == t.Run && t.Results != (run.Config.Context != nil) {
		l.t.Fatalf("turn %d of run %d has the tool that reads results: %v", t.Number, t.Run, t.Results)
	}
	defer l.hold(t)
	if l.turn == [2]uint32{t.Run, t.Number} {
		return
	}
	l.answer, l.held, l.isHeld = nil, nil, false
	if t.Run != l.turn[0] {
		l.used, l.context = nil, nil
	}
	l.before, l.turnRegistry = l.turnRegistry, registryWith(l.next, t.Results)
	l.last, l.lastCalls = nil, nil
	if t.Run == l.turn[0] {
		l.lastStep()
	}
	l.turn = [2]uint32{t.Run, t.Number}
	l.used = slices.DeleteFunc(l.used, func(id string) bool {
		return !slices.ContainsFunc(l.turnRegistry.Tools(), func(tool planner.ToolSpec) bool { return tool.ToolID == id })
	})
}

// hold computes what applies to a turn whose step is settled while the run is paused, or
// that a budget holds back from the start: its generation is asked later, and facts may be
// others then.
func (l *laws) hold(t *session.Turn) {
	if run := l.state.Run; run != nil && run.Held == session.HeldGeneration && !l.isHeld {
		l.held, l.isHeld = l.choice(fmt.Sprintf("r%dt%d", t.Run, t.Number)), true
	}
}

func (l *laws) countEvent(e session.Event, env session.Envelope) {
	settled := func(r *session.ToolCallSettled) {
		if l.said[r.Effect] == 0 {
			l.said[r.Effect], l.statuses[r.Effect] = e.Seq, session.CallStatus(r.Status)
		}
	}
	switch env.Type {
	case session.TypeToolRegistrySet:
		reg, err := session.ParseRegistrySet(e)
		if err != nil {
			l.t.Fatalf("a registry that was taken: %v", err)
		}
		l.next, l.registries = reg, append(l.registries, reg)
	case session.TypeToolCallSettled:
		var b session.ToolCallSettled
		if codec.Decode(env.Data, &b) == nil {
			settled(&b)
		}
	case session.TypeReplyGiven:
		var b session.ReplyGiven
		if err := codec.Decode(env.Data, &b); err != nil {
			l.t.Fatalf("a reply that was taken: %v", err)
		}
		r := b.Settled()
		settled(&r)
	case session.TypeChildSettled:
		var b session.ChildSettled
		if codec.Decode(env.Data, &b) == nil {
			r := b.Settled()
			settled(&r)
		}
	case session.TypeToolBatchSettled:
		var b session.ToolBatchSettled
		if err := codec.Decode(env.Data, &b); err != nil {
			l.t.Fatalf("a batch that was taken: %v", err)
		}
		for i := range b.Results {
			settled(&b.Results[i])
		}
	case session.TypeStepPrepared:
		var b session.StepPrepared
		_, open := l.open[effectOf(env)]
		if !open || codec.Decode(env.Data, &b) != nil || b.Status != "ok" || b.Error != nil {
			return
		}
		answer := &planner.StepRule{
			ActiveTools: b.ActiveTools, Context: b.Context, Model: b.Model, Params: b.Params, System: b.System, ToolChoice: b.ToolChoice, ToolRefs: b.ToolRefs,
		}
		if planner.CheckStep(l.turnRegistry, "", answer) == nil {
			l.answer = answer
		}
	}
}

// lastStep enters which calls of the step that is over were carried out, by
// their results in the transcript.
func (l *laws) lastStep() {
	items := l.state.Items
	end := len(items)
	for end > 0 && items[end-1].Role == session.RoleUser { // steers
		items, end = items[:end-1], end-1
	}
	for end > 0 && items[end-1].Role == session.RoleTool {
		end--
	}
	if end == 0 {
		return
	}
	of := l.calls[items[end-1].Seq]
	if of.effect != fmt.Sprintf("r%dt%d", l.turn[0], l.turn[1]) {
		return // the step before called nothing
	}
	for _, it := range items[end:] {
		if it.Call >= session.CallsMax {
			continue
		}
		status := l.statuses[fmt.Sprintf("%sc%d", of.effect, it.Call)]
		switch it.Code {
		case "":
			if status == session.CallCancelled {
				continue
			}
		case session.CodeBadSettlement, session.CodeDeadlineExceeded, session.CodeOutcomeUnknown:
		default:
			continue // refused
		}
		name := of.calls[it.Call].ToolName
		tool, known := l.before.Lookup(name)
		if !known {
			l.t.Fatalf("%s was carried out", name)
		}
		l.last = append(l.last, name)
		l.lastCalls = append(l.lastCalls, planner.LastCall{Status: l.endedAs(it.Code, status), ToolID: l.before.Tool(tool).ToolID, ToolName: name})
		if id := l.before.Tool(tool).ToolID; !slices.Contains(l.used, id) {
			l.used = append(l.used, id)
			slices.Sort(l.used)
		}
	}
}

// endedAs returns the status of a call that was carried out: what the session
// itself said of it by a code, else what its settlement did.
func (l *laws) endedAs(code string, settled session.CallStatus) string {
	switch code {
	case "":
		return string(settled)
	case session.CodeOutcomeUnknown:
		return string(session.CallUnknown)
	}
	return string(session.CallFailed)
}

// choice returns what applies to the turn that is asked: what the hook just
// said, else the first rule that holds; nil for nothing.
func (l *laws) choice(name string) *planner.StepRule {
	if l.isHeld {
		return l.held
	}
	run, step := l.state.Run, l.state.Turn.Step
	if l.answer != nil {
		if step == nil || step.From != session.StepFromHook || step.Open || step.Code != "" {
			l.t.Fatalf("%s: the hook's answer doesn't count: %+v", name, step)
		}
		return l.answer
	}
	if (run.Config.StepHook != nil) != (step != nil && step.Code != "") {
		l.t.Fatalf("%s: a hook %v, and the step is %+v", name, run.Config.StepHook != nil, step)
	}
	profile, _ := planner.ResolveProfile(l.turnRegistry, run.Config.Profile, l.state.View().Profile, run.Config.Provider)
	rules, from := l.turnRegistry.ProfileSteps(profile), session.StepFromProfile
	if run.Config.Steps != nil {
		var bad *planner.RuleError
		if rules, bad = planner.CompileSteps(l.turnRegistry, run.Config.Steps); bad != nil {
			l.t.Fatalf("%s: the run's rules: %v", name, bad)
		}
		from = session.StepFromRun
	}
	u := run.Usage
	match := rules.Match(planner.StepFacts{
		Step: int(run.Turns) - 1, Used: l.used, Last: l.last, Calls: l.lastCalls, Facts: l.state.Facts, Roles: run.Roles, Context: l.context,
		Usage: planner.StepUsage{CachedTokens: u.CachedTokens, InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, ReasoningTokens: u.ReasoningTokens},
	})
	if step == nil {
		if rules.Len() > 0 {
			l.t.Fatalf("%s: %d rules, and none of them was looked at", name, rules.Len())
		}
		return nil
	}
	if !slices.Equal(step.Failed, match.Failed) {
		l.t.Fatalf("%s: the rules %+v failed, want %+v", name, step.Failed, match.Failed)
	}
	if match.Rule < 0 {
		if step.From != "" {
			l.t.Fatalf("%s: no rule holds, and %+v applies", name, step)
		}
		return nil
	}
	if step.From != from || step.Rule != match.Rule {
		l.t.Fatalf("%s: rule %d from %q applies, want %d from %q", name, step.Rule, step.From, match.Rule, from)
	}
	return rules.Rule(match.Rule)
}

// request is what decides over a turn's tools.
func (l *laws) request(choice *planner.StepRule) planner.Request {
	c := &l.state.Run.Config
	req := planner.Request{Run: planner.Overrides{Enable: c.Enable, Disable: c.Disable, Force: c.Force}}
	if l.state.Run.Only != nil {
		req.Only, req.Join = l.state.Run.Only, l.state.Run.Joined
	}
	if o := l.state.Overrides; o != nil {
		req.Session = planner.Overrides{Enable: o.Enable, Disable: o.Disable, Force: o.Force}
	}
	base := func(names *[]string, refs *[]codec.Ref, from planner.Source) bool {
		switch {
		case names != nil:
			req.Base = *names
		case refs != nil:
			for _, r := range *refs {
				req.Base = append(req.Base, r.String())
			}
		default:
			return false
		}
		req.From = from
		return true
	}
	if choice != nil && base(choice.ActiveTools, choice.ToolRefs, planner.FromStep) || base(c.ActiveTools, c.ToolRefs, planner.FromRun) {
		return req
	}
	req.Profile, req.ProfileFrom = planner.ResolveProfile(l.turnRegistry, c.Profile, l.state.View().Profile, c.Provider)
	return req
}

// selects computes what a turn offers: nothing that the policy denies whatever its
// arguments.
func (l *laws) selects(choice *planner.StepRule) planner.Toolset {
	policy, bad := planner.CompileApprovals(l.install.Registry, l.install.Record.Policy.Approval)
	if bad != nil {
		l.t.Fatal(bad)
	}
	facts, run := l.facts(), l.state.Run
	facts.Denied = policy.Denied(l.turnRegistry, planner.StepFacts{
		Step: int(run.Turns) - 1, Used: l.used, Facts: l.state.Facts, Roles: run.Roles, Context: run.Context,
	})
	return planner.Select(l.turnRegistry, l.request(choice), facts)
}

// prepares: the generation is as the run's config says, but for what applies
// to its step; and what carries on, carries on.
func (l *laws) prepares(name string, g *session.Generation, choice *planner.StepRule, offered *planner.Toolset) {
	c := &l.state.Run.Config
	model, system, params, forced := c.Model, c.System, c.Params, c.ToolChoice
	if l.state.Run.Turns > 1 && forced != "none" {
		forced = ""
	}
	if choice != nil {
		if choice.Model != "" {
			model = choice.Model
		}
		if choice.System != "" {
			system = choice.System
		}
		if len(choice.Params) > 0 {
			params = choice.Params
		}
		if choice.ToolChoice != "" {
			forced = choice.ToolChoice
		}
		if len(choice.Context) > 0 {
			l.context = choice.Context
		}
	}
	switch {
	case len(offered.Offers) == 0:
		forced = ""
	case forced != "" && forced != "auto" && forced != "none" && forced != "required":
		if tool, known := l.turnRegistry.Lookup(forced); known {
			forced = offered.ToolName(l.turnRegistry, tool)
		}
	}
	if f := fallbackOf(l.state.Run); f != nil { // the step's choice is of the config's model
		model = f.Model
		if params = f.Params; len(params) == 0 && f.Provider == l.state.Run.Config.Provider {
			params = l.state.Run.Config.Params
		}
	}
	if g.Model != model || g.System != system || !bytes.Equal(g.Params, params) || g.ToolChoice != forced {
		l.t.Fatalf("%s: model %q, system %q, params %x, choice %q; want %q, %q, %x, %q", name, g.Model, g.System, g.Params, g.ToolChoice, model, system, params, forced)
	}
	if !bytes.Equal(l.state.Run.Context, l.context) {
		l.t.Fatalf("%s: the run carries %x on, want %x", name, l.state.Run.Context, l.context)
	}
}

// step: the hook of the active run is asked, and shown what a rule would see.
func (l *laws) step(o session.Effect) {
	var s session.Step
	if err := codec.Unmarshal(o.Payload, &s); err != nil {
		l.t.Fatalf("%s: %v", o.Name, err)
	}
	run, t := l.state.Run, l.state.Turn
	provider, model := run.Config.Provider, run.Config.Model
	if f := fallbackOf(run); f != nil {
		provider, model = f.Provider, f.Model
	}
	if o.Name != fmt.Sprintf("r%dt%ds", t.Run, t.Number) || s.Effect != o.Name || o.Target != run.Config.StepHook.Hook || s.Hook != o.Target || o.Claimed || t.Open {
		l.t.Fatalf("%s: %+v", o.Name, s)
	}
	if s.At != l.state.Clock || s.StartBy != o.StartBy || o.Deadline != s.StartBy+s.RunMS || 2*s.RunMS > o.Deadline-s.At || s.RunMS < 1 {
		l.t.Fatalf("%s: at %d, start by %d, deadline %d, run %d", o.Name, s.At, s.StartBy, o.Deadline, s.RunMS)
	}
	if s.Step != int(run.Turns)-1 || !slices.Equal(s.Used, l.used) || !bytes.Equal(s.Context, l.context) || !slices.Equal(s.Roles, run.Roles) ||
		s.Usage != run.Usage || s.Model != model || s.Provider != provider || len(s.Facts) != len(l.state.Facts) {
		l.t.Fatalf("%s: %+v, want used %v, context %x, facts %v", o.Name, s, l.used, l.context, l.state.Facts)
	}
	var last []string
	for _, c := range s.Calls {
		if c.Step < s.Step-1 {
			continue
		}
		switch c.Status {
		case session.CallSucceeded, session.CallUnknown, session.CallFailed:
			if c.Code != string(planner.InvalidArguments) {
				last = append(last, c.ToolName)
			}
		}
	}
	if !slices.Equal(last, l.last) || len(s.Calls) > session.StepCallsMax {
		l.t.Fatalf("%s: the last calls are %v, want %v", o.Name, last, l.last)
	}
}

// hostLoop: a host loop is told once of each call that it is to carry out, when
// its group begins; and no such call is an effect.
func (l *laws) hostLoop(notices []session.Notice) {
	for _, n := range notices {
		if p, is := n.Data.(session.CallsPlanned); is {
			for _, name := range p.Calls {
				if l.planned[name] {
					l.t.Fatalf("a host loop is told of %s again", name)
				}
				l.planned[name] = true
			}
		}
	}
	t := l.state.Turn
	if t == nil || t.Batch == nil {
		return
	}
	for i, c := range t.Batch.Calls {
		name := fmt.Sprintf("r%dt%dc%d", t.Run, t.Number, i)
		_, effect := l.open[name]
		kind := l.executor(c.ToolID)
		switch loop := kind == planner.ExecutorHostLoop; {
		case c.Status == session.CallOpen && (kind == planner.ExecutorEffect) != effect:
			l.t.Fatalf("%s: of kind %s, an effect %v", name, kind, effect)
		case c.Status == session.CallOpen && loop && !l.planned[name]:
			l.t.Fatalf("no host loop was told of %s", name)
		case c.Status == session.CallWaiting && l.planned[name]:
			l.t.Fatalf("a host loop was told of %s before its group began", name)
		}
	}
}

// executor returns the kind of a tool's executor.
func (l *laws) executor(id string) string {
	tool, known := l.turnRegistry.Lookup(id)
	if !known {
		return ""
	}
	return l.turnRegistry.Tool(tool).Executor.Kind
}

// heldDeadline returns the first deadline of what is no effect: of calls that
// host loops carry out or a person decides over, of the run, of a retry.
func (l *laws) heldDeadline() int64 {
	first := int64(math.MaxInt64)
	run, t := l.state.Run, l.state.Turn
	if run == nil {
		return first
	}
	if run.Deadline > 0 && run.Lifecycle != session.Paused {
		first = run.Deadline
	}
	if t == nil || t.Run != run.Number {
		return first
	}
	if t.RetryAt > 0 && run.Lifecycle != session.Paused {
		first = min(first, t.RetryAt)
	}
	if t.Batch != nil {
		for _, c := range t.Batch.Calls {
			switch c.Status {
			case session.CallOpen:
				first = min(first, c.Deadline)
			case session.CallAwaiting:
				first = min(first, c.Approval.Deadline)
			}
		}
	}
	return first
}

// fallbackOf returns the model that a run has fallen back to, nil if it has its own.
func fallbackOf(run *session.Run) *session.FallbackModel {
	if run.Fallback == 0 {
		return nil
	}
	return &run.Config.Fallback[run.Fallback-1]
}

// contextOf returns the context of the active run's next generation.
func (l *laws) contextOf() *session.ContextConfig {
	if f := fallbackOf(l.state.Run); f != nil && f.Context != nil {
		return f.Context
	}
	return l.state.Run.Config.Context
}
