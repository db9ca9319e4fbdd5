package refold

import (
	"errors"
	"fmt"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/planner"
)

// ModelRef names a model, and says how this process calls it. Packages below provider
// return one: openai.Model("gpt-4.1"). A model of your own needs a name, Provider and
// Open.
type ModelRef struct {
	// Provider is the target of the model's turns, which any process that serves this
	// provider may execute.
	Provider string
	// Model is the provider's name of the model.
	Model string
	// Open returns what executes the turns, for a process that serves the agent. It is
	// called once.
	Open func() (executor.Model, error)
	// Account tells apart two that call a provider differently, with another address or
	// another key. One process can't serve both under one name: see As.
	Account string
	// Tokens is what the model accepts, less those of its answer; 0: it is not known. The
	// context of an agent without one in its Config has them.
	Tokens int64
	// Serve are options of the target, such as bridge.Limit.
	Serve []bridge.ServeOption
}

// As returns the same model under another name of its provider: another key, or a
// server of one's own, so that its turns don't go to processes that serve the first.
func (m ModelRef) As(provider string) ModelRef {
	m.Provider = provider
	return m
}

func (m *ModelRef) validate() error {
	switch {
	case m.Model == "" && m.Provider == "":
		return errors.New("it has no model: give the option Model")
	case m.Model == "":
		return fmt.Errorf("its model of %s has no name", m.Provider)
	case !planner.IsName(m.Provider):
		return fmt.Errorf("its model %s: the provider's name %q is not 1 to 64 of A-Za-z0-9_-", m.Model, m.Provider)
	}
	return nil
}
