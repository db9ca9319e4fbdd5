package session_test

// Weight against what the heap grows by. Many sessions of several shapes are
// folded, and what they keep is compared with what they say. They share equal
// registries, as the sessions of a host do.

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// weighty are shapes of sessions: each returns the events of one.
func weighty(t *testing.T) map[string]func(sid string) []session.Event {
	t.Helper()
	demo := demoHistory(t)
	history := func(sid string, add func(say func(session.Door, string, any))) (events []session.Event) {
		add(func(door session.Door, typ string, data any) {
			body, err := codec.Marshal(data)
			if err != nil {
				t.Fatal(err)
			}
			payload, err := codec.Marshal(session.Envelope{Type: typ, ID: fmt.Sprintf("%s-%d", typ, len(events)), Data: body, V: session.Version})
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, session.Event{Session: sid, Door: door, Seq: uint64(len(events) + 2), Time: 1_000_000, Payload: payload})
		})
		return events
	}
	run := weighedRun
	settle := func(n int) session.GenerationSettled {
		return session.GenerationSettled{Effect: fmt.Sprintf("r%dt1", n), Status: "ok", Text: &session.Content{Text: "hello"}}
	}
	shapes := map[string]func(sid string) []session.Event{
		"the demo, over":                     func(string) []session.Event { return demo },
		"the demo, in the middle of a batch": func(string) []session.Event { return demo[:5] },
		"new": func(sid string) []session.Event {
			return history(sid, func(say func(session.Door, string, any)) { say(session.DoorIn, session.TypeRunRequested, run(1)) })
		},
		"a hundred runs": func(sid string) []session.Event {
			return history(sid, func(say func(session.Door, string, any)) {
				for n := 1; n <= 100; n++ {
					say(session.DoorIn, session.TypeRunRequested, run(n))
					say(session.DoorLLM, session.TypeGenerationSettled, settle(n))
				}
			})
		},
		"a queue of runs with configs": func(sid string) []session.Event {
			return history(sid, func(say func(session.Door, string, any)) {
				for n := 1; n <= 8; n++ {
					r := run(n)
					r.Config.System = strings.Repeat("Be short. ", 100)
					r.Config.Disable = []string{"host.exec"}
					say(session.DoorCtl, session.TypeRunRequested, r)
				}
			})
		},
		"step rules": func(sid string) []session.Event {
			return history(sid, func(say func(session.Door, string, any)) {
				r := run(1)
				for n := range 6 {
					r.Config.Steps = append(r.Config.Steps, planner.StepRule{When: fmt.Sprintf("step > %d && !used(\"host.exec\")", n+1), System: "Go on."})
				}
				say(session.DoorCtl, session.TypeRunRequested, r)
			})
		},
	}
	for name, shape := range spacious(t) {
		shapes[name] = func(sid string) []session.Event { return history(sid, shape) }
	}
	return shapes
}

func weighedRun(n int) session.RunRequested {
	return session.RunRequested{
		Config: &session.RunConfig{Provider: "scripted", Model: "demo"}, Input: session.Content{Text: "hi"},
		Submission: fmt.Sprintf("submission-%d", n),
	}
}

// TestWeight runs alone: all tests share the heap.
func TestWeight(t *testing.T) { //nolint:paralleltest // see above
	install, shapes := builtin(t), weighty(t)
	for name, events := range shapes {
		testWeight(t, name, install, events)
	}
	manifest, err := codec.ToJSON(workspaceOf("support", 128, 1000).Bytes())
	if err != nil {
		t.Fatal(err)
	}
	install = builtinWith(t, map[string]any{"spaces": []any{map[string]any{"space": "support", "manifest": json.RawMessage(manifest)}}})
	testWeight(t, "new, with a large manifest of the install record", install, shapes["new"])
}

func testWeight(t *testing.T, name string, install *session.Install, events func(sid string) []session.Event) {
	t.Helper()
	const sessions = 30
	states, said := make([]*session.State, sessions), 0
	registries := map[codec.Hash]*planner.Registry{}
	same := func(r *planner.Registry) *planner.Registry {
		if registries[r.Hash()] == nil {
			registries[r.Hash()] = r
		}
		return registries[r.Hash()]
	}
	fold := func(i int) {
		sid := fmt.Sprintf("session-%d", i)
		s := session.New(install, sid)
		for _, e := range events(sid) {
			e.Session = sid
			notices, err := s.Evolve(e)
			if err != nil {
				t.Fatalf("%s: event %d: %v", name, e.Seq, err)
			}
			for _, n := range notices {
				if n.Type == spaces.NoticeWorkspaceFailed {
					t.Fatalf("%s: event %d: %s", name, e.Seq, n.JSON())
				}
			}
			s.ShareRegistries(same)
		}
		states[i] = s
	}
	fold(0) // what is made once is made
	before := inUse()
	for i := range states {
		fold(i)
	}
	grown := inUse() - before
	for _, s := range states {
		said += s.Weight()
	}
	if ratio := float64(said) / float64(grown); ratio < 1/1.5 || ratio > 1.5 {
		t.Errorf("%s: it says %d bytes a session, the heap has grown by %d", name, said/sessions, grown/sessions)
	}
	t.Logf("%s: says %d, heap %d", name, said/sessions, grown/sessions)
	runtime.KeepAlive(states)
}

// inUse returns the bytes that live objects take.
func inUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
