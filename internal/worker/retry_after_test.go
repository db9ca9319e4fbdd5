package worker

// Pauses that a provider asks for, of a model that does not wait itself, because
// the run time of one start would end first.

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refold/refold/bridge/executor"
)

// paced returns a target with the Pacer that serve gives every model.
func paced(s *Target) { s.Paced() }

// The pause ends before start_by: the generation waits, and all others with it,
// without requests meanwhile.
func TestPauseLongerThanTheRunTimeIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first := true
		b := startPaced(t, func(r executor.Request) error {
			if !first {
				return nil
			}
			first = false
			fault := &executor.Error{Code: codeRateLimited, Retryable: true}
			r.Tried(fault, testStartBy-time.Minute)
			return fault
		}, paced)
		b.ask("r1t1", "m")
		b.ask("r2t1", "m")
		pass(testStartBy - time.Minute - time.Second)
		b.started("while it is left alone", "r1t1 at 0s")
		b.settled("while it is left alone")
		pass(2 * time.Second)
		got := b.world.settlements(t) // which of the two comes first is nobody's business
		if slices.Sort(got); !slices.Equal(got, []string{"r1t1 ok", "r2t1 ok"}) {
			t.Errorf("after that: settled %q, want both", got)
		}
		if got := len(b.starts.all()); got != 3 {
			t.Errorf("%d starts, want the one that was refused and one each: %q", got, b.starts.all())
		}
		b.stop()
	})
}

// The pause ends after start_by: the refusal is settled at once, and generations
// that did not start yet are given back to other bridges until they are late.
func TestPausePastStartBySettlesTheRefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := startPaced(t, func(r executor.Request) error {
			fault := &executor.Error{Code: codeRateLimited, Retryable: true}
			r.Tried(fault, testStartBy+time.Minute)
			return fault
		}, paced)
		b.ask("r1t1", "m")
		b.settled("at once", "r1t1 failed rate_limited")
		b.ask("r2t1", "m")
		pass(testStartBy - time.Second)
		b.settled("in time", "r1t1 failed rate_limited")
		pass(2 * time.Second)
		b.settled("late", "r1t1 failed rate_limited", "r2t1 failed deadline_exceeded")
		b.started("ever", "r1t1 at 0s")
		b.stop()
	})
}
