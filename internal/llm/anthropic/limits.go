package anthropic

const (
	maxTokensDefault = 8192 // all models of today can say so much

	cacheTokensMinDefault = 4096 // what a model caches at least, if it is not known: the most that any asks for
)
