package openai

// The limits of requests and answers.
const (
	responseTokensMin = 16       // of max_output_tokens: the API refuses less
	wholeBytesMax     = 32 << 20 // an answer that is not streamed, as JSON
)
