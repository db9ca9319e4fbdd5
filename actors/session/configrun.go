package session

import (
	"cmp"
	"slices"
	"strconv"
)

// runFault checks the parts of a config that decide how a run ends.
func runFault(c *RunConfig) *refusal {
	if c.Completion != "" && c.Completion != CompletionText && c.Completion != CompletionExplicit {
		return refuse(RejectInvalidData, "config.completion: text or explicit, not "+quoted(c.Completion))
	}
	if bad := cmp.Or(deadlinesFault(c.DeadlinesMS), budgetFault("config.budget", c.Budget)); bad != nil {
		return bad
	}
	return cmp.Or(pricesFault(c.Prices), retryFault(c.Retry))
}

func pricesFault(p *Prices) *refusal {
	if p == nil {
		return nil
	}
	if len(p.Models) > ModelPricesMax {
		return refuse(RejectLimitExceeded, "config.prices.models: at most "+strconv.Itoa(ModelPricesMax))
	}
	bad := func(path string, prices ...int64) *refusal {
		if slices.Min(prices) < 0 || slices.Max(prices) > PriceMax {
			return refuse(RejectInvalidData, path+": 0 to "+strconv.FormatInt(PriceMax, 10)+" micro-units for a million tokens")
		}
		return nil
	}
	for i := range p.Models {
		m, path := &p.Models[i], "config.prices.models["+strconv.Itoa(i)+"]"
		if m.Model == "" || len(m.Model) > NameBytesMax {
			return refuse(RejectInvalidData, path+".model: 1 to "+strconv.Itoa(NameBytesMax)+" bytes")
		}
		if bad := bad(path, m.CacheRead, m.CacheWrite, m.Input, m.Output); bad != nil {
			return bad
		}
	}
	return bad("config.prices", p.CacheRead, p.CacheWrite, p.Input, p.Output)
}

// deadlinesFault checks that every deadline given is within its bounds.
func deadlinesFault(d *DeadlinesMS) *refusal {
	if d == nil {
		return nil
	}
	for _, of := range []struct {
		field   string
		ms, max int64
	}{{"approval", d.Approval, LongMaxMS}, {"call", d.Call, DeadlineMaxMS}, {"run", d.Run, LongMaxMS}, {"turn", d.Turn, DeadlineMaxMS}} {
		if of.ms != 0 && (of.ms < DeadlineMinMS || of.ms > of.max) {
			return refuse(RejectInvalidData, "config.deadlines_ms."+of.field+": "+strconv.Itoa(DeadlineMinMS)+" to "+
				strconv.FormatInt(of.max, 10)+", not "+strconv.FormatInt(of.ms, 10))
		}
	}
	return nil
}

func budgetFault(path string, b *Budget) *refusal {
	if b == nil {
		return nil
	}
	for _, of := range []struct {
		field   string
		n, most int64
	}{{"cost", b.Cost, CostMax}, {"session_cost", b.SessionCost, CostMax}, {"session_tokens", b.SessionTokens, TokensMax}, {"tokens", b.Tokens, TokensMax}} {
		if of.n < 0 || of.n > of.most {
			return refuse(RejectInvalidData, path+"."+of.field+": 1 to "+strconv.FormatInt(of.most, 10)+", or absent")
		}
	}
	if b.OnBreach != "" && b.OnBreach != BreachPause && b.OnBreach != BreachFail {
		return refuse(RejectInvalidData, path+".on_breach: pause or fail, not "+quoted(b.OnBreach))
	}
	return nil
}

func retryFault(r *Retry) *refusal {
	switch {
	case r == nil:
		return nil
	case r.Attempts < 2 || r.Attempts > AttemptsMax:
		return refuse(RejectInvalidData, "config.retry.attempts: 2 to "+strconv.Itoa(AttemptsMax)+", the first included")
	case r.BackoffMS < 0 || r.BackoffMS > DeadlineMaxMS || r.BackoffMaxMS < 0 || r.BackoffMaxMS > DeadlineMaxMS:
		return refuse(RejectInvalidData, "config.retry: backoff_ms and backoff_max_ms are 1 to "+strconv.Itoa(DeadlineMaxMS)+", or absent")
	case len(r.Codes) > RetryCodesMax:
		return refuse(RejectLimitExceeded, "config.retry.codes: at most "+strconv.Itoa(RetryCodesMax))
	}
	for i, code := range r.Codes {
		if code == "" || len(code) > CodeBytesMax {
			return refuse(RejectInvalidData, "config.retry.codes["+strconv.Itoa(i)+"]: 1 to "+strconv.Itoa(CodeBytesMax)+" bytes")
		}
	}
	return nil
}
