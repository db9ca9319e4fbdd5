package bridgetest_test

// Whole sessions: the results of runs, refused calls, and killed bridges.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/bridgetest"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/bridge/function"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type order struct {
	Item string `json:"item" minLength:"1"`
}

// shop is a tool, which a test completes.
func shop(fn func(context.Context, order) (string, error), options ...function.Option) *function.Function {
	return function.New("shop.buy", fn, options...)
}

func buy(_ context.Context, in order) (string, error) { return "bought " + in.Item, nil }

func TestRunReportsCallsAnswerAndTranscript(t *testing.T) {
	t.Parallel()
	s := bridgetest.New(t, bridgetest.Options{
		Tools: []*function.Function{shop(buy, function.Description("Buys."), function.ParallelSafe())},
		Turns: []bridgetest.Turn{
			bridgetest.Calls(
				bridgetest.To("shop_buy", order{"tea"}), bridgetest.To("shop_buy", order{}),
				bridgetest.To("shop_sell", nil), bridgetest.To("shop_buy", `{"item":`),
			),
			func(r executor.Request) (executor.Answer, error) {
				return executor.Answer{Text: "I have " + r.Messages[len(r.Messages)-4].Text}, nil
			},
			bridgetest.Fail("overloaded", "come back"),
		},
	})
	run := s.Run("Buy tea.")
	if run.Lifecycle != session.Completed || run.Answer != "I have bought tea" {
		t.Errorf("got %s, %q", run.Lifecycle, run.Answer)
	}
	var got []string
	for _, c := range run.Calls {
		got = append(got, fmt.Sprintf("%s ×%d: %s", c, c.Starts, c.Shown))
	}
	want := []string{
		"r1t1c0 shop_buy succeeded ×1: bought tea",
		`r1t1c1 shop_buy failed invalid_arguments ×0: error: invalid_arguments: /item: has at least 1 character`,
		`r1t1c2 shop_sell ignored tool_unknown ×0: error: tool_unknown: there is no tool "shop_sell"`,
		`r1t1c3 shop_buy failed invalid_arguments ×0: error: invalid_arguments: cannot be read: the JSON text ends where a value should be at byte 8`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("calls: got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	roles := ""
	for _, m := range run.Transcript {
		roles += m.Role + " "
	}
	if roles != "user assistant tool tool tool tool assistant " {
		t.Errorf("transcript: got %s", roles)
	}
	ledger := s.Ledger()
	if len(ledger) != 1 || ledger[0].Key != "test.r1t1c0" || ledger[0].Arguments != `{"item":"tea"}` || !ledger[0].Heard || ledger[0].Tool != "shop.buy" {
		t.Errorf("ledger: got %+v", ledger)
	}
	if run := s.Run("More."); run.Lifecycle != session.Failed || run.Code != "overloaded" || run.Answer != "" || len(run.Calls) != 4 {
		t.Errorf("the second run: got %s %s with %d calls", run.Lifecycle, run.Code, len(run.Calls))
	}
	if r := s.Replay(); r.Events != 6 {
		t.Errorf("replayed %d events, want 6", r.Events)
	}
}

// It runs again with the same idempotency key.
func TestCrashedRetrySafeCallRunsAgain(t *testing.T) {
	t.Parallel()
	var s *bridgetest.Session
	paid := map[string]int{} // by key: what a service that honours it would keep
	s = bridgetest.New(t, bridgetest.Options{
		Tools: []*function.Function{shop(func(ctx context.Context, in order) (string, error) {
			call, _ := function.CallOf(ctx)
			paid[call.IdempotencyKey] = 1
			if s.Starts(call.Effect) == 1 {
				s.Crash(ctx)
				t.Error("Crash returns")
			}
			return buy(ctx, in)
		}, function.RetrySafe())},
		Turns: []bridgetest.Turn{bridgetest.Calls(bridgetest.To("shop_buy", order{"tea"})), bridgetest.Say("Done.")},
	})
	run := s.Run("Buy tea.")
	if c := run.Call("r1t1c0"); c.Status != "succeeded" || c.Starts != 2 || c.Shown != "bought tea" || len(paid) != 1 {
		t.Errorf("got %s after %d starts, shown %q; paid %v", c, c.Starts, c.Shown, paid)
	}
	ledger := s.Ledger()
	if ledger[0].Bridge != 1 || ledger[0].Heard || ledger[1].Bridge != 2 || !ledger[1].Heard || ledger[0].Start == ledger[1].Start {
		t.Errorf("ledger: got %+v", ledger)
	}
	s.Replay()
}

// The model is shown that the outcome is unknown.
func TestCrashedUnsafeCallDoesNotRunAgain(t *testing.T) {
	t.Parallel()
	var s *bridgetest.Session
	s = bridgetest.New(t, bridgetest.Options{
		Tools: []*function.Function{shop(func(ctx context.Context, _ order) (string, error) {
			s.Crash(ctx)
			return "", errors.New("Crash returns")
		})},
		Turns: []bridgetest.Turn{bridgetest.Calls(bridgetest.To("shop_buy", order{"tea"})), bridgetest.Say("I don't know.")},
	})
	run := s.Run("Buy tea.")
	c := run.Call("r1t1c0")
	if want := "error: outcome_unknown: the bridge that ran this call is gone: it may have taken effect"; c.Status != "outcome_unknown" || c.Starts != 1 || c.Shown != want {
		t.Errorf("got %s after %d starts, shown %q", c, c.Starts, c.Shown)
	}
	if run.Answer != "I don't know." {
		t.Errorf("answered %q", run.Answer)
	}
	s.Replay()
}

// A bridge is killed from outside while its function hangs.
func TestResultOfAKilledBridgeIsLost(t *testing.T) {
	t.Parallel()
	started := make(chan struct{}, 1)
	var s *bridgetest.Session
	s = bridgetest.New(t, bridgetest.Options{
		Tools: []*function.Function{shop(func(ctx context.Context, in order) (string, error) {
			if call, _ := function.CallOf(ctx); s.Starts(call.Effect) == 1 {
				started <- struct{}{}
				<-ctx.Done()
				return "too late", nil
			}
			return buy(ctx, in)
		}, function.RetrySafe())},
		Turns: []bridgetest.Turn{bridgetest.Calls(bridgetest.To("shop_buy", order{"tea"})), bridgetest.Say("Done.")},
	})
	end := s.Begin("Buy tea.")
	<-started
	s.KillBridge()
	if c := end().Call("r1t1c0"); c.Shown != "bought tea" || c.Starts != 2 {
		t.Errorf("got %s after %d starts, shown %q", c, c.Starts, c.Shown)
	}
	s.Replay()
}

// An integer that no float64 holds: in the model's call, the arguments, the
// function's result and the transcript.
func TestLargeNumbersStayExact(t *testing.T) {
	t.Parallel()
	type row struct {
		ID    int64  `json:"id"`
		Count uint64 `json:"count"`
	}
	const text = `{"id":-9007199254740993,"count":18446744073709551615}`
	s := bridgetest.New(t, bridgetest.Options{
		Tools: []*function.Function{function.New("rows.get", func(_ context.Context, in row) (row, error) { return in, nil })},
		Turns: []bridgetest.Turn{bridgetest.Calls(executor.AnswerCall{Name: "rows_get", Arguments: text}), bridgetest.Say("Done.")},
	})
	run := s.Run("Get it.")
	if got := run.Call("r1t1c0"); got.Shown != text {
		t.Errorf("got %s with %s, want %s", got, got.Shown, text)
	}
	if got := s.Ledger()[0].Arguments; got != text {
		t.Errorf("called with %s, want %s", got, text)
	}
	if got := run.Transcript[2].Text; got != text {
		t.Errorf("the model is shown %s, want %s", got, text)
	}
}
