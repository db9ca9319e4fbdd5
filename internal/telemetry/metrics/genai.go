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

type v141 struct{ duration, tokens, first *meter.Histogram }

func newV141(r *meter.Registry) *v141 {
	operation, model := meter.Closed(attrOperation, operationChat), meter.Open(modelsMax, attrProvider, attrRequestModel)
	failing := meter.Open(failingMax, attrProvider, attrRequestModel, attrError)
	return &v141{
		duration: r.Histogram(operationDuration, "s", "Duration of generations, as a client of the provider sees it.", durationBounds, operation, failing),
		tokens:   r.Histogram(tokenUsage, "{token}", "Tokens of generations.", tokenBounds, operation, model, meter.Closed(attrTokenType, tokenInput, tokenOutput)),
		first:    r.Histogram(firstChunk, "s", "Time until a generation's first words.", firstBounds, operation, model),
	}
}

func (v *v141) ended(g generation, failed string, seconds, first float64, u executor.Usage) {
	v.duration.Record(seconds, operationChat, g.provider, g.model, failed)
	if u.InputTokens+u.OutputTokens > 0 {
		v.tokens.Record(float64(u.InputTokens), operationChat, g.provider, g.model, tokenInput)
		v.tokens.Record(float64(u.OutputTokens), operationChat, g.provider, g.model, tokenOutput)
	}
	if first > 0 {
		v.first.Record(first, operationChat, g.provider, g.model)
	}
}
