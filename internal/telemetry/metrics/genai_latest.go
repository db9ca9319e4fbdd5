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
	duration, first                             *meter.Histogram
	in, out, cacheRead, cacheWritten, reasoning *meter.Counter
	inEach, outEach                             *meter.Histogram // of one generation
}

func newLatest(r *meter.Registry) *latest {
	operation, model := meter.Closed(attrOperation, operationChat), meter.Open(modelsMax, attrProvider, attrRequestModel)
	failing, modality := meter.Open(failingMax, attrProvider, attrRequestModel, attrError), meter.Closed(latestModality, modalityText)
	usage := func(name, help string) *meter.Counter {
		return r.Counter(latestPrefix+"usage."+name, "{token}", help, operation, model, modality)
	}
	return &latest{
		duration:     r.Histogram(latestPrefix+"duration", "s", "Duration of generations, as a client of the provider sees it.", durationBounds, operation, failing),
		first:        r.Histogram(latestPrefix+"time_to_first_chunk", "s", "Time until a generation's first words.", durationBounds, operation, model),
		in:           usage("input_tokens", "Input tokens of generations."),
		out:          usage("output_tokens", "Output tokens of generations."),
		cacheRead:    usage("cache_read.input_tokens", "Input tokens that the provider had in its cache."),
		cacheWritten: usage("cache_write.input_tokens", "Input tokens that the provider wrote to its cache."),
		reasoning:    usage("reasoning.output_tokens", "Output tokens of reasoning."),
		inEach:       r.Histogram(latestPrefix+"operation.input_tokens", "{token}", "Input tokens of one generation.", tokenBounds, operation, model),
		outEach:      r.Histogram(latestPrefix+"operation.output_tokens", "{token}", "Output tokens of one generation.", tokenBounds, operation, model),
	}
}

func (v *latest) ended(g generation, failed string, seconds, first float64, u executor.Usage) {
	v.duration.Record(seconds, operationChat, g.provider, g.model, failed)
	v.in.Add(u.InputTokens, operationChat, g.provider, g.model, modalityText)
	v.out.Add(u.OutputTokens, operationChat, g.provider, g.model, modalityText)
	v.cacheRead.Add(u.CachedTokens, operationChat, g.provider, g.model, modalityText)
	v.cacheWritten.Add(u.CacheWriteTokens, operationChat, g.provider, g.model, modalityText)
	v.reasoning.Add(u.ReasoningTokens, operationChat, g.provider, g.model, modalityText)
	if u.InputTokens+u.OutputTokens > 0 {
		v.inEach.Record(float64(u.InputTokens), operationChat, g.provider, g.model)
		v.outEach.Record(float64(u.OutputTokens), operationChat, g.provider, g.model)
	}
	if first > 0 {
		v.first.Record(first, operationChat, g.provider, g.model)
	}
}
