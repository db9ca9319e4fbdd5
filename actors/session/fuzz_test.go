package session_test

// Bytes that nobody meant, through every door, on sessions that are in the
// middle of things. Seeds are the events of the scenario files. Run one with
//
//	go test -run xxx -fuzz FuzzEvolve ./actors/session

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/scenario"
	"github.com/refold/refold/codec"
)

// scenarioFiles returns the scenario files by their names, without .txt.
func scenarioFiles(t testing.TB) map[string]*scenario.File {
	t.Helper()
	paths, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenario files: %v", err)
	}
	files := map[string]*scenario.File{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file, err := scenario.Parse(string(text))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		files[strings.TrimSuffix(filepath.Base(path), ".txt")] = file
	}
	return files
}

// eventsOfScenarios returns every event of the scenario files, and every
// install record.
func eventsOfScenarios(t testing.TB) (events []scenario.Action, records [][]byte) {
	t.Helper()
	files := scenarioFiles(t)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for _, step := range files[name].Steps {
			action, err := scenario.Read(step.Input, builtin(t).Registry)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case action.Kind == scenario.KindEvent:
				events = append(events, action)
			case action.Kind == scenario.KindInstall && action.Payload != nil:
				records = append(records, action.Payload)
			}
		}
	}
	return events, records
}

// stages are states that an event may meet, as snapshots, and what they are
// restored from.
func stages(t testing.TB) ([]session.Snapshot, shelf) {
	t.Helper()
	ended := newTold(t)
	ended.run(nil)
	ended.must(ended.tell(session.DoorLLM, session.TypeGenerationSettled, map[string]any{"effect": "r1t1", "status": "ok"}))
	from := given(builtin(t))
	stepping, looping := from.stepping(t), from.looping(t)
	return []session.Snapshot{
		newTold(t).state.Snapshot(), asking(t).Snapshot(), busy(t).Snapshot(), ended.state.Snapshot(), stepping.Snapshot(), looping.Snapshot(),
	}, from
}

// registrySet sets a registry, and puts it on the shelf.
func (s *shelf) registrySet(w *told, set map[string]any) {
	w.t.Helper()
	w.must(w.tell(session.DoorCtl, session.TypeToolRegistrySet, set))
	door, payload := say(session.DoorCtl, session.TypeToolRegistrySet, set)
	registry, err := session.ParseRegistrySet(session.Event{Session: "s1", Door: door, Seq: w.seq, Payload: payload})
	if err != nil {
		w.t.Fatal(err)
	}
	s.registries = append(s.registries, registry)
}

// stepping is a session whose hook is asked in turn 2, under a registry of its
// own and with another one for the next turn.
func (s *shelf) stepping(t testing.TB) *session.State {
	t.Helper()
	w := newTold(t)
	s.registrySet(w, map[string]any{"tools": loopTools()})
	w.must(w.tell(session.DoorCtl, session.TypeFactsSet, map[string]any{"facts": map[string]any{"a": "x"}}))
	w.must(w.tell(session.DoorCtl, session.TypeToolOverridesSet, map[string]any{"scope": "session", "disable": []any{"boxn"}}))
	w.must(w.tell(session.DoorCtl, session.TypeRunRequested, map[string]any{"input": map[string]any{"text": "go"}, "roles": []any{"admin"}, "config": map[string]any{
		"provider": "p", "model": "m", "step_hook": map[string]any{"hook": "h"},
		"steps": []any{rule(`used("loopp") && role("admin")`, map[string]any{"model": "s"}), rule("context.n == 1", nil)},
	}}))
	w.prepared("r1t1s", map[string]any{"context": map[string]any{"n": 1}, "active_tools": []any{"loopp"}})
	w.called("r1t1", "loopp", "nosuch")
	w.settled("r1t1c0")
	s.registrySet(w, map[string]any{"tools": append(loopTools()[:3:3], loopTools()[4:]...), "profiles": []any{map[string]any{"profile": "openai", "tools": []any{"loopn"}}}})
	return w.state
}

// looping is a session whose batch waits for a host loop and a bridge, with
// calls that stand and calls that wait, after a batch that is done.
func (s *shelf) looping(t testing.TB) *session.State {
	t.Helper()
	w := newTold(t)
	s.registrySet(w, map[string]any{"tools": loopTools(), "profiles": []any{map[string]any{
		"profile": "openai", "tools": []any{"loopp", "boxp", "loopn"}, "steps": []any{rule("step == 1", map[string]any{"context": map[string]any{"n": 1}})},
	}}})
	w.run(nil)
	w.called("r1t1", "loopp")
	w.settled("r1t1c0")
	w.called("r1t2", "loopp", "boxp", "loopp", "loopn", "boxn")
	w.settled("r1t2c0")
	w.must(w.tell(session.DoorCtl, session.TypeToolOverridesSet, map[string]any{"scope": "run", "force": []any{"boxn"}}))
	return w.state
}

