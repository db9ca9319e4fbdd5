package bridgetest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refold/refold/bridge/bridgetest"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/bridge/function"
)

// Each case: a call, and the result as the model is shown it.
func TestCallReturnsTheResult(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300<<10)
	hangs := func(ctx context.Context, _ order) (string, error) {
		<-ctx.Done()
		return "so far", ctx.Err()
	}
	deaf := func(context.Context, order) (string, error) {
		<-time.After(time.Hour)
		return "", nil
	}
	for _, c := range []struct {
		name    string
		tool    *function.Function
		options []bridgetest.CallOption
		stop    bool // after a second, by the context that stopped is under
		cancel  bool // the same, by that of the call
		want    string
	}{
		{name: "succeeds", tool: shop(buy), want: "succeeded: bought tea"},
		{name: "panics", tool: shop(func(context.Context, order) (string, error) { panic("boom") }, function.RetrySafe()), want: "failed: error: executor_panic: the executor panicked: boom"},
		{name: "panics, and is not retry-safe", tool: shop(func(context.Context, order) (string, error) { panic("boom") }), want: "outcome_unknown: error: outcome_unknown: the executor panicked, the call may have taken effect: boom"},
		{name: "runs too long", tool: shop(hangs, function.RetrySafe(), function.Deadline(3*time.Second)), want: "failed: error: deadline_exceeded: it ran for longer than 3s\nso far"},
		{name: "runs too long for the test", tool: shop(hangs, function.RetrySafe()), options: []bridgetest.CallOption{bridgetest.Within(time.Second)}, want: "failed: error: deadline_exceeded: it ran for longer than 1s\nso far"},
		{name: "does not listen", tool: shop(deaf, function.RetrySafe()), want: "failed: error: deadline_exceeded: it ran for longer than 5m0s"},
		{name: "is withdrawn", tool: shop(hangs, function.RetrySafe()), cancel: true, want: "cancelled: error: cancelled: withdrawn while it ran\nso far"},
		{name: "is withdrawn before it starts", tool: shop(hangs), options: []bridgetest.CallOption{bridgetest.Under(ended())}, want: "cancelled: error: cancelled: withdrawn before it started"},
		{name: "is stopped", tool: shop(hangs), stop: true, want: "outcome_unknown: error: outcome_unknown: stopped while it ran, it may have taken effect: this bridge is stopping\nso far"},
		{name: "is stopped, and runs again elsewhere", tool: shop(hangs, function.RetrySafe()), stop: true, want: ": "},
		{name: "may be tried again", tool: shop(func(context.Context, order) (string, error) {
			return "", &function.RetryableError{Err: errors.New("busy")}
		}), want: "failed: error: try_again: busy"},
		{name: "says a lot", tool: shop(func(context.Context, order) (string, error) { return long, nil }), want: "succeeded: " + long[:64<<10] + "\n[225280 of 307200 bytes are left out here; the whole is sha256-"},
		{name: "is of another session", tool: shop(func(ctx context.Context, _ order) (string, error) {
			call, _ := function.CallOf(ctx)
			return call.Session + " " + call.IdempotencyKey, nil
		}), options: []bridgetest.CallOption{bridgetest.With(func(c *executor.Call) { c.Session = "s7" })}, want: "succeeded: s7 test.r1t1c0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				options := c.options
				switch {
				case c.stop:
					options = append(options, bridgetest.StoppedBy(ctx))
				case c.cancel:
					options = append(options, bridgetest.Under(ctx))
				}
				time.AfterFunc(time.Second, cancel)
				r := bridgetest.Call(t, c.tool, order{"tea"}, options...)
				if got := r.Status + ": " + r.Shown; !strings.HasPrefix(got, c.want) {
					t.Errorf("got %.300q, want %.300q", got, c.want)
				}
				<-time.After(2 * time.Hour) // what was given up returns
			})
		})
	}
}

// ended returns a context that has ended.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// failing is a T that keeps its failures.
type failing struct {
	*testing.T
	said string
}

func (f *failing) Errorf(format string, args ...any) { f.said += fmt.Sprintf(format, args...) }

func (f *failing) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	panic(f)
}

// fails runs fn, which must fail its test, and returns the failure.
func fails(t *testing.T, fn func(t bridgetest.T)) string {
	t.Helper()
	f := &failing{T: t}
	func() {
		defer func() {
			if p := recover(); p != nil && p != f {
				panic(p)
			}
		}()
		fn(f)
	}()
	return f.said
}

func TestMistakesOfUsersFailTheTestAtOnce(t *testing.T) {
	t.Parallel()
	tool := shop(buy)
	calls := bridgetest.Calls(bridgetest.To("shop_buy", order{"tea"}))
	for want, fn := range map[string]func(bridgetest.T){
		"tool shop.buy: tool_name: is 1 to 64": func(t bridgetest.T) { bridgetest.Call(t, shop(buy, function.ToolName("a b")), nil) },
		"arguments: json: unsupported type":    func(t bridgetest.T) { bridgetest.Call(t, tool, func() {}) },
		"start a session: tool shop.buy: tool_name: is 1": func(t bridgetest.T) {
			bridgetest.New(t, bridgetest.Options{Tools: []*function.Function{shop(buy, function.ToolName("a b"))}})
		},
		"start a session: install record: policy.coverage: ": func(t bridgetest.T) {
			bridgetest.New(t, bridgetest.Options{Tools: []*function.Function{tool}, Record: []byte(`{"policy":{"coverage":"x"}}`)})
		},
		"the model is asked for turn 2, and the test has 1": func(t bridgetest.T) {
			bridgetest.New(t, bridgetest.Options{Tools: []*function.Function{tool}, Turns: []bridgetest.Turn{calls}}).Run("hi")
		},
		"context deadline exceeded; it waits for approval": func(t bridgetest.T) {
			bridgetest.New(t, bridgetest.Options{
				Tools: []*function.Function{shop(buy, function.Approval("always"))}, Turns: []bridgetest.Turn{calls}, Patience: 2 * time.Second,
			}).Run("hi")
		},
		"this is not the context of a tool of this session": func(t bridgetest.T) {
			bridgetest.New(t, bridgetest.Options{Tools: []*function.Function{tool}}).Crash(context.Background())
		},
	} {
		if got := fails(t, fn); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
}
