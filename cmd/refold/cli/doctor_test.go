package cli

// Unserved targets are reported: by the view, by tail and run while they
// follow, and by refold bridge doctor. watch_test.go tests the watcher.

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/subjects"
)

func TestDoctorReportsUnservedTargets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	out, _ := w.does(0, "bridge", "doctor", "--within", "1ms")
	like(t, "nothing there", out, `^no bridge runs: start refold bridge serve .*\nall open effects are served\n$`)

	tail := w.begin("", "tail", "s1")
	all := w.begin("", "tail", "--json")
	run := w.begin("", "run", "s1", "hi")
	bustest.Until(t, "r1t1 is asked", func() bool {
		asked, err := w.bus.ListEffects(w.ctx, "s1")
		return err == nil && len(asked) > 0
	})
	out, _ = w.does(statusFailed, "bridge", "doctor", "--within", "1ms")
	like(t, "no bridge", out, `\nunserved: llm/p: 1 open \(s1 r1t1\): start refold bridge serve --model p=MODEL\n$`)

	out, _ = w.does(statusFailed, "bridge", "doctor", "--within", "1ms", "--json")
	if want := `{"target":"llm/p","bridges":0,"open":["s1 r1t1"],"advice":"start refold bridge serve --model p=MODEL"}` + "\n"; out != want {
		t.Errorf("as JSON: got %s, want %s", out, want)
	}

	const told = `unserved: s1 waits for llm/p \(r1t1\): start refold bridge serve --model p=MODEL\n`
	run.err.shows(t, told)
	tail.err.shows(t, told)
	view, _ := w.does(0, "view", "s1")
	like(t, "view", view, `"unserved": \[\s*"llm/p"\s*\]`)

	stop, err := w.bus.Register(w.ctx, presence.Service{Kind: "bridge", Version: "1.0.0", Metadata: map[string]string{
		"name": "b1", "targets": "llm/p", "lacks llm/p": "no key",
	}})
	bustest.OK(t, err)
	bustest.Until(t, "the bridge answers", func() bool { // one that is busy is asked again
		c := w.begin("", "bridge", "doctor", "--within", "1ms")
		select {
		case status := <-c.ended:
			out = c.out.String()
			return status == 0
		case <-w.ctx.Done():
			return false
		}
	})
	like(t, "a bridge that answers", out, `^TARGET  BRIDGES  LACKS\nllm/p   1        b1: no key\nall open effects are served\n$`)
	out, _ = w.does(0, "bridge", "doctor", "--json")
	if want := `{"target":"llm/p","bridges":1,"lacks":["b1: no key"]}` + "\n"; out != want {
		t.Errorf("as JSON: got %s, want %s", out, want)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}

	alive, end := context.WithCancel(w.ctx)
	beats := make(chan error, 1)
	go func() {
		beats <- w.bus.Heartbeat(alive, subjects.KindBridge, "01JB", func() []byte { return []byte(`{"targets":["llm/p"],"rules":1}`) })
	}()
	tail.err.shows(t, `no longer unserved: llm/p of s1\n`)
	out, _ = w.does(0, "bridge", "doctor")
	like(t, "a bridge that is heard", out, `^TARGET  BRIDGES  LACKS\nllm/p   1 +\nall open effects are served\n$`)
	end()
	if err := <-beats; err != nil {
		t.Error(err)
	}
	w.settle("s1", "r1t1", map[string]any{"text": map[string]any{"text": "hello"}})
	if out, _ := w.end(run, 0); out != "hello\n" {
		t.Errorf("the run prints %q", out)
	}
	tail.stop()
	all.stop()
	w.end(tail, statusInterrupted)
	w.end(all, statusInterrupted)
}

// A paused consumer is told: its bridge is well, and gets nothing.
func TestDoctorReportsAPausedConsumer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.bus.EnsureBridge(w.ctx, testbus.Conf(t, ""), session.ClassLLM, "p")
	bustest.OK(t, err)
	_, js := testbus.JS(t, w.node)
	_, err = js.PauseConsumer(w.ctx, w.bus.Names().EffectsStream(), "llm-p", time.Now().Add(time.Hour))
	bustest.OK(t, err)
	out, _ := w.does(statusFailed, "bridge", "doctor", "--within", "1ms")
	like(t, "paused", out, `\nstreams: consumer llm-p of REFOLD_FX is paused until [0-9T:-]+Z: .*: nats consumer resume REFOLD_FX llm-p\n$`)
	out, _ = w.does(statusFailed, "bridge", "doctor", "--within", "1ms", "--json")
	like(t, "as JSON", out, `^\{"streams":"consumer llm-p of REFOLD_FX is paused`)
}

// A session-actor says in its heartbeats why it is not ready, and the doctor prints what
// it does not see itself.
func TestDoctorReportsALaneThatStalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, js := testbus.JS(t, w.node)
	testbus.Reconfigure(t, js, "REFOLD_OUT", func(c *jetstream.StreamConfig) { c.NoAck = true })
	alive, end := context.WithCancel(w.ctx)
	beats := make(chan error, 1)
	go func() {
		beats <- w.bus.Heartbeat(alive, subjects.KindSessionActor, "01JS", func() []byte {
			return []byte(`{"lanes":[3],"lane_count":8,"rules":1,"not_ready":["stream REFOLD_OUT has no_ack true","lane 3 stores nothing: store: timeout"]}`)
		})
	}()
	out, _ := w.does(statusFailed, "bridge", "doctor", "--within", "5s")
	like(t, "a lane stalls", out, `\nstreams: stream REFOLD_OUT has no_ack true [^\n]*\nstreams: session-actor 01JS: lane 3 stores nothing: store: timeout\n$`)
	end()
	bustest.OK(t, <-beats)
}

// Events that name no session are acknowledged by the server and folded by nobody.
func TestDoctorReportsEventsWithoutSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, js := testbus.JS(t, w.node)
	for range 2 {
		_, err := js.Publish(w.ctx, "refold.in.b!d", []byte("{}"))
		bustest.OK(t, err)
	}
	out, _ := w.does(0, "bridge", "doctor", "--within", "1ms")
	like(t, "skipped", out, `\nskipped: 2 events name no session, .*refold\.\d+\.in\.b!d.*\n`)
}

// Without a session-actor nothing goes on, although no effect may be open.
func TestDoctorReportsThatNoSessionActorRuns(t *testing.T) {
	t.Parallel()
	w := &world{t: t, ctx: t.Context(), node: bustest.Server(t)}
	testbus.Provisioned(t, w.node)
	out, errOut := w.does(statusFailed, "bridge", "doctor", "--within", "1ms")
	like(t, "nobody", errOut, `no session-actor answers, .*: start one: refold actor serve\n$`)
	if strings.Contains(out, "all open effects are served") {
		t.Errorf("it prints %q", out)
	}
}
