package endpoint

import "time"

// faultBytesMax is how much of an error response is read.
const faultBytesMax = 64 << 10

// headerBytesMax bounds the headers of an answer.
const headerBytesMax = 256 << 10

// fieldBytesMax is how much of a field's name or a request's id an error shows.
const fieldBytesMax = 48

// answerBytesMax limits the text, thoughts and arguments of one answer.
const answerBytesMax = 8 << 20

// eventBytesMax limits one event of a stream, and an answer that is not a stream.
const eventBytesMax = 64 << 20

// originBytesMax is how much of a redirect's address an error shows.
const originBytesMax = 300

// refusedMax is the most models of a server whose refusals are remembered.
const refusedMax = 1024

// DefaultIdle is how long a server may be silent, before an answer's first byte
// and within it. Models are silent for long while they think, and most servers
// send something meanwhile.
const DefaultIdle = 3 * time.Minute

// forever is longer than a generation may take.
const forever = 24 * time.Hour

// The limits of retries.
const (
	retryWaitMin = 500 * time.Millisecond // before the second try; doubled before each further one
	retryWaitMax = 30 * time.Second       // the server may ask for longer
	retriesMax   = 8                      // when the context has no deadline
	brokenMax    = 1                      // answers that broke off and are requested again
)
