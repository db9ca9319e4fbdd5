package worker

// Effects that end the process that runs them. Time is virtual; a bridge that dies
// is started again a second later.

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
)

// lives is a bridge that is started again whenever it dies.
type lives struct {
	t     *testing.T
	world *world
	queue *queue
	serve Target

	mu   sync.Mutex
	now  *bridgeInWorld
	born int
}

func (l *lives) start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.born++
	l.now = startBridge(l.t, l.world, fmt.Sprintf("b%d", l.born), l.queue, l.serve)
}

// die ends the present bridge, which never answers for ctx's effect.
func (l *lives) die(ctx context.Context) {
	l.mu.Lock()
	l.now.die()
	l.mu.Unlock()
	time.AfterFunc(time.Second, l.start)
	<-ctx.Done()
}

func (l *lives) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now.stop()
}

// limitedTool is a tool with a number of tries; 0: it says nothing about them.
type limitedTool struct {
	executorFunc
	tries int
}

func (l limitedTool) Tries(string) int { return l.tries }

// An effect that kills its bridge fails after a few deaths, whatever its class.
func TestEffectThatKillsItsBridgeFails(t *testing.T) {
	t.Parallel()
	type asks func(t *testing.T, w *world, q *queue)
	call := func(t *testing.T, _ *world, q *queue) {
		q.ask(t, session.ClassTool, "host", "s1", "r1t1c0", toolCall("r1t1c0", true))
	}
	tool := func(tries int) func(executorFunc) Target {
		return func(e executorFunc) Target {
			return Target{Class: session.ClassTool, Name: "host", Executor: limitedTool{e, tries}}
		}
	}
	kill := func(ctx context.Context, e executorFunc) error {
		_, err := e(ctx, executor.Call{})
		return err
	}
	for _, c := range []struct {
		name   string
		serve  func(executorFunc) Target
		ask    asks
		want   string
		starts int
	}{
		{"a call", tool(0), call, "r1t1c0 failed bridge_lost", deathsDefault},
		{"a call of two tries", tool(2), call, "r1t1c0 failed bridge_lost", 2},
		{"a call of five tries", tool(5), call, "r1t1c0 failed bridge_lost", 5},
		{"a call of one try", tool(1), call, "r1t1c0 failed bridge_lost", deathsLeast}, // it may have run beside another
		{
			"a generation", func(e executorFunc) Target {
				return Target{Class: session.ClassLLM, Name: "p", Model: modelFunc(func(ctx context.Context, _ executor.Request, _ func(string)) (executor.Answer, error) {
					return executor.Answer{}, kill(ctx, e)
				})}
			}, func(t *testing.T, w *world, q *queue) {
				isOpenAt(true, 9)(t, w)
				input := w.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{Input: session.Content{Text: "hi"}})
				q.ask(t, session.ClassLLM, "p", "s1", "r1t1", generation("r1t1", session.Item{Role: session.RoleUser, Seq: input}))
			}, "r1t1 failed bridge_lost", deathsDefault,
		},
		{
			"a step", func(e executorFunc) Target {
				return Target{Class: session.ClassStep, Name: "router", Hook: executor.PrepareStep(func(ctx context.Context, _ executor.StepRequest) (executor.StepChoice, error) {
					return executor.StepChoice{}, kill(ctx, e)
				})}
			}, func(t *testing.T, _ *world, q *queue) {
				q.ask(t, session.ClassStep, "router", "s1", "r1t2s", stepEffect("r1t2s"))
			}, "r1t2s failed bridge_lost", deathsDefault,
		},
		{
			"a sync", func(e executorFunc) Target {
				return Target{Class: session.ClassSpace, Name: "git", Spaces: readSpace(func(ctx context.Context, _ executor.SpaceRequest) (executor.SpaceContent, error) {
					return executor.SpaceContent{}, kill(ctx, e)
				})}
			}, func(t *testing.T, _ *world, q *queue) {
				q.ask(t, session.ClassSpace, "git", "s1", "y1", syncEffect("y1", nil))
			}, "y1 failed bridge_lost", deathsDefault,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world, q *queue) {
				var starts ledger
				l := &lives{t: t, world: w, queue: q}
				l.serve = c.serve(func(ctx context.Context, _ executor.Call) (executor.Result, error) {
					starts.add("started")
					l.die(ctx)
					return executor.Result{}, ctx.Err()
				})
				l.start()
				c.ask(t, w, q)
				pass(testStartBy - time.Second)
				l.stop()
				if got := len(starts.all()); got != c.starts {
					t.Errorf("started: got %d times, want %d", got, c.starts)
				}
				if got := w.settlements(t); !slices.Equal(got, []string{c.want}) {
					t.Errorf("settled: got %q, want %q", got, c.want)
				}
			})
		})
	}
}

