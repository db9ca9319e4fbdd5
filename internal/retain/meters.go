package retain

import (
	"sync/atomic"
	"time"

	"github.com/refold/refold/internal/meter"
)

// Values of the label outcome.
const (
	didArchive = "archived"
	didDelete  = "deleted"
	didHold    = "held"
	didFail    = "failed"
)

// Meters count what passes do. A nil one counts nothing.
type Meters struct {
	sessions *meter.Counter
	waiting  *meter.Gauge
	last     atomic.Int64 // Unix ms
}

// Register returns the metrics of retention.
func Register(r *meter.Registry) *Meters {
	m := &Meters{
		sessions: r.Counter("refold.retain.sessions", "{session}", "Sessions that retention has archived or deleted, or could not: held ones, and failures. Each pass counts them again.", meter.Closed("outcome", didArchive, didDelete, didHold, didFail)),
		waiting:  r.Gauge("refold.retain.waiting", "{session}", "Sessions that may be due, and that the pass has not looked at, or could not archive or delete."),
	}
	m.last.Store(time.Now().UnixMilli())
	r.Read(meter.KindGauge, "refold.retain.last", "s", "When the last pass of retention ended without an error, as Unix time; before the first one, when the program started.", nil, func(yield func(float64, ...string)) {
		yield(float64(m.last.Load()) / 1000)
	})
	return m
}

func (m *Meters) did(outcome string) {
	if m != nil {
		m.sessions.Add(1, outcome)
	}
}

func (m *Meters) waits(n int) {
	if m != nil {
		m.waiting.Set(float64(n))
	}
}

func (m *Meters) ended() {
	if m != nil {
		m.last.Store(time.Now().UnixMilli())
	}
}
