package journal

import (
	"bytes"
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

// snapshotInlineMax is the largest snapshot in the key-value bucket. A larger one is a
// blob, and the bucket holds a snapshotRef.
const snapshotInlineMax = 512 << 10

// snapshotRef replaces a snapshot over 512 KiB under its key, as JSON: the snapshot is a
// blob.
//
// Its first byte differs from that of a snapshot, which is a msgpack map.
type snapshotRef struct {
	// The snapshot.
	Blob codec.Ref `json:"blob"`
	// Sequence of the snapshot.
	Seq uint64 `json:"seq" lim:"1.."`
	// Size of the snapshot in bytes.
	Size int `json:"size" lim:"1.."`
}

// PutSnapshot stores the snapshot of a session at a sequence of the log, and replaces
// an earlier one. data must be a msgpack map. A snapshot is a cache: a missing or older
// one costs time, never correctness.
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
		// Otherwise a large session would leave a blob with each snapshot. A failure
		// leaves one, and nothing depends on it.
		if err := j.deleteBlob(ctx, former); err != nil {
			j.conn.Log.Warn("former_snapshot_kept", "session", sid, "blob", former.String(), "error", err.Error())
		}
	}
	return nil
}

// GetSnapshot returns the snapshot of a session, which may be older than the last one
// put; found is false if there is none, or it can't be read in full.
func (j *Journal) GetSnapshot(ctx context.Context, sid string) (data []byte, found bool, err error) {
	key, err := subjects.SnapshotKey(sid)
	if err != nil {
		return nil, false, err
	}
	// Twice, since a snapshot put after the first read deletes the blob of the
	// former one.
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

// snapshotBlob returns the blob that a key refers to, zero if none. It reads from the
// leader: with the value of a lagging replica, a blob would be left over.
func (j *Journal) snapshotBlob(ctx context.Context, key string) (codec.Ref, error) {
	m, err := j.leaderKey(ctx, key)
	ref, _ := parseSnapshotRef(m.data)
	return ref, err
}

// PutQuarantine quarantines a session, or releases it. body is the encoded Stop.
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

// DeleteQuarantine ends the quarantine whose stored form is body. It fails with
// ErrOvertaken if another one is stored. It is no error if there is none.
func (j *Journal) DeleteQuarantine(ctx context.Context, sid string, body []byte) error {
	key, err := subjects.QuarantineKey(sid)
	if err != nil {
		return err
	}
	m, err := j.leaderKey(ctx, key)
	if err == nil && !m.deleted() {
		if bytes.Equal(m.data, body) {
			_, err = j.putKey(ctx, key, nil, jetstream.WithExpectLastSequencePerSubject(m.seq))
		} else {
			err = ErrOvertaken
		}
	}
	if natsio.IsConflict(err) {
		err = ErrOvertaken
	}
	if err != nil {
		return fmt.Errorf("quarantine of %s: %w", sid, err)
	}
	return nil
}

// GetQuarantine returns the quarantine of a session; found is false if there is none.
// It reads from the leader, since an owner must not miss one.
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

// Quarantined yields every session that is quarantined at the time of the call, in no
// order. It reads from the leader, since an owner must not miss one.
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
			// A deleted key still has its marker.
			_, stopped, err := j.GetQuarantine(ctx, sid)
			if err != nil || stopped {
				if !yield(sid, err) || err != nil {
					return
				}
			}
		}
	}
}

// SnapshotAt is the position of a session's snapshot.
type SnapshotAt struct {
	Session string
	Seq     uint64 // in the bucket's stream
}

// ListSnapshots yields the sessions that have a snapshot, from a sequence of the
// bucket's stream on, in the order of the puts. It reads no snapshot: the server sends
// some 100 bytes for each. Snapshots put during the call may be missing. An error ends
// it.
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
