package engine

// Registries that sessions set: what a snapshot's are read from, that equal
// ones are one, and that descriptors are stored before an effect names them.

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// wantDescribed fails the test if an effect that is being stored names a
// descriptor that is not: whoever carries it out could not read it. The lock is
// held.
func (d *depot) wantDescribed(e session.Effect) {
	if e.Class != session.ClassLLM {
		return
	}
	var g session.Generation
	if err := codec.Unmarshal(e.Payload, &g); err != nil {
		d.t.Errorf("%s %s: %v", e.Class, e.Name, err)
	}
	for _, hash := range g.Tools {
		if _, found := d.blobs[codec.Ref{Hash: hash}]; !found {
			d.t.Errorf("%s of %s is asked, and its descriptor %s is not stored", e.Name, g.Session, hash)
		}
	}
}

// toolOfX is a tool of a registry; its executor's target is x.
func toolOfX(name, kind string, more map[string]any) map[string]any {
	tool := map[string]any{
		"tool_id": "x." + name, "tool_name": name, "args_schema": map[string]any{"type": "object"},
		"executor": map[string]any{"kind": kind, "target": "x"}, "parallel_safe": true,
	}
	maps.Copy(tool, more)
	return tool
}

// registry returns a registry of tools with these names.
func registry(names ...string) map[string]any {
	var tools []any
	for _, name := range names {
		tools = append(tools, toolOfX(name, "effect", nil))
	}
	return map[string]any{"tools": tools}
}

// set sets a session's registry.
func (s *stage) set(sid string, registry map[string]any) session.Event {
	s.t.Helper()
	return s.say(session.DoorCtl, sid, session.TypeToolRegistrySet, registry)
}

// again is the stage after a kill: another host on the same world.
func (s *stage) again(opts Options) *stage {
	s.t.Helper()
	s.end()
	return newStage(s.t, &memory{depot: s.mem.depot}, opts)
}

// wantTools checks which tools the next turn of a session is offered from.
func (s *stage) wantTools(sid string, want ...string) {
	s.t.Helper()
	a := s.actor.sessions[sid]
	if a == nil || a.state == nil {
		s.t.Fatalf("%s is not in memory", sid)
	}
	var got []string
	for _, tool := range a.state.NextRegistry().Tools() {
		got = append(got, tool.ToolName)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		s.t.Errorf("the registry of %s has %q, want %q", sid, got, want)
	}
}

// reads returns how often a part of the log was read.
func (s *stage) reads(sid string, from, to uint64) int {
	s.mem.mu.Lock()
	defer s.mem.mu.Unlock()
	return s.mem.calls[call{op: "ReadSession", sid: sid, who: fmt.Sprintf("%d-%d", from, to)}]
}

// The manifest of a workspace is in the log too, and no session goes on without it.
func TestASnapshotsManifestIsReadFromTheLog(t *testing.T) {
	t.Parallel()
	onStage(t, Options{SnapshotEach: 1}, func(t *testing.T, s *stage) {
		sync := s.say(session.DoorCtl, "s1", session.TypeWorkspaceSyncRequested, map[string]any{"workspace": "a", "grant": map[string]any{"space": "a"}})
		ready := s.say(session.DoorSpace, "s1", session.TypeWorkspaceSnapshotReady, map[string]any{
			"effect": s.mem.judge("s1", sync.Seq).state.Open()[0].Name, "manifest": map[string]any{"v": 1, "kind": "workspace", "space": "a"},
		})
		s.beginAcked(sync, ready, s.run("s1"))
		again := s.again(Options{})
		again.mem.plan = atFirst(func(c call) bool { return c.op == "ReadSession" && c.who == fmt.Sprintf("%d-%d", ready.Seq, ready.Seq) })
		next := again.answer("s1", "r1t1", "x")
		again.begin(next)
		again.wantUnacked(next)
		again.pass(retryMax)
		again.wantAcked(next)
		again.wantState(next)
		if n := again.reads("s1", 1, next.Seq); n != 0 {
			t.Errorf("the whole log was folded %d times", n)
		}
		again.end()
	})
}

