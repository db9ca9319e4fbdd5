package client_test

// Folding histories again, and comparing them with what was stored.

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
)

// decodeInput reads the input of a RunRequested.
func decodeInput(e session.Event, content **session.Content) error {
	canonical, err := codec.Canonicalize(e.Payload)
	if err != nil {
		return err
	}
	var env session.Envelope
	if err := codec.Decode(canonical, &env); err != nil {
		return err
	}
	var b session.RunRequested
	if err := codec.Decode(env.Data, &b); err != nil {
		return err
	}
	*content = &b.Input
	return nil
}

// packed returns an envelope as msgpack.
func packed(typ string, body any) ([]byte, error) {
	data, err := codec.Marshal(body)
	if err != nil {
		return nil, err
	}
	return codec.Marshal(session.Envelope{Data: data, Type: typ, V: session.Version})
}

func TestReplayOfUnchangedLogIsIdentical(t *testing.T) {
	t.Parallel()
	w := newWorld(t).host()
	var last uint64
	for run := 1; run <= 5; run++ {
		seq := w.ask("s1", "hi")
		last = w.answer("s1", run, "hello")
		w.end("s1", seq)
	}
	var snapshotAt uint64
	bustest.Until(t, "a snapshot", func() bool {
		r := w.replay("s1", 0)
		snapshotAt = r.SnapshotAt
		return snapshotAt != 0
	})
	var told uint64
	r, err := w.Replay(w.ctx, "s1", 0, func(e session.Event, _ []session.Notice, after *session.State) {
		if told++; after.Seq != e.Seq || after.Count != told {
			t.Errorf("event %d: the state is at %d after %d", e.Seq, after.Seq, after.Count)
		}
	})
	bustest.OK(t, err)
	if !r.Identical() || r.Events != 10 || told != 10 || r.Seq != last || r.Rejected != 0 {
		t.Errorf("replay: got %+v, want 10 events up to %d, identical", r, last)
	}
	v, err := w.View(w.ctx, "s1")
	if err != nil || v.Hash != r.Hash.String() || v.Chain != r.Chain.String() {
		t.Errorf("view: got %s %s (%v), want %s %s", v.Hash, v.Chain, err, r.Hash, r.Chain)
	}
	if r.EffectsSame < 5 || r.EffectsGone != 0 {
		t.Errorf("effects: %d same, %d gone, want all of them", r.EffectsSame, r.EffectsGone)
	}
}

func TestPartialReplayEndsAtItsEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t).host()
	first := w.ask("s1", "hi")
	answered := w.answer("s1", 1, "hello")
	second := w.ask("s1", "again")
	w.answer("s1", 2, "hello")
	w.end("s1", second)
	r := w.replay("s1", answered)
	if !r.Identical() || r.Events != 2 || r.Seq != answered {
		t.Errorf("up to %d: got %+v, want 2 events, identical", answered, r)
	}
	if r.State.Run != nil || r.State.Runs != 1 {
		t.Errorf("up to %d: the state is that of another event", answered)
	}
	if r := w.replay("s1", 1<<40); r.Events != 4 {
		t.Errorf("past the end: %d events, want all 4", r.Events)
	}
	if _, err := w.Replay(w.ctx, "s1", first-1, nil); !errors.Is(err, client.ErrNoSession) || !strings.Contains(err.Error(), fmt.Sprint(first-1)) {
		t.Errorf("before its first event: got %v", err)
	}
	if _, err := w.Replay(w.ctx, "nobody", 0, nil); !errors.Is(err, client.ErrNoSession) {
		t.Errorf("a session without events: got %v", err)
	}
}

