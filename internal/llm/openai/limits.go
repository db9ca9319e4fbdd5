package openai

// The limits of what a server may answer.
const (
	answerBytesMax = 8 << 20  // words and arguments of one answer
	wholeBytesMax  = 32 << 20 // an answer that is not streamed, as JSON
)
