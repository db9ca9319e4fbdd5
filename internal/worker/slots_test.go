package worker

// The order in which waiters get slots that all targets share. The tests compare
// the order of starts, in virtual time.

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
)

// crowd enters slots and stays for a second each.
type crowd struct {
	t      *testing.T
	slots  *slots
	began  time.Time
	starts ledger
}

func newCrowd(t *testing.T, n int) *crowd {
	return &crowd{t: t, slots: &slots{free: n}, began: time.Now()}
}

// enter adds a waiter, which records when it gets the slot.
func (c *crowd) enter(name string, priority int) {
	go func() {
		if c.slots.enter(c.t.Context(), name, priority) {
			c.starts.add(fmt.Sprintf("%s %v", name, time.Since(c.began)))
			<-time.After(time.Second)
			c.slots.leave()
		}
	}()
	synctest.Wait()
}

// A waiter with a higher priority gets the next slot, however many with a lower one
// have waited before.
func TestLowPriorityFloodDelaysByOneSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 2)
		for range 500 {
			c.enter("low", -1)
		}
		pass(20*time.Second + 500*time.Millisecond)
		c.enter("high", 5)
		pass(10 * time.Second)
		c.enter("high", 5)
		pass(time.Hour)
		all := c.starts.all()
		var high []string
		for _, line := range all {
			if strings.HasPrefix(line, "high") {
				high = append(high, line)
			}
		}
		if want := []string{"high 21s", "high 31s"}; !slices.Equal(high, want) {
			t.Errorf("got %q, want %q: the first slot that is free", high, want)
		}
		if len(all) != 502 || c.slots.free != 2 || len(c.slots.waiting) != 0 {
			t.Errorf("%d starts, left: %+v; want 502, and all free", len(all), c.slots)
		}
	})
}

// While waiters with a high priority keep arriving, every eighth slot is for the
// longest waiting of the others.
func TestEighthSlotGoesToTheLongestWaiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1)
		c.enter("high", 2)
		c.enter("low", 0)
		c.enter("middle", 1)
		c.enter("low", 0)
		for range 40 {
			c.enter("high", 2)
		}
		pass(32*time.Second + 500*time.Millisecond)
		var others []string
		for _, line := range c.starts.all() {
			if !strings.HasPrefix(line, "high") {
				others = append(others, line)
			}
		}
		if want := []string{"low 8s", "middle 16s", "low 24s"}; !slices.Equal(others, want) {
			t.Errorf("got %q, want %q", others, want)
		}
		pass(time.Hour)
	})
}

// A waiter whose context ends leaves the queue.
func TestCancelledWaiterForASlotLeavesTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slots{free: 1}
		if !s.enter(t.Context(), "s1", 0) {
			t.Fatal("a free slot is not given")
		}
		ctx, cancel := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		for _, priority := range []int{0, 1, 1} {
			waiting.Go(func() {
				if s.enter(ctx, "s1", priority) {
					t.Error("a slot is given to who gave up")
				}
			})
		}
		synctest.Wait()
		cancel()
		waiting.Wait()
		s.leave()
		if s.free != 1 || len(s.waiting) != 0 {
			t.Errorf("left: %+v", s)
		}
	})
}

// Two targets of one bridge share one slot: the effects of the first target,
// published first, wait for those of the second.
func TestTargetOfHigherPriorityGetsSharedSlotsFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		world := newWorld()
		w := New(world, "me", "test/me", time.Now, slog.New(slog.DiscardHandler))
		w.slots = &slots{free: 1}
		world.beat("me", true)
		ctx, cancel := context.WithCancel(t.Context())
		life, end := NewLifetimes(ctx, GraceDefault)
		var starts ledger
		var serving sync.WaitGroup
		queues := map[string]*queue{"batch": newQueue(), "mail": newQueue()}
		for target, priority := range map[string]int{"batch": 0, "mail": 1} {
			s := Target{Class: session.ClassTool, Name: target, Concurrency: 4, Priority: priority, Executor: executorFunc(func(context.Context, executor.Call) (executor.Result, error) {
				starts.add(target)
				<-time.After(time.Second)
				return executor.Result{}, nil
			})}
			serving.Go(func() {
				if err := w.Serve(life, s, queues[target].consumer()); err != nil {
					t.Error(err)
				}
			})
		}
		ask := func(target string, n int) {
			call := toolCall(fmt.Sprintf("r1t1c%d", n), true)
			call.Session, call.IdempotencyKey = target, target+"."+call.Effect
			queues[target].ask(t, session.ClassTool, target, target, call.Effect, call)
			synctest.Wait()
		}
		for n := range 4 {
			ask("batch", n)
		}
		ask("mail", 0)
		ask("mail", 1)
		pass(3*time.Second + time.Millisecond)
		if got, want := starts.all(), []string{"batch", "mail", "mail", "batch"}; !slices.Equal(got, want) {
			t.Errorf("starts: got %q, want %q", got, want)
		}
		cancel() // what waits is given back, what runs ends
		serving.Wait()
		end()
		if acked, returned := queues["batch"].counts(); acked != 2 || returned != 2 {
			t.Errorf("acked %d, given back %d; want 2 and 2", acked, returned)
		}
	})
}
