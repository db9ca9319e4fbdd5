package exports

import (
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/telemetry/metrics"
	"github.com/refold/refold/internal/telemetry/traces"
)

// Observe returns the observer of a bridge's starts: traces, metrics or both,
// as configured, or nil. measured is nil if metrics are off.
func Observe(tracer *traces.Tracer, telemetry *Telemetry, env settings.Environment) (observer executor.Observer, measured *metrics.Bridge) {
	var all metrics.Observers
	if tracer != nil {
		all = append(all, tracer.Observer())
	}
	if telemetry.Registry != nil {
		measured = metrics.NewBridge(telemetry.Registry, env[metrics.OptInVariable])
		all = append(all, measured)
	}
	if len(all) == 0 {
		return nil, nil
	}
	return all, measured
}
