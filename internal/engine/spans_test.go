package engine

// What a host tells of the spans of runs: all of them, once what they tell is
// stored, whoever owns the session meanwhile; and nothing else changes.

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/timeline"
	"github.com/refold/refold/internal/meter"
)

// told keeps the spans that a host tells. Runs whose session begins with "quiet"
// are not sampled.
type told struct {
	mu    sync.Mutex
	spans map[string][]*timeline.Span // by session
	asked []string                    // effects whose traceparent was asked
}

func (h *told) Sampled(sid string, _ uint32, _ *session.Origin) bool {
	return !strings.HasPrefix(sid, "quiet")
}

func (h *told) Traceparent(sid, effect string, origin *session.Origin) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	asked := sid + " " + effect
	if origin != nil {
		asked += fmt.Sprintf(" of r%d of %s", origin.Run, origin.Session)
	}
	h.asked = append(h.asked, asked)
	return "of " + sid + " " + effect
}

func (h *told) Ended(sid string, spans []*timeline.Span) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.spans == nil {
		h.spans = map[string][]*timeline.Span{}
	}
	h.spans[sid] = append(h.spans[sid], spans...)
}

// places returns the places that were told of a session, each once, sorted. Those
// that were told twice must have been told alike.
func (h *told) places(t *testing.T, sid string) []string {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	byPlace := map[string]*timeline.Span{}
	for _, s := range h.spans[sid] {
		if have, twice := byPlace[s.Place]; twice && !cmp.Equal(have, s) {
			t.Errorf("%s was told twice, not alike:\n%s", s.Place, cmp.Diff(have, s))
		}
		byPlace[s.Place] = s
	}
	return slices.Sorted(maps.Keys(byPlace))
}

// logged returns the places that follow from the log.
func (s *stage) logged(sid string) []string {
	install, err := session.ParseInstall(session.BuiltinInstall())
	if err != nil {
		s.t.Fatal(err)
	}
	state, tracker := session.New(install, sid), timeline.NewTracker(0, nil)
	var places []string
	s.mem.mu.Lock()
	defer s.mem.mu.Unlock()
	for _, e := range s.mem.log {
		if e.Session != sid {
			continue
		}
		said, _ := state.Evolve(e)
		for _, span := range tracker.Follow(state, said, state.Progress(), "") {
			places = append(places, span.Place)
		}
	}
	slices.Sort(places)
	return places
}

func TestSpansAreExportedAfterTheirEventIsStored(t *testing.T) {
	t.Parallel()
	h := &told{}
	onStage(t, Options{Traces: h}, func(t *testing.T, s *stage) {
		s.begin()
		s.deliver(s.run("s1"), s.run("quiet1"))
		s.mem.planned(on(fails, func(c call) bool { return c.op == "Notify" }))
		s.deliver(s.answer("s1", "r1t1", "a"), s.answer("quiet1", "r1t1", "a"))
		if got := h.places(t, "s1"); len(got) != 0 {
			t.Errorf("told before it is stored: %v", got)
		}
		s.mem.planned(nil)
		s.pass(time.Minute)
		if got, want := h.places(t, "s1"), []string{"r1", "r1t1", "r1t1a1"}; !slices.Equal(got, want) {
			t.Errorf("told: %v, want %v", got, want)
		}
		if got := h.places(t, "quiet1"); len(got) != 0 {
			t.Errorf("told of a run that is not sampled: %v", got)
		}
		if want := []string{"s1 r1t1"}; !slices.Equal(h.asked, want) {
			t.Errorf("a traceparent was asked for %v, want %v", h.asked, want)
		}
	})
}

// The spans of a child's run, and of all that it asks for, belong to the tree of the run
// at the top.
func TestSpansOfAChildNameTheRunAtTheTop(t *testing.T) {
	t.Parallel()
	h := &told{}
	onStage(t, Options{Traces: h}, func(t *testing.T, s *stage) {
		s.begin()
		s.deliver(s.say(session.DoorChild, "c1", session.TypeChildRequested, map[string]any{
			"call": "r1t2c0", "config": map[string]any{"provider": "openai", "model": "m"}, "depth": 2, "input": map[string]any{"text": "hi"},
			"origin": map[string]any{"run": 4, "session": "p0"}, "parent": "p1", "root": "p0",
		}))
		s.deliver(s.answer("c1", "r1t1", "a"))
		if want := []string{"c1 r1t1 of r4 of p0"}; !slices.Equal(h.asked, want) {
			t.Errorf("a traceparent was asked for %v, want %v", h.asked, want)
		}
		places := h.places(t, "c1")
		if len(places) != 3 {
			t.Errorf("told: %v, want 3 spans", places)
		}
		for _, span := range h.spans["c1"] {
			if want := (session.Origin{Run: 4, Session: "p0"}); span.Origin == nil || *span.Origin != want {
				t.Errorf("the span %s comes from %v, want %v", span.Place, span.Origin, want)
			}
		}
	})
}

