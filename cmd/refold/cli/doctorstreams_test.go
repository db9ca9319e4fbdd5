package cli

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
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

// A log that can't be read any more is told; the doctor does not wait for it.
func TestDoctorReportsALogThatCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, js := testbus.JS(t, w.node)
	_, err := js.Publish(w.ctx, "refold.in.s1", []byte("{}"))
	bustest.OK(t, err)
	testbus.Reconfigure(t, js, "REFOLD_LOG", func(c *jetstream.StreamConfig) { c.AllowDirect = false })
	out, _ := w.does(statusFailed, "bridge", "doctor", "--within", "1ms")
	like(t, "no direct reads", out, `\nstreams: stream REFOLD_LOG has allow_direct false on the server, and it must be true \(.*\)\n`)
}
