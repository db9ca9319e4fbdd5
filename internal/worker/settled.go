package worker

import (
	"slices"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// settles reports that an event of the door llm settles the named effect.
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
			var of string
			return codec.Unmarshal(field.Value, &of) == nil && of == name
		}
	}
	return false
}

// seqLeast returns the least sequence of a view that has seen g asked: every
// item of a generation was in the log when it was asked.
func seqLeast(g *session.Generation) uint64 {
	var seq uint64
	for _, it := range g.Items {
		seq = max(seq, it.Seq)
	}
	return seq
}

func isOpen(view session.View, name string) bool {
	return slices.ContainsFunc(view.Open, func(e session.ViewEffect) bool { return e.Effect == name })
}