// After its first death, a killer takes no call along that is not retry-safe, and
// what it does take along does not fail.
func TestKillerHarmsNoOthers(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world, q *queue) {
		const killer, calls = "r1t1c0", 60
		l := &lives{t: t, world: w, queue: q}
		deaths := 0
		var harmed ledger
		l.serve = Target{Class: session.ClassTool, Name: "host", Concurrency: 16, Executor: executorFunc(func(ctx context.Context, c executor.Call) (executor.Result, error) {
			if c.Effect == killer {
				deaths++
				l.die(ctx)
				return executor.Result{}, ctx.Err()
			}
			select {
			case <-time.After(3 * time.Second):
				return executor.Result{}, nil
			case <-ctx.Done():
				if !c.RetrySafe && deaths > 1 {
					harmed.add(c.Effect)
				}
				return executor.Result{}, ctx.Err()
			}
		})}
		l.start()
		q.ask(t, session.ClassTool, "host", "s1", killer, toolCall(killer, true))
		for i := range calls {
			name := fmt.Sprintf("r1t1c%d", i+1)
			q.ask(t, session.ClassTool, "host", "s1", name, toolCall(name, i%2 == 0))
			pass(time.Second)
		}
		pass(3 * time.Minute)
		l.stop()
		if got := harmed.all(); len(got) > 0 {
			t.Errorf("calls that are not retry-safe, and ran beside a known killer: got %q, want none", got)
		}
		var failed, succeeded int
		for _, s := range w.settlements(t) {
			switch {
			case s == killer+" failed bridge_lost":
				failed++
			case len(s) > 10 && s[len(s)-9:] == "succeeded":
				succeeded++
			case s[len(s)-15:] != "outcome_unknown": // of those beside the first death
				t.Errorf("settled %q", s)
			}
		}
		if failed != 1 || succeeded < calls-2 || deaths != deathsDefault {
			t.Errorf("the killer failed %d times after %d deaths, %d others succeeded; want 1, %d, at least %d of %d", failed, deaths, succeeded, deathsDefault, calls-2, calls)
		}
	})
}

// Several innocent calls ran beside a killer when their bridge died, and come again
// together with it.
func TestInnocentCallsBesideAKillerSucceed(t *testing.T) {
	t.Parallel()
	for _, tries := range []int{1, 2, 3, 10} {
		t.Run(fmt.Sprintf("%d tries", tries), func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world, q *queue) {
				l := &lives{t: t, world: w, queue: q}
				l.serve = Target{Class: session.ClassTool, Name: "host", Concurrency: 16, Executor: limitedTool{func(ctx context.Context, c executor.Call) (executor.Result, error) {
					if c.Effect == "r1t1c0" {
						<-time.After(time.Second)
						l.die(ctx)
						return executor.Result{}, ctx.Err()
					}
					select {
					case <-time.After(5 * time.Second):
						return executor.Result{}, nil
					case <-ctx.Done():
						return executor.Result{}, ctx.Err()
					}
				}, tries}}
				l.start()
				want := []string{"r1t1c0 failed bridge_lost"}
				for i := range 6 {
					name := fmt.Sprintf("r1t1c%d", i)
					q.ask(t, session.ClassTool, "host", "s1", name, toolCall(name, true))
					if i > 0 {
						want = append(want, name+" succeeded")
					}
				}
				pass(testStartBy - time.Second)
				l.stop()
				got := w.settlements(t)
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Errorf("settled: got %q, want %q", got, want)
				}
			})
		})
	}
}

