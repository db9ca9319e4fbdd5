package journal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/natsio"
)

// PutBlobs is PutBlob for many contents, of which most are stored: it asks for all of
// them at once.
func (j *Journal) PutBlobs(ctx context.Context, contents [][]byte) error {
	missing := make(map[string][]byte, len(contents))
	of := make(map[string]codec.Ref, len(contents))
	for _, content := range contents {
		ref := codec.RefOf(content)
		missing[j.blobSubject(ref)], of[j.blobSubject(ref)] = content, ref
	}
	for some := range slices.Chunk(slices.Sorted(maps.Keys(missing)), batchMsgsMax) {
		for m, err := range j.lasts(ctx, j.names.BlobsStream(), some, 0) {
			if errors.Is(err, natsio.ErrNotFound) {
				break
			}
			if err != nil {
				return fmt.Errorf("look for blobs: %w", err)
			}
			var info jetstream.ObjectInfo
			if !j.conn.IsForeign(m.header) && json.Unmarshal(m.data, &info) == nil && describes(info, of[m.subject]) && !isMarked(&info) {
				delete(missing, m.subject)
			}
		}
	}
	failures := make([]error, len(missing))
	room := make(chan struct{}, blobsAtOnce)
	var storing sync.WaitGroup
	for i, subject := range slices.Sorted(maps.Keys(missing)) {
		room <- struct{}{}
		storing.Go(func() {
			defer func() { <-room }()
			_, failures[i] = j.PutBlob(ctx, missing[subject])
		})
	}
	storing.Wait()
	return cmp.Or(failures...) // one is enough: everything is tried again
}

// blobsAtOnce is how many blobs PutBlobs stores at once.
const blobsAtOnce = 16

// sweepMax is how many subjects SweepBlobs compares, with some 100 bytes each.
const sweepMax = 2 << 20

// SweepBlobs deletes the chunks that no description names and that were stored before
// a time, and returns the number of uploads. The caller must be permitted to purge.
func (j *Journal) SweepBlobs(ctx context.Context, before time.Time) (n int, err error) {
	if state, err := j.state(ctx, j.names.BlobsStream(), ""); err != nil || state.NumSubjects > sweepMax {
		return 0, cmp.Or(err, fmt.Errorf("delete unused chunks: REFOLD_BLOBS has %d subjects, and %d at most are compared", state.NumSubjects, sweepMax))
	}
	// First the chunks: whatever describes them later, began later.
	state, err := j.state(ctx, j.names.BlobsStream(), j.names.BlobChunks("*"))
	if err != nil {
		return 0, err
	}
	for m, err := range j.read(ctx, j.names.BlobsStream(), j.names.BlobSubject("*"), 1, 0, true) {
		if err != nil {
			return 0, fmt.Errorf("list blobs: %w", err)
		}
		var info jetstream.ObjectInfo
		if json.Unmarshal(m.data, &info) == nil && isUpload(info.NUID) {
			delete(state.Subjects, j.names.BlobChunks(info.NUID))
		}
	}
	for _, subject := range slices.Sorted(maps.Keys(state.Subjects)) {
		last, err := j.lastOn(ctx, j.names.BlobsStream(), subject)
		if err == nil && last.time < before.UnixMilli() {
			n++
			err = j.purge(ctx, subject)
		}
		if err != nil {
			return n, fmt.Errorf("delete unused chunks: %w", err)
		}
	}
	return n, nil
}