// A measurement of a traced run names its trace, one of another run does not.
func TestHistogramsNameTracedRuns(t *testing.T) {
	t.Parallel()
	h, r := &told{}, meter.New()
	onStage(t, Options{Traces: h, Meters: Register(r, 0)}, func(t *testing.T, s *stage) {
		s.begin()
		s.deliver(s.run("quiet1"))
		s.deliver(s.answer("quiet1", "r1t1", "a"))
		if got := exemplars(r); len(got) != 0 {
			t.Errorf("of a run that is not traced: %v", got)
		}
		s.deliver(s.run("s1"))
		s.deliver(s.answer("s1", "r1t1", "a"))
		want := map[string]string{"refold.run.duration": "of s1 r1", "refold.run.turns": "of s1 r1", "refold.turn.duration": "of s1 r1"}
		if got := exemplars(r); !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// exemplars returns the traceparents of a registry's exemplars, by metric.
func exemplars(r *meter.Registry) map[string]string {
	all := map[string]string{}
	for _, m := range r.Collect() {
		for _, p := range m.Points {
			if p.Dist != nil && p.Dist.Exemplar != nil {
				all[m.Desc.Name] = p.Dist.Exemplar.Traceparent
			}
		}
	}
	return all
}

// An approval is requested, the session and its spans are evicted, and the decision
// comes days later.
func TestSpansOfARunOfSeveralDaysAreComplete(t *testing.T) {
	t.Parallel()
	h := &told{}
	onStage(t, Options{Traces: h, SessionsMax: 8}, func(t *testing.T, s *stage) {
		const days = 3 * 24 * time.Hour
		s.begin()
		last := s.approval("s1")
		for n := range 20 {
			s.deliver(s.run(fmt.Sprintf("quiet%d", n)))
		}
		if s.inMemory("s1") {
			t.Fatal("the session is in memory still")
		}
		s.pass(days)
		s.deliver(s.approve("s1", last.Seq))
		s.deliver(s.say(session.DoorTool, "s1", session.TypeToolCallSettled, map[string]any{"effect": "r1t1c0", "status": "succeeded"}))
		s.deliver(s.answer("s1", "r1t2", "done"))
		got, want := h.places(t, "s1"), []string{"r1", "r1t1", "r1t1a1", "r1t1c0", "r1t1c0p", "r1t1g0", "r1t2", "r1t2a1"}
		if !slices.Equal(got, want) || !slices.Equal(got, s.logged("s1")) {
			t.Errorf("told: %v, the log says %v, want %v", got, s.logged("s1"), want)
		}
		for _, span := range h.spans["s1"] {
			if lasted := time.Duration(span.End-span.Begin) * time.Millisecond; span.Kind == timeline.KindApproval && lasted < days {
				t.Errorf("the approval lasted %v, want %v", lasted, days)
			}
		}
	})
}

// A process is killed after each number of events. The next owner exports all
// spans, those that the first may have exported included.
func TestNextOwnerExportsAllSpansOfARun(t *testing.T) {
	t.Parallel()
	for killedAfter := range 5 {
		h := &told{}
		onStage(t, Options{Traces: h}, func(t *testing.T, s *stage) {
			events := []session.Event{
				s.run("s1"), s.run("s1"), s.calls("s1", "r1t1"), s.answer("s1", "r1t2", "b"), s.answer("s1", "r2t1", "c"),
			}
			s.begin()
			s.deliver(events[:killedAfter]...)
			s.kill()
			next := newStage(t, &memory{depot: s.mem.depot}, Options{Traces: h})
			next.begin()
			next.deliver(events[killedAfter:]...)
			next.pass(time.Minute)
			if got, want := h.places(t, "s1"), s.logged("s1"); !slices.Equal(got, want) {
				t.Errorf("killed after %d events: told %v, the log says %v", killedAfter, got, want)
			}
			*s = *next
		})
	}
}

// The same events store the same effects and notices, with and without traces.
func TestTracesChangeNothingThatIsStored(t *testing.T) {
	t.Parallel()
	var effects [2]map[string][]byte
	var notices [2][]notice
	for i, traces := range []Traces{nil, &told{}} {
		onStage(t, Options{Traces: traces}, func(t *testing.T, s *stage) {
			s.begin()
			s.deliver(s.run("s1"), s.run("s1"), s.calls("s1", "r1t1"), s.answer("s1", "r1t2", "b"), s.answer("s1", "r2t1", "c"))
			s.pass(time.Minute)
			effects[i], notices[i] = s.mem.effects, s.mem.notices["s1"]
		})
	}
	if !maps.EqualFunc(effects[0], effects[1], bytes.Equal) || len(effects[0]) < 3 {
		t.Errorf("stored with traces: %d effects, without: %d, or others", len(effects[1]), len(effects[0]))
	}
	if !slices.EqualFunc(notices[0], notices[1], func(a, b notice) bool { return a.n == b.n && bytes.Equal(a.data, b.data) }) {
		t.Errorf("notices with traces: %d, without: %d, or others", len(notices[1]), len(notices[0]))
	}
}
