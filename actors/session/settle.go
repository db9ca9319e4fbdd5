package session

import (
	"cmp"

	"github.com/refold/refold/codec"
)

// settle folds a settlement. The first one of an effect counts. An identical repeat
// (same type, same canonical data) is a silent no-op, a different one is
// `effect_settled`, and one of an effect that ended long ago is `stale`. A wake may
// fire more than once: a repeat of an old wake is a silent no-op. A settlement that
// names an open effect but is otherwise unusable settles it as `bad_settlement`, so
// that a fault in a bridge never hangs a session.
func (s *State) settle(b *settlement) *refusal {
	place, ok := parseName(string(b.effect))
	if !ok || place.kind != b.kind {
		return refuse(RejectUnknownEffect, "this session asked no effect "+quoted(string(b.effect))+
			" of the class that "+b.typ+" settles")
	}
	_, status := s.statusOf(place)
	switch status {
	case effectOpen:
	case effectSettled:
		s.computeLazyHashes()
		if settled, _ := s.statusOf(place); settled == settlementHash(b.typ, b.data) {
			return nil
		}
		return refuse(RejectEffectSettled, string(b.effect)+" was settled before, otherwise")
	case effectOver:
		if place.IsWake() {
			return nil // all its settlements are identical
		}
		return refuse(RejectStale, string(b.effect)+" was over long before")
	case effectNotBegun:
		return refuse(RejectIllegalTransition, string(b.effect)+" has not begun: it waits for its group, or for a person")
	case effectBySync:
		return refuse(RejectIllegalTransition, string(b.effect)+" is no effect: the settlement of its sync gives its result")
	default:
		return refuse(RejectUnknownEffect, "this session has not asked "+string(b.effect))
	}
	// Most events are of these classes. They are called directly, since the
	// compiler can't keep b on the stack for a call through the table.
	switch place.kind {
	case kindLLM:
		return generations{}.settle(s, place, b)
	case kindTool:
		return calls{}.settle(s, place, b)
	case kindWake:
		return wakes{}.settle(s, place, b)
	}
	rare := *b
	return classes[place.kind].folds.settle(s, place, &rare)
}

// settlement is a decoded settlement: one of the bodies, by its type, or why it is
// unusable although it names its effect. Bytes share the event's memory.
type settlement struct {
	typ      string
	kind     kind
	data     codec.Raw
	effect   []byte
	bad      *refusal
	observed ToolCallsObserved
	answer   GenerationSettled // without the texts that the fold does not keep, if it was scanned
	call     ToolCallSettled   // without the texts below
	planHash []byte            // of the call: hex
	body     any               // of any other class, as its folder decodes it

	outputFrom, outputTo int // position in data of the call's output, if that is text that was not decoded

	finishReason []byte // of the answer, if it was not decoded

	text    []byte // of the answer, if hasText
	hasText bool   // the answer has a text, or an empty content, that was not decoded
}

// output returns the model's answer, nil if there is none.
func (b *settlement) output() *Content {
	if b.hasText {
		return &Content{Text: string(b.text)}
	}
	return b.answer.Text
}

// finish returns why the model's answer ended, "" if that is not known.
func (b *settlement) finish() string {
	return cmp.Or(b.answer.FinishReason, string(b.finishReason))
}

// oddFinish is finish, or "" if the answer is complete.
func (b *settlement) oddFinish() string {
	if reason := b.finish(); reason != FinishStop {
		return reason
	}
	return ""
}

// outputText returns the call's output if it is text that was not decoded. It
// shares the event's memory.
func (b *settlement) outputText() []byte {
	if b.outputTo == 0 {
		return nil
	}
	return b.data[b.outputFrom:b.outputTo]
}

// isSilent reports whether the model's answer has no content.
func (b *settlement) isSilent() bool {
	return len(b.text) == 0 && (b.answer.Text == nil || b.answer.Text.isEmpty())
}

// decode decodes a settlement of a type. It refuses only one that names no effect.
func (b *settlement) decode(of *eventType, env Envelope) *refusal {
	b.typ, b.kind, b.data = env.Type, of.kind, env.Data
	effect, bad := classes[of.kind].folds.decode(b, env.Data)
	b.effect, b.bad = []byte(effect), bad
	if b.bad != nil {
		effect, ok := effectOf(env.Data)
		if !ok {
			return refuse(RejectInvalidData, "data.effect: is missing or no text")
		}
		b.effect = []byte(effect)
	}
	return nil
}

// oneCopyMax is the size up to which all strings of an event share one copy: a
// string that the fold keeps may keep the whole copy alive.
const oneCopyMax = 2 << 10

// scan reads a settlement in the form that Refold's bridges write, envelope and
// body in one pass. Other events are left to open and decode.
func (b *settlement) scan(e *Event) (env Envelope, ok bool) {
	if len(e.Payload) > EventBytesMax || !codec.IsMap(e.Payload) {
		return Envelope{}, false
	}
	var r envelopeReader
	r.begin(e.Payload)
	r.beginBody()
	if !b.scanBody(e.Door, &r.Reader, len(e.Payload)) || !r.endBody() {
		return Envelope{}, false
	}
	b.data = r.data
	if b.outputTo > 0 {
		b.outputFrom, b.outputTo = b.outputFrom-r.from, b.outputTo-r.from
	}
	return r.endSound(b.typ)
}

// scanBody reads the usual body of a settlement through this door, in an event of
// the given size.
func (b *settlement) scanBody(door Door, r *codec.Reader, bytes int) bool {
	switch door {
	case DoorTool:
		texts := b.call.read(r)
		b.typ, b.kind, b.effect, b.planHash = TypeToolCallSettled, kindTool, texts.effect, texts.planHash
		b.outputFrom, b.outputTo = texts.outputEnd-len(texts.output), texts.outputEnd
		return len(texts.output) <= TextBytesMax
	case DoorLLM:
		look := *r
		look.Map()
		if look.Has("calls") {
			if bytes <= oneCopyMax {
				r.OneCopy()
			}
			b.observed.read(r, bytes, bodyDepth)
			b.typ, b.effect = TypeToolCallsObserved, []byte(b.observed.Effect)
			return true
		}
		texts := b.answer.read(r, bodyDepth)
		b.typ, b.effect, b.text, b.hasText, b.finishReason = TypeGenerationSettled, texts.effect, texts.text, texts.hasText, texts.finishReason
		return len(texts.text) <= TextBytesMax && len(texts.model) <= NameBytesMax && len(texts.finishReason) <= NameBytesMax
	case DoorWake:
		body := r.Map()
		r.Must("effect")
		b.typ, b.kind, b.effect = TypeWakeSettled, kindWake, r.Text()
		r.EndMap(body)
		return true
	}
	return false
}

// bodyDepth is the nesting of a body's fields: the envelope and the body.
const bodyDepth = 2

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
