package cli

import (
	"testing"
	"time"

	"github.com/refold/refold/internal/bus/bustest"
)

func TestDoctorReportsChangedStreams(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	log, err := w.bus.JS.Stream(w.ctx, "REFOLD_LOG")
	bustest.OK(t, err)
	cfg := log.CachedInfo().Config
	cfg.MaxAge = 6 * time.Hour
	_, err = w.bus.JS.UpdateStream(w.ctx, cfg)
	bustest.OK(t, err)
	out, _ := w.does(statusFailed, "bridge", "doctor", "--within", "1ms")
	like(t, "a changed log", out, `\nstreams: stream REFOLD_LOG has max_age 6h0m0s on the server, and it must be 0s \(.*\)\n$`)
}
