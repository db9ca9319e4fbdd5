package journal

import (
	"context"
	"fmt"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/subjects"
)

func (j *Journal) effectWrite(sid string, effect *session.Effect, traceParent string) (*write, error) {
	subject, err := j.names.Effect(subjects.EffectName{
		Class: effect.Class, Target: effect.Target, Session: sid, Effect: effect.Name,
	})
	if err != nil {
		return nil, fmt.Errorf("ask %s of %s: %w", effect.Name, sid, err)
	}
	w := &write{subject: subject, data: effect.Payload, fenced: true, headers: []string{subjects.HeaderContentType, subjects.ContentTypeMsgpack}}
	if traceParent != "" {
		w.headers = append(w.headers, subjects.HeaderTraceParent, traceParent)
	}
	return w, j.check(w, session.EffectBytesMax)
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
func (j *Journal) ListEffects(ctx context.Context, sid string) ([]StoredEffect, error) {
	filter, err := j.names.SessionEffects(sid)
	if err != nil {
		return nil, err
	}
	var all []StoredEffect
	for m, err := range j.read(ctx, j.names.EffectsStream(), filter, 1, 0, true) {
		if err != nil {
			return nil, fmt.Errorf("list effects of %s: %w", sid, err)
		}
		name, err := j.names.ParseEffect(m.subject)
		if err != nil {
			return nil, fmt.Errorf("list effects of %s: %w", sid, err)
		}
		all = append(all, StoredEffect{Name: name, Seq: m.seq, Time: m.time, Payload: m.data})
	}
	return all, nil
}

// EffectNames returns the names of all effects that the effects stream holds,
// in no order. A name outlives its use, so most of them are settled; sessions
// say in their views what is open.
func (j *Journal) EffectNames(ctx context.Context) (all []subjects.EffectName, err error) {
	for _, filter := range j.names.StreamSubjects(j.names.EffectsStream()) {
		state, err := j.state(ctx, j.names.EffectsStream(), filter)
		if err != nil {
			return nil, fmt.Errorf("list effects: %w", err)
		}
		for subject := range state.Subjects {
			if name, err := j.names.ParseEffect(subject); err == nil { // else a claim
				all = append(all, name)
			}
		}
	}
	return all, nil
}
