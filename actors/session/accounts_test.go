package session_test

// The books of a history, kept from outside, as a bridge and a client see it:
// every effect is opened once, keeps its bytes, and ends by the event that
// names it or by being withdrawn; every call of a model has one result, which
// is where the transcript says; every run starts once, in its turn, and ends
// once.

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// accounts is what was seen so far.
type accounts struct {
	notices  uint64
	open     map[string]session.Effect // as first seen
	gone     map[string]uint64         // effects that ended, and the event that ended them
	calls    map[uint64]observed       // by the sequence of their ToolCallsObserved
	waiting  []uint32                  // queued runs, in order
	running  uint32                    // 0: none
	over     bool                      // it was erased
	turns    uint32                    // of the active run
	wakes    uint32
	accepted uint32              // runs that were taken
	asked    map[string]string   // calls that wait, or waited, for a person: the hash of their arguments
	approved map[string]approval // calls that a person let run
	latest   *session.Generation // the one that was asked last
	latestOf codec.Hash          // the registry that it was asked under
	inputBooks
	stepBooks
}

// approval is what a person decided: the arguments, and the event if they are
// not the model's.
type approval struct {
	arguments string
	edit      uint64
}

// observed is an answer with calls.
type observed struct {
	effect string
	calls  []session.ObservedCall
}

func newAccounts(reg *planner.Registry) accounts {
	return accounts{
		open: map[string]session.Effect{}, gone: map[string]uint64{}, calls: map[uint64]observed{},
		asked: map[string]string{}, approved: map[string]approval{}, inputBooks: newInputBooks(), stepBooks: newStepBooks(reg),
	}
}

// account checks what an event left against the books, and enters it.
func (l *laws) account(e session.Event, notices []session.Notice, rejected error) {
	env := envelopeOf(e.Payload)
	settles := effectOf(env)
	if l.state.IsErased() {
		l.erased(env, rejected)
		return
	}
	if rejected != nil {
		settles = ""
	}
	l.countCalls(e, env)
	l.countSteps(e, env, rejected)
	l.countApprovals(e, env, notices, rejected)
	now := l.state.Open()
	l.ends(e, settles, now, rejected)
	l.begins(now)
	l.hostLoop(notices)
	l.countRefused(e, env, notices)
	l.runs(e, env, notices, rejected)
	l.stands(now)
	if err := l.enter(e, notices, rejected); err != nil {
		l.t.Fatal(err)
	}
	if err := l.settled(l.state); err != nil {
		l.t.Fatalf("after event %d: %v", e.Seq, err)
	}
}

// erased: nothing is open, and nothing is accepted but what erased it. The other accounts
// are closed.
func (l *laws) erased(env session.Envelope, rejected error) {
	if open := l.state.Open(); len(open) > 0 || (rejected == nil) != (env.Type == session.TypeSessionErased && !l.over) || rejected != nil && !errors.Is(rejected, session.RejectSessionErased) {
		l.t.Fatalf("%s of an erased session: %v, %d effects are open", env.Type, rejected, len(open))
	}
	l.over = true
}

// envelopeOf decodes an event, as far as it can be.
func envelopeOf(payload []byte) session.Envelope {
	var env session.Envelope
	if canonical, err := codec.Canonicalize(payload); err == nil {
		_ = codec.Decode(canonical, &env) // what can't be decoded names nothing
	}
	return env
}

// effectOf returns the effect that an event names.
func effectOf(env session.Envelope) string {
	var fields codec.Pairs
	if codec.Decode(env.Data, &fields) != nil {
		return ""
	}
	for _, f := range fields {
		var name string
		if f.Key == "effect" && codec.Decode(f.Value, &name) == nil {
			return name
		}
	}
	return ""
}

// countCalls enters the calls of e, if the transcript took them in.
func (l *laws) countCalls(e session.Event, env session.Envelope) {
	taken := slices.ContainsFunc(l.state.Items, func(it session.Item) bool {
		return it.Seq == e.Seq && it.Role == session.RoleAssistant
	})
	if !taken || env.Type != session.TypeToolCallsObserved {
		return
	}
	var b session.ToolCallsObserved
	if err := codec.Decode(env.Data, &b); err != nil {
		l.t.Fatalf("a folded ToolCallsObserved doesn't decode: %v", err)
	}
	turn, _, _ := strings.Cut(b.Effect, "a") // attempts share the names of their calls
	l.calls[e.Seq] = observed{turn, b.Calls}
}

