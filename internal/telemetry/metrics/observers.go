package metrics

import "github.com/refold/refold/bridge/executor"

// Observers are called for each start of a bridge, one after the other.
type Observers []executor.Observer

// Started returns the first traceparent that one of them returns.
func (o Observers) Started(s executor.Start) (traceparent string) {
	for _, one := range o {
		if parent := one.Started(s); traceparent == "" {
			traceparent = parent
		}
	}
	return traceparent
}

// Ended tells all of them.
func (o Observers) Ended(s executor.Start, e executor.End) {
	for _, one := range o {
		one.Ended(s, e)
	}
}