func TestASnapshotsRegistryIsReadFromTheLog(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		plan   func(call) outcome
		spoil  func(s *stage, set session.Event)
		want   []string // tools
		folded bool     // all of the log was, the snapshot doesn't count
	}{
		{name: "the event is there", want: []string{"a", "b"}},
		{name: "another registry is there", spoil: func(s *stage, set session.Event) {
			s.mem.log[1] = session.Event{Session: "s1", Door: session.DoorCtl, Seq: set.Seq, Time: set.Time,
				Payload: []byte(`{"type":"ToolRegistrySet","data":{"tools":[]}}`)}
		}, want: []string{}, folded: true},
		{name: "another event is there", spoil: func(s *stage, set session.Event) {
			s.mem.log[1] = session.Event{Session: "s1", Door: session.DoorCtl, Seq: set.Seq, Time: set.Time, Payload: []byte(`{"type":"FactsSet","data":{"facts":{}}}`)}
		}, want: nil, folded: true},
		{name: "the log is not read at first", plan: atFirst(func(c call) bool { return c.op == "ReadSession" && c.who == "2-2" }), want: []string{"a", "b"}},
		{name: "nor are the records", plan: atFirst(func(c call) bool { return c.op == "InstallBefore" }), want: []string{"a", "b"}},
	} {
		onStageOf(t, c.name, Options{SnapshotEach: 1}, func(t *testing.T, s *stage) {
			set, first := s.set("s1", registry("b", "a")), s.run("s1")
			s.beginAcked(set, first)
			again := s.again(Options{})
			if set.Seq != 2 || len(s.mem.snapshots) != 1 {
				t.Fatalf("the registry is event %d, and there are %d snapshots", set.Seq, len(s.mem.snapshots))
			}
			if c.spoil != nil {
				c.spoil(s, set)
			}
			clear(s.mem.calls)
			again.mem.plan = c.plan
			next := again.answer("s1", "r1t1", "x")
			again.begin(next)
			again.pass(retryMax)
			again.wantAcked(next)
			if c.want == nil {
				c.want = builtinNames()
			}
			again.wantTools("s1", append(c.want, "read_result")...)
			if folded := again.reads("s1", 1, next.Seq) > 0; folded != c.folded {
				t.Errorf("the whole log was folded: %t, want %t", folded, c.folded)
			}
			if c.folded {
				clear(s.mem.snapshots) // it is of a log that was
			}
			again.end()
		})
	}
}

// atFirst returns a plan that lets the first calls fail that when is true of.
func atFirst(when func(call) bool) func(call) outcome {
	failed := 0
	return on(fails, func(c call) bool {
		if when(c) {
			failed++
		}
		return when(c) && failed < 4
	})
}

// builtinNames returns the tools of the built-in registry by tool_id.
func builtinNames() (names []string) {
	for _, tool := range builtin().Registry.Tools() {
		names = append(names, tool.ToolName)
	}
	return names
}

func TestEqualRegistriesAreOne(t *testing.T) {
	t.Parallel()
	onStage(t, Options{SnapshotEach: 1}, func(t *testing.T, s *stage) {
		// s3 is brought back from its snapshot, the others fold their events.
		early := []session.Event{s.set("s3", registry("b", "a")), s.run("s3")}
		s.beginAcked(early...)
		again := s.again(Options{})
		later := []session.Event{s.set("s1", registry("a", "b")), s.set("s2", registry("b", "a")), s.answer("s3", "r1t1", "x"), s.set("s4", registry("a"))}
		again.begin()
		for _, e := range later {
			again.deliver(e)
		}
		again.wantAcked(later...)
		of := func(sid string) (own *planner.Registry) {
			again.actor.sessions[sid].state.ShareRegistries(func(r *planner.Registry) *planner.Registry {
				own = cmp.Or(own, r) // the first is the session's, without what its turns add
				return r
			})
			return own
		}
		if of("s1") != of("s2") || of("s1") != of("s3") {
			t.Error("three sessions with equal registries hold several")
		}
		if of("s1") == of("s4") || of("s4").Len() != 1 {
			t.Error("another registry is taken for an equal one")
		}
		// A descriptor that is stored is not sent again, by no host.
		if got := again.mem.calls[call{op: "PutBlob"}] - len(builtin().Registry.Blobs()); got != 3 {
			t.Errorf("%d descriptors were sent by two hosts, want a, b and read_result", got)
		}
		again.end()
	})
}

