package openai

// The limits of what a server may answer, and be asked for.
const (
	responseTokensMin = 16       // of max_output_tokens: the API refuses less
	wholeBytesMax     = 32 << 20 // an answer that is not streamed, as JSON
)
