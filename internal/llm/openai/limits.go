package openai

import "time"

// The limits of what a server may answer.
const (
	answerBytesMax = 8 << 20  // words and arguments of one answer
	wholeBytesMax  = 32 << 20 // an answer that is not streamed, as JSON
	faultBytesMax  = 64 << 10 // what is read of an answer that says what is wrong
)

// How failures that may pass are tried again.
const (
	retryWaitMin = 500 * time.Millisecond // before the second try; doubled before each further one
	retryWaitMax = 30 * time.Second       // the server may ask for longer
	retriesMax   = 8                      // when the context has no deadline
)
