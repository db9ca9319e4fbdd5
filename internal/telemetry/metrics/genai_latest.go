package metrics

import (
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/meter"
)

// Names of the GenAI semantic conventions after v1.41.0, in development: those of
// commit 024a4f944a12 (October 2026, after pull request 521) of the repository
// open-telemetry/semantic-conventions-genai. They are used with
// OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental.
const (
	latestPrefix   = "gen_ai.client.inference."
	latestModality = "gen_ai.token.modality"
	modalityText   = "text" // the only modality of Refold's metrics
)

type latest struct {
	operation, modality *meter.Label
	model, failing      *meter.Label
	duration, first     *meter.Histogram
	usage               [5]*meter.Counter   // in the order of tokens
	operations          [2]*meter.Histogram // input and output tokens of one generation
}

func newLatest(r *meter.Registry) *latest {
	v := &latest{
		operation: meter.Closed(attrOperation, operationChat), modality: meter.Closed(latestModality, modalityText),
		model:   meter.Open(modelsMax, attrProvider, attrRequestModel),
		failing: meter.Open(failingMax, attrProvider, attrRequestModel, attrError),
	}
	v.duration = r.Histogram(latestPrefix+"duration", "s", "Duration of generations, as a client of the provider sees it.", durationBounds, v.operation, v.failing)
	v.first = r.Histogram(latestPrefix+"time_to_first_chunk", "s", "Time until a generation's first words.", durationBounds, v.operation, v.model)
	for i, kind := range [...]struct{ name, help string }{
		{"input_tokens", "Input tokens of generations."}, {"output_tokens", "Output tokens of generations."},
		{"cache_read.input_tokens", "Input tokens that the provider had in its cache."},
		{"cache_write.input_tokens", "Input tokens that the provider wrote to its cache."},
		{"reasoning.output_tokens", "Output tokens of reasoning."},
	} {
		v.usage[i] = r.Counter(latestPrefix+"usage."+kind.name, "{token}", kind.help, v.operation, v.model, v.modality)
	}
	v.operations[0] = r.Histogram(latestPrefix+"operation.input_tokens", "{token}", "Input tokens of one generation.", tokenBounds, v.operation, v.model)
	v.operations[1] = r.Histogram(latestPrefix+"operation.output_tokens", "{token}", "Output tokens of one generation.", tokenBounds, v.operation, v.model)
	return v
}

func (v *latest) ended(g generation, failed string, seconds, first float64, u executor.Usage) {
	v.duration.Record(seconds, 0, v.failing.Of(g.provider, g.model, failed))
	model := v.model.Of(g.provider, g.model)
	for i, n := range [...]int64{u.InputTokens, u.OutputTokens, u.CachedTokens, u.CacheWriteTokens, u.ReasoningTokens} {
		v.usage[i].Add(n, 0, model, 0)
	}
	if u.InputTokens+u.OutputTokens > 0 {
		v.operations[0].Record(float64(u.InputTokens), 0, model)
		v.operations[1].Record(float64(u.OutputTokens), 0, model)
	}
	if first > 0 {
		v.first.Record(first, 0, model)
	}
}
