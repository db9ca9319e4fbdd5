package journal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
)

// Answers are lost. Messages are sent again under the same names until their outcome is
// known.

// The server restarts during calls of all kinds.
func TestCommitAcrossServerRestart(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, s *storing) {
		var said atomic.Int64
		some := make(chan struct{})
		l := &load{s: s, n: 100, said: func() {
			if said.Add(1) == 100 {
				close(some)
			}
		}}
		done := make(chan struct{})
		go func() {
			l.run()
			close(done)
		}()
		testbus.Within(t, some)
		s.node.Stop()
		s.node.Start()
		testbus.Within(t, done)
		l.check()
	})
}

// Everything is stored, and the answers are lost with the connection.
func TestLostAnswersStoreOnce(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, s *storing) {
		const n = 40
		wire := testbus.NewWire(t, s.node.URL())
		b, ctx := connectAs(t, wire.URL, s.mode), testbus.Context(t)
		var calls sync.WaitGroup
		seqs, won := make([]uint64, n), make([]bool, n)
		wire.Mute(true)
		// Notices wait for the effects of their slice, so they are one of their own.
		for _, outputs := range [][]journal.Output{asked("s1", effects(n)), slices.Concat(told("s1", 1, n), told("s2", 1, n))} {
			calls.Go(func() {
				if err := errors.Join(b.Store(ctx, outputs)...); err != nil {
					t.Errorf("store: %v", err)
				}
			})
		}
		for i := range n {
			calls.Go(func() {
				var err error
				if seqs[i], err = b.Publish(ctx, session.DoorIn, "s1", fmt.Append(nil, i), ""); err != nil {
					t.Errorf("publish %d: %v", i, err)
				}
			})
			calls.Go(func() {
				var err error
				if won[i], _, err = b.Claim(ctx, claimOf("s1", fmt.Sprintf("r1t%dc0", i+1), 1), []byte(`{"by":"a"}`)); err != nil || !won[i] {
					t.Errorf("claim %d: got %v %v, want it won", i, won[i], err)
				}
			})
		}
		bustest.Until(t, "something is stored in each stream, and not heard of", func() bool {
			return s.count("REFOLD_OUT") > 0 && s.count("REFOLD_FX") > 0 && s.count("REFOLD_LOG") > 0
		})
		wire.Cut()
		wire.Mute(false)
		calls.Wait()
		if got, want := len(s.once("REFOLD_FX")), 2*n; got != want {
			t.Errorf("got %d effects and claims, want %d", got, want)
		}
		inTurn(t, s.all("REFOLD_OUT"), 2, n)
		events := s.all("REFOLD_LOG")
		if len(events) != n {
			t.Errorf("got %d events, want %d", len(events), n)
		}
		for i, seq := range seqs {
			if !slices.ContainsFunc(events, func(k kept) bool { return k.seq == seq && k.text == fmt.Sprint(i) }) {
				t.Errorf("event %d is not at %d, as Publish said", i, seq)
			}
		}
	})
}

// The caller's context ends before the server is back. Its writes do not delay later
// calls.
func TestEndedCallDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, s *storing) {
		s.node.Stop()
		ctx, leave := context.WithCancel(testbus.Context(t))
		errs := make(chan error)
		outputs := slices.Concat(asked("fx", effects(20)), told("s1", 1, 20)) // no notice goes behind what failed of its session
		go func() {
			all := s.b.Store(ctx, outputs)
			for _, err := range all {
				if !errors.Is(err, journal.ErrUnknownOutcome) || !errors.Is(err, context.Canceled) {
					t.Errorf("store: got %v, want ErrUnknownOutcome", err)
				}
			}
			errs <- errors.Join(all...)
		}()
		go func() {
			_, err := s.b.Publish(ctx, session.DoorIn, "s1", []byte("left"), "01LEFT")
			errs <- err
		}()
		leave()
		for range 2 {
			if err := testbus.Within(t, errs); !errors.Is(err, journal.ErrUnknownOutcome) {
				t.Errorf("got %v, want ErrUnknownOutcome", err)
			}
		}
		s.node.Start()
		if err := errors.Join(s.b.Store(testbus.Context(t), outputs)...); err != nil {
			t.Errorf("the same again: %v", err)
		}
		if _, err := s.b.Publish(testbus.Context(t), session.DoorIn, "s1", []byte("left"), "01LEFT"); err != nil {
			t.Errorf("the same event again: %v", err)
		}
		if got := len(s.once("REFOLD_FX")); got != 20 {
			t.Errorf("got %d effects, want 20", got)
		}
		inTurn(t, s.all("REFOLD_OUT"), 1, 20)
		if got := s.count("REFOLD_LOG"); got != 1 {
			t.Errorf("got %d events, want 1", got)
		}
	})
}

func TestCloseEndsWaitingCalls(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, s *storing) {
		s.node.Stop()
		const n = 50
		errs, ctx := make(chan error), testbus.Context(t)
		for i := range n {
			go func() {
				if i%2 == 0 {
					errs <- ask(ctx, s.b, fmt.Sprint("s", i), effect("r1t1c0", "x"))
					return
				}
				_, err := s.b.Publish(ctx, session.DoorIn, "s1", []byte("x"), "")
				errs <- err
			}()
		}
		s.b.Close()
		for range n {
			if err := testbus.Within(t, errs); !errors.Is(err, natsio.ErrClosed) {
				t.Errorf("got %v, want ErrClosed", err)
			}
		}
		s.b.Close() // once more is fine
		if err := s.b.Notify(ctx, "s1", 1, []byte("x")); !errors.Is(err, natsio.ErrClosed) {
			t.Errorf("afterwards: got %v, want ErrClosed", err)
		}
	})
}
