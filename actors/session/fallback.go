package session

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// FallbackModel is a model that takes the place of the one before it in the list when that
// fails. The first one's place is before all others: the config's own provider and model.
type FallbackModel struct {
	// How long the model before may fail, or be waited for, until it is asked; 30 seconds if
	// absent. Bridges retry until then.
	AfterMS int64 `msgpack:"after_ms,omitempty" lim:"DeadlineMinMS..DeadlineMaxMS"`
	// How the transcript is kept within what this model accepts; the config's context if
	// absent.
	Context *ContextConfig `msgpack:"context,omitempty"`
	// The provider's name of the model.
	Model string `msgpack:"model" lim:"1..NameBytesMax"`
	// Codes of the failures after which it is asked. Absent: those that the bridge calls
	// retryable, and a passed deadline.
	On []string `msgpack:"on,omitempty" lim:"..RetryCodesMax,item=1..CodeBytesMax"`
	// Parameters, passed on to the provider unchanged; at most 32 KiB, encoded. Absent: the
	// config's, if the provider is the config's; else none.
	Params codec.Raw `msgpack:"params,omitempty" lim:"object"`
	// The target of its turns, which bridges serve.
	Provider string `msgpack:"provider" lim:"@token"`
	// How long the run stays with it: `run`, if absent, to its end; `turn` to the end of
	// the turn.
	Sticky string `msgpack:"sticky,omitempty" lim:"enum=Sticky"`
}

// The values of FallbackModel.Sticky.
const (
	StickyRun  = "run"  // the default, also when empty
	StickyTurn = "turn" // the next turn begins with the config's own model
)

// fallbackFault checks the other models of a config.
func (c *RunConfig) fallbackFault() *refusal {
	size := 0
	for i := range c.Fallback {
		f, at := &c.Fallback[i], "config.fallback["+strconv.Itoa(i)+"]."
		size += len(f.Params)
		switch {
		case !planner.IsName(f.Provider):
			return refuse(RejectInvalidData, at+"provider: must be a subject token: 1 to 64 of A-Za-z0-9_-")
		case paramsFault(f.Params) != "":
			return refuse(RejectInvalidData, at+"params: "+paramsFault(f.Params))
		case size > ParamsBytesMax:
			return refuse(RejectLimitExceeded, at+"params: those of all models are at most "+strconv.Itoa(ParamsBytesMax)+" bytes")
		case f.Context.fault() != "":
			return refuse(RejectInvalidData, at+"context."+f.Context.fault())
		case c.Budget.limitsCost() && !c.hasPrice(f.Model):
			return refuse(RejectInvalidData, at+"model: config.prices.models has no price of "+sentence.Quoted(f.Model)+", and a budget of cost holds")
		}
	}
	return nil
}

// limitsCost reports whether a budget limits money.
func (b *Budget) limitsCost() bool { return b != nil && (b.Cost > 0 || b.SessionCost > 0) }

// hasPrice reports whether it is known what a model costs.
func (c *RunConfig) hasPrice(model string) bool {
	return model == c.Model || c.Prices != nil && c.Prices.of(model) != nil
}

// fallback returns the model that the run has fallen back to, nil if it has its own.
func (r *Run) fallback() *FallbackModel {
	if r.Fallback > 0 {
		return &r.Config.Fallback[r.Fallback-1]
	}
	return nil
}

// model returns the model of the run's generations, unless a step chooses one.
func (r *Run) model() string {
	if f := r.fallback(); f != nil {
		return f.Model
	}
	return r.Config.Model
}

// TurnProvider returns the provider of the active run's generations: of the model that the
// run has fallen back to, else the run's.
func (s *State) TurnProvider() string {
	if f := s.Run.fallback(); f != nil {
		return f.Provider
	}
	return s.Run.Config.Provider
}

// context returns the context of the active run's next generation, nil if it has none.
func (s *State) context() *ContextConfig {
	if f := s.Run.fallback(); f != nil && f.Context != nil {
		return f.Context
	}
	return s.Run.Config.Context
}

// params returns the parameters of the latest turn's generation.
func (s *State) params() codec.Raw {
	f, c, choice := s.Run.fallback(), &s.Run.Config, s.choice()
	switch {
	case f != nil && (len(f.Params) > 0 || f.Provider != c.Provider):
		return f.Params
	case f == nil && choice != nil && len(choice.Params) > 0:
		return choice.Params
	}
	return c.Params
}

// startBy returns the latest start of the latest turn's generation: early enough to ask the
// next model, if there is one.
func (s *State) startBy() int64 {
	t, run := s.Turn, s.Run
	by := t.startBy()
	if int(run.Fallback) < len(run.Config.Fallback) {
		by = min(by, t.At+cmp.Or(run.Config.Fallback[run.Fallback].AfterMS, FallbackAfterMS))
	}
	return by
}

// covers reports whether the model is asked after a failure.
func (f *FallbackModel) covers(failed Fault) bool {
	if f.On == nil {
		return failed.Retryable || failed.Code == CodeDeadlineExceeded
	}
	return slices.Contains(f.On, failed.Code)
}

// fallsBack has the next model of the run's config take the place of one that failed, and
// reports whether there is one.
func (s *State) fallsBack(failed Fault) bool {
	run := s.Run
	for i := int(run.Fallback); i < len(run.Config.Fallback); i++ {
		if f := &run.Config.Fallback[i]; f.covers(failed) {
			effect, provider, model := s.generationName(), s.TurnProvider(), s.TurnModel()
			run.Fallback = uint8(i + 1)
			s.turnRetries(s.Clock)
			notify(s, NoticeModelChanged, ModelChanged{
				Run: run.Number, Effect: effect, Code: failed.Code, FromProvider: provider, FromModel: model, Provider: f.Provider, Model: f.Model,
			})
			return true
		}
	}
	return false
}

// leaveFallback has a new turn begin with the run's own model, unless the one that it fell
// back to is for the rest of the run.
func (s *State) leaveFallback() {
	if f := s.Run.fallback(); f != nil && f.Sticky == StickyTurn {
		s.Run.Fallback = 0
	}
}

// fallbackBytes is an upper bound of the encoded size of the models of a config.
func (c *RunConfig) fallbackBytes() int {
	if len(c.Fallback) == 0 {
		return 0
	}
	return len(encode(c.Fallback))
}
