package bus

import (
	"context"
	"fmt"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/subjects"
)

func (b *Bus) effectWrite(sid string, effect *session.Effect, traceParent string) (*write, error) {
	subject, err := b.names.Effect(subjects.EffectName{
		Class: effect.Class, Target: effect.Target, Session: sid, Effect: effect.Name,
	})
	if err != nil {
		return nil, fmt.Errorf("ask %s of %s: %w", effect.Name, sid, err)
	}
	w := &write{subject: subject, data: effect.Payload, msgpack: true, fenced: true, traceParent: traceParent}
	return w, b.check(w, session.EffectBytesMax)
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
