package worker

// Executors that keep their goroutine, or end it: another goroutine finishes the
// effect, and its slot becomes free once, when it is settled, whatever the executor
// does then. Time is virtual.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/subjects"
)

// keepsTime is when a call of an executor that does not return is abandoned.
const keepsTime = testRun + stopGrace

// lostCase is an executor that keeps or ends its goroutine, and when its call is
// settled.
type lostCase struct {
	name    string
	execute func()
	settled time.Duration // since it was asked
	code    string        // of the settlement
}

var lostCases = []lostCase{
	{"returns", func() {}, 0, ""},
	{"ends its goroutine", runtime.Goexit, 0, codeExecutorPanic},
	{"does not return", func() { <-time.After(time.Hour) }, keepsTime, session.CodeDeadlineExceeded},
	{"panics late", func() {
		<-time.After(time.Hour)
		panic("boom")
	}, keepsTime, session.CodeDeadlineExceeded},
	{"ends its goroutine late", func() {
		<-time.After(time.Hour)
		runtime.Goexit()
	}, keepsTime, session.CodeDeadlineExceeded},
	// The settlement is not stored for a while, and the executor returns meanwhile.
	{"returns while it is settled", func() { <-time.After(keepsTime + storeTrouble/2) }, keepsTime + storeTrouble, session.CodeDeadlineExceeded},
	{"ends its goroutine while it is settled", func() {
		<-time.After(keepsTime + storeTrouble/2)
		runtime.Goexit()
	}, keepsTime + storeTrouble, session.CodeDeadlineExceeded},
}

// storeTrouble is how long the store fails, in cases that need it. At its end a
// settlement is tried again.
const storeTrouble = retryWaitMin + 2*retryWaitMin + 4*retryWaitMin + 8*retryWaitMin

func TestSlotOfALostExecutorIsFreeOnceItIsSettled(t *testing.T) {
	t.Parallel()
	for _, c := range lostCases {
		for _, lines := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/lines=%v", c.name, lines), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { c.run(t, lines) })
			})
		}
	}
}

// run publishes two calls to a bridge with one slot: its source's, or with lines
// its process's and its sessions' turns.
func (c lostCase) run(t *testing.T, lines bool) {
	world, q := newWorld(), newQueue()
	asked := time.Now()
	world.publishLost = func([]byte) error {
		if since := time.Since(asked); c.settled > keepsTime && since < c.settled {
			return errors.New("not now")
		}
		return nil
	}
	w := New(world, "me", "test/me", time.Now, slog.New(slog.DiscardHandler))
	world.beat("me", true)
	ctx, cancel := context.WithCancel(t.Context())
	life, end := NewLifetimes(ctx, GraceDefault)
	var second atomic.Int64 // when it started, since they were asked; -1: it did not
	second.Store(-1)
	s := Target{Class: session.ClassTool, Name: "host", Concurrency: 1, Executor: executorFunc(func(_ context.Context, call executor.Call) (executor.Result, error) {
		if call.Effect == "r1t1c0" {
			c.execute()
			return executor.Result{}, nil
		}
		second.Store(int64(time.Since(asked)))
		return executor.Result{}, nil
	})}
	if lines {
		w.slots, s.Ahead = &slots{free: 1}, 1
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := w.Serve(life, s, q.consumer()); err != nil {
			t.Error(err)
		}
	}()
	for n := range 2 {
		name := fmt.Sprintf("r1t1c%d", n)
		q.ask(t, session.ClassTool, "host", "s1", name, toolCall(name, true))
		synctest.Wait()
	}
	pass(2 * keepsTime)
	if got, want := time.Duration(second.Load()), c.settled; got != want {
		t.Errorf("the second call started after %v, want %v", got, want)
	}
	first := "r1t1c0 succeeded"
	if c.code != "" {
		first = "r1t1c0 failed " + c.code
	}
	world.wantSettled(t, first, "r1t1c1 succeeded")
	cancel()
	<-served
	end()
	pass(2 * time.Hour) // what was given up returns
	if lines && w.slots.free != 1 {
		t.Errorf("free slots: got %d, want 1", w.slots.free)
	}
	if acked, returned := q.counts(); acked != 2 || returned != 0 {
		t.Errorf("acked %d, given back %d; want 2 and 0", acked, returned)
	}
	if got := len(w.executions.byName); got != 0 {
		t.Errorf("flights: got %d, want 0", got)
	}
}

// endAll did not reach the start, because the grace time was already over.
func TestStartAfterTheGraceTimeIsStoppedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := New(newWorld(), "me", "test/me", time.Now, slog.New(slog.DiscardHandler))
		grace, stop := context.WithCancelCause(t.Context())
		stop(errDraining)
		var cause error
		call := toolCall("r1t1c0", true)
		f, _ := w.executions.enter(&effect{name: subjects.EffectName{Class: session.ClassTool}, call: &call, runTime: testRun, startBy: time.Now().Add(testStartBy)})
		f.life = &Lifetimes{Drain: t.Context(), grace: grace, Last: t.Context()}
		f.served = &Target{Executor: executorFunc(func(ctx context.Context, _ executor.Call) (executor.Result, error) {
			cause = ctx.Err()
			return executor.Result{}, nil
		})}
		if got := (calls{}).start(w, f); got.next != nextGiveBack || cause == nil {
			t.Errorf("got next %d, context %v; want it given back, and the context ended", got.next, cause)
		}
	})
}

// A rehearsal returns, also if the executor keeps or ends its goroutine.
func TestRehearsalOfALostExecutorReturns(t *testing.T) {
	t.Parallel()
	for _, c := range lostCases {
		if c.settled > keepsTime {
			continue // nothing is stored
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				got := Rehearse(t.Context(), executorFunc(func(context.Context, executor.Call) (executor.Result, error) {
					c.execute()
					return executor.Result{}, nil
				}), executor.Call{ToolID: "t", Session: "s1", Effect: "r1t1c0", RetrySafe: true}, Rehearsal{RunTime: testRun})
				if took := time.Since(began); got.Code != c.code || took != c.settled {
					t.Errorf("got code %q after %v, want %q after %v", got.Code, took, c.code, c.settled)
				}
				pass(2 * time.Hour)
			})
		})
	}
}

// An executor that hangs is abandoned; its result an hour later is ignored, and
// settles nothing a second time.
func TestResultOfAnAbandonedExecutorIsIgnored(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world, q *queue) {
		returned := false
		b := startBridge(t, w, "me", q, Target{Class: session.ClassTool, Name: "host", Executor: executorFunc(func(context.Context, executor.Call) (executor.Result, error) {
			<-time.After(time.Hour)
			returned = true
			return executor.Result{Output: "late"}, nil
		})})
		q.ask(t, session.ClassTool, "host", "s1", "r1t1c0", toolCall("r1t1c0", false))
		pass(2 * time.Hour)
		b.stop()
		want := []string{"r1t1c0 outcome_unknown outcome_unknown"}
		if got := w.settlements(t); !slices.Equal(got, want) || !returned {
			t.Errorf("settled %q, want %q; returned %v", got, want, returned)
		}
	})
}
