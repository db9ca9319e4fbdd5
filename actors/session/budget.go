package session

import (
	"math/bits"
)

// addUsage adds u to the run's and the session's usage.
func (s *State) addUsage(u *Usage) {
	if u == nil {
		return
	}
	cost := s.Run.Config.Prices.cost(u)
	s.Run.Cost, s.Cost = min(s.Run.Cost+cost, CostMax), min(s.Cost+cost, CostMax)
	for _, t := range []*UsageTotal{&s.Run.Usage, &s.Usage} {
		t.CachedTokens += u.CachedTokens
		t.InputTokens += u.InputTokens
		t.OutputTokens += u.OutputTokens
		t.ReasoningTokens += u.ReasoningTokens
	}
}

// cost returns what a usage costs, in micro-units, rounded down. Cached tokens
// are among the input tokens, reasoning tokens among the output tokens.
func (p *Prices) cost(u *Usage) int64 {
	if p == nil {
		return 0
	}
	cached, price := min(u.CachedTokens, u.InputTokens), p.Cached
	if price == 0 {
		price = p.Input // not given: they are not free
	}
	return min(CostMax, costOf(u.InputTokens-cached, p.Input)+costOf(cached, price)+costOf(u.OutputTokens, p.Output))
}

// costOf returns what tokens cost at a price for a million of them.
func costOf(tokens, price int64) int64 {
	const million = 1_000_000
	high, low := bits.Mul64(uint64(tokens), uint64(price))
	if high >= million {
		return CostMax
	}
	cost, _ := bits.Div64(high, low, million)
	return int64(min(cost, CostMax))
}

// breach is a budget that is spent.
type breach struct {
	budget      string
	limit, used int64
}

// breached returns the first budget of the active run that is spent.
func (s *State) breached() (breach, bool) {
	b := s.Run.Config.Budget
	if b == nil {
		return breach{}, false
	}
	run, all := &s.Run.Usage, &s.Usage
	for _, of := range []breach{
		{"tokens", b.Tokens, run.InputTokens + run.OutputTokens},
		{"cost", b.Cost, s.Run.Cost},
		{"session_tokens", b.SessionTokens, all.InputTokens + all.OutputTokens},
		{"session_cost", b.SessionCost, s.Cost},
	} {
		if of.limit > 0 && of.used >= of.limit {
			return of, true
		}
	}
	return breach{}, false
}

// budgetSpent stops the active run if one of its budgets is spent: it is
// paused until somebody raises it, or fails.
func (s *State) budgetSpent() bool {
	spent, is := s.breached()
	if !is {
		return false
	}
	if s.Run.Config.Budget.OnBreach == BreachFail {
		s.endRun(Ended{Lifecycle: Failed, Code: CodeBudget, Detail: "the budget of " + spent.budget + " is spent"}, nil)
		return true
	}
	say(s, NoticeBudgetExceeded, BudgetExceeded{Run: s.Run.Number, Budget: spent.budget, Limit: spent.limit, Used: spent.used})
	s.pause()
	s.Run.Held, s.Run.Breach = HeldTurn, true
	return true
}

// budgetResumeFault says why a paused run can't be resumed under budget, nil
// for the one that it has.
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
	before := run.Config.Budget
	run.Config.Budget = budget
	spent, is := s.breached()
	run.Config.Budget = before
	if is {
		return refuse(RejectInvalidData, "budget."+spent.budget+": is spent already")
	}
	return nil
}