// Bridges that are stopped in order did not die of what they gave back.
func TestStoppedBridgesDiedOfNothing(t *testing.T) {
	t.Parallel()
	for _, class := range []session.Class{session.ClassTool, session.ClassLLM, session.ClassStep} {
		t.Run(string(class), func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world, q *queue) {
				isOpenAt(true, 9)(t, w)
				long := func(ctx context.Context) error { // longer than the grace time
					select {
					case <-time.After(2 * GraceDefault):
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				}
				s := Target{Class: class, Name: "host"}
				switch class {
				case session.ClassLLM:
					s.Name, s.Model = "p", modelFunc(func(ctx context.Context, _ executor.Request, _ func(string)) (executor.Answer, error) {
						return executor.Answer{Text: "so"}, long(ctx)
					})
					input := w.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{Input: session.Content{Text: "hi"}})
					q.ask(t, class, "p", "s1", "r1t1", generation("r1t1", session.Item{Role: session.RoleUser, Seq: input}))
				case session.ClassStep:
					s.Name, s.Hook = "router", executor.PrepareStep(func(ctx context.Context, _ executor.StepRequest) (executor.StepChoice, error) {
						return executor.StepChoice{}, long(ctx)
					})
					q.ask(t, class, "router", "s1", "r1t2s", stepEffect("r1t2s"))
				default:
					s.Executor = executorFunc(func(ctx context.Context, _ executor.Call) (executor.Result, error) {
						return executor.Result{}, long(ctx)
					})
					q.ask(t, class, "host", "s1", "r1t1c0", toolCall("r1t1c0", true))
				}
				for i := range 2 * deathsDefault {
					b := startBridge(t, w, fmt.Sprintf("b%d", i), q, s)
					pass(10 * time.Second)
					b.stop()
				}
				b := startBridge(t, w, "last", q, s)
				pass(time.Minute)
				b.stop()
				got := w.settlements(t)
				if len(got) != 1 || got[0] != "r1t1c0 succeeded" && got[0] != "r1t1 ok" && got[0] != "r1t2s ok" {
					t.Errorf("settled: got %q, want that it succeeded", got)
				}
			})
		})
	}
}

// Effects of the two kinds that exclude each other take turns, and a suspect that
// has run for a while no longer counts as one.
func TestNeighboursTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n neighbours
		one, two, three, four, five := &place{}, &place{}, &place{}, &place{}, &place{}
		runs := func(p *place, given <-chan struct{}) bool {
			select {
			case <-given:
				return true
			default:
				return given == nil && p.runs
			}
		}
		check := func(what string, p *place, given <-chan struct{}, want bool) {
			t.Helper()
			if got := runs(p, given); got != want {
				t.Errorf("%s runs: got %v, want %v", what, got, want)
			}
		}
		g1, g2, g3, g4 := n.enter(one, fragile), n.enter(two, suspect), n.enter(three, fragile), n.enter(four, harmless)
		check("the first", one, g1, true)
		check("a suspect beside a fragile one", two, g2, false)
		check("a fragile one behind a suspect", three, g3, false)
		check("a harmless one", four, g4, true)
		n.leave(one)
		check("the suspect", two, g2, true)
		check("the fragile one", three, g3, false)
		g5 := n.enter(five, killer)
		pass(suspectFor)
		check("the fragile one beside an old suspect", three, g3, true)
		n.leave(two)
		n.leave(three)
		check("a killer beside a harmless one", five, g5, false)
		g1 = n.enter(one, harmless)
		check("a harmless one behind a killer", one, g1, false)
		n.leave(four)
		check("the killer alone", five, g5, true)
		check("a harmless one beside a killer", one, g1, false)
		n.leave(five)
		check("the harmless one", one, g1, true)
		n.leave(one)
		if n.active != [killer + 1]int{} || len(n.waiting) > 0 {
			t.Errorf("in the end %v run and %d wait, want none", n.active, len(n.waiting))
		}
	})
}
