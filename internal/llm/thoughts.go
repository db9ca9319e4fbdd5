package llm

import (
	"encoding/json"

	"github.com/refold/refold/bridge/executor"
)

// Thoughts says how a request sends the model's thoughts of earlier turns back.
// A server may refuse thoughts whose prefix has changed since. From that turn
// on the session's requests send fewer of them, and every answer records it in
// its Opaque: nothing is kept between two turns.
type Thoughts int

// The values of Thoughts, in the order in which they are tried. The numbers are
// stored in answers.
const (
	ThoughtsSent    Thoughts = 0 // unchanged
	ThoughtsDropped Thoughts = 1 // sent, and the server is asked to drop those that it would refuse
	ThoughtsLeftOut Thoughts = 2 // not sent
	ThoughtsFilled  Thoughts = 3 // unchanged, and a short one in every turn that has none: the server requires one
)

// ThoughtsOf returns how thoughts were sent for the latest answer of the
// provider of, and whether messages contain thoughts of that provider.
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

// Remember adds to an answer's Opaque how thoughts were sent for it.
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