// ends: what is not open any more was settled by this event or withdrawn by
// it; what was settled or withdrawn is not open any more.
func (l *laws) ends(e session.Event, settles string, now []session.Effect, rejected error) {
	withdrawn := l.state.Withdrawals()
	if rejected != nil && len(withdrawn) > 0 {
		l.t.Fatalf("rejected %v, and withdrew %v", rejected, withdrawn)
	}
	for i, w := range withdrawn {
		was, known := l.open[w.Name]
		if !known || w.Name == settles || slices.Contains(withdrawn[:i], w) {
			l.t.Fatalf("%s was withdrawn: open %v, settled %q", w.Name, known, settles)
		}
		if w.Claimed != was.Claimed {
			l.t.Fatalf("%s was withdrawn: claimed %v, want %v", w.Name, w.Claimed, was.Claimed)
		}
	}
	for name := range l.open {
		still := slices.ContainsFunc(now, func(o session.Effect) bool { return o.Name == name })
		ended := name == settles || slices.ContainsFunc(withdrawn, func(w session.Withdrawal) bool { return w.Name == name })
		if still == ended {
			l.t.Fatalf("%s: open before and after event %d: %v, settled or withdrawn by it: %v", name, e.Seq, still, ended)
		}
		if ended {
			delete(l.open, name)
			l.gone[name] = e.Seq
		}
	}
}

// begins: an effect's bytes never change while it is open, a name that ended
// is never asked again, and what is new is what it should be.
func (l *laws) begins(now []session.Effect) {
	wakes := l.wakes
	for _, o := range now {
		name := o.Name
		if _, ended := l.gone[name]; ended {
			l.t.Fatalf("%s is asked again", name)
		}
		if len(o.Payload) > session.EffectBytesMax {
			l.t.Fatalf("%s has %d bytes", name, len(o.Payload))
		}
		was, seen := l.open[name]
		if seen && (!bytes.Equal(was.Payload, o.Payload) || was.StartBy != o.StartBy || was.Deadline != o.Deadline || was.Target != o.Target) {
			l.t.Fatalf("%s changed while it was open", name)
		}
		if seen {
			continue
		}
		l.open[name] = o
		if run := l.state.Run; o.Class != session.ClassWake && (run.Lifecycle == session.Paused || run.Lifecycle == session.Interrupting) {
			l.t.Fatalf("%s is asked, and the run is %s", name, run.Lifecycle)
		}
		longest := int64(session.DeadlineMaxMS)
		if o.Class == session.ClassWake { // of a run or an approval, perhaps
			longest = session.LongMaxMS
		}
		if o.Deadline-l.state.Clock > longest || o.Deadline < l.state.Clock {
			l.t.Fatalf("%s is open until %d, now is %d", name, o.Deadline, l.state.Clock)
		}
		switch o.Class {
		case session.ClassLLM:
			l.generation(o)
		case session.ClassTool:
			l.call(o)
		case session.ClassStep:
			l.step(o)
		default:
			l.wake(o, now)
		}
	}
	if l.wakes > wakes+1 {
		l.t.Fatalf("%d wakes were asked by one event", l.wakes-wakes)
	}
}

// wake: it is numbered after the one before, is due with the first deadline of
// all that is open, was needed, and stops nobody.
func (l *laws) wake(o session.Effect, now []session.Effect) {
	first := l.heldDeadline()
	for _, other := range now {
		if other.Class != session.ClassWake {
			first = min(first, other.Deadline)
		} else if other.Name != o.Name && other.Deadline <= o.Deadline {
			l.t.Fatalf("%s is asked, due %d, and %s comes by then, at %d", o.Name, o.Deadline, other.Name, other.Deadline)
		}
	}
	if o.Deadline != first {
		l.t.Fatalf("%s is due %d, the first deadline is %d", o.Name, o.Deadline, first)
	}
	var w session.Wake
	if err := codec.Unmarshal(o.Payload, &w); err != nil {
		l.t.Fatalf("%s: %v", o.Name, err)
	}
	if l.wakes++; o.Name != fmt.Sprintf("w%d", l.wakes) || w.Due != o.Deadline || w.StartBy != w.Due || o.StartBy != w.Due || w.At != l.state.Clock || o.Claimed {
		l.t.Fatalf("wake %d: %+v, %+v", l.wakes, o, w)
	}
}

