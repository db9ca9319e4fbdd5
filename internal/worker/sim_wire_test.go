package worker

// What a bridge sees of the server: wire. Every call waits for the simulation.

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// simWire is a bridge's connection.
type simWire struct {
	*proc
	sim *sim
}

var _ Transport = simWire{}

func (w simWire) Claim(ctx context.Context, name subjects.ClaimName, c Claim) (stands Claim, won bool, err error) {
	body, err := bodyOf(c)
	if err != nil {
		return Claim{}, false, err
	}
	subject, err := w.sim.names.Claim(name)
	if err != nil {
		return Claim{}, false, err
	}
	err = w.call(ctx, fmt.Sprintf("claim %s.%s %d withdrawn=%v", name.Session, name.Effect, name.N, c.Withdrawn), func() error {
		same, held := w.sim.fence(subject, body)
		parsed, err := journal.ParseClaimBody(held)
		stands, won = Claim(parsed), same
		return err
	})
	if err != nil {
		return Claim{}, false, err
	}
	return stands, won, nil
}

func (w simWire) BeginClaim(ctx context.Context, name subjects.ClaimName, c Claim) func() (Claim, bool, error) {
	return beginClaim(ctx, w.Claim, name, c)
}

func (w simWire) Publish(ctx context.Context, door session.Door, sid, id string, payload []byte) (seq uint64, err error) {
	what := textOf(payload)
	payload = bytes.Clone(payload) // it is the caller's
	err = w.call(ctx, fmt.Sprintf("publish %s %s", sid, what), func() (err error) {
		w.sim.judge.settles(w.proc, door, sid, payload)
		seq, err = w.sim.append(door, sid, id, payload)
		return err
	})
	return seq, err
}

func (w simWire) LastModelEvent(ctx context.Context, sid string) (e session.Event, err error) {
	err = w.call(ctx, "last llm event of "+sid, func() error {
		w.sim.judge.looked[w.name+" "+sid] = w.sim.log.LastSeq()
		subject, err := w.sim.names.Stored(session.DoorLLM, sid)
		if err != nil {
			return err
		}
		m, err := w.sim.log.Last(subject, 0)
		if err != nil {
			return natsio.ErrNotFound
		}
		e = w.sim.event(m)
		return nil
	})
	return e, err
}

func (w simWire) View(ctx context.Context, sid string) (view session.View, err error) {
	ctx, cancel := context.WithTimeout(ctx, viewWait)
	defer cancel()
	var data []byte
	err = w.call(ctx, "view of "+sid, func() error { return nil })
	if err == nil {
		h := w.sim.hosts[w.sim.draw(len(w.sim.hosts))]
		if h.dead || h.cut() {
			return view, natsio.ErrNoView
		}
		data, err = h.view(ctx, sid)
	}
	if err != nil || data == nil {
		return view, fmt.Errorf("%w (%w)", natsio.ErrNoView, err)
	}
	return view, json.Unmarshal(data, &view)
}

func (w simWire) Events(ctx context.Context, sid string, seqs []uint64) (events []session.Event, err error) {
	err = w.call(ctx, fmt.Sprintf("events of %s at %v", sid, seqs), func() error {
		for _, seq := range seqs {
			m, err := w.sim.log.At(seq, 0)
			if err != nil || w.sim.event(m).Session != sid {
				return natsio.ErrNotFound
			}
			events = append(events, w.sim.event(m))
		}
		return nil
	})
	return events, err
}

func (w simWire) PutBlob(ctx context.Context, content []byte) (codec.Ref, error) {
	ref := codec.RefOf(content)
	return ref, w.call(ctx, "put blob "+ref.String(), func() error {
		w.sim.mu.Lock()
		defer w.sim.mu.Unlock()
		w.sim.blobs[ref] = content
		return nil
	})
}

func (w simWire) Blob(ctx context.Context, ref codec.Ref) (content []byte, err error) {
	err = w.call(ctx, "blob "+ref.String(), func() error {
		w.sim.mu.Lock()
		defer w.sim.mu.Unlock()
		var ok bool
		if content, ok = w.sim.blobs[ref]; !ok {
			return natsio.ErrNotFound
		}
		return nil
	})
	return content, err
}

func (w simWire) Incarnation() uint64 {
	w.sim.mu.Lock()
	defer w.sim.mu.Unlock()
	return w.joins
}

func (w simWire) Heard(instance string) (time.Time, bool) { return w.sim.heard(w.proc, instance) }

func (w simWire) Live(string, []byte) error { return nil }

// textOf tells an event's type and what it is about.
func textOf(payload []byte) string {
	env, err := envelopeOf(session.Event{Payload: payload})
	if err != nil {
		return "?"
	}
	var fields codec.Pairs
	_ = codec.Unmarshal(env.Data, &fields)
	text := env.Type
	for _, f := range fields {
		if f.Key == "effect" || f.Key == "status" {
			var of string
			_ = codec.Unmarshal(f.Value, &of)
			text += " " + of
		}
	}
	return text
}
