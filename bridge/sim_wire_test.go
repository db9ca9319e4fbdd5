package bridge

// What a bridge and a host see of the server: wire, clockwork and host.World.
// Every call waits for the simulation.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/host"
	"github.com/refold/refold/internal/jetmodel"
	"github.com/refold/refold/subjects"
)

// simWire is a bridge's connection.
type simWire struct {
	*proc
	sim *sim
}

var (
	_ wire      = simWire{}
	_ clockwork = simClock{}
)

func (w simWire) Claim(ctx context.Context, name subjects.ClaimName, c claim) (stands claim, won bool, err error) {
	body, err := json.Marshal(bus.ClaimBody{By: c.By, Withdrawn: c.Withdrawn})
	if err != nil {
		return claim{}, false, err
	}
	subject, err := w.sim.names.Claim(name)
	if err != nil {
		return claim{}, false, err
	}
	err = w.call(ctx, fmt.Sprintf("claim %s.%s %d withdrawn=%v", name.Session, name.Effect, name.N, c.Withdrawn), func() error {
		same, held := w.sim.fence(subject, body)
		parsed, err := bus.ParseClaimBody(held)
		stands, won = claim{By: parsed.By, Withdrawn: parsed.Withdrawn}, same
		return err
	})
	if err != nil {
		return claim{}, false, err
	}
	return stands, won, nil
}

func (w simWire) Publish(ctx context.Context, door session.Door, sid, id string, payload []byte) (seq uint64, err error) {
	what := textOf(payload)
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
			return bus.ErrNotFound
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
			return view, bus.ErrNoView
		}
		data, err = h.stepper.View(ctx, sid)
	}
	if err != nil || data == nil {
		return view, fmt.Errorf("%w (%w)", bus.ErrNoView, err)
	}
	return view, json.Unmarshal(data, &view)
}

func (w simWire) Events(ctx context.Context, sid string, seqs []uint64) (events []session.Event, err error) {
	err = w.call(ctx, fmt.Sprintf("events of %s at %v", sid, seqs), func() error {
		for _, seq := range seqs {
			m, err := w.sim.log.At(seq, 0)
			if err != nil || w.sim.event(m).Session != sid {
				return bus.ErrNotFound
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
			return bus.ErrNotFound
		}
		return nil
	})
	return content, err
}

func (w simWire) Heard(instance string) (time.Time, bool) { return w.sim.heard(w.proc, instance) }

func (w simWire) Live(string, []byte) error { return nil }

// simClock is the connection of a timer bridge.
type simClock struct{ simWire }

func (c simClock) Publish(ctx context.Context, door session.Door, sid string, payload []byte, id string) (uint64, error) {
	return c.simWire.Publish(ctx, door, sid, id, payload)
}

func (c simClock) Schedule(ctx context.Context, sid, wake string, at time.Time, payload []byte) error {
	return c.call(ctx, "schedule "+sid+"."+wake, func() error {
		c.sim.timers[sid+" "+wake] = schedule{at, payload}
		return nil
	})
}

// simWorld is a host's connection.
type simWorld struct {
	*proc
	sim *sim
}

var _ host.World = simWorld{}

// InstallBefore answers at once: there is one record.
func (w simWorld) InstallBefore(_ context.Context, seq uint64) (session.Event, bool, error) {
	w.sim.mu.Lock()
	defer w.sim.mu.Unlock()
	return w.sim.install, true, nil
}

func (w simWorld) ReadSession(ctx context.Context, sid string, from, to uint64, leader bool) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		var all []session.Event
		err := w.call(ctx, fmt.Sprintf("read %s from %d to %d", sid, from, to), func() error {
			all = w.sim.history(sid, from, to, leader)
			return nil
		})
		for _, e := range all {
			if !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(session.Event{}, err)
		}
	}
}

func (w simWorld) LastSeq(ctx context.Context) (seq uint64, err error) {
	err = w.call(ctx, "last sequence", func() error {
		seq = w.sim.log.LastSeq()
		return nil
	})
	return seq, err
}

func (w simWorld) Publish(ctx context.Context, door session.Door, sid string, payload []byte, id string) (seq uint64, err error) {
	err = w.call(ctx, fmt.Sprintf("publish %s %s", sid, textOf(payload)), func() error {
		w.sim.judge.wakes(w.proc, sid, payload)
		seq, err = w.sim.append(door, sid, id, payload)
		return err
	})
	return seq, err
}