func TestReplayReportsDifferences(t *testing.T) {
	t.Parallel()
	w := newWorld(t) // nobody folds: what is stored is the test's
	seq := w.ask("s1", "hi")
	whole := w.replay("s1", 0)
	if !whole.Identical() || whole.EffectsGone != 1 || whole.EffectsSame != 0 {
		t.Errorf("nothing stored: got %+v, want one effect gone and no difference", whole)
	}
	want := func(texts ...string) {
		t.Helper()
		r := w.replay("s1", 0)
		if len(r.Differences) != len(texts) {
			t.Errorf("differences: got %q, want %d", r.Differences, len(texts))
			return
		}
		for i, text := range texts {
			if !strings.Contains(r.Differences[i], text) {
				t.Errorf("difference %d: got %q, want one with %q", i, r.Differences[i], text)
			}
		}
	}
	put := func(snap session.Snapshot) {
		t.Helper()
		bustest.OK(t, w.bus.PutSnapshot(w.ctx, "s1", snap.Seq, snap.Bytes()))
	}
	snap := whole.State.Snapshot()
	put(snap)
	if r := w.replay("s1", 0); !r.Identical() || r.SnapshotAt != seq {
		t.Errorf("its own snapshot: got %+v", r)
	}
	other := snap
	other.State = session.New(whole.State.InstallRecord(), "s1").Bytes()
	other.Hash = codec.Digest(other.State)
	put(other)
	want(fmt.Sprintf("snapshot at %d: its state is %s", seq, other.Hash))
	other = snap
	other.Seq++
	put(other)
	want(fmt.Sprintf("snapshot at %d: the session has no event there", seq+1))
	other.Hash[0]++
	put(other)
	want("its state hashes to")
	bustest.OK(t, w.bus.PutSnapshot(w.ctx, "s1", seq, []byte("no snapshot")))
	want("snapshot: ")
	if v, err := w.Verify(w.ctx, client.VerifyOptions{}); err != nil || v.Differ != 1 || v.Identical() {
		t.Errorf("a snapshot that can't be read: got %+v, %v, want that its session differs", v, err)
	}
	put(snap)
	w.forge("s1", "r1t1", []byte{0x80})
	want("effect r1t1: other bytes")
	w.forge("s1", "r7t1", []byte{0x80})
	want("effect r1t1: other bytes", "effect r7t1 is stored, and the fold never asks for it")
	bustest.OK(t, w.bus.PutQuarantine(w.ctx, "s1", []byte(`{"seq":2,"reason":"a test"}`)))
	want("effect r1t1: other bytes", "effect r7t1", "quarantined: {\"seq\":2,\"reason\":\"a test\"}")
}

// The session goes on while it is folded again.
func TestReplayOfActiveSessionIsIdentical(t *testing.T) {
	t.Parallel()
	w := newWorld(t).host()
	ended, replayed := make(chan struct{}), make(chan error, 1)
	go func() {
		replayed <- func() error {
			for {
				select {
				case <-ended:
					return nil
				default:
				}
				r, err := w.Replay(w.ctx, "s1", 0, nil)
				if errors.Is(err, client.ErrNoSession) {
					continue
				}
				if err != nil {
					return err
				}
				if !r.Identical() {
					return fmt.Errorf("replay: %q", r.Differences)
				}
				_, err = w.Verify(w.ctx, client.VerifyOptions{Each: func(r *client.Replayed) error {
					if !r.Identical() {
						return fmt.Errorf("replay of all: %q", r.Differences)
					}
					return nil
				}})
				if err != nil {
					return err
				}
			}
		}()
	}()
	const runs = 40
	for run := 1; run <= runs; run++ {
		seq := w.ask("s1", "hi")
		w.answer("s1", run, "hello")
		w.end("s1", seq)
	}
	close(ended)
	if err := <-replayed; err != nil {
		t.Error(err)
	}
}

func TestAllSessionsAreFoldedInOnePass(t *testing.T) {
	t.Parallel()
	w := newWorld(t).host()
	const sessions = 7
	for i := range sessions {
		w.ask(fmt.Sprintf("s%d", i), "hi")
	}
	for i := range sessions {
		w.answer(fmt.Sprintf("s%d", i), 1, "hello")
	}
	// What is no session's is left out and counted.
	nc, _ := testbus.JS(t, w.node)
	if _, err := nc.RequestWithContext(w.ctx, w.bus.Names().Prefix()+".in.no!session", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	for i := range sessions {
		w.stored(fmt.Sprintf("s%d", i), "r1t1")
	}
	var order []string
	v, err := w.Verify(w.ctx, client.VerifyOptions{Each: func(r *client.Replayed) error {
		order = append(order, r.Session)
		if one := w.replay(r.Session, 0); !r.Identical() || r.Events != 2 || r.Hash != one.Hash {
			t.Errorf("%s: got %+v, want 2 events and the hash %s", r.Session, r, one.Hash)
		}
		return nil
	}})
	if err != nil || v.Skipped != 1 {
		t.Errorf("replay of all: got %+v (%v), want 1 message skipped", v, err)
	}
	if got, want := strings.Join(order, " "), "s0 s1 s2 s3 s4 s5 s6"; got != want {
		t.Errorf("order: got %s, want %s", got, want)
	}
	stop := errors.New("enough")
	if _, err := w.Verify(w.ctx, client.VerifyOptions{Each: func(*client.Replayed) error { return stop }}); !errors.Is(err, stop) {
		t.Errorf("replay of all: got %v, want the error that was returned", err)
	}
}
