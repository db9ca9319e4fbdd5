package metrics

import "github.com/refold/refold/bridge"

// Observers are called for each start of a bridge, one after the other.
type Observers []bridge.Observer

// Started returns the first traceparent that one of them returns.
func (o Observers) Started(s bridge.Start) (traceparent string) {
	for _, one := range o {
		if parent := one.Started(s); traceparent == "" {
			traceparent = parent
		}
	}
	return traceparent
}

// Ended tells all of them.
func (o Observers) Ended(s bridge.Start, e bridge.End) {
	for _, one := range o {
		one.Ended(s, e)
	}
}
