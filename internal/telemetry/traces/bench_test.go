package traces

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/timeline"
	"github.com/refold/refold/bridge/executor"
)

// benchRun is a run as in `refold bench runs`: two turns, and three calls between
// them.
func benchRun(b *testing.B) (install *session.Install, events []session.Event) {
	b.Helper()
	install, err := session.ParseInstall(session.BuiltinInstall())
	if err != nil {
		b.Fatal(err)
	}
	event := func(door session.Door, typ string, data any) {
		payload, err := json.Marshal(map[string]any{"type": typ, "data": data})
		if err != nil {
			b.Fatal(err)
		}
		n := len(events)
		events = append(events, session.Event{Session: "s1", Door: door, Seq: uint64(n + 2), Time: int64(1000 + n), Payload: payload})
	}
	type object = map[string]any
	event(session.DoorCtl, session.TypeHostSessionUpdated, object{"id": "h1", "status": "ready"})
	event(session.DoorIn, session.TypeRunRequested, object{"input": object{"text": "go"}, "config": object{"provider": "openai", "model": "m1"}})
	var calls []any
	for i := range 3 {
		calls = append(calls, object{"tool_name": "read_file", "arguments": fmt.Sprintf(`{"path":"f%d"}`, i)})
	}
	event(session.DoorLLM, session.TypeToolCallsObserved, object{"effect": "r1t1", "calls": calls})
	for i := range 3 {
		event(session.DoorTool, session.TypeToolCallSettled, object{"effect": fmt.Sprintf("r1t1c%d", i), "status": "succeeded", "output": object{"text": "ok"}})
	}
	event(session.DoorLLM, session.TypeGenerationSettled, object{"effect": "r1t2", "status": "succeeded", "text": object{"text": "done"}})
	return install, events
}

// BenchmarkRun is the cost of a run in a session-actor, for the fold, and for the
// fold with tracing. Sending its spans is extra: see BenchmarkExport.
func BenchmarkRun(b *testing.B) {
	install, events := benchRun(b)
	for _, ratio := range []float64{-1, 1e-9, 1} {
		name := fmt.Sprint("ratio=", ratio)
		if ratio < 0 {
			name = "off"
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			tracer := &Tracer{opts: Options{Form: form, Ratio: ratio}}
			sampled := func(s *session.State, run uint32) bool { return tracer.Sampled("s1", run, s.Origin(run)) }
			spans := 0
			for b.Loop() {
				state := session.New(install, "s1")
				tracker := timeline.NewTracker(0, sampled)
				for _, e := range events {
					said, _ := state.Evolve(e)
					progress := state.Progress()
					if ratio >= 0 {
						spans += len(tracker.Follow(state, said, progress, ""))
					}
				}
			}
			b.ReportMetric(float64(spans)/float64(b.N), "spans/op")
		})
	}
}

// BenchmarkHandOver is the cost of adding the nine spans of a run to the queue,
// and of the traceparents of its five effects.
func BenchmarkHandOver(b *testing.B) {
	tracer, spans := &Tracer{opts: Options{Form: form, Ratio: 1}, out: &exporter{}}, queued(9) // no goroutine sends them
	b.ReportAllocs()
	for b.Loop() {
		tracer.out.queue, tracer.out.waiting = tracer.out.queue[:0], 0
		for i := range 5 { // as many events end spans
			tracer.Ended("s1", spans[2*i:min(2*i+2, len(spans))])
		}
		for _, effect := range []string{"r1t1", "r1t1c0", "r1t1c1", "r1t1c2", "r1t2"} {
			tracer.Traceparent("s1", effect, nil)
		}
	}
}

// BenchmarkExport is the exporter's cost of the nine spans of a run, up to the
// bytes.
func BenchmarkExport(b *testing.B) {
	install, events := benchRun(b)
	state, tracker := session.New(install, "s1"), timeline.NewTracker(0, nil)
	var spans []*timeline.Span
	for _, e := range events {
		said, _ := state.Evolve(e)
		spans = append(spans, tracker.Follow(state, said, state.Progress(), "")...)
	}
	b.ReportAllocs()
	for b.Loop() {
		for i := range spans {
			form.Render("s1", spans[i])
		}
	}
	b.ReportMetric(float64(len(spans)), "spans/op")
}

// BenchmarkStart is a bridge's cost of one start.
func BenchmarkStart(b *testing.B) {
	for _, ratio := range []float64{0, 1} {
		b.Run(fmt.Sprint("ratio=", ratio), func(b *testing.B) {
			tracer := &Tracer{opts: Options{Form: form, Ratio: ratio}, out: newExporter(Options{To: &sink{}, Logger: slog.New(slog.DiscardHandler)}, nil)}
			start, end := executor.Start{Class: "tool", Session: "s1", Effect: "r1t1c0", ID: "01", At: time.Now()}, executor.End{}
			b.ReportAllocs()
			for b.Loop() {
				tracer.Started(start)
				tracer.Finished(start, end)
			}
		})
	}
}