// Registries without a session are dropped: the table does not grow with every
// registry that was ever set.
func TestRegistriesAreForgotten(t *testing.T) {
	t.Parallel()
	var r registries
	kept := r.same(oneTool(t, "kept"))
	r.retain(kept)
	most := 0
	for i := range 3 * idleBytesMax / kept.Weight() {
		other := r.same(oneTool(t, fmt.Sprintf("t%d", i)))
		if i%2 == 0 { // a session of two lanes has it for a while
			r.retain(other)
			r.retain(other)
			r.release(other)
			r.release(other)
		}
		if r.same(other) != other {
			t.Fatalf("registry %d is forgotten at once", i)
		}
		most = max(most, len(r.byHash))
	}
	if limit := idleBytesMax/kept.Weight() + 2; most > limit || most < limit/4 {
		t.Errorf("up to %d registries were held, want up to about %d", most, limit)
	}
	if r.get(kept.Hash()) != kept || r.same(oneTool(t, "kept")) != kept {
		t.Error("the one that a lane has is forgotten")
	}
	r.release(kept)
	for i := range 2 * idleBytesMax / kept.Weight() {
		r.same(oneTool(t, fmt.Sprintf("u%d", i)))
	}
	if r.get(kept.Hash()) != nil {
		t.Error("one that nobody has is found")
	}
}

