package erase_test

// Texts of single events are removed, on a server with files, which are searched.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/internal/erase"
	"github.com/refold/refold/internal/journal"
)

// hosted is a world whose host a test can end and begin again.
type hosted struct {
	*world
	stop func()
}

func newHosted(t *testing.T, node *bustest.Node) *hosted {
	t.Helper()
	w := &hosted{world: &world{t: t, ctx: testbus.Context(t), bus: testbus.Provisioned(t, node)}}
	_, err := engine.EnsureInstall(w.ctx, w.bus, []byte(`{"v":1,"rules":1,"tools":[],"config":{"provider":"p","model":"m"}}`))
	bustest.OK(t, err)
	w.Client, err = client.Connect(w.ctx, client.Options{URL: node.URL(), Name: "test"})
	bustest.OK(t, err)
	t.Cleanup(w.Close)
	w.start()
	t.Cleanup(func() { w.stop() })
	return w
}

func (w *hosted) start() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	h := engine.New(w.bus, slog.New(slog.DiscardHandler), engine.Options{SnapshotEach: 1})
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	<-h.Ready()
	w.stop = func() {
		cancel()
		bustest.OK(w.t, <-done)
		w.stop = func() {}
	}
}

// run has a session answer an input, and returns the sequences of both.
func (w *hosted) run(sid, input, answer string, number int) (in, out uint64) {
	w.t.Helper()
	in, err := w.Run(w.ctx, sid, input, client.RunOptions{Submission: fmt.Sprint("sub", number)})
	bustest.OK(w.t, err)
	settled := fmt.Appendf(nil, `{"type":"GenerationSettled","data":{"effect":"r%dt1","status":"ok","text":{"text":%q}}}`, number, answer)
	bustest.Until(w.t, "the model's turn", func() bool {
		effects, err := w.bus.ListEffects(w.ctx, sid)
		bustest.OK(w.t, err)
		for _, e := range effects {
			if e.Name.Effect == fmt.Sprintf("r%dt1", number) {
				return true
			}
		}
		return false
	})
	out, err = w.Publish(w.ctx, session.DoorLLM, sid, settled, "")
	bustest.OK(w.t, err)
	w.folded(sid)
	return in, out
}

// wantRedacted checks that a session is what it was, and that its log has a copy of the
// event without text.
func (w *hosted) wantRedacted(sid string, seq uint64, before session.View) {
	w.t.Helper()
	after, err := w.View(w.ctx, sid)
	if err != nil || after.Hash != before.Hash || after.Chain != before.Chain {
		w.t.Errorf("%s: hash %s and chain %s (%v), want %s and %s", sid, after.Hash, after.Chain, err, before.Hash, before.Chain)
	}
	if r, err := w.Replay(w.ctx, sid, 0, nil); err != nil || !r.Identical() || r.State.Hash().String() != before.Hash {
		w.t.Errorf("replay of %s: %+v, %v: want the hash %s, identical", sid, r, err, before.Hash)
	}
	if v, err := w.Verify(w.ctx, client.VerifyOptions{}); err != nil || !v.Identical() {
		w.t.Errorf("verify: %+v, %v", v, err)
	}
	if missing, err := w.bus.LogMissing(w.ctx); err != nil || missing != 0 {
		w.t.Errorf("%d events count as lost (%v), want none", missing, err)
	}
	e, err := w.Event(w.ctx, seq)
	if err != nil || e.Original == nil || e.Session != sid || strings.Contains(string(e.Payload), marker) || !strings.Contains(string(e.Payload), "[redacted]") {
		w.t.Errorf("event %d is %+v, %v, want a copy without text", seq, e, err)
	}
	if n, err := w.bus.CountEvents(w.ctx, sid, seq); err != nil || n != before.Count {
		w.t.Errorf("%s has %d events (%v), want %d", sid, n, err, before.Count)
	}
}

// TestRedactedEventIsGone: the text is in no file of the servers, the session is what it was,
// a session-actor that begins anew folds it to the same state, and it goes on.
func TestRedactedEventIsGone(t *testing.T) {
	t.Parallel()
	for _, servers := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d servers", servers), func(t *testing.T) {
			t.Parallel()
			nodes := nodesOf(t, servers)
			w := newHosted(t, nodes[0])
			in, out := w.run("s1", marker+" of a person", "the answer repeats "+marker, 1)
			w.run("other", "hi", "hello", 1)
			w.run("s1", "again", "hello", 2)
			if at := filesWith(t, nodes, marker); !strings.Contains(at, "REFOLD_LOG") || !strings.Contains(at, "REFOLD_OUT") {
				t.Fatalf("before: the marker is in %q, want the log and the notices: the search does not find it", at)
			}
			before, err := w.View(w.ctx, "s1")
			bustest.OK(t, err)
			d := w.Deleter(client.DeleteOptions{Share: 1})
			for _, seq := range []uint64{out, in} {
				r, err := d.Redact(w.ctx, "s1", seq)
				if err != nil || !r.Done || r.Session != "s1" || r.Seq != seq {
					t.Fatalf("redacted %+v, %v", r, err)
				}
			}
			_, err = d.Close(w.ctx)
			bustest.OK(t, err)
			w.wantRedacted("s1", in, before)
			w.wantRedacted("s1", out, before)
			bustest.Until(t, "no file with the marker", func() bool { return filesWith(t, nodes, marker) == "" })
			if again, err := d.Redact(w.ctx, "s1", in); err != nil || !again.Done || again.Type != session.TypeRunRequested {
				t.Errorf("redacted again: %+v, %v", again, err)
			}
			w.wantToGoOn("s1", in, before)
		})
	}
}

