package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// snapshotInlineMax is how large a snapshot may be inside the key-value
// bucket; above it its bytes are a blob, and the bucket holds where.
const snapshotInlineMax = 512 << 10

// snapshotRef stands in the bucket for a snapshot that is a blob. It is JSON:
// its first byte tells it from a snapshot, which is a msgpack map.
type snapshotRef struct {
	Blob codec.Ref `json:"blob"`
	Seq  uint64    `json:"seq"`
	Size int       `json:"size"`
}

// PutSnapshot keeps the snapshot of a session at a sequence of the log, in
// place of an earlier one. data must be a msgpack map. A snapshot is a cache:
// a lost or an older one costs time, never truth.
func (j *Journal) PutSnapshot(ctx context.Context, sid string, seq uint64, data []byte) error {
	key, err := subjects.SnapshotKey(sid)
	if err != nil {
		return err
	}
	value, former := data, codec.Ref{}
	if len(data) > snapshotInlineMax {
		if former, err = j.snapshotBlob(ctx, key); err != nil {
			return fmt.Errorf("put snapshot of %s: %w", sid, err)
		}
		ref, err := j.PutBlob(ctx, data)
		if err != nil {
			return fmt.Errorf("put snapshot of %s: %w", sid, err)
		}
		if value, err = json.Marshal(snapshotRef{Blob: ref, Seq: seq, Size: len(data)}); err != nil {
			return err
		}
		if former == ref {
			former = codec.Ref{}
		}
	}
	_, err = j.putKey(ctx, key, value)
	if err != nil {
		return fmt.Errorf("put snapshot of %s: %w", sid, err)
	}
	if !former.IsZero() {
		// A large session would leave a blob with each snapshot otherwise. If
		// this fails, it leaves one; nothing else depends on it.
		if err := j.deleteBlob(ctx, former); err != nil {
			j.conn.Log.Warn("former_snapshot_kept", "session", sid, "blob", former.String(), "error", err.Error())
		}
	}
	return nil
}

// GetSnapshot returns the snapshot of a session; found is false if there is
// none, or none that can be read in full. It may be an older one than was put
// last.
func (j *Journal) GetSnapshot(ctx context.Context, sid string) (data []byte, found bool, err error) {
	key, err := subjects.SnapshotKey(sid)
	if err != nil {
		return nil, false, err
	}
	// Twice, since a reference read just before a new snapshot replaced it
	// points to a blob that is gone.
	for range 2 {
		value, err := j.replicaKey(ctx, key)
		if errors.Is(err, natsio.ErrNotFound) {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, fmt.Errorf("get snapshot of %s: %w", sid, err)
		}
		ref, isRef := parseSnapshotRef(value)
		if !isRef {
			return value, true, nil
		}
		data, err := j.GetBlob(ctx, ref)
		if err == nil {
			return data, true, nil
		}
		switch {
		case errors.Is(err, ErrOtherBytes), errors.Is(err, ErrTooLarge):
			j.conn.Log.Warn("snapshot_unreadable", "session", sid, "error", err.Error())
			return nil, false, nil
		case !errors.Is(err, natsio.ErrNotFound):
			return nil, false, fmt.Errorf("get snapshot of %s: %w", sid, err)
		}
	}
	return nil, false, nil
}

func parseSnapshotRef(value []byte) (codec.Ref, bool) {
	var ref snapshotRef
	if len(value) == 0 || value[0] != '{' || json.Unmarshal(value, &ref) != nil {
		return codec.Ref{}, false
	}
	return ref.Blob, !ref.Blob.IsZero()
}

// snapshotBlob returns the blob that a key refers to now; zero if none. The leader
// tells: by what a replica that is behind has, a blob would be left over.
func (j *Journal) snapshotBlob(ctx context.Context, key string) (codec.Ref, error) {
	m, err := j.leaderKey(ctx, key)
	ref, _ := parseSnapshotRef(m.data)
	return ref, err
}

// PutQuarantine stops a session: body says why and from where. It stands until
// DeleteQuarantine.
func (j *Journal) PutQuarantine(ctx context.Context, sid string, body []byte) error {
	key, err := subjects.QuarantineKey(sid)
	if err != nil {
		return err
	}
	if _, err = j.putKey(ctx, key, body); err != nil {
		return fmt.Errorf("quarantine of %s: %w", sid, err)
	}
	return nil
}

// DeleteQuarantine ends a quarantine; none there is fine.
func (j *Journal) DeleteQuarantine(ctx context.Context, sid string) error {
	return j.PutQuarantine(ctx, sid, nil)
}

// GetQuarantine returns why a session is stopped; found is false if it is not.
// It is read from the leader: an owner must not miss it.
func (j *Journal) GetQuarantine(ctx context.Context, sid string) (body []byte, found bool, err error) {
	key, err := subjects.QuarantineKey(sid)
	if err != nil {
		return nil, false, err
	}
	m, err := j.leaderKey(ctx, key)
	if err != nil {
		return nil, false, fmt.Errorf("quarantine of %s: %w", sid, err)
	}
	if m.deleted() {
		return nil, false, nil
	}
	return m.data, true, nil
}

// Quarantined yields every session that was stopped when it was called, in no
// order. It is read from the leader: an owner must not miss one.
func (j *Journal) Quarantined(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var state jetstream.StreamState
		err := j.askBucket(ctx, func(ctx context.Context) (err error) {
			state, err = j.askState(ctx, j.names.SnapshotsStream(), j.names.SnapshotsSubject(subjects.QuarantineKeys))
			return err
		})
		if err != nil {
			yield("", fmt.Errorf("list quarantines: %w", err))
			return
		}
		for subject := range state.Subjects {
			sid, ok := subjects.ParseQuarantineKey(strings.TrimPrefix(subject, j.names.SnapshotsSubject("")))
			if !ok {
				continue
			}
			// A key that was deleted is there still, and says so.
			_, stopped, err := j.GetQuarantine(ctx, sid)
			if err != nil || stopped {
				if !yield(sid, err) || err != nil {
					return
				}
			}
		}
	}
}

// SnapshotAt is where the snapshot of a session is.
type SnapshotAt struct {
	Session string
	Seq     uint64 // in the bucket's stream
}

// ListSnapshots yields the sessions that have a snapshot, from a sequence of the
// bucket's stream on, in the order in which they were put. It reads no snapshot:
// the server sends some 100 bytes of each. What is put meanwhile may come or not.
// An error ends it.
func (j *Journal) ListSnapshots(ctx context.Context, from uint64) iter.Seq2[SnapshotAt, error] {
	return func(yield func(SnapshotAt, error) bool) {
		cfg := jetstream.OrderedConsumerConfig{
			DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: max(from, 1), HeadersOnly: true,
			FilterSubjects: []string{j.names.SnapshotsSubject(subjects.SnapshotKeys)},
		}
		for m, err := range j.ordered(ctx, j.names.SnapshotsStream(), cfg, false) {
			if err != nil {
				yield(SnapshotAt{}, fmt.Errorf("list snapshots: %w", err))
				return
			}
			sid, ok := subjects.ParseSnapshotKey(strings.TrimPrefix(m.subject, j.names.SnapshotsSubject("")))
			if ok && !m.deleted() && !yield(SnapshotAt{sid, m.seq}, nil) {
				return
			}
		}
	}
}
