package traces

import (
	"strconv"
	"strings"

	"github.com/refold/refold/actors/session/timeline"
)

// Form determines how spans become traces. All programs of a prefix must have the
// same.
type Form struct {
	Prefix string // of subjects
	// Turns makes a trace of each turn, linked to the previous one: for runs that
	// last for days, which back ends show badly. Otherwise a run is a trace.
	Turns bool
	// Latest uses the GenAI conventions after version 1.41.0.
	Latest bool
}

func (f Form) trace(sid, place string) [16]byte {
	if turn, in := timeline.TurnPlace(place); in && f.Turns {
		return timeline.TraceID(f.Prefix, sid, turn)
	}
	return timeline.TraceID(f.Prefix, sid, place[:runDigits(place)])
}

func (f Form) span(sid, place string) [8]byte { return timeline.SpanID(f.Prefix, sid, place) }

// Traceparent returns the header of an effect of a sampled run: its parent is the
// span of the effect's attempt, call or step. It is empty for an effect without a
// run.
func (f Form) Traceparent(sid, effect string) string {
	if runNumber(effect) == 0 {
		return ""
	}
	return Context{Trace: f.trace(sid, effect), Span: f.span(sid, timeline.PlaceOf(effect)), Flags: sampledFlag}.String()
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