func oneTool(t *testing.T, name string) *planner.Registry {
	t.Helper()
	reg, err := planner.NewRegistry([]planner.ToolSpec{{
		ToolID: name, ToolName: name, ArgsSchema: codec.Raw{0x80}, Executor: planner.Executor{Kind: planner.ExecutorEffect, Target: "x"},
	}}, nil, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

func TestRegistriesAreSharedBySeveralGoroutines(t *testing.T) {
	t.Parallel()
	var r registries
	var all sync.WaitGroup
	got := make([]*planner.Registry, 8)
	for i := range got {
		all.Go(func() {
			got[i] = r.same(oneTool(t, "one"))
		})
	}
	all.Wait()
	for _, reg := range got {
		if reg != got[0] {
			t.Fatal("several of one registry are held")
		}
	}
}

// The owner dies after folding a ToolRegistrySet and before storing its
// descriptors: the next owner stores them before any effect.
func TestDescriptorsAreStoredBeforeTheyAreNamed(t *testing.T) {
	t.Parallel()
	for _, become := range []outcome{hangs, fails} { // what fails late is stored, and found by the next attempt
		t.Run(fmt.Sprint(become), func(t *testing.T) {
			t.Parallel()
			onStage(t, Options{SnapshotEach: 1}, func(t *testing.T, s *stage) {
				// Those of the install record are stored; the first owner gets
				// no further.
				before := len(builtin().Registry.Blobs())
				s.mem.plan = on(become, func(c call) bool {
					s.mem.mu.Lock() // descriptors are stored side by side
					defer s.mem.mu.Unlock()
					return c.op == "PutBlob" && len(s.mem.blobs) >= before
				})
				set, first := s.set("s1", registry("a", "b")), s.run("s1")
				s.begin(set, first)
				s.pass(3 * retryMax)
				s.wantUnacked(set, first)
				if asked := s.mem.asked("s1"); len(asked) > 0 {
					t.Errorf("asked before the descriptors are stored: %v", asked)
				}
				if n := len(s.mem.snapshots); n > 0 {
					t.Errorf("%d snapshots of what is not stored", n)
				}
				again := s.again(Options{})
				again.beginAcked(set, first)
				again.wantStored(first)
				for _, blob := range again.actor.sessions["s1"].state.NextRegistry().Blobs() {
					if _, found := s.mem.blobs[blob.Ref]; !found {
						t.Errorf("descriptor %s is not stored", blob.Ref)
					}
				}
				again.end()
			})
		})
	}
}

// crowd makes a session whose view is as large as they get: a registry at its
// limits, lists that name all of it, a queue, and a batch of calls that a host
// loop is to carry out, whose tools and arguments it returns.
func (s *stage) crowd(sid string) (names []string, arguments string, last session.Event) {
	s.t.Helper()
	var ids []string
	var tools []any
	for i := range session.NamesMax {
		name := fmt.Sprintf("%0*d", planner.NameBytesMax, i)
		tool := toolOfX(name, "host_loop", map[string]any{"availability": []any{
			map[string]any{"kind": "fact", "name": strings.Repeat("f", planner.FactNameBytesMax), "equals": strings.Repeat("e", planner.FactValueBytesMax)},
		}})
		if i < session.CallsMax {
			delete(tool, "availability")
			names = append(names, name)
		}
		tool["tool_id"] = fmt.Sprintf("%0*d.x", planner.ToolIDBytesMax-2, i)
		ids = append(ids, tool["tool_id"].(string))
		tools = append(tools, tool)
	}
	s.set(sid, map[string]any{"tools": tools})
	s.say(session.DoorCtl, sid, session.TypeToolOverridesSet, map[string]any{"scope": "session", "enable": ids, "force": ids})
	config := map[string]any{"provider": "openai", "model": "m", "active_tools": names, "enable": ids, "force": ids}
	for range 12 {
		s.say(session.DoorCtl, sid, session.TypeRunRequested, map[string]any{"input": map[string]any{"text": "hi"}, "config": config})
	}
	// As large as a view shows, every byte of it escaped or markup.
	arguments = `{"<":"` + strings.Repeat(`\"<>&`, 2048/5-4) + `"}`
	var calls []any
	for _, name := range names {
		calls = append(calls, map[string]any{"tool_name": name, "arguments": arguments})
	}
	return names, arguments, s.say(session.DoorLLM, sid, session.TypeToolCallsObserved, map[string]any{"effect": "r1t1", "calls": calls})
}

// A view must fit a message: host loops work by it, and a bridge reads it before it
// takes a model turn over.
func TestTheLargestViewFitsAMessage(t *testing.T) {
	t.Parallel()
	s := &stage{t: t, mem: newMemory(t)}
	s.host = newHost(s.mem, slog.New(slog.DiscardHandler), Options{Lanes: 1})
	names, arguments, last := s.crowd("s1")
	data, err := s.host.View(t.Context(), "s1")
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > viewBytesMax {
		t.Errorf("the view has %d bytes, at most %d", len(data), viewBytesMax)
	}
	var v session.View
	if err := json.Unmarshal(data, &v); err != nil || v.Seq != last.Seq {
		t.Fatalf("the view is of %d, want %d: %v", v.Seq, last.Seq, err)
	}
	if len(v.Queue) == 0 || v.Batch == nil || len(v.Batch.Calls) != len(names) {
		t.Fatalf("the view has %d queued runs and the batch %+v", len(v.Queue), v.Batch)
	}
	for i, c := range v.Batch.Calls {
		if c.Status != session.CallOpen || c.Arguments != arguments {
			t.Errorf("call %d: %s, %d bytes of arguments, want %d", i, c.Status, len(c.Arguments), len(arguments))
		}
	}
	state := s.mem.judge("s1", last.Seq).state
	whole := state.View()
	if all, err := fit(&whole, 1<<30); err != nil || len(all) <= viewBytesMax {
		t.Errorf("a view of %d bytes proves nothing (%v)", len(all), err)
	}
	// The less there is room for, the more is left out; what is open stays.
	for _, c := range []struct {
		max              int
		overrides, tools bool
	}{{700 << 10, true, true}, {500 << 10, false, true}, {300 << 10, false, false}} {
		v := state.View()
		data, err := fit(&v, c.max)
		if err != nil || len(data) > c.max {
			t.Errorf("%d bytes, at most %d: %v", len(data), c.max, err)
		}
		if v.Queue[0].Overrides != nil || (v.Overrides != nil) != c.overrides || (v.Run.Overrides != nil) != c.overrides || (v.Tools != nil) != c.tools {
			t.Errorf("within %d bytes: overrides %t %t %t, tools %t", c.max, v.Queue[0].Overrides != nil, v.Overrides != nil, v.Run.Overrides != nil, v.Tools != nil)
		}
		if len(v.Batch.Calls) != len(names) || len(v.Open) == 0 || len(v.Transcript) == 0 {
			t.Errorf("within %d bytes: what is open is not shown", c.max)
		}
	}
}

// Descriptors that this process stored for one session, and that were lost, are stored
// again: for the next session that sets the registry, and for one whose turn failed
// for them.
func TestLostDescriptorsAreStoredAgain(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.beginAcked(s.set("s1", registry("a", "b")))
		before := len(s.mem.blobs)
		lose := func() {
			s.mem.mu.Lock()
			defer s.mem.mu.Unlock()
			clear(s.mem.blobs)
		}
		stored := func() int {
			s.mem.mu.Lock()
			defer s.mem.mu.Unlock()
			return len(s.mem.blobs)
		}
		lose()
		set := s.set("s2", registry("a", "b"))
		s.deliver(set)
		s.wantAcked(set)
		if got := stored(); got != 3 {
			t.Errorf("set again: %d descriptors are stored, want a, b and read_result of the %d before", got, before)
		}
		run := s.run("s2")
		s.deliver(run)
		s.wantAcked(run)
		lose()
		failed := s.mem.append(session.DoorLLM, "s2", []byte(`{"type":"GenerationSettled","data":{"effect":"r1t1","status":"failed","error":{"code":"descriptor_missing"}}}`))
		s.deliver(failed)
		s.wantAcked(failed)
		if got := stored(); got != 3 {
			t.Errorf("after a turn that missed them, %d descriptors are stored, want 3", got)
		}
	})
}