// generation: it is the active run's next turn, with the tools that the state
// offers now, and a conversation that can be sent.
func (l *laws) generation(o session.Effect) {
	var g session.Generation
	if err := codec.Unmarshal(o.Payload, &g); err != nil {
		l.t.Fatalf("%s: %v", o.Name, err)
	}
	run := l.state.Run
	latest, provider, model := o.Deadline-g.RunMS, run.Config.Provider, g.Model
	if rest := run.Config.Fallback[run.Fallback:]; len(rest) > 0 {
		latest = min(latest, g.At+cmp.Or(rest[0].AfterMS, session.FallbackAfterMS))
	}
	if f := fallbackOf(run); f != nil {
		provider, model = f.Provider, f.Model
	}
	if g.Effect != o.Name || g.At != l.state.Clock || g.StartBy != o.StartBy || g.StartBy != latest || 2*g.RunMS > o.Deadline-g.At || !o.Claimed {
		l.t.Fatalf("%s: at %d, start by %d, deadline %d, run %d", o.Name, g.At, g.StartBy, o.Deadline, g.RunMS)
	}
	l.inBudget(o.Name)
	if g.Compact != "" {
		l.compacts(o, &g)
		return
	}
	if g.Provider != provider || g.Model != model || o.Target != g.Provider {
		l.t.Fatalf("%s: asks %s %s", o.Name, g.Provider, g.Model)
	}
	before := l.latest
	l.latest = &g
	if t := l.state.Turn; t.Attempt > 0 {
		l.again(o, &g, before)
		return
	}
	choice := l.choice(o.Name)
	l.held, l.isHeld = choice, true // for the attempts after this one
	offered := l.selects(choice)
	l.prepares(o.Name, &g, choice, &offered)
	if l.state.Window != nil && l.state.Window.Compaction != nil {
		before = nil // the prefix is another
	}
	l.defines(o.Name, &g, before)
	if g.Toolset != offered.Fingerprint || len(g.Tools) != len(offered.Offers) {
		l.t.Fatalf("%s: offers %d tools, want %d of another toolset", o.Name, len(g.Tools), len(offered.Offers))
	}
	l.sendable(o.Name, itemsOf(l.t, g.Items))
}

// compacts: a summary is asked of whoever the run's context names, of a conversation that
// can be sent, with the tools of the turn, none of which may be called. What applies to the
// turn's step is decided then.
func (l *laws) compacts(o session.Effect, g *session.Generation) {
	t := l.state.Turn
	provider, model := l.state.CompactionModel()
	if c := l.contextOf(); !l.state.Window.Compaction.Asked && (c == nil || c.Summary != nil && c.Summary.Off) {
		l.t.Fatalf("%s: nobody wants a summary", o.Name)
	}
	if o.Name != fmt.Sprintf("r%dt%dk%d", t.Run, t.Number, l.state.Window.Compaction.Number) || o.Target != provider || g.Provider != provider || g.Model != model || g.V != session.WindowVersion {
		l.t.Fatalf("%s: asks %s %s in version %d", o.Name, g.Provider, g.Model, g.V)
	}
	if (len(g.Tools) > 0) != (g.ToolChoice == "none") || len(g.ResponseFormat) > 0 {
		l.t.Fatalf("%s: %d tools, choice %q, format %x", o.Name, len(g.Tools), g.ToolChoice, g.ResponseFormat)
	}
	l.compacting = true
	l.sendable(o.Name, itemsOf(l.t, g.Items))
	l.compacting = false
	if t.Attempt == 0 && !l.state.Window.Compaction.Again && !l.isHeld {
		l.held, l.isHeld = l.choice(o.Name), true
	}
}

// facts is what rules and capabilities are checked against.
func (l *laws) facts() planner.Facts {
	facts := planner.Facts{
		Facts: l.state.Facts, Capabilities: l.install.Record.Capabilities, Floor: planner.NewFloor(l.install.Registry),
	}
	if l.state.Host != nil {
		facts.HostSession = l.state.Host.Status
	}
	return facts
}

// sendable: every call has exactly one result, in the order of the calls, right
// after the item that made it; each is that of the event that ended the call,
// or says why there is none; and there is something to answer.
func (l *laws) sendable(name string, items []session.Item) {
	var of observed
	next := 0
	for i, it := range items {
		switch {
		case it.Role != session.RoleTool:
			if next < len(of.calls) {
				l.t.Fatalf("%s: item %d comes while call %d has no result", name, i, next)
			}
			of, next = l.calls[it.Seq], 0 // none: an answer without calls, or a user's words
		case next >= len(of.calls) || int(it.Call) != next:
			l.t.Fatalf("%s: item %d is the result of call %d, want %d of %d", name, i, it.Call, next, len(of.calls))
		default:
			effect := fmt.Sprintf("%sc%d", of.effect, next)
			ended, asked := l.gone[effect]
			switch {
			case asked && ended != it.Seq:
				l.t.Fatalf("%s: item %d is of event %d, %s ended by %d", name, i, it.Seq, effect, ended)
			case it.Edit != l.approved[effect].edit:
				l.t.Fatalf("%s: item %d: %s was edited by event %d, want %d", name, i, effect, it.Edit, l.approved[effect].edit)
			case !asked && it.Code == "" && l.said[effect] == it.Seq: // a host loop's
			case !asked && (it.Code == "" || it.Detail == ""):
				l.t.Fatalf("%s: item %d: %s was never asked, and nothing says why", name, i, effect)
			case (it.Code == "") != (it.Detail == ""), len(it.Detail) > session.DetailBytesMax:
				l.t.Fatalf("%s: item %d: code %q, detail %q", name, i, it.Code, it.Detail)
			}
			next++
		}
	}
	if next < len(of.calls) || !l.compacting && items[len(items)-1].Role == session.RoleAssistant {
		l.t.Fatalf("%s: ends with %s, %d of %d results", name, items[len(items)-1].Role, next, len(of.calls))
	}
}

