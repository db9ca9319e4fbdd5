package traces

import (
	"encoding/binary"
	"encoding/hex"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/timeline"
)

// IDs returns the ids, in hex, of the span in which an effect is executed; empty
// if the effect has no run, its run is not traced, or a trace is a tree, which
// sid and effect alone do not tell.
func (f Form) IDs(sid, effect string, ratio float64) (trace, span string) {
	run := runNumber(effect)
	if run == 0 || f.Unit == UnitTree || !f.Sampled(sid, run, nil, ratio) {
		return "", ""
	}
	t, s := f.trace(sid, effect, nil), f.span(sid, timeline.PlaceOf(effect))
	return hex.EncodeToString(t[:]), hex.EncodeToString(s[:])
}

// Sampled reports whether a run is traced, for a ratio (0 to 1) of traced runs.
// The result is the same in all processes: it depends only on the trace's id, as
// with OpenTelemetry's ratio sampler. The turns of a run are traced together, and so
// are the runs of a tree if that is a trace. origin is that of the run.
func (f Form) Sampled(sid string, run uint32, origin *session.Origin, ratio float64) bool {
	switch {
	case ratio >= 1:
		return true
	case ratio <= 0:
		return false
	}
	if f.Unit == UnitTree && origin != nil {
		sid, run = origin.Session, origin.Run
	}
	id := timeline.TraceID(f.Prefix, sid, timeline.RunPlace(run))
	return binary.BigEndian.Uint64(id[8:])>>1 < uint64(ratio*(1<<63))
}
