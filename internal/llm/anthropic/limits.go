package anthropic

const (
	maxTokensDefault = 8192 // every current model accepts it

	cacheTokensMinDefault = 4096 // for unknown models: the largest minimum of all models
)
