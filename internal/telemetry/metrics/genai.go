package metrics

import (
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/meter"
)

// Names of the GenAI semantic conventions v1.41.0, the latest set that back ends
// read. They are defined here, since Go's semconv packages have dropped them.
const (
	attrOperation     = "gen_ai.operation.name"
	attrProvider      = "gen_ai.provider.name"
	attrRequestModel  = "gen_ai.request.model"
	attrTokenType     = "gen_ai.token.type"
	attrError         = "error.type"
	operationChat     = "chat"
	tokenInput        = "input"
	tokenOutput       = "output"
	operationDuration = "gen_ai.client.operation.duration"
	tokenUsage        = "gen_ai.client.token.usage"
	firstChunk        = "gen_ai.client.operation.time_to_first_chunk"
)

// Bounds that the conventions recommend.
var (
	durationBounds = []float64{.01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	tokenBounds    = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
	firstBounds    = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10}
)

// generations measures generations by the conventions of one version.
type generations interface {
	ended(model generation, failed string, seconds, first float64, u executor.Usage)
}

type generation struct{ provider, model string }

type v141 struct {
	operation, tokenType    *meter.Label
	model, failing          *meter.Label
	duration, tokens, first *meter.Histogram
}

func newV141(r *meter.Registry) *v141 {
	v := &v141{
		operation: meter.Closed(attrOperation, operationChat), tokenType: meter.Closed(attrTokenType, tokenInput, tokenOutput),
		model:   meter.Open(modelsMax, attrProvider, attrRequestModel),
		failing: meter.Open(failingMax, attrProvider, attrRequestModel, attrError),
	}
	v.duration = r.Histogram(operationDuration, "s", "Duration of generations, as a client of the provider sees it.", durationBounds, v.operation, v.failing)
	v.tokens = r.Histogram(tokenUsage, "{token}", "Tokens of generations.", tokenBounds, v.operation, v.model, v.tokenType)
	v.first = r.Histogram(firstChunk, "s", "Time until a generation's first words.", firstBounds, v.operation, v.model)
	return v
}

func (v *v141) ended(g generation, failed string, seconds, first float64, u executor.Usage) {
	v.duration.Record(seconds, 0, v.failing.Of(g.provider, g.model, failed))
	model := v.model.Of(g.provider, g.model)
	if u.InputTokens+u.OutputTokens > 0 {
		v.tokens.Record(float64(u.InputTokens), 0, model, 0)
		v.tokens.Record(float64(u.OutputTokens), 0, model, 1)
	}
	if first > 0 {
		v.first.Record(first, 0, model)
	}
}
