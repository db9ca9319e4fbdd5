package session

import "github.com/refold/refold/codec"

// settle folds a settlement. The first one of an effect counts. An identical repeat
// (same type, same canonical data) is a silent no-op, a different one is
// `effect_settled`, and one of an effect that ended long ago is `stale`. A wake may
// fire more than once: a repeat of an old wake is a silent no-op. A settlement that
// names an open effect but is otherwise unusable settles it as `bad_settlement`, so
// that a fault in a bridge never hangs a session.
func (s *State) settle(b *settlement) *refusal {
	place, ok := parseName(b.effect)
	if !ok || place.kind != b.kind {
		return refuse(RejectUnknownEffect, "this session asked no effect "+quoted(b.effect)+
			" of the class that "+b.typ+" settles")
	}
	_, status := s.statusOf(place)
	switch status {
	case effectOpen:
	case effectSettled:
		if settled, _ := s.statusOf(place); settled == settlementHash(b.typ, b.data) {
			return nil
		}
		return refuse(RejectEffectSettled, b.effect+" was settled before, otherwise")
	case effectOver:
		if place.IsWake() {
			return nil // all its settlements are identical
		}
		return refuse(RejectStale, b.effect+" was over long before")
	case effectNotBegun:
		return refuse(RejectIllegalTransition, b.effect+" has not begun: it waits for its group, or for a person")
	case effectBySync:
		return refuse(RejectIllegalTransition, b.effect+" is no effect: the settlement of its sync gives its result")
	default:
		return refuse(RejectUnknownEffect, "this session has not asked "+b.effect)
	}
	return classes[place.kind].folds.settle(s, place, b)
}

// settlement is a decoded settlement, or why it is unusable although it names its
// effect.
type settlement struct {
	typ    string
	kind   kind
	data   codec.Raw
	effect string
	body   any // a pointer to the body of its type; zero if the settlement is unusable
	bad    *refusal
}

// decodeSettlement decodes a settlement of a type. It refuses only one that names no
// effect.
func decodeSettlement(of *eventType, env Envelope) (*settlement, *refusal) {
	b := &settlement{typ: env.Type, kind: of.kind, data: env.Data}
	b.body, b.effect, b.bad = classes[of.kind].folds.decode(env.Type, env.Data)
	if b.bad != nil {
		var ok bool
		if b.effect, ok = effectOf(env.Data); !ok {
			return nil, refuse(RejectInvalidData, "data.effect: is missing or no text")
		}
	}
	return b, nil
}

func settlementHash(typ string, data codec.Raw) codec.Hash {
	var room [hashRoom]byte
	return codec.Digest(append(append(room[:0], typ...), data...))
}

// effectOf decodes the field `effect` of a settlement's data and ignores the rest.
func effectOf(data codec.Raw) (string, bool) {
	var name string
	field, ok := fieldOf(data, "effect")
	if !ok || codec.Decode(field, &name) != nil {
		return "", false
	}
	return name, true
}

// effectStatus is the status of an effect in a session.
type effectStatus int

const (
	effectUnknown  effectStatus = iota // never opened
	effectOpen                         // opened, not settled
	effectSettled                      // settled, with a known hash
	effectOver                         // of an earlier turn
	effectNotBegun                     // a call for a host loop, in a later group
	effectBySync                       // a call that the session runs by a sync
)

// statusOf returns the status of an effect and the hash of its settlement.
func (s *State) statusOf(p Place) (codec.Hash, effectStatus) {
	return classes[p.kind].folds.status(s, p)
}

// ofTurn is the common part of the folders whose effects are named by their turn.
type ofTurn struct{}

func (ofTurn) status(s *State, p Place) (codec.Hash, effectStatus) {
	t := s.Turn
	switch {
	case t == nil || p.run > t.Run || p.run == t.Run && p.turn > t.Number:
		return codec.Hash{}, effectUnknown
	case p.run < t.Run || p.turn < t.Number:
		return codec.Hash{}, effectOver
	case p.kind == kindStep:
		return t.stepStatus()
	case p.kind == kindLLM && p.n < uint32(t.Attempt):
		return codec.Hash{}, effectOver
	case p.kind == kindLLM && p.n > uint32(t.Attempt):
		return codec.Hash{}, effectUnknown
	case p.kind == kindLLM && t.Open:
		return codec.Hash{}, effectOpen
	case p.kind == kindLLM && !t.wasOpened():
		return codec.Hash{}, effectUnknown // its step is open, or ended the run
	case p.kind == kindLLM:
		return t.Settled, effectSettled
	case t.Batch == nil || int(p.n) >= len(t.Batch.Calls):
		return codec.Hash{}, effectUnknown
	}
	c := &t.Batch.Calls[p.n]
	switch {
	case c.Sync > 0:
		return codec.Hash{}, effectBySync
	case c.Status == CallOpen:
		return codec.Hash{}, effectOpen
	case !c.done() && s.isHostLoop(c):
		return codec.Hash{}, effectNotBegun
	case !c.done() || c.RunMS == 0:
		return codec.Hash{}, effectUnknown // never opened
	}
	return c.Settled, effectSettled
}

func (t *Turn) stepOpen() bool { return t.Step != nil && t.Step.Open }

func (t *Turn) stepStatus() (codec.Hash, effectStatus) {
	switch {
	case t.Step == nil || t.Step.RunMS == 0:
		return codec.Hash{}, effectUnknown // no hook was called
	case t.Step.Open:
		return codec.Hash{}, effectOpen
	}
	return t.Step.Settled, effectSettled
}
