package traces

import (
	"encoding/binary"
	"encoding/hex"

	"github.com/refold/refold/actors/session/timeline"
)

// IDs returns the ids, in hex, of the span in which an effect is carried out; empty
// if its run is not traced, or it has none.
func (f Form) IDs(sid, effect string, ratio float64) (trace, span string) {
	run := runNumber(effect)
	if run == 0 || !f.Sampled(sid, run, ratio) {
		return "", ""
	}
	t, s := f.trace(sid, effect), f.span(sid, timeline.PlaceOf(effect))
	return hex.EncodeToString(t[:]), hex.EncodeToString(s[:])
}

// Sampled reports whether a run is one of the part (0 to 1) of all runs that is
// traced. Everybody comes to the same answer: it depends on the trace's id alone,
// as OpenTelemetry's sampler by ratio does. The turns of a run are traced together.
func (f Form) Sampled(sid string, run uint32, ratio float64) bool {
	switch {
	case ratio >= 1:
		return true
	case ratio <= 0:
		return false
	}
	id := timeline.TraceID(f.Prefix, sid, timeline.RunPlace(run))
	return binary.BigEndian.Uint64(id[8:])>>1 < uint64(ratio*(1<<63))
}
