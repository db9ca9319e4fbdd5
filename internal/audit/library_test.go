package audit

// Speed of one pass over a whole log: runs of a model turn, three tool calls
// and a model turn, interleaved, with every effect stored. Run
//
//	go test -run '^$' -bench Verify -cpu 1 ./internal/audit
//
// BenchmarkVerify reads from memory: what is measured is decoding, folding and
// comparing. For the others see stored_bench_test.go.

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/subjects"
)

const benchRecord = `{"v":1,"rules":1,"default_profile":"all","profiles":[{"profile":"all","tools":["bench.look"]}],
	"tools":[{"tool_id":"bench.look","tool_name":"look","description":"Looks something up.",
	"args_schema":{"type":"object","properties":{"about":{"type":"string"}},"required":["about"]},
	"executor":{"kind":"effect","target":"desk"},"access":"read","parallel_safe":true,"retry_safe":true}],
	"config":{"provider":"p","model":"instant"}}`

// library is a log in memory, and what was stored when it was folded first.
type library struct {
	tb        testing.TB
	install   *session.Install
	events    []session.Event
	effects   []journal.StoredEffect
	snapshots []journal.Kept
}

const (
	atOnce       = 100 // sessions of a library that go on side by side
	snapshotEach = 10  // of so many sessions one has a snapshot: one for 60 events
)

// newLibrary lets so many sessions have a run each.
func newLibrary(tb testing.TB, sessions int) *library {
	tb.Helper()
	install, err := session.ParseInstall([]byte(benchRecord))
	if err != nil {
		tb.Fatal(err)
	}
	l := &library{tb: tb, install: install}
	for first := 0; first < sessions; first += atOnce {
		var states []*session.State
		var owed [][]session.Effect
		for n := first; n < min(first+atOnce, sessions); n++ {
			s := session.New(install, fmt.Sprintf("bench-%010d", n))
			states = append(states, s)
			owed = append(owed, l.request(s))
		}
		for going := true; going; {
			going = false
			for i, s := range states {
				if len(owed[i]) > 0 {
					owed[i] = append(owed[i][1:], l.settle(s, &owed[i][0])...)
					going = true
				}
			}
		}
		for i, s := range states {
			if s.Last == nil || s.Last.Lifecycle != session.Completed {
				tb.Fatalf("the run of %s is not completed: %+v", s.Session, s.Last)
			}
			if i%snapshotEach == 0 {
				l.snapshots = append(l.snapshots, journal.Kept{Session: s.Session, Snapshot: s.Snapshot().Bytes()})
			}
		}
	}
	return l
}

// request asks for a run as a client does, and returns what it opens.
func (l *library) request(s *session.State) []session.Effect {
	body := session.RunRequested{Input: session.Content{Text: strings.Repeat("What became of the order? ", 12)}}
	payload, err := session.Envelope{By: "bench", ID: s.Session + "000", Type: session.TypeRunRequested, V: session.Version}.With(body)
	if err != nil {
		l.tb.Fatal(err)
	}
	text, err := codec.ToJSON(payload)
	if err != nil {
		l.tb.Fatal(err)
	}
	return l.fold(s, session.DoorIn, text)
}

// settle settles an effect as a bridge does, and returns what that opens.
func (l *library) settle(s *session.State, e *session.Effect) []session.Effect {
	switch {
	case e.Class == session.ClassTool:
		var call session.ToolCall
		if err := codec.Unmarshal(e.Payload, &call); err != nil {
			l.tb.Fatal(err)
		}
		return l.say(s, session.DoorTool, session.TypeToolCallSettled, session.ToolCallSettled{
			Effect: e.Name, PlanHash: call.PlanHash.String(), Status: "succeeded",
			Output: &session.Content{Text: strings.Repeat("It left the harbour in time. ", 8)},
		})
	case e.Class != session.ClassLLM:
		return nil
	case s.Turn.Number > 1:
		return l.say(s, session.DoorLLM, session.TypeGenerationSettled, session.GenerationSettled{
			Effect: e.Name, FinishReason: "stop", Model: "instant", Status: "ok",
			Text: &session.Content{Text: strings.Repeat("The order is on its way. ", 10)},
		})
	}
	calls := make([]session.ObservedCall, 3)
	for i := range calls {
		calls[i] = session.ObservedCall{
			Arguments: `{"about":"` + strings.Repeat("order ", 8) + `"}`, ProviderCallID: fmt.Sprintf("call_%d", i), ToolName: "look",
		}
	}
	return l.say(s, session.DoorLLM, session.TypeToolCallsObserved, session.ToolCallsObserved{Calls: calls, Effect: e.Name, Model: "instant"})
}