func (w simWorld) Store(ctx context.Context, outputs []bus.Output) []error {
	all := func(err error) []error {
		errs := make([]error, len(outputs))
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	var text string
	for _, o := range outputs {
		switch {
		case o.Effect != nil:
			text += " " + o.Session + "." + o.Effect.Name
		case o.Withdraw != "":
			text += " withdraw " + o.Session + "." + o.Withdraw
		default:
			text += " notice " + o.Session + " " + strconv.FormatUint(o.N, 10)
		}
	}
	var errs []error
	half := len(outputs)
	err := w.call(ctx, "store"+text, func() error {
		if !w.sim.calm && w.sim.faults > 0 && w.sim.draw(4) == 3 {
			half = w.sim.draw(len(outputs)) // a process may die when so much of it is stored
		}
		errs = w.sim.store(outputs[:half])
		return nil
	})
	if err == nil && half < len(outputs) {
		err = w.call(ctx, "store the rest of"+text, func() error {
			failed := map[string]bool{}
			for i, e := range errs {
				failed[outputs[i].Session] = failed[outputs[i].Session] || e != nil
			}
			for i := half; i < len(outputs); i++ {
				one := []error{errRefused}
				if !failed[outputs[i].Session] {
					one = w.sim.store(outputs[i : i+1])
				}
				failed[outputs[i].Session] = failed[outputs[i].Session] || one[0] != nil
				errs = append(errs, one[0])
			}
			return nil
		})
	}
	if err != nil {
		return all(err)
	}
	return errs
}

func (w simWorld) PublishCancel(ctx context.Context, sid string, payload []byte) error {
	return w.call(ctx, "cancel "+sid+" "+string(payload), func() error {
		w.sim.judge.cancel(sid, payload)
		for _, b := range w.sim.bridges {
			if b.dead || b.cut() || !w.sim.calm && w.sim.draw(8) == 7 {
				continue
			}
			b.worker.cancelled(sid, payload)
		}
		return nil
	})
}

func (w simWorld) GetSnapshot(ctx context.Context, sid string) (data []byte, found bool, err error) {
	err = w.call(ctx, "get snapshot "+sid, func() error {
		data, found = w.sim.snapshot(sid)
		return nil
	})
	return data, found, err
}

func (w simWorld) PutSnapshot(ctx context.Context, sid string, seq uint64, data []byte) error {
	return w.PutWaiting(ctx, sid, seq, data, 0)
}

func (w simWorld) PutWaiting(ctx context.Context, sid string, seq uint64, data []byte, due int64) error {
	w.sim.judge.snapshot(sid, seq, data)
	return w.call(ctx, fmt.Sprintf("put snapshot %s at %d", sid, seq), func() error {
		w.sim.put(sid, data, due)
		return nil
	})
}

func (w simWorld) ListWaiting(ctx context.Context, from uint64) iter.Seq2[bus.Waiting, error] {
	return func(yield func(bus.Waiting, error) bool) {
		var all []jetmodel.Message
		err := w.call(ctx, "list waiting", func() error {
			all = w.sim.kv.All(">", from, 0)
			return nil
		})
		for _, m := range all {
			due, _ := strconv.ParseInt(m.Header, 10, 64)
			if due != 0 && !yield(bus.Waiting{Session: m.Subject, Due: due, Seq: m.Seq}, nil) {
				return
			}
		}
		if err != nil {
			yield(bus.Waiting{}, err)
		}
	}
}

// The model's log loses its end, and never has a hole: of what stands where it
// is never asked.
func (w simWorld) LogMissing(context.Context) (uint64, error) { return 0, nil }

func (w simWorld) EventAt(context.Context, uint64) (session.Event, error) {
	return session.Event{}, errors.ErrUnsupported
}

func (w simWorld) Witness(context.Context, string) (bus.Witness, error) {
	return bus.Witness{}, errors.ErrUnsupported
}

func (w simWorld) EffectsKept(context.Context) (time.Duration, error) { return time.Hour, nil }

func (w simWorld) GetQuarantine(ctx context.Context, sid string) (body []byte, found bool, err error) {
	err = w.call(ctx, "get quarantine "+sid, func() error {
		body, found = w.sim.stops[sid]
		return nil
	})
	return body, found, err
}

func (w simWorld) PutQuarantine(ctx context.Context, sid string, body []byte) error {
	return w.call(ctx, "quarantine "+sid+" "+string(body), func() error {
		w.sim.stops[sid] = body
		w.sim.judge.quarantine(sid, body)
		return nil
	})
}

// Quarantined answers at once, since who asks holds a lock.
func (w simWorld) Quarantined(context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		w.sim.mu.Lock()
		all := sortedKeys(w.sim.stops)
		w.sim.mu.Unlock()
		for _, sid := range all {
			if !yield(sid, nil) {
				return
			}
		}
	}
}

func (w simWorld) PutBlob(_ context.Context, content []byte) (codec.Ref, error) {
	w.sim.mu.Lock()
	defer w.sim.mu.Unlock()
	ref := codec.RefOf(content)
	w.sim.blobs[ref] = content
	return ref, nil
}

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
