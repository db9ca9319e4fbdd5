package exports

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"

	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/telemetry/metrics"
	"github.com/refold/refold/internal/telemetry/traces"
)

// Traces has the tracing flags of each daemon.
type Traces struct {
	TraceRatio   float64 `name:"trace-ratio" yaml:"trace-ratio" group:"Traces" default:"0.1" placeholder:"PART" help:"Share of the runs to trace, 0 to 1, if OTEL_EXPORTER_OTLP_ENDPOINT names a collector; the same for all daemons."`
	TraceUnit    string  `name:"trace-unit" yaml:"trace-unit" group:"Traces" enum:"run,turn,tree" default:"run" help:"The unit of a trace: a run, each turn, for runs that wait for days, or a tree: a run with those of its sub-agents; the same for all daemons."`
	TraceContent bool    `name:"trace-content" yaml:"trace-content" group:"Traces" help:"Also export texts: messages, arguments and results, each cut at 8 KiB (OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT)."`
	TraceRedact  string  `name:"trace-redact" yaml:"trace-redact" group:"Traces" placeholder:"FILE" help:"Regular expressions, one a line: matches in texts are masked."`
}

// contentVariable turns --trace-content on; OpenTelemetry defines it.
const contentVariable = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

// Start starts a daemon's tracer, nil if no collector is named or no run is
// traced.
func (t *Traces) Start(ctx context.Context, env settings.Environment, service, prefix string, telemetry *Telemetry, log *slog.Logger) (*traces.Tracer, error) {
	if t.TraceRatio < 0 || t.TraceRatio > 1 {
		return nil, fmt.Errorf("--trace-ratio: 0 (no run) to 1 (all), not %v", t.TraceRatio)
	}
	content, err := t.content(env)
	if err != nil {
		return nil, err
	}
	if !t.isOn(env) {
		return nil, nil //nolint:nilnil // nothing is traced
	}
	return traces.New(ctx, traces.Options{
		Form: t.form(env, prefix), Ratio: t.TraceRatio, Service: service, Version: settings.Version(),
		Content: content, To: traces.HTTP(""), Dropped: telemetry.SpansDropped, Logger: log,
	})
}

// TraceIDs returns a function for the trace ids of log lines, nil without
// tracing.
func (t *Traces) TraceIDs(env settings.Environment, prefix string) settings.TraceIDs {
	if !t.isOn(env) {
		return nil
	}
	form := t.form(env, prefix)
	return func(session, effect string) (trace, span string) { return form.IDs(session, effect, t.TraceRatio) }
}

func (t *Traces) form(env settings.Environment, prefix string) traces.Form {
	return traces.Form{Prefix: prefix, Unit: traces.Unit(t.TraceUnit), Latest: metrics.Latest(env[metrics.OptInVariable])}
}

// isOn reports whether runs are traced.
func (t *Traces) isOn(env settings.Environment) bool {
	named := slices.ContainsFunc(traces.Variables, func(name string) bool { return env[name] != "" })
	return named && t.TraceRatio > 0
}

// content returns which texts are exported, or nil for none.
func (t *Traces) content(env settings.Environment) (*traces.Content, error) {
	var content traces.Content
	if t.TraceRedact != "" {
		file, err := os.ReadFile(t.TraceRedact)
		if err != nil {
			return nil, fmt.Errorf("--trace-redact: %w", err)
		}
		if content.Mask, err = traces.ParseMasks(string(file)); err != nil {
			return nil, fmt.Errorf("--trace-redact %s: %w", t.TraceRedact, err)
		}
	}
	if !t.TraceContent && env[contentVariable] != "true" {
		return nil, nil //nolint:nilnil // none
	}
	return &content, nil
}
