package traces

import (
	"strconv"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/timeline"
)

// Unit is what makes one trace.
type Unit string

// The units of a trace.
const (
	UnitRun  Unit = "run"
	UnitTurn Unit = "turn" // linked to the previous one: for runs that last for days, which back ends show badly
	UnitTree Unit = "tree" // a run with the runs of other sessions that carry out its calls
)

// Form determines how spans become traces. All programs of a prefix must have the
// same.
type Form struct {
	Prefix string // of subjects
	Unit   Unit   // empty: UnitRun
	// Latest uses the GenAI conventions after version 1.41.0.
	Latest bool
}

// trace returns the id of the trace of a place. origin is that of its run.
func (f Form) trace(sid, place string, origin *session.Origin) [16]byte {
	turn, in := timeline.TurnPlace(place)
	switch {
	case f.Unit == UnitTurn && in:
		return timeline.TraceID(f.Prefix, sid, turn)
	case f.Unit == UnitTree && origin != nil:
		return timeline.TraceID(f.Prefix, origin.Session, timeline.RunPlace(origin.Run))
	}
	return timeline.TraceID(f.Prefix, sid, place[:runDigits(place)])
}

func (f Form) span(sid, place string) [8]byte { return timeline.SpanID(f.Prefix, sid, place) }

// Traceparent returns the header of an effect of a sampled run: its parent is the
// span of the effect's attempt, call or step. origin is that of the run. It is empty
// for an effect without a run.
func (f Form) Traceparent(sid, effect string, origin *session.Origin) string {
	if runNumber(effect) == 0 {
		return ""
	}
	return Context{Trace: f.trace(sid, effect, origin), Span: f.span(sid, timeline.PlaceOf(effect)), Flags: sampledFlag}.String()
}

// runNumber returns the run of an effect's name or of a place, 0 if it has none.
func runNumber(name string) uint32 {
	end := runDigits(name)
	if end == 0 {
		return 0
	}
	n, err := strconv.ParseUint(name[1:end], 10, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}

// runDigits returns the length of the run's place at the beginning of an effect's
// name or a place, 0 if it has none.
func runDigits(name string) int {
	end := len(name) - len(strings.TrimLeft(name[min(1, len(name)):], "0123456789"))
	if end <= 1 || name[0] != 'r' {
		return 0
	}
	return end
}
