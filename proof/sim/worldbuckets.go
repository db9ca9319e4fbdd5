package sim

// The other half of engine.World: snapshots, quarantines, notes of lanes and blobs.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
)

func (w world) GetSnapshot(ctx context.Context, sid string) (data []byte, found bool, err error) {
	err = w.call(ctx, "get snapshot "+sid, func() error {
		if err := w.sim.fails(sid, failsLoad); err != nil {
			return err
		}
		data, found = w.sim.snapshot(sid)
		return w.sim.fails("", failsSnapshots)
	})
	return data, found, err
}

func (w world) PutSnapshot(ctx context.Context, sid string, seq uint64, data []byte) error {
	w.sim.judge.snapshot(sid, seq, data)
	return w.call(ctx, fmt.Sprintf("put snapshot %s at %d", sid, seq), func() error {
		w.sim.put(sid, data)
		return nil
	})
}

// ListSnapshots is for the scrub, which the simulation does not run.
func (w world) ListSnapshots(context.Context, uint64) iter.Seq2[journal.SnapshotAt, error] {
	return func(yield func(journal.SnapshotAt, error) bool) { yield(journal.SnapshotAt{}, errors.ErrUnsupported) }
}

// LogMissing returns 0: the model's log may lose its end, but never has a hole.
func (w world) LogMissing(context.Context) (uint64, error) { return 0, nil }

func (w world) EventAt(ctx context.Context, seq uint64) (e session.Event, err error) {
	err = w.call(ctx, fmt.Sprintf("event at %d", seq), func() error {
		if err := w.sim.fails("", failsLoad); err != nil {
			return err
		}
		m, err := w.sim.log.At(seq, 0)
		if err != nil {
			return natsio.ErrNotFound
		}
		e = w.sim.event(m)
		return nil
	})
	return e, err
}

func (w world) StoredOutputs(context.Context, string) (journal.StoredOutputs, error) {
	return journal.StoredOutputs{}, errors.ErrUnsupported
}

func (w world) LastSummary(ctx context.Context, sid string) (last session.Summary, err error) {
	err = w.call(ctx, "last summary "+sid, func() error {
		for _, m := range w.sim.out.All(sid, 1, 0) {
			n := journal.Notice{Payload: m.Data}
			last, _ = n.Summary()
		}
		return nil
	})
	return last, err
}

func (w world) GetQuarantine(ctx context.Context, sid string) (body []byte, found bool, err error) {
	err = w.call(ctx, "get quarantine "+sid, func() error {
		body, found = w.sim.stops[sid]
		return w.sim.fails("", failsSnapshots)
	})
	return body, found, err
}

func (w world) PutQuarantine(ctx context.Context, sid string, body []byte) error {
	return w.call(ctx, "quarantine "+sid+" "+string(body), func() error {
		if err := w.sim.fails("", failsSnapshots); err != nil {
			return err
		}
		w.sim.stops[sid] = body
		if !journal.ParseStop(body).Released {
			w.sim.judge.quarantine(sid, body)
		}
		return nil
	})
}

// Quarantined answers at once, since the caller holds a lock.
func (w world) Quarantined(context.Context) iter.Seq2[string, error] {
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

func (w world) DeleteQuarantine(ctx context.Context, sid string, body []byte) error {
	return w.call(ctx, "release "+sid, func() error {
		if err := w.sim.fails("", failsSnapshots); err != nil {
			return err
		}
		if now, found := w.sim.stops[sid]; found && !bytes.Equal(now, body) {
			return journal.ErrOvertaken
		}
		delete(w.sim.stops, sid)
		return nil
	})
}

func (w world) LaneNote(ctx context.Context, key string) (note []byte, rev uint64, err error) {
	err = w.call(ctx, "read the note "+key, func() error {
		note, rev = w.sim.notes[key].note, w.sim.notes[key].rev
		return nil
	})
	return note, rev, err
}

func (w world) PutLaneNote(ctx context.Context, key string, note []byte, after uint64) (rev uint64, err error) {
	err = w.call(ctx, fmt.Sprintf("note %s %q", key, note), func() error {
		p := w.sim.notes[key]
		if p.rev != after {
			w.sim.did("note overtaken")
			return journal.ErrOvertaken
		}
		w.sim.did([]string{"guard ended", "guarded"}[min(1, len(note))])
		rev = p.rev + 1
		w.sim.notes[key] = laneNote{note, rev}
		return nil
	})
	return rev, err
}

func (w world) PutBlob(_ context.Context, content []byte) (codec.Ref, error) {
	w.sim.mu.Lock()
	defer w.sim.mu.Unlock()
	ref := codec.RefOf(content)
	w.sim.blobs[ref] = content
	return ref, nil
}

// SweepBlobs finds nothing: the simulated store has no chunks.
func (w world) SweepBlobs(context.Context, time.Time) (int, error) { return 0, nil }

func (w world) PutBlobs(ctx context.Context, contents [][]byte) error {
	for _, content := range contents {
		if _, err := w.PutBlob(ctx, content); err != nil {
			return err
		}
	}
	return nil
}
