package bus_test

// What happens to a call when the server, the connection or the caller's time
// ends before the answer comes.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
)

// The server goes and comes back while events are published: every one is
// stored once, in order, and nobody has to connect again.
func TestServerRestart(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	b := connect(t, node, "")
	ctx := testContext(t)
	if err := b.Provision(ctx, parse(t, ""), 0); err != nil {
		t.Fatal(err)
	}
	const n = 200
	at := make(chan int) // nobody goes ahead: the server goes while events are to come
	done := make(chan error, 1)
	go func() {
		defer close(at)
		for i := range n {
			if _, err := b.Publish(ctx, session.DoorIn, "s1", fmt.Append(nil, i), fmt.Sprintf("id-%d", i)); err != nil {
				done <- fmt.Errorf("event %d: %w", i, err)
				return
			}
			at <- i
		}
		done <- nil
	}()
	for i := range at {
		if i == n/4 || i == n/2 {
			node.Stop()
			node.Start()
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	got := collect(t, ctx, b, "s1", 0, 0, true)
	if len(got) != n {
		t.Fatalf("got %d events, want %d", len(got), n)
	}
	for i, e := range got {
		if string(e.Payload) != fmt.Sprint(i) {
			t.Fatalf("event %d: got %s", i, e.Payload)
		}
	}
}

// When ctx ends first, the outcome is unknown, and the error says so.
func TestUnknownOutcome(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	b := connect(t, node, "")
	if err := b.Provision(testContext(t), parse(t, ""), 0); err != nil {
		t.Fatal(err)
	}
	node.Stop()
	ctx, cancel := context.WithTimeout(testContext(t), 200*time.Millisecond)
	defer cancel()
	_, err := b.Publish(ctx, session.DoorIn, "s1", []byte("{}"), "01")
	if !errors.Is(err, bus.ErrUnknownOutcome) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("publish: got %v, want ErrUnknownOutcome", err)
	}
	if _, _, err := b.Claim(ctx, claimOf("s1", "r1t1", 1), []byte(`{"by":"a"}`)); !errors.Is(err, bus.ErrUnknownOutcome) {
		t.Errorf("claim: got %v, want ErrUnknownOutcome", err)
	}
	b.Close()
	if _, err := b.Publish(testContext(t), session.DoorIn, "s1", []byte("{}"), "01"); !errors.Is(err, bus.ErrClosed) {
		t.Errorf("closed: got %v, want ErrClosed", err)
	}
}

// The stored acknowledgement is lost with the connection: the same call finds
// its own message and does not store a second one.
func TestLostAcknowledgement(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	_, js := rawJS(t, node)
	wire := newWire(t, node.URL())
	ctx := testContext(t)
	b, err := bus.Connect(ctx, bus.Options{URL: wire.url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if err := b.Provision(ctx, parse(t, ""), 0); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.GetSnapshot(ctx, "s1"); err != nil { // looks the bucket up
		t.Fatal(err)
	}
	stored := func(stream string) uint64 {
		s, err := js.Stream(ctx, stream)
		if err != nil {
			t.Fatal(err)
		}
		return s.CachedInfo().State.Msgs
	}
	for _, tc := range []struct {
		name, stream string
		call         func() error
	}{
		{"publish", "REFOLD_LOG", func() error {
			_, err := b.Publish(ctx, session.DoorIn, "s1", []byte("{}"), "01LOST")
			return err
		}},
		{"publish without an id", "REFOLD_LOG", func() error {
			_, err := b.Publish(ctx, session.DoorTool, "s1", []byte("{}"), "")
			return err
		}},
		{"install", "REFOLD_LOG", func() error {
			_, stored, err := b.PublishInstall(ctx, []byte("{}"), true)
			if err == nil && !stored {
				err = errors.New("it was stored by this call")
			}
			return err
		}},
		{"ask", "REFOLD_FX", func() error { return ask(ctx, b, "s1", effect("r1t1", "x")) }},
		{"ask all", "REFOLD_FX", func() error {
			return ask(ctx, b, "s1", []session.Effect{effect("r1t1", "x"), effect("r1t2", "x")}...)
		}},
		{"claim", "REFOLD_FX", func() error {
			won, _, err := b.Claim(ctx, claimOf("s1", "r1t1", 1), []byte(`{"by":"a"}`))
			if err == nil && !won {
				err = errors.New("it was won by this call")
			}
			return err
		}},
		{"snapshot", "KV_REFOLD_SNAPSHOTS", func() error { return b.PutSnapshot(ctx, "s1", 1, []byte("\x80")) }},
		{"notice", "REFOLD_OUT", func() error { return b.Notify(ctx, "s1", 1, []byte("{}")) }},
	} {
		before := stored(tc.stream)
		wire.mute(true)
		done := make(chan error, 1)
		go func() { done <- tc.call() }()
		bustest.Until(t, tc.name+" is stored", func() bool { return stored(tc.stream) == before+1 })
		wire.cut()
		wire.mute(false)
		if err := <-done; err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if got := stored(tc.stream); got != before+1 {
			t.Errorf("%s: got %d messages more, want 1", tc.name, got-before)
		}
	}
	// A blob that is cut off in the middle is sent again, whole.
	before, content := stored("OBJ_REFOLD_BLOBS"), bytes.Repeat([]byte("blob"), 4<<20)
	done := make(chan error, 1)
	go func() {
		_, err := b.PutBlob(ctx, content)
		done <- err
	}()
	bustest.Until(t, "some chunks are stored", func() bool { return stored("OBJ_REFOLD_BLOBS") >= before+3 })
	wire.cut()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got, err := b.GetBlob(ctx, codec.RefOf(content)); err != nil || !bytes.Equal(got, content) {
		t.Errorf("blob: got %d bytes %v", len(got), err)
	}
}

// Who follows goes on where it was, whatever happens to the server.
func TestFollowAcrossRestart(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	b := connect(t, node, "")
	ctx := testContext(t)
	if err := b.Provision(ctx, parse(t, ""), 0); err != nil {
		t.Fatal(err)
	}
	say := func(n uint64) {
		t.Helper()
		if err := b.Notify(ctx, "s1", n, fmt.Append(nil, n)); err != nil {
			t.Fatal(err)
		}
	}
	say(1)
	n := uint64(0)
	for notice, err := range b.FollowNotices(ctx, "s1", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; string(notice.Payload) != fmt.Sprint(n) {
			t.Fatalf("got notice %s, want %d", notice.Payload, n)
		}
		if n == 5 {
			break
		}
		if n%2 == 1 {
			node.Stop()
			node.Start()
		}
		say(n + 1)
	}
}
