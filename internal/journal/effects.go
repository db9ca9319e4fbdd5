package journal

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/subjects"
)

func (j *Journal) effectWrite(o *Output) (*write, error) {
	sid, effect, traceParent := o.Session, o.Effect, o.TraceParent
	name := subjects.EffectName{Class: effect.Class, Target: effect.Target, Session: sid, Effect: effect.Name}
	subject, err := j.names.Effect(name)
	if o.taken {
		subject, err = j.names.EffectOf(name, j.conn.LogID())
	}
	if err != nil {
		return nil, fmt.Errorf("publish %s of %s: %w", effect.Name, sid, err)
	}
	w := &write{subject: subject, data: effect.Payload, fenced: true, headers: []string{subjects.HeaderContentType, subjects.ContentTypeMsgpack}}
	if traceParent != "" {
		w.headers = append(w.headers, subjects.HeaderTraceParent, traceParent)
	}
	return w, j.check(w, session.EffectBytesMax)
}

// StoredEffect is an effect in the effects stream.
type StoredEffect struct {
	Name    subjects.EffectName
	Seq     uint64 // in the effects stream
	Time    int64  // Unix milliseconds
	Payload []byte
}

// ListEffects returns the effects of a session that the effects stream still holds,
// in the order in which they were published.
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
		if j.conn.IsForeign(m.header) {
			continue
		}
		name, err := j.names.ParseEffect(m.subject)
		if err != nil {
			return nil, fmt.Errorf("list effects of %s: %w", sid, err)
		}
		all = append(all, StoredEffect{Name: name, Seq: m.seq, Time: m.time, Payload: m.data})
	}
	return all, nil
}

// EffectNames returns the names of all effects that the effects stream holds, in no
// order. Most of them are settled, since names are kept for longer than effects are
// open; the views of sessions have the open ones.
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

// StoredOutputs has the stored outputs of a session, without its snapshot.
type StoredOutputs struct {
	Effects []StoredEffect // as ListEffects returns them
	Notice  LastSaid
}

// LastSaid is the last stored notice of a session. It is zero if the stream holds
// none, or if no fold published the last one.
type LastSaid struct {
	N   uint64 `json:"n"`   // 0: it has no number
	Seq uint64 `json:"seq"` // of the event that it is about
	At  int64  `json:"at"`  // the session's clock at that event
}

// StoredOutputs reads the stored outputs of a session from the leaders. Every event
// that led to them is in the log when it returns.
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
	if !j.conn.IsForeign(m.header) {
		w.Notice = lastSaidIn(m.data)
	}
	return w, nil
}

// lastSaidIn returns the last notice in a message, zero if no fold published it.
func lastSaidIn(payload []byte) LastSaid {
	var last struct {
		LastSaid
		Type string `json:"type"`
	}
	if json.Unmarshal(lastLine(payload), &last) != nil || last.N == 0 && last.Type != session.NoticeSessionChanged {
		return LastSaid{}
	}
	return last.LastSaid
}
