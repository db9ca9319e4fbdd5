package session

import (
	"cmp"
	"math/bits"
	"strconv"

	"github.com/refold/refold/planner"
)

func (s *State) addUsage(u *Usage) {
	if u == nil {
		return
	}
	cost := s.turnPrice().cost(u)
	s.Run.Cost, s.Cost = min(s.Run.Cost+cost, CostMax), min(s.Cost+cost, CostMax)
	for _, t := range []*UsageTotal{&s.Run.Usage, &s.Usage} {
		t.CacheWriteTokens += u.CacheWriteTokens
		t.CachedTokens += u.CachedTokens
		t.InputTokens += u.InputTokens
		t.OutputTokens += u.OutputTokens
		t.ReasoningTokens += u.ReasoningTokens
	}
}

// turnPrice returns the price of the model of the active run's latest turn, which a
// step may have chosen; nil: nothing costs anything.
func (s *State) turnPrice() *ModelPrice {
	p := s.Run.Config.Prices
	if choice := s.choice(); p != nil && choice != nil {
		if price := p.of(choice.Model); price != nil {
			return price
		}
	}
	return p.own()
}

// own returns the price of the config's model.
func (p *Prices) own() *ModelPrice {
	if p == nil {
		return nil
	}
	return &ModelPrice{CacheRead: p.CacheRead, CacheWrite: p.CacheWrite, Input: p.Input, Output: p.Output}
}

// of returns the first price of a model, nil if `models` has none.
func (p *Prices) of(model string) *ModelPrice {
	return find(p.Models, func(m *ModelPrice) bool { return m.Model == model })
}

// cost returns the cost of a usage in micro-units, rounded down. Cached and
// cache-written tokens are part of the input tokens, reasoning tokens part of the
// output tokens. A cache price that is absent is the input price.
func (p *ModelPrice) cost(u *Usage) int64 {
	if p == nil {
		return 0
	}
	read := min(u.CachedTokens, u.InputTokens)
	written := min(u.CacheWriteTokens, u.InputTokens-read)
	return min(CostMax, costOf(u.InputTokens-read-written, p.Input)+costOf(read, cmp.Or(p.CacheRead, p.Input))+
		costOf(written, cmp.Or(p.CacheWrite, p.Input))+costOf(u.OutputTokens, p.Output))
}

// million is the number of tokens that a price is for.
const million = 1_000_000

func costOf(tokens, price int64) int64 {
	high, low := bits.Mul64(uint64(tokens), uint64(price))
	if high >= million {
		return CostMax
	}
	cost, _ := bits.Div64(high, low, million)
	return int64(min(cost, CostMax))
}

// limit is one budget of the active run and its use.
type limit struct {
	budget    string
	most      int64 // 0: no limit
	used      int64
	estimate  int64 // of the next input: tokens, or their cost
	perOutput int64 // use of the budget by a million tokens of output; 0: none
}

// limits returns the budgets of the active run in the order in which they are
// checked, for a next turn that shows the model inputBytes bytes at a price.
func (s *State) limits(inputBytes int64, p *ModelPrice) [4]limit {
	b := s.Run.Config.Budget
	if b == nil {
		return [4]limit{}
	}
	run, all := &s.Run.Usage, &s.Usage
	tokens := (inputBytes + BytesPerToken - 1) / BytesPerToken
	cost, perOutput := int64(0), int64(0)
	if p != nil {
		// Worst case: all of the input is written to a cache.
		cost, perOutput = costOf(tokens, max(p.Input, p.CacheWrite)), p.Output
	}
	return [4]limit{
		{"tokens", b.Tokens, run.InputTokens + run.OutputTokens, tokens, million},
		{"cost", b.Cost, s.Run.Cost, cost, perOutput},
		{"session_tokens", b.SessionTokens, all.InputTokens + all.OutputTokens, tokens, million},
		{"session_cost", b.SessionCost, s.Cost, cost, perOutput},
	}
}

