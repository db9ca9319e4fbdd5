package endpoint

import "time"

// faultBytesMax is what is read of a response that says what is wrong.
const faultBytesMax = 64 << 10

// answerBytesMax is how much words, thoughts and arguments of one answer may be.
const answerBytesMax = 8 << 20

// eventBytesMax is how large one event of a stream may be, and an answer that is
// no stream.
const eventBytesMax = 64 << 20

// originBytesMax is how much of a redirect's address an error shows.
const originBytesMax = 300

// DefaultIdle is how long a stream may be silent. Models that think before they
// speak are silent for long, and most servers send something meanwhile.
const DefaultIdle = 3 * time.Minute

// How failures that may pass are tried again.
const (
	retryWaitMin = 500 * time.Millisecond // before the second try; doubled before each further one
	retryWaitMax = 30 * time.Second       // the server may ask for longer
	retriesMax   = 8                      // when the context has no deadline
	brokenMax    = 1                      // answers that broke off and are asked for again
)
