package metrics

import "github.com/refold/refold/bridge/executor"

// Observers are several observers of a bridge, called in order.
type Observers []executor.Observer

// Started calls all observers, and returns the first traceparent that is not empty.
func (o Observers) Started(s executor.Start) (traceparent string) {
	for _, one := range o {
		if parent := one.Started(s); traceparent == "" {
			traceparent = parent
		}
	}
	return traceparent
}

// Ended calls all observers.
func (o Observers) Ended(s executor.Start, e executor.End) {
	for _, one := range o {
		one.Ended(s, e)
	}
}
