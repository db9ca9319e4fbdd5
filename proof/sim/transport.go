package sim

// A bridge's view of the server: worker.Transport.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/worker"
	"github.com/refold/refold/subjects"
)

// transport is a bridge's connection.
type transport struct {
	*proc
	sim *sim
}

var _ worker.Transport = transport{}

func (w transport) Claim(ctx context.Context, name subjects.ClaimName, c worker.Claim) (stands worker.Claim, won bool, err error) {
	body, err := json.Marshal(journal.ClaimBody(c))
	if err != nil {
		return worker.Claim{}, false, err
	}
	subject, err := w.sim.names.Claim(name)
	if err != nil {
		return worker.Claim{}, false, err
	}
	err = w.call(ctx, fmt.Sprintf("claim %s.%s %d withdrawn=%v", name.Session, name.Effect, name.N, c.Withdrawn), func() error {
		same, held := w.sim.fence(subject, body)
		parsed, err := journal.ParseClaimBody(held)
		stands, won = worker.Claim(parsed), same
		return err
	})
	if err != nil {
		return worker.Claim{}, false, err
	}
	return stands, won, nil
}

func (w transport) BeginClaim(ctx context.Context, name subjects.ClaimName, c worker.Claim) func() (worker.Claim, bool, error) {
	var stands worker.Claim
	var won bool
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		stands, won, err = w.Claim(ctx, name, c)
	}()
	return func() (worker.Claim, bool, error) {
		<-done
		return stands, won, err
	}
}

func (w transport) Publish(ctx context.Context, door session.Door, sid, id string, payload []byte) (seq uint64, err error) {
	what := textOf(payload)
	payload = bytes.Clone(payload) // the caller owns it
	err = w.call(ctx, fmt.Sprintf("publish %s %s", sid, what), func() (err error) {
		w.sim.judge.settles(w.proc, door, sid, payload)
		seq, err = w.sim.append(door, sid, id, payload)
		return err
	})
	return seq, err
}

func (w transport) LastModelEvent(ctx context.Context, sid string) (e session.Event, err error) {
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

// viewWait is how long a bridge waits for a View.
const viewWait = 2 * time.Second

func (w transport) View(ctx context.Context, sid string) (view session.View, err error) {
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

func (w transport) Events(ctx context.Context, sid string, seqs []uint64) (events []session.Event, err error) {
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

func (w transport) PutBlob(ctx context.Context, content []byte) (codec.Ref, error) {
	ref := codec.RefOf(content)
	return ref, w.call(ctx, "put blob "+ref.String(), func() error {
		w.sim.mu.Lock()
		defer w.sim.mu.Unlock()
		w.sim.blobs[ref] = content
		return nil
	})
}

func (w transport) Blob(ctx context.Context, ref codec.Ref) (content []byte, err error) {
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

func (w transport) KeepBlob(ctx context.Context, ref codec.Ref) (there bool, err error) {
	_, err = w.Blob(ctx, ref)
	if errors.Is(err, natsio.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Remade implements prompt.Store: the simulation loses no blob.
func (w transport) Remade(context.Context, string, codec.Ref) ([]byte, error) {
	return nil, natsio.ErrNotFound
}

func (w transport) Incarnation() uint64 {
	w.sim.mu.Lock()
	defer w.sim.mu.Unlock()
	return w.joins
}

func (w transport) Heard(instance string) (time.Time, bool) { return w.sim.heard(w.proc, instance) }

func (w transport) Live(string, []byte) error { return nil }

// textOf returns an event's type, effect and status.
func textOf(payload []byte) string {
	typ, effect, status, err := settlementOf(payload)
	if err != nil {
		return "?"
	}
	return strings.Join(slices.DeleteFunc([]string{typ, effect, status}, func(s string) bool { return s == "" }), " ")
}
