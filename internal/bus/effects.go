package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/subjects"
)

// Ask stores an effect of a session under its name. Asking twice is asking
// once: if the name has these bytes already, that is success. Other bytes are
// a *ViolationError, and nothing is changed. When ctx ends before the outcome
// is known the error wraps ErrUnknownOutcome; asking again is safe.
func (b *Bus) Ask(ctx context.Context, sid string, effect session.Effect) error {
	msg, err := b.effectMsg(sid, effect)
	if err != nil {
		return err
	}
	return b.ask(ctx, msg)
}

func (b *Bus) ask(ctx context.Context, msg *nats.Msg) error {
	same, holder, err := b.fence(ctx, b.names.EffectsStream(), msg, session.EffectBytesMax)
	if err != nil {
		return fmt.Errorf("ask %s: %w", msg.Subject, err)
	}
	if !same {
		return &ViolationError{Subject: msg.Subject, Stored: holder, Wanted: msg.Data}
	}
	return nil
}

// AskAll is Ask for several effects at once: they are sent together, and only
// those that conflict or are not answered are looked at one by one. The error
// joins those of all effects; without one, all are stored.
func (b *Bus) AskAll(ctx context.Context, sid string, effects []session.Effect) error {
	msgs := make([]*nats.Msg, len(effects))
	sent := make([]jetstream.PubAckFuture, len(effects))
	for i, effect := range effects {
		var err error
		if msgs[i], err = b.effectMsg(sid, effect); err != nil {
			return err
		}
	}
	if len(effects) > 1 {
		for i, msg := range msgs {
			if len(msg.Data) > session.EffectBytesMax {
				continue // ask says so
			}
			if future, err := b.js.PublishMsgAsync(msg); err == nil {
				sent[i] = future
			}
		}
	}
	var all []error
	for i, msg := range msgs {
		if sent[i] != nil && acknowledged(ctx, sent[i]) {
			continue
		}
		if err := b.ask(ctx, msg); err != nil {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

// acknowledged waits for the outcome of a publish; false is every outcome that
// has to be looked at.
func acknowledged(ctx context.Context, future jetstream.PubAckFuture) bool {
	select {
	case <-future.Ok():
		return true
	case <-future.Err(): //nolint:errcheck // whatever it is, the effect is asked again on its own
		return false
	case <-ctx.Done():
		return false
	}
}

func (b *Bus) effectMsg(sid string, effect session.Effect) (*nats.Msg, error) {
	subject, err := b.names.Effect(subjects.EffectName{
		Class: effect.Class, Target: effect.Target, Session: sid, Effect: effect.Name,
	})
	if err != nil {
		return nil, fmt.Errorf("ask %s of %s: %w", effect.Name, sid, err)
	}
	msg := nats.NewMsg(subject)
	msg.Data = effect.Payload
	msg.Header.Set(subjects.HeaderContentType, subjects.ContentTypeMsgpack)
	msg.Header.Set(subjects.HeaderExpectLastSubject, "0")
	return msg, nil
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
	filters, err := b.names.SessionEffects(sid)
	if err != nil {
		return nil, err
	}
	var all []StoredEffect
	for _, filter := range filters {
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
	}
	slices.SortFunc(all, func(a, b StoredEffect) int { return int(int64(a.Seq) - int64(b.Seq)) })
	return all, nil
}
