package engine

import (
	"log/slog"
	"time"

	"github.com/oklog/ulid/v2"
)

// RecheckEvery makes a host look after quarantined sessions more often.
func (h *Host) RecheckEvery(d time.Duration) { h.recheck = d }

// IsolateWithin makes a host judge failing sessions, and try them again, more often.
func (h *Host) IsolateWithin(round, retried time.Duration) {
	h.roundFor, h.retriedEvery = round, retried
}

// newHost returns a host that works through w.
func newHost(w World, log *slog.Logger, opts Options) *Host {
	return NewOn(w, ulid.Make().String(), time.Now, log, opts)
}
