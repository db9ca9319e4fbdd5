package worker

import (
	"slices"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// settles reports whether an event of the door llm settles the named effect.
func settles(e session.Event, name string) bool {
	env, err := session.ReadEnvelope(e.Payload)
	if err != nil {
		return false
	}
	var fields codec.Pairs
	if !codec.IsMap(env.Data) || codec.Unmarshal(env.Data, &fields) != nil {
		return false
	}
	for _, field := range fields {
		if field.Key == "effect" {
			var effect string
			return codec.Unmarshal(field.Value, &effect) == nil && effect == name
		}
	}
	return false
}

// seqLeast returns the least sequence of a view in which g is open: all items of a
// generation are in the log before it is published.
func seqLeast(g *session.Generation) uint64 {
	var seq, most uint64
	for _, more := range g.Items.Seqs {
		seq += uint64(more)
		most = max(most, seq)
	}
	return most
}

func isOpen(view session.View, name string) bool {
	return slices.ContainsFunc(view.Open, func(e session.ViewEffect) bool { return e.Effect == name })
}
