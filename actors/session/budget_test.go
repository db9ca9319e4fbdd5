package session_test

// Budgets and prices, where a scenario has no room for the numbers.

import (
	"fmt"
	"math/big"
	"testing"

	"github.com/refold/refold/actors/session"
)

// Costs are compared with arithmetic that does not overflow. A cost is never above
// CostMax and never negative.
func TestCost(t *testing.T) {
	t.Parallel()
	counts := []int64{0, 1, 999_999, 1_000_000, 1_000_001, session.TokensMax}
	prices := []int64{0, 1, 1_000_000, session.PriceMax}
	for _, in := range counts {
		for i, read := range counts {
			for j, out := range counts {
				written := counts[(i+j)%len(counts)]
				for i, price := range prices {
					p := [4]int64{price, prices[(i+1)%4], prices[(i+3)%4], prices[(i+2)%4]}
					w := newTold(t)
					w.run(map[string]any{"completion": "explicit", "prices": map[string]any{"input": p[0], "cache_read": p[1], "cache_write": p[2], "output": p[3]}})
					w.must(w.tell(session.DoorLLM, session.TypeGenerationSettled, map[string]any{
						"effect": "r1t1", "status": "ok",
						"usage": map[string]any{"input_tokens": in, "cached_tokens": read, "cache_write_tokens": written, "output_tokens": out, "reasoning_tokens": out},
					}))
					if got, want := w.state.Run.Cost, cost(in, read, written, out, p); got != want || w.state.Cost != want {
						t.Fatalf("%d tokens, %d of them read and %d written, and %d at %v: %d, of the session %d, want %d", in, read, written, out, p, got, w.state.Cost, want)
					}
				}
			}
		}
	}
}

// cost is what tokens cost at prices for a million of them: each kind rounded
// down by itself.
func cost(in, read, written, out int64, prices [4]int64) int64 {
	read = min(read, in)
	written = min(written, in-read)
	for i := range prices[1:3] {
		if prices[i+1] == 0 {
			prices[i+1] = prices[0] // not given: as the other input tokens
		}
	}
	sum := new(big.Int)
	for i, n := range []int64{in - read - written, read, written, out} {
		part := new(big.Int).Mul(big.NewInt(n), big.NewInt(prices[i]))
		sum.Add(sum, part.Div(part, big.NewInt(1_000_000)))
	}
	if most := big.NewInt(session.CostMax); sum.Cmp(most) > 0 {
		return session.CostMax
	}
	return sum.Int64()
}

// A run that is paused before its first turn accepts every request, and its first
// turn takes the steers.
func TestBudgetBeforeTheFirstTurn(t *testing.T) {
	t.Parallel()
	spent := func(t *testing.T) *told {
		t.Helper()
		w := toldUnder(t, askInstall(t))
		w.run(nil)
		w.must(w.tell(session.DoorLLM, session.TypeGenerationSettled, map[string]any{
			"effect": "r1t1", "status": "ok", "text": text("done"), "usage": map[string]any{"output_tokens": 5},
		}))
		w.run(map[string]any{"budget": map[string]any{"session_tokens": 5}})
		w.in(session.TypeSteerRequested, map[string]any{"input": text("more")})
		w.wants("", "resume")
		return w.restored()
	}
	for name, c := range map[string]struct {
		typ  string
		data map[string]any
		want string // asked then
	}{
		"cancel":    {session.TypeRunCancelRequested, nil, ""},
		"interrupt": {session.TypeRunInterrupt, nil, ""}, // what becomes of the steer is paused likewise
		"resume":    {session.TypeRunResumeRequested, map[string]any{"budget": map[string]any{"session_tokens": 1000}}, "r2t1"},
		"close":     {session.TypeSessionClosed, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := spent(t)
			w.must(w.tell(session.DoorCtl, c.typ, merged(map[string]any{}, c.data)))
			if w.asked() != c.want {
				t.Errorf("asked is %q, want %q", w.asked(), c.want)
			}
			if c.want != "" && len(w.generation("r2t1").Items.Seqs) != 4 {
				t.Errorf("the first turn has %d items", len(w.generation("r2t1").Items.Seqs))
			}
			if over := w.state.Run == nil; over != (name == "cancel" || name == "close") {
				t.Errorf("run %+v is active", w.state.Run)
			}
		})
	}
}

// Each budget is spent exactly at its limit, including the estimate of the next
// input, and by nothing that other budgets count.
func TestBudgetsOneByOne(t *testing.T) {
	t.Parallel()
	shown := len("go") + len("done") + len("go") + len("nosuch{}") + len("tool_unknown") + len(`there is no tool "nosuch"`)
	estimate := int64(shown+session.BytesPerToken-1) / session.BytesPerToken
	for budget, used := range map[string]int64{"tokens": 14_000, "cost": 24_000, "session_tokens": 21_000, "session_cost": 31_000} {
		for i := range int64(2) { // spent, and one more
			limit := used + estimate + i
			t.Run(fmt.Sprintf("%s %d", budget, limit), func(t *testing.T) {
				t.Parallel()
				w := toldUnder(t, askInstall(t))
				prices := map[string]any{"input": 1_000_000, "output": 2_000_000}
				w.run(map[string]any{"prices": map[string]any{"input": 1_000_000}})
				w.must(w.tell(session.DoorLLM, session.TypeGenerationSettled, map[string]any{
					"effect": "r1t1", "status": "ok", "text": text("done"), "usage": map[string]any{"input_tokens": 7_000},
				}))
				w.run(map[string]any{"active_tools": []string{}, "prices": prices, "budget": map[string]any{budget: limit}})
				notices, err := w.tell(session.DoorLLM, session.TypeToolCallsObserved, map[string]any{
					"effect": "r2t1", "calls": made(1, "nosuch", "{}"), "usage": map[string]any{"input_tokens": 4_000, "output_tokens": 10_000, "reasoning_tokens": 9_000},
				})
				w.must(notices, err)
				if spent := w.state.Run.Spent; spent != (i == 0) || spent == (w.asked() != "") {
					t.Fatalf("it is spent: %v, asked is %q", spent, w.asked())
				}
				if i == 0 {
					want := session.BudgetExceeded{Run: 2, Budget: budget, Limit: limit, Used: used, Estimate: estimate}
					if got := notices[len(notices)-1].Data; got != want {
						t.Errorf("it says %+v, want %+v", got, want)
					}
					return
				}
				if got := w.generation("r2t2").OutputTokensMax; got != 1 {
					t.Errorf("the next turn may say %d tokens, want the one that is left", got)
				}
			})
		}
	}
}