// call: it is what the model asked for, it was offered, it conflicts with
// nothing that is open, and all that it had to wait for has a result.
func (l *laws) call(o session.Effect) {
	var c session.ToolCall
	if err := codec.Unmarshal(o.Payload, &c); err != nil {
		l.t.Fatalf("%s: %v", o.Name, err)
	}
	t := l.state.Turn
	made := l.calls[t.Batch.Seq].calls[c.Call]
	tool, known := l.turnRegistry.Lookup(c.ToolID)
	if !known || t.Toolset.Verdict(tool).Reason != planner.Offered {
		l.t.Fatalf("%s: %s was not offered", o.Name, c.ToolID)
	}
	spec := l.turnRegistry.Tool(tool)
	want, edit := l.mayBeAsked(o.Name, spec, made.Arguments)
	if status := t.Batch.Calls[c.Call]; status.Edit != edit {
		l.t.Fatalf("%s: the arguments are those of event %d, want %d", o.Name, status.Edit, edit)
	}
	if c.ToolName != made.ToolName || c.Arguments != want && want != "" || c.ProviderCallID != made.ProviderCallID || c.Arguments == "" {
		l.t.Fatalf("%s: %s(%s) %s is not the call that was made: %+v", o.Name, c.ToolName, c.Arguments, c.ProviderCallID, made)
	}
	if o.Name != fmt.Sprintf("%sc%d", c.Batch, c.Call) || c.IdempotencyKey != "s1."+o.Name || c.PlanHash != t.Batch.Plan.Hash() || c.PlanHash != l.state.LastPlan {
		l.t.Fatalf("%s: batch %s, key %s, plan %s", o.Name, c.Batch, c.IdempotencyKey, c.PlanHash)
	}
	if o.Claimed == spec.RetrySafe || c.RetrySafe != spec.RetrySafe || o.Target != spec.Executor.Target {
		l.t.Fatalf("%s: claimed %v, retry safe %v, target %s", o.Name, o.Claimed, c.RetrySafe, o.Target)
	}
	if c.At != l.state.Clock || c.StartBy != o.StartBy || o.Deadline != c.StartBy+c.RunMS || 2*c.RunMS > o.Deadline-c.At || c.RunMS < 1 {
		l.t.Fatalf("%s: at %d, start by %d, deadline %d, run %d", o.Name, c.At, c.StartBy, o.Deadline, c.RunMS)
	}
	if !bytes.Equal(c.Context, l.context) {
		l.t.Fatalf("%s: the context is %x, want %x", o.Name, c.Context, l.context)
	}
	if c.HostSession == nil != (l.state.Host == nil) || c.HostSession != nil && *c.HostSession != *l.state.Host {
		l.t.Fatalf("%s: host session %v, the session's is %v", o.Name, c.HostSession, l.state.Host)
	}
	if why := planner.Recheck(l.turnRegistry, l.state.NextRegistry(), tool, l.request(nil), l.facts()); !why.OK() {
		l.t.Fatalf("%s is asked, and denied at that moment: %s", o.Name, why.Code)
	}
	l.mayRun(o.Name, c.Call)
}

// mayRun: by the rule itself, not by the plan's groups: a call is asked when
// every earlier call that it conflicts with has a result, and nothing open
// conflicts with it.
func (l *laws) mayRun(name string, call int) {
	b := l.state.Turn.Batch
	for i := range b.Calls {
		open := b.Calls[i].Status == session.CallOpen
		earlier := i < call && (open || b.Calls[i].Status == session.CallWaiting || b.Calls[i].Status == session.CallAwaiting)
		if i != call && (open || earlier) && conflict(&b.Plan.Calls[i], &b.Plan.Calls[call]) {
			l.t.Fatalf("%s is asked while call %d is %s, and they conflict", name, i, b.Calls[i].Status)
		}
	}
}

// conflict is the rule of SEMANTICS, written down again.
func conflict(a, b *planner.PlanCall) bool {
	if !a.ParallelSafe || !b.ParallelSafe {
		return true
	}
	if a.Access == planner.AccessRead && b.Access == planner.AccessRead {
		return false
	}
	return a.Key.Bare != "" && a.Key.Bare == b.Key.Bare && (a.Key.Part == "" || b.Key.Part == "" || a.Key.Part == b.Key.Part)
}