func FuzzEvolve(f *testing.F) {
	bases, from := stages(f)
	doors := allDoors()
	events, _ := eventsOfScenarios(f)
	for i, e := range events {
		f.Add(byte(i), byte(slices.Index(doors, e.Door)), int64(i), e.Payload)
		if packed, err := codec.Canonicalize(e.Payload); err == nil {
			f.Add(byte(2), byte(slices.Index(doors, e.Door)), int64(400_000), packed)
		}
	}
	f.Fuzz(func(t *testing.T, stage, door byte, passed int64, payload []byte) {
		base := bases[int(stage)%len(bases)]
		fold := func() (*session.State, []session.Notice, error) {
			s, err := session.Restore(base, from)
			if err != nil {
				t.Fatal(err)
			}
			notices, err := s.Evolve(session.Event{
				Session: "s1", Door: doors[int(door)%len(doors)], Seq: base.Seq + 1, Time: s.Clock + passed%1_000_000, Payload: payload,
			})
			return s, notices, err
		}
		s, notices, rejected := fold()
		if err := s.Check(); err != nil {
			t.Fatalf("invariant: %v", err)
		}
		if rejected != nil {
			if what := moreThanHead(t, base.State, s.Bytes()); what != "" {
				t.Fatalf("rejected %v, and %s", rejected, what)
			}
		}
		for _, n := range notices {
			if size := len(n.JSON()); size > session.NoticeBytesMax {
				t.Fatalf("notice %s has %d bytes", n.Type, size)
			}
		}
		_, _ = s.Open(), s.View()
		again, _, _ := fold()
		if again.Hash() != s.Hash() {
			t.Fatal("folded again: another state")
		}
	})
}

// moreThanHead says what else than the head differs between two states, both
// as their canonical bytes.
func moreThanHead(t fataler, before, after []byte) string {
	t.Helper()
	var was, is session.Record
	if err := codec.Unmarshal(before, &was); err != nil {
		t.Fatalf("the state before: %v", err)
	}
	if err := codec.Unmarshal(after, &is); err != nil {
		t.Fatalf("the state after: %v", err)
	}
	if is.Seq <= was.Seq || is.Count != was.Count+1 || is.Chain == was.Chain || is.Leaf == was.Leaf || is.Clock < was.Clock || is.NoticeN <= was.NoticeN {
		return "the head did not move"
	}
	is.Seq, is.Count, is.Chain, is.Leaf, is.Clock, is.NoticeN = was.Seq, was.Count, was.Chain, was.Leaf, was.Clock, was.NoticeN
	rest, err := codec.Marshal(&is)
	if err != nil {
		t.Fatalf("the state after: %v", err)
	}
	if !bytes.Equal(rest, before) {
		return "more than the head changed"
	}
	return ""
}

// fataler is what tests and rapid have in common.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Whatever bytes a snapshot has, a restored state can be shown, opened and folded
// on.
func FuzzRestore(f *testing.F) {
	bases, from := stages(f)
	for _, s := range bases {
		f.Add([]byte(s.State))
	}
	f.Fuzz(func(t *testing.T, state []byte) {
		var r session.Record
		if codec.Unmarshal(state, &r) != nil {
			return
		}
		r.Install, r.Rules = from.install.Hash, uint8(from.install.Rules)
		s, err := session.Restore(snapshotOf(t, &r), from)
		if err != nil {
			return
		}
		w := &told{t: t, state: s, seq: s.Seq, time: s.Clock}
		for range 4 {
			if b := s.View().Batch; b != nil {
				for _, c := range b.Calls {
					if c.HostLoop != "" {
						_, _ = w.tell(session.DoorTool, session.TypeToolCallSettled, map[string]any{"effect": c.Effect, "status": "succeeded"})
					}
				}
			}
			for _, e := range s.Open() {
				switch e.Class {
				case session.ClassLLM:
					_, _ = w.tell(session.DoorLLM, session.TypeToolCallsObserved, map[string]any{"effect": e.Name, "calls": []any{
						map[string]any{"tool_name": "stat", "arguments": `{"path":"a"}`}, map[string]any{"tool_name": "shell", "arguments": `{"command":"ls"}`},
					}})
				case session.ClassTool:
					_, _ = w.tell(session.DoorTool, session.TypeToolCallSettled, map[string]any{"effect": e.Name, "status": "failed"})
				case session.ClassStep:
					_, _ = w.tell(session.DoorStep, session.TypeStepPrepared, map[string]any{"effect": e.Name, "status": "failed", "error": map[string]any{"code": "x"}})
				default:
					_, _ = w.tell(session.DoorWake, session.TypeWakeSettled, map[string]any{"effect": e.Name})
				}
			}
		}
	})
}

// A session runs under every valid record.
func FuzzInstall(f *testing.F) {
	_, records := eventsOfScenarios(f)
	for _, r := range append(records, session.BuiltinInstall()) {
		f.Add(r)
	}
	f.Fuzz(func(t *testing.T, record []byte) {
		install, err := session.ParseInstall(record)
		if err != nil {
			if install != nil {
				t.Fatal("a record with a fault was returned beside its fault")
			}
			return
		}
		w := toldUnder(t, install)
		w.must(w.tell(session.DoorCtl, session.TypeHostSessionUpdated, map[string]any{"status": "ready"}))
		w.run(map[string]any{"turns_max": 3})
		for range 2 {
			var calls []any
			for i := range min(install.Registry.Len(), 8) {
				calls = append(calls, map[string]any{"tool_name": install.Registry.Tools()[i].ToolName, "arguments": `{"path":"a"}`})
			}
			_, _ = w.tell(session.DoorLLM, session.TypeToolCallsObserved, map[string]any{
				"effect": "r1t1", "calls": append(calls, map[string]any{"tool_name": "", "arguments": ""}),
			})
			for _, e := range w.state.Open() {
				_, _ = w.tell(session.DoorTool, session.TypeToolCallSettled, map[string]any{"effect": e.Name, "status": "succeeded"})
			}
		}
		_ = w.state.View()
		if _, err := session.Restore(w.state.Snapshot(), given(install)); err != nil {
			t.Fatal(err)
		}
	})
}