// wantToGoOn has another session-actor fold a session from its first event, and gives it
// the input of its first run again, which is a repeat, and another one.
func (w *hosted) wantToGoOn(sid string, first uint64, before session.View) {
	w.t.Helper()
	w.stop()
	bustest.OK(w.t, w.bus.EraseSnapshot(w.ctx, sid))
	w.start()
	w.wantRedacted(sid, first, before)
	seq, err := w.Run(w.ctx, sid, marker+" of a person", client.RunOptions{Submission: "sub1"})
	bustest.OK(w.t, err)
	if v, err := w.Taken(w.ctx, sid, seq); err != nil || v.Run != nil || v.Last.Number != before.Last.Number {
		w.t.Errorf("the same submission again: run %v, the last one %+v (%v), want no other than before", v.Run, v.Last, err)
	}
	w.run(sid, "third", "hello", 3)
	if q, err := w.Quarantined(w.ctx, sid); !errors.Is(err, client.ErrNotQuarantined) {
		w.t.Errorf("the session is quarantined: %+v, %v", q, err)
	}
}

// entryOf returns what stands for an event in the ledger.
func (w *hosted) entryOf(seq uint64) *journal.Redacted {
	w.t.Helper()
	e, err := w.Event(w.ctx, seq)
	bustest.OK(w.t, err)
	e, _, err = session.Redact(e)
	bustest.OK(w.t, err)
	entry, err := journal.RedactedOf(e)
	bustest.OK(w.t, err)
	return entry
}

// TestRedactRefuses what would change the session.
func TestRedactRefuses(t *testing.T) {
	t.Parallel()
	w := newHosted(t, bustest.Server(t))
	config, err := w.Publish(w.ctx, session.DoorCtl, "s1", []byte(`{"type":"SessionConfigured","data":{"provider":"p","model":"m","system":"`+marker+`"}}`), "")
	bustest.OK(t, err)
	_, last := w.run("s1", "hi", "hello", 1)
	held, err := w.Hold(w.ctx, "s1", true, "case", "")
	bustest.OK(t, err)
	for _, c := range []struct {
		what string
		seq  uint64
		want string
	}{
		{"a config that counts", config, "the session uses it still"},
		{"the latest turn", last, "the session uses it still"},
		{"the latest event", held, "it is the session's latest event"},
		{"no event", held + 1, "holds no event of this session"},
	} {
		_, err := w.Redactable(w.ctx, "s1", c.seq)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
	}
}

// TestRedactionStoppedAtEachRequest: a redaction that is stopped before or after any of its
// writes leaves nothing that counts as lost, and a session that is what it was; the next one
// completes it.
func TestRedactionStoppedAtEachRequest(t *testing.T) {
	t.Parallel()
	w := newHosted(t, bustest.Server(t))
	for _, lost := range []bool{false, true} {
		for n := 1; ; n++ {
			sid := fmt.Sprintf("s%d-%v", n, lost)
			in, _ := w.run(sid, marker, "hello", 1)
			w.run(sid, "again", "hello", 2)
			before, err := w.View(w.ctx, sid)
			bustest.OK(t, err)
			entry := w.entryOf(in)
			store := &stopping{Store: w.bus, n: n, lost: lost}
			failed := erase.New(store, unpaced).Redact(w.ctx, &erase.Redaction{Session: sid, Event: entry})
			if failed != nil && !errors.Is(failed, errStopped) {
				t.Fatal(failed)
			}
			if missing, err := w.bus.LogMissing(w.ctx); err != nil || missing != 0 {
				t.Errorf("%s: %d events count as lost (%v)", sid, missing, err)
			}
			if r, err := w.Replay(w.ctx, sid, 0, nil); err != nil || !r.Identical() || r.State.Hash().String() != before.Hash {
				t.Errorf("%s: its replay is %+v, %v", sid, r, err)
			}
			if v, err := w.Verify(w.ctx, client.VerifyOptions{}); err != nil || !v.Identical() {
				t.Errorf("%s: verify finds %+v, %v", sid, v, err)
			}
			_, err = w.Deleter(client.DeleteOptions{Share: 1}).Redact(w.ctx, sid, in)
			bustest.OK(t, err)
			w.wantRedacted(sid, in, before)
			if failed == nil {
				break
			}
		}
	}
}
