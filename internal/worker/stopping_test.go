package worker

// A bridge that stops while effects wait: what only waits is given back at once.
// What runs has the grace time.

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
)

func TestStoppingBridgeGivesBackAGenerationThatBacksOff(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(context.Context, executor.Request) error{
		"the model waits itself": func(ctx context.Context, r executor.Request) error {
			fault := &executor.Error{Code: codeOverloaded, Retryable: true}
			r.Tried(fault, 0)
			return errors.Join(fault, executor.Wait(ctx, r.Again(time.Minute)))
		},
		"the provider asked to wait": func(ctx context.Context, r executor.Request) error {
			r.Tried(&executor.Error{Code: codeRateLimited, Retryable: true}, time.Minute)
			return executor.Wait(ctx, r.Again(time.Minute))
		},
		"the bridge waits": func(context.Context, executor.Request) error {
			return &executor.Error{Code: codeOverloaded, Retryable: true}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, q := newWorld(), newQueue()
				s := Target{Class: session.ClassLLM, Name: "p", Counts: new(TargetCounts)}
				s.Paced()
				s.Model = modelFunc(func(ctx context.Context, r executor.Request, _ func(string)) (executor.Answer, error) {
					return executor.Answer{}, answer(ctx, r)
				})
				seq := w.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{Input: session.Content{Text: "hi"}})
				b := startBridge(t, w, "me", q, s)
				q.ask(t, session.ClassLLM, "p", "s1", "r1t1", generation("r1t1", session.Item{Role: session.RoleUser, Seq: seq}))
				synctest.Wait()
				began := time.Now()
				b.stop()
				if took := time.Since(began); took > time.Second {
					t.Errorf("it is given back after %v", took)
				}
				if _, returned := q.counts(); returned != 1 {
					t.Errorf("given back %d times, want once; settled %q", returned, w.settlements(t))
				}
				w.wantSettled(t)
			})
		})
	}
}

func TestStoppingBridgeEndsTheWaitsOfCalls(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		safe bool
		want []string
	}{
		"retry-safe":     {true, nil}, // given back
		"not retry-safe": {false, []string{"r1t1c0 failed service_missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, q := newWorld(), newQueue()
				b := startBridge(t, w, "me", q, Target{Class: session.ClassTool, Name: "host", Executor: executorFunc(
					func(ctx context.Context, _ executor.Call) (executor.Result, error) {
						missing := executor.Result{Error: &executor.Error{Code: "service_missing", Retryable: true}}
						return missing, executor.Wait(ctx, time.Minute)
					})})
				q.ask(t, session.ClassTool, "host", "s1", "r1t1c0", toolCall("r1t1c0", c.safe))
				synctest.Wait()
				began := time.Now()
				b.stop()
				if took := time.Since(began); took > time.Second {
					t.Errorf("it ends after %v", took)
				}
				w.wantSettled(t, c.want...)
			})
		})
	}
}

// TestRunningCallHasTheGraceTime: only waits end when a bridge begins to stop.
func TestRunningCallHasTheGraceTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, q := newWorld(), newQueue()
		b := startBridge(t, w, "me", q, Target{Class: session.ClassTool, Name: "host", Executor: executorFunc(
			func(ctx context.Context, _ executor.Call) (executor.Result, error) {
				select {
				case <-time.After(GraceDefault / 2):
					return executor.Result{Output: "done"}, nil
				case <-ctx.Done():
					return executor.Result{}, ctx.Err()
				}
			})})
		q.ask(t, session.ClassTool, "host", "s1", "r1t1c0", toolCall("r1t1c0", true))
		synctest.Wait()
		b.stop()
		w.wantSettled(t, "r1t1c0 succeeded")
	})
}
