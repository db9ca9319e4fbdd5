package session

import (
	"github.com/refold/refold/codec"
)

// settle folds a settlement. The first one of an effect counts. An identical
// repeat (same type, same canonical data) is a silent no-op, a different one
// `effect_settled`, one of an effect long over `stale`. A settlement that
// names an open effect but is otherwise unusable settles it as
// `bad_settlement`, so that a fault in a bridge never hangs a session.
func (s *State) settle(env Envelope) *refusal {
	b, bad := decodeSettlement(env)
	if bad != nil {
		return bad
	}
	place, ok := parseName(b.effect)
	if !ok || place.class() != classOf(env.Type) {
		return refuse(RejectUnknownEffect, "this session asked no effect "+quoted(b.effect)+
			" of the class that "+env.Type+" settles")
	}
	_, status := s.statusOf(place)
	switch status {
	case effectOpen:
	case effectSettled:
		s.hashOwed()
		if settled, _ := s.statusOf(place); settled == settlementHash(env.Type, env.Data) {
			return nil
		}
		return refuse(RejectEffectSettled, b.effect+" was settled before, otherwise")
	case effectOver:
		return refuse(RejectStale, b.effect+" was over long before")
	case effectNotBegun:
		return refuse(RejectIllegalTransition, b.effect+" has not begun: it waits for its group, or for a person")
	default:
		return refuse(RejectUnknownEffect, "this session has not asked "+b.effect)
	}
	switch place.class() {
	case ClassLLM:
		s.settleGeneration(&b)
	case ClassStep:
		s.settleStep(&b)
	case ClassTool:
		if bad := s.hostLoopFault(int(place.call), &b); bad != nil {
			return bad
		}
		s.settleCall(int(place.call), &b)
	case ClassWake:
		s.settleWake(place.wake)
	}
	return nil
}

// settlement is a decoded settlement: one of the bodies, or what is wrong with
// it although it names its effect.
type settlement struct {
	effect   string
	typ      string
	data     codec.Raw // shares the event's memory
	bad      *refusal
	observed *ToolCallsObserved
	answer   *GenerationSettled
	call     *ToolCallSettled
	prepared *StepPrepared
}

// decodeSettlement decodes a settlement. It refuses only what names no effect.
func decodeSettlement(env Envelope) (settlement, *refusal) {
	b := settlement{typ: env.Type, data: env.Data}
	switch env.Type {
	case TypeToolCallsObserved:
		b.observed = &ToolCallsObserved{}
		b.bad = decodeContent(env.Data, "text", b.observed)
		b.effect = b.observed.Effect
	case TypeGenerationSettled:
		b.answer = &GenerationSettled{}
		b.bad = decodeContent(env.Data, "text", b.answer)
		b.effect = b.answer.Effect
	case TypeToolCallSettled:
		b.call = &ToolCallSettled{}
		b.bad = decodeContent(env.Data, "output", b.call)
		b.effect = b.call.Effect
	case TypeStepPrepared:
		b.prepared = &StepPrepared{}
		b.bad = decodeBody(env.Data, b.prepared)
		b.effect = b.prepared.Effect
	case TypeWakeSettled:
		var wake WakeSettled
		b.bad = decodeBody(env.Data, &wake)
		b.effect = wake.Effect
	}
	if b.bad != nil {
		var ok bool
		if b.effect, ok = effectOf(env.Data); !ok {
			return b, refuse(RejectInvalidData, "data.effect: is missing or no text")
		}
	}
	return b, nil
}

// settlementHash tells one settlement from another.
func settlementHash(typ string, data codec.Raw) codec.Hash {
	var room [hashRoom]byte
	return codec.Sum(append(append(room[:0], typ...), data...))
}

// classOf returns the class of the effects that a type settles.
func classOf(typ string) Class {
	switch typ {
	case TypeToolCallSettled:
		return ClassTool
	case TypeStepPrepared:
		return ClassStep
	case TypeWakeSettled:
		return ClassWake
	}
	return ClassLLM
}

// effectOf reads the field `effect` of a settlement's data, whatever else is
// in it.
func effectOf(data codec.Raw) (string, bool) {
	var name string
	field, ok := fieldOf(data, "effect")
	if !ok || codec.Decode(field, &name) != nil {
		return "", false
	}
	return name, true
}

// effectStatus is what a session knows of an effect's name.
type effectStatus int

const (
	effectUnknown  effectStatus = iota // never asked
	effectOpen                         // asked, not settled
	effectSettled                      // settled, and its hash is known
	effectOver                         // of an earlier turn
	effectNotBegun                     // a call for a host loop, in a later group
)

// statusOf returns what the session knows of the effect at a place, and the
// hash of its settlement.
func (s *State) statusOf(p Place) (codec.Hash, effectStatus) {
	if p.wake > 0 {
		return codec.Hash{}, s.wakeStatus(p.wake)
	}
	t := s.Turn
	switch {
	case t == nil || p.run > t.Run || p.run == t.Run && p.turn > t.Number:
		return codec.Hash{}, effectUnknown
	case p.run < t.Run || p.turn < t.Number:
		return codec.Hash{}, effectOver
	case p.step:
		return t.stepStatus()
	case p.call < 0 && p.attempt < t.Attempt:
		return codec.Hash{}, effectOver
	case p.call < 0 && p.attempt > t.Attempt:
		return codec.Hash{}, effectUnknown
	case p.call < 0 && t.Open:
		return codec.Hash{}, effectOpen
	case p.call < 0 && !t.isAsked():
		return codec.Hash{}, effectUnknown // its step is not settled, or ended the run
	case p.call < 0:
		return t.Settled, effectSettled
	case t.Batch == nil || int(p.call) >= len(t.Batch.Calls):
		return codec.Hash{}, effectUnknown
	}
	c := &t.Batch.Calls[p.call]
	switch {
	case c.Status == CallOpen:
		return codec.Hash{}, effectOpen
	case !c.done() && s.isHostLoop(c):
		return codec.Hash{}, effectNotBegun
	case !c.done() || c.RunMS == 0:
		return codec.Hash{}, effectUnknown // never asked
	}
	return c.Settled, effectSettled
}

// stepOpen reports whether the turn's hook is asked.
func (t *Turn) stepOpen() bool { return t.Step != nil && t.Step.Open }

// stepStatus returns what is known of the turn's step.
func (t *Turn) stepStatus() (codec.Hash, effectStatus) {
	switch {
	case t.Step == nil || t.Step.RunMS == 0:
		return codec.Hash{}, effectUnknown // no hook was asked
	case t.Step.Open:
		return codec.Hash{}, effectOpen
	}
	return t.Step.Settled, effectSettled
}
