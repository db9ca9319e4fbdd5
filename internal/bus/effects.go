package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/subjects"
)

// Ask stores an effect of a session under its name. Asking twice is asking
// once: if the name has these bytes already, that is success. Other bytes are
// a *ViolationError, and nothing is changed. When ctx ends before the outcome
// is known the error wraps ErrUnknownOutcome; asking again is safe.
func (b *Bus) Ask(ctx context.Context, sid string, effect session.Effect) error {
	return b.AskAll(ctx, sid, []session.Effect{effect})
}

// AskAll is Ask for several effects at once. The error joins those of all
// effects; without one, all are stored.
func (b *Bus) AskAll(ctx context.Context, sid string, effects []session.Effect) error {
	outputs := make([]Output, len(effects))
	for i := range effects {
		outputs[i] = Output{Session: sid, Effect: &effects[i]}
	}
	return errors.Join(b.Store(ctx, outputs)...)
}

func (b *Bus) effectWrite(sid string, effect *session.Effect) (*write, error) {
	subject, err := b.names.Effect(subjects.EffectName{
		Class: effect.Class, Target: effect.Target, Session: sid, Effect: effect.Name,
	})
	if err != nil {
		return nil, fmt.Errorf("ask %s of %s: %w", effect.Name, sid, err)
	}
	w := &write{subject: subject, data: effect.Payload, msgpack: true, fenced: true}
	return w, b.check(w, session.EffectBytesMax)
}

// EffectStored returns what the effects stream holds under a subject, an
// effect's or a claim's, from the leader; found is false if there is nothing
// (any more).
func (b *Bus) EffectStored(ctx context.Context, subject string) (data []byte, found bool, err error) {
	m, err := b.leaderGet(ctx, b.names.EffectsStream(), getRequest{LastFor: subject})
	if errors.Is(err, ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read %s: %w", subject, err)
	}
	return m.data, true, nil
}

// StoredEffect is an effect as it was asked.
type StoredEffect struct {
	Name    subjects.EffectName
	Seq     uint64 // in the effects stream
	Time    int64  // Unix milliseconds
	Payload []byte
}

// ListEffects returns all effects of a session that the effects stream still
// holds, in the order in which they were asked.
func (b *Bus) ListEffects(ctx context.Context, sid string) ([]StoredEffect, error) {
	filter, err := b.names.SessionEffects(sid)
	if err != nil {
		return nil, err
	}
	var all []StoredEffect
	for m, err := range b.read(ctx, b.names.EffectsStream(), filter, 1, 0, true) {
		if err != nil {
			return nil, fmt.Errorf("list effects of %s: %w", sid, err)
		}
		name, err := b.names.ParseEffect(m.subject)
		if err != nil {
			return nil, fmt.Errorf("list effects of %s: %w", sid, err)
		}
		all = append(all, StoredEffect{Name: name, Seq: m.seq, Time: m.time, Payload: m.data})
	}
	return all, nil
}
