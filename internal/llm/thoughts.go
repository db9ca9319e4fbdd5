package llm

import (
	"encoding/json"

	"github.com/refold/refold/bridge/executor"
)

// Thoughts says how a request sends back what the model thought in earlier
// turns. A server may refuse thoughts whose prefix has changed since. The
// session is then asked with fewer of them from this turn on, and every answer
// says so in its Opaque: nothing is kept between two turns.
type Thoughts int

// The values of Thoughts, in the order in which they are tried. The numbers are
// stored in answers.
const (
	ThoughtsSent    Thoughts = 0 // as they came
	ThoughtsDropped Thoughts = 1 // sent, and the server is asked to drop those that it would refuse
	ThoughtsLeftOut Thoughts = 2 // not sent
)

// ThoughtsOf returns how thoughts were sent for the latest answer of the provider
// of, and whether messages hold thoughts of its own.
func ThoughtsOf(of string, messages []executor.Message) (thoughts Thoughts, any bool) {
	latest := true
	for i := len(messages) - 1; i >= 0; i-- {
		o := openOpaque(of, &messages[i])
		if o == nil {
			continue
		}
		if latest {
			thoughts, latest = o.Thoughts, false
		}
		any = any || len(o.Pieces) > 0
	}
	return thoughts, any
}

// Remember returns an answer's Opaque with how thoughts were sent for it.
func Remember(of string, thoughts Thoughts, sealed json.RawMessage) json.RawMessage {
	if thoughts == ThoughtsSent {
		return sealed
	}
	o := openOpaque(of, &executor.Message{Opaque: sealed})
	if o == nil {
		o = &opaque{Of: of}
	}
	o.Thoughts = thoughts
	return JSON(o)
}
