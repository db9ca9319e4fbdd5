package journal

import (
	"context"
	"encoding/json"
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

// StoredOutputs is what is stored of a session that its events led to, besides its
// snapshot.
type StoredOutputs struct {
	Effects []StoredEffect // as ListEffects returns them
	Notice  LastSaid
}

// LastSaid is the notice of a session that was stored last. It is zero if none
// is kept, or if the last one is none that a fold says.
type LastSaid struct {
	N   uint64 `json:"n"`
	Seq uint64 `json:"seq"` // of the event that it is about
	At  int64  `json:"at"`  // the session's clock at that event
}

// StoredOutputs reads what else than events is stored of a session, from the leaders:
// the events that it comes from are in the log when it returns.
func (j *Journal) StoredOutputs(ctx context.Context, sid string) (w StoredOutputs, err error) {
	if w.Effects, err = j.ListEffects(ctx, sid); err != nil {
		return w, err
	}
	subject, err := j.names.Out(sid)
	if err != nil {
		return w, err
	}
	m, err := j.lastOn(ctx, j.names.NoticesStream(), subject)
	if err != nil {
		return w, fmt.Errorf("read the last notice of %s: %w", sid, err)
	}
	var said LastSaid
	if json.Unmarshal(m.data, &said) == nil && said.N > 0 {
		w.Notice = said // what somebody else wrote says nothing
	}
	return w, nil
}