// breached returns the first budget of the active run that is too small for a turn
// that shows the model inputBytes bytes. The model of a step is known once its
// generation is to be opened.
func (s *State) breached(what Held, inputBytes int64) (limit, bool) {
	price := s.Run.Config.Prices.own()
	if what == HeldGeneration {
		price = s.turnPrice()
	}
	for _, l := range s.limits(inputBytes, price) {
		if l.most > 0 && l.used+l.estimate >= l.most {
			return l, true
		}
	}
	return limit{}, false
}

// overBudget returns by how much the active run exceeds a budget, nil if it exceeds
// none.
func (s *State) overBudget() *OverBudget {
	for _, l := range s.limits(0, nil) {
		if l.most > 0 && l.used > l.most {
			return &OverBudget{Budget: l.budget, Limit: l.most, Used: l.used}
		}
	}
	return nil
}

// outputTokensMax returns how many output tokens the budgets leave for the latest
// turn's generation, before it is opened: 0 if no budget bounds it, else at least
// 1.
func (s *State) outputTokensMax() int32 {
	if s.Run.Config.Budget == nil {
		return 0
	}
	least := int64(0)
	for _, l := range s.limits(s.turnInputBytes(int64(s.WindowBytes), s.shown(&s.Turn.Toolset)), s.turnPrice()) {
		if l.most == 0 || l.perOutput == 0 {
			continue
		}
		left := max(1, tokensFor(l.most-l.used-l.estimate, l.perOutput))
		if least == 0 || left < least {
			least = left
		}
	}
	return int32(least)
}

// tokensFor returns how many tokens an amount buys at a price per million.
func tokensFor(amount, price int64) int64 {
	if amount <= 0 {
		return 0
	}
	high, low := bits.Mul64(uint64(amount), million)
	if high >= uint64(price) {
		return OutputTokensMax
	}
	tokens, _ := bits.Div64(high, low, uint64(price))
	return int64(min(tokens, OutputTokensMax))
}

// budgetSpent stops the active run if a budget is too small for its next turn,
// which shows the model at least inputBytes bytes. The run fails, or it is paused
// until the budget is raised; then `what` is held back.
func (s *State) budgetSpent(what Held, inputBytes int64) bool {
	spent, is := s.breached(what, inputBytes)
	if !is {
		return false
	}
	if s.Run.Config.Budget.OnBreach == BreachFail {
		s.endRun(Ended{Lifecycle: Failed, Code: CodeBudget, Detail: "the budget of " + spent.budget + " is spent: " + spent.String()}, nil)
		return true
	}
	notify(s, NoticeBudgetExceeded, BudgetExceeded{
		Run: s.Run.Number, Budget: spent.budget, Limit: spent.most, Used: spent.used, Estimate: spent.estimate,
	})
	s.pause()
	s.Run.Held, s.Run.Breach = what, true
	return true
}

// String reports how much of a budget is used and needed.
func (l limit) String() string {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	return number(l.used) + " used, about " + number(l.estimate) + " for the next input, of " + number(l.most)
}

// budgetResumeFault checks whether a paused run can be resumed under budget; nil:
// under its own.
func (s *State) budgetResumeFault(door Door, budget *Budget) *refusal {
	run := s.Run
	switch {
	case budget == nil && run.Breach:
		return refuse(RejectIllegalTransition, "the run's budget is spent: resume it through ctl with a larger one")
	case budget == nil:
		return nil
	case door != DoorCtl:
		return refuse(RejectNotPermitted, "budget: is raised through ctl alone")
	}
	if bad := budgetFault("budget", budget); bad != nil {
		return bad
	}
	bytes := s.nextInputBytes()
	if run.Held == HeldGeneration {
		set := planner.Select(s.turnRegistry, s.toolRequest(), s.offerFacts())
		bytes = s.turnInputBytes(bytes, s.shown(&set))
	}
	before := run.Config.Budget
	run.Config.Budget = budget
	spent, is := s.breached(run.Held, bytes)
	run.Config.Budget = before
	if is {
		return refuse(RejectInvalidData, "budget."+spent.budget+": is too small: "+spent.String())
	}
	return nil
}
