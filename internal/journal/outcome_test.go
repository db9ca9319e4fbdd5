package journal_test

// The server, the connection or the caller's context ends before the answer arrives.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
)

// The server restarts while events are published: every event is stored once, in order,
// and the caller need not reconnect.
func TestPublishAcrossServerRestart(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	b, ctx := testbus.Provisioned(t, node), testbus.Context(t)
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
	bustest.OK(t, <-done)
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

// If ctx ends first, the error wraps ErrUnknownOutcome.
func TestEndedContextIsAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	b := testbus.Provisioned(t, node)
	node.Stop()
	ctx, cancel := context.WithTimeout(testbus.Context(t), 200*time.Millisecond)
	defer cancel()
	_, err := b.Publish(ctx, session.DoorIn, "s1", []byte("{}"), "01")
	if !errors.Is(err, journal.ErrUnknownOutcome) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("publish: got %v, want ErrUnknownOutcome", err)
	}
	if _, _, err := b.Claim(ctx, claimOf("s1", "r1t1", 1), []byte(`{"by":"a"}`)); !errors.Is(err, journal.ErrUnknownOutcome) {
		t.Errorf("claim: got %v, want ErrUnknownOutcome", err)
	}
	b.Close()
	if _, err := b.Publish(testbus.Context(t), session.DoorIn, "s1", []byte("{}"), "01"); !errors.Is(err, natsio.ErrClosed) {
		t.Errorf("closed: got %v, want ErrClosed", err)
	}
}

// The stored acknowledgement is lost with the connection: the same call finds
// its own message and does not store a second one.
func TestLostAcknowledgementStoresOnce(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	_, js := testbus.JS(t, node)
	wire := testbus.NewWire(t, node.URL())
	ctx := testbus.Context(t)
	b := testbus.ConnectWith(t, natsio.Options{URL: wire.URL})
	bustest.OK(t, b.Provision(ctx, testbus.Conf(t, ""), 0))
	if _, _, err := b.GetSnapshot(ctx, "s1"); err != nil { // looks the bucket up
		t.Fatal(err)
	}
	stored := func(stream string) uint64 {
		s, err := js.Stream(ctx, stream)
		bustest.OK(t, err)
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
		wire.Mute(true)
		done := make(chan error, 1)
		go func() { done <- tc.call() }()
		bustest.Until(t, tc.name+" is stored", func() bool { return stored(tc.stream) == before+1 })
		wire.Cut()
		wire.Mute(false)
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
	wire.Cut()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got, err := b.GetBlob(ctx, codec.RefOf(content)); err != nil || !bytes.Equal(got, content) {
		t.Errorf("blob: got %d bytes %v", len(got), err)
	}
}

// A follower continues at its position after a server restart.
func TestFollowAcrossRestart(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	b, ctx := testbus.Provisioned(t, node), testbus.Context(t)
	say := func(n uint64) {
		t.Helper()
		bustest.OK(t, b.Notify(ctx, "s1", n, fmt.Append(nil, n)))
	}
	say(1)
	n := uint64(0)
	for notice, err := range b.FollowNotices(ctx, "s1", 0) {
		bustest.OK(t, err)
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

// TestNameThatCantBeRead: the file of an effect is damaged. Publishing the effect again
// fails for good, with an error that says what to do; the other outputs of the call are
// stored. A damaged claim counts as that of an unknown holder.
func TestNameThatCantBeRead(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t, bustest.Interval)
	b := testbus.Provisioned(t, node)
	effect := func(sid, say string) journal.Output {
		return journal.Output{Session: sid, Effect: &session.Effect{Name: "r1t1c0", Class: session.ClassTool, Target: "host", Payload: []byte(say)}}
	}
	name := claimOf("damaged", "r1t1c0", 1)
	mine := []byte(`{"by":"01DAMAGEDCLAIM"}`)
	if errs := b.Store(testbus.Context(t), []journal.Output{effect("damaged", "what can't be read"), effect("whole", "what can")}); errors.Join(errs...) != nil {
		t.Fatal(errs)
	}
	if _, _, err := b.Claim(testbus.Context(t), name, mine); err != nil {
		t.Fatal(err)
	}
	node.Damage("REFOLD_FX", "what can't be read")
	node.Damage("REFOLD_FX", "01DAMAGEDCLAIM")

	var others []journal.Output
	for i := range 20 {
		others = append(others, effect(fmt.Sprint("new", i), "new"))
	}
	errs := b.Store(testbus.Context(t), append(others, effect("damaged", "what can't be read"), effect("whole", "what can")))
	var unreadable *journal.UnreadableError
	for i, err := range errs {
		if i == len(others) {
			if !errors.As(err, &unreadable) || !strings.HasPrefix(unreadable.Error(), "refold.fx.tool.host.damaged.r1t1c0: ") || !strings.Contains(err.Error(), "delete REFOLD_FX") {
				t.Errorf("the damaged one: got %v, want that it can't be read, and what to do", err)
			}
		} else if err != nil {
			t.Errorf("output %d: %v", i, err)
		}
	}
	if won, holder, err := b.Claim(testbus.Context(t), name, mine); won || len(holder) > 0 || err != nil {
		t.Errorf("a claim that can't be read: got %v %q %v, want that it is somebody's", won, holder, err)
	}
	withdrawn := journal.Output{Session: "damaged", Withdraw: &session.Withdrawal{Name: "r1t1c0", Class: session.ClassTool, Target: "host"}}
	if errs := b.Store(testbus.Context(t), []journal.Output{withdrawn}); errs[0] != nil {
		t.Errorf("its withdrawal, which comes too late: %v", errs[0])
	}
}

// The server compares the ids of the whole log, so those of events name the session.
func TestOneIDOfTwoSessionsStoresBoth(t *testing.T) {
	t.Parallel()
	b, ctx := testbus.Provisioned(t, bustest.Server(t)), testbus.Context(t)
	var seqs []uint64
	for _, sid := range []string{"s1", "s2", "s1"} {
		seq, err := b.Publish(ctx, session.DoorIn, sid, []byte("{}"), "id")
		bustest.OK(t, err)
		seqs = append(seqs, seq)
	}
	if seqs[0] == seqs[1] || seqs[0] != seqs[2] {
		t.Errorf("stored at %d, want one event of each session, and its repeat there", seqs)
	}
}
