package host_test

// Hard edges against a real server: a power loss that takes the log's end, and
// gives its sequences away again.

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/host"
)

// A power loss on a server that syncs now and then takes acknowledged events
// away, and their sequences are given to others. A host that lived through it
// drops what it has in memory, no snapshot of what is lost counts, and sessions
// go on from what the log has. Those alone stop that ask with other bytes for
// what REFOLD_FX has kept.
func TestEdgePowerLoss(t *testing.T) {
	t.Parallel()
	for name, keepsEffects := range map[string]bool{"all streams lose their ends": false, "the log alone loses its end": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorldOf(t, func(o *server.Options) { o.SyncAlways, o.SyncInterval = false, time.Minute })
			_, js := w.js()
			w.host(host.Options{SnapshotEach: 1})
			w.run("old", "hi")
			w.run("calm", "hi")
			w.asked(session.ClassLLM, "openai", "old", "r1t1")
			w.asked(session.ClassLLM, "openai", "calm", "r1t1")
			dir, synced := w.node.Raw().StoreDir(), filepath.Join(t.TempDir(), "synced")
			w.node.Stop()
			copyDir(t, dir, synced)
			w.node.Start()
			old, fresh := w.doWhatIsLost()
			lost := w.state(js, "REFOLD_LOG").LastSeq
			w.node.Stop()
			streams := filepath.Join("$G", "streams")
			if keepsEffects {
				copyDir(t, filepath.Join(synced, streams, "REFOLD_LOG"), filepath.Join(dir, streams, "REFOLD_LOG"))
			} else {
				copyDir(t, synced, dir)
			}
			w.node.Start()

			// Other events take the sequences, in another order.
			w.run("new", "hi")
			w.answer("old", "r1t1", "found")
			w.run("old", "again")
			w.run("lost", "hi")
			if got := w.state(js, "REFOLD_LOG").LastSeq; got > lost+1 {
				t.Fatalf("the log's end is %d, was %d: no sequence was used again", got, lost)
			}
			w.asked(session.ClassLLM, "openai", "new", "r1t1")
			if keepsEffects {
				w.wantStopped("old", oldAsked, old)
				w.wantStopped("lost", lostAsked, fresh)
			} else {
				w.asked(session.ClassLLM, "openai", "old", "r2t1")
				w.asked(session.ClassLLM, "openai", "lost", "r1t1")
				w.wantGoesOn("old")
				w.wantGoesOn("lost")
			}
			for _, sid := range []string{"new", "calm"} {
				w.answer(sid, "r1t1", "done")
				if got, want := w.notices(sid, 3), "SessionOpened RunStarted RunFinished"; got != want {
					t.Errorf("notices of %s: got %q, want %q", sid, got, want)
				}
				w.wantGoesOn(sid)
			}
			w.done(w.lanes(js, "old", "lost", "new", "calm"))
		})
	}
}

// What is asked before the loss, and under the same names after it.
const (
	oldAsked  = "refold.fx.llm.openai.old.r2t1"
	lostAsked = "refold.fx.llm.openai.lost.r1t1"
)

// doWhatIsLost has a session answered and asked again, and another one begin,
// which then was never there. It returns what they asked for.
func (w *world) doWhatIsLost() (old, fresh []byte) {
	w.t.Helper()
	w.answer("old", "r1t1", "lost")
	w.run("lost", "hi")
	w.run("old", "lost")
	if got, want := w.notices("old", 4), "SessionOpened RunStarted RunFinished RunStarted"; got != want {
		w.t.Fatalf("notices: got %q, want %q", got, want)
	}
	for _, sid := range []string{"old", "lost"} {
		bustest.Until(w.t, "a snapshot of "+sid, func() bool {
			_, found, err := w.bus.GetSnapshot(w.ctx, sid)
			return err == nil && found
		})
	}
	return w.effect(oldAsked), w.effect(lostAsked)
}

// copyDir copies the files of a server that is stopped.
func copyDir(t *testing.T, from, to string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// effect waits until an effect is stored, and returns its bytes.
func (w *world) effect(subject string) (data []byte) {
	w.t.Helper()
	bustest.Until(w.t, subject, func() (found bool) {
		var err error
		data, found, err = w.bus.EffectStored(w.ctx, subject)
		return err == nil && found
	})
	return data
}

// wantView waits until the view of a session is what its log says.
func (w *world) wantView(sid string) {
	w.t.Helper()
	want := w.folded(sid).Hash().String()
	bustest.Until(w.t, "the view of "+sid+" is of its log", func() bool { return w.view(sid).Hash == want })
}

// wantGoesOn is wantView of a session that is not stopped.
func (w *world) wantGoesOn(sid string) {
	w.t.Helper()
	w.wantView(sid)
	if stop, found, err := w.bus.GetQuarantine(w.ctx, sid); found || err != nil {
		w.t.Errorf("%s is stopped: %s %v", sid, stop, err)
	}
}

// wantStopped waits until a session is stopped, since the bytes that it asks for
// an effect with are not those of before the loss, and these are still stored.
func (w *world) wantStopped(sid, subject string, before []byte) {
	w.t.Helper()
	var stop []byte
	bustest.Until(w.t, sid+" is stopped", func() (found bool) {
		var err error
		stop, found, err = w.bus.GetQuarantine(w.ctx, sid)
		return err == nil && found
	})
	if !strings.Contains(string(stop), subject+": expected the ") {
		w.t.Errorf("%s is stopped with %q, want that %s holds other bytes", sid, stop, subject)
	}
	if after := w.effect(subject); !bytes.Equal(after, before) {
		w.t.Errorf("%s: got %q, want what was asked first: %q", subject, after, before)
	}
}