func (l *library) say(s *session.State, door session.Door, typ string, body any) []session.Effect {
	payload, err := session.Envelope{At: 1_700_000_000_000, By: "bridge bench", Type: typ, V: session.Version}.With(body)
	if err != nil {
		l.tb.Fatal(err)
	}
	return l.fold(s, door, payload)
}

// fold puts an event into the log and the effects that it opens beside it.
// Sequence 1 is the install record's.
func (l *library) fold(s *session.State, door session.Door, payload []byte) []session.Effect {
	n := len(l.events)
	e := session.Event{Session: s.Session, Door: door, Seq: uint64(n + 2), Time: 1_700_000_000_000 + int64(n), Payload: payload}
	l.events = append(l.events, e)
	was := map[string]bool{}
	for _, open := range s.Open() {
		was[open.Name] = true
	}
	if _, err := s.Evolve(e); err != nil {
		l.tb.Fatalf("event %d: %v", e.Seq, err)
	}
	opened := s.OpenExcept(func(p session.Place) bool { return p.Class() == session.ClassWake || was[p.String()] })
	for _, o := range opened {
		l.effects = append(l.effects, journal.StoredEffect{
			Name:    subjects.EffectName{Class: o.Class, Target: o.Target, Session: s.Session, Effect: o.Name},
			Payload: o.Payload,
		})
	}
	return opened
}

func (l *library) ReadAll(_ context.Context, _ uint64, fn func(session.Event) error) (journal.Scanned, error) {
	for _, e := range l.events {
		if err := fn(e); err != nil {
			return journal.Scanned{}, err
		}
	}
	return journal.Scanned{}, nil
}

func (l *library) ScanEffects(_ context.Context, fn func(journal.StoredEffect) error) error {
	for _, e := range l.effects {
		if err := fn(e); err != nil {
			return err
		}
	}
	return nil
}

func (l *library) ScanSnapshots(_ context.Context, fn func(journal.Kept) error) error {
	for _, k := range l.snapshots {
		if err := fn(k); err != nil {
			return err
		}
	}
	return nil
}

func (l *library) GetSnapshot(context.Context, string) ([]byte, bool, error) { return nil, false, nil }

func (l *library) pinned(context.Context, uint64) (*session.Install, error) { return l.install, nil }

// audited folds all of it again, and fails if anything differs.
func (l *library) audited(from Archive, pinned Pinned) {
	p, err := All(l.tb.Context(), from, pinned, 1)
	if err != nil {
		l.tb.Fatal(err)
	}
	same, events := uint64(0), uint64(0)
	for r, differs := range p.Results(false) {
		if differs || r.Rejected != 0 {
			l.tb.Fatalf("session %s differs: %v", r.Session, r.Differences)
		}
		same, events = same+r.EffectsSame, events+r.Events
	}
	if got, want := events, uint64(len(l.events)); got != want {
		l.tb.Fatalf("%d events, want %d", got, want)
	}
	if got, want := same, uint64(len(l.effects)); got != want {
		l.tb.Fatalf("%d effects are the same, want %d", got, want)
	}
}

// benchSessions are of six events each.
const benchSessions = 2000

// collected collects garbage as refold does as long as little is live.
func collected(b *testing.B) {
	b.Helper()
	was := debug.SetGCPercent(400)
	b.Cleanup(func() { debug.SetGCPercent(was) })
}

// BenchmarkVerify folds a log of 12,000 events from memory.
func BenchmarkVerify(b *testing.B) {
	collected(b)
	l := newLibrary(b, benchSessions)
	b.ReportAllocs()
	for b.Loop() {
		l.audited(l, l.pinned)
	}
	perEvent(b, l)
}

func perEvent(b *testing.B, l *library) {
	b.Helper()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(l.events)), "ns/event")
}
