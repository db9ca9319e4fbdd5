package journal

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/planner"
)

// A blob that nothing names is an orphan. SweepOrphans deletes orphans in two steps, of
// which another sweep makes the second one, at least the grace period later
// (docs/adr/0112).
//
// It marks an orphan: it stores the description once more, with a mark. Whoever is about
// to name a blob looks at its last description before. Who finds a mark (PutBlob,
// PutBlobs, KeepBlob) stores the description once more without it. Who looked before the
// mark was stored has the grace period to store what names the blob.
//
// A later sweep reads everything again. If still nothing names the blob, it stores a
// description that says that the blob is deleted, which the server accepts only if the mark
// is the last description. So either that is stored or a description without the mark,
// never both. Then it deletes the descriptions up to there, and SweepBlobs the chunks that
// no other description names.
//
// The marks are all that a sweep remembers: it may be killed anywhere, and several may run
// at once.

// markKey is the key of the mark in the metadata of a description.
const markKey = "refold-unnamed"

func isMarked(info *jetstream.ObjectInfo) bool { return info.Metadata[markKey] != "" }

// KeepBlob reports whether a blob is stored, without reading it. It takes the mark of a
// sweep off, so that the caller has time to name the blob: the grace period of sweeps.
func (j *Journal) KeepBlob(ctx context.Context, ref codec.Ref) (there bool, err error) {
	err = natsio.Backoff(ctx, func() error {
		info, seq, err := j.lookUpBlob(ctx, ref)
		if errors.Is(err, natsio.ErrNotFound) {
			there = false
			return nil
		}
		if err == nil {
			err = j.unmark(ctx, ref, info, seq)
		}
		there = err == nil
		return err
	})
	if err != nil {
		return false, fmt.Errorf("look for blob %s: %w", ref, err)
	}
	return there, nil
}

// unmark makes one attempt to take the mark off a blob whose last description is info, at
// sequence seq. Without a mark it does nothing.
func (j *Journal) unmark(ctx context.Context, ref codec.Ref, info jetstream.ObjectInfo, seq uint64) error {
	if !isMarked(&info) {
		return nil
	}
	info.Metadata = maps.Clone(info.Metadata)
	delete(info.Metadata, markKey)
	return j.putDescription(ctx, ref, seq, info)
}

// BlobCount is a number of blobs, and the sum of the sizes in their descriptions.
type BlobCount struct {
	Blobs int
	Bytes int64
}

func (c *BlobCount) add(d *described) { c.Blobs, c.Bytes = c.Blobs+1, c.Bytes+d.size }

// Swept is what a sweep has found and done; a dry one, what it would do.
type Swept struct {
	All         BlobCount
	Named       BlobCount // by something that is stored
	Descriptors BlobCount // of tools, which nothing names: they stay
	New         BlobCount // nothing names them, and they were stored within the grace period
	Marked      BlobCount // by this sweep
	Waiting     BlobCount // marked by an earlier one within the grace period
	Unmarked    BlobCount // by this sweep, since something names them again
	Deleted     BlobCount
	// When the first of those that wait can be deleted, Unix ms; 0: none waits.
	Next int64
}

// SweepOrphans deletes the blobs that nothing names, and that an earlier sweep has marked
// before now-grace. It marks those that nothing names and that were stored before
// now-grace. With dry it only counts. now is by the clock of the log.
//
// The grace period is longer than anybody takes from a look at a blob to the event that
// names it. It reads the log, packs, snapshots, effects and imported conversations, and
// holds 64 bytes for each blob; over 2,097,152 subjects of REFOLD_BLOBS, some two for each
// blob, are an error. The caller must be permitted to purge blobs and to describe them.
func (j *Journal) SweepOrphans(ctx context.Context, now time.Time, grace time.Duration, dry bool) (s Swept, err error) {
	all, err := j.describedBlobs(ctx)
	if err != nil {
		return s, err
	}
	if err := j.nameBlobs(ctx, all); err != nil {
		return s, err
	}
	before := now.Add(-grace).UnixMilli()
	var failed atomic.Pointer[error] // the first one
	var adding sync.Mutex
	var acting sync.WaitGroup
	room := make(chan struct{}, blobsAtOnce)
	for i := range all {
		d := &all[i]
		act, count := s.decide(d, before)
		if act == keep {
			adding.Lock()
			s.count(d, count)
			adding.Unlock()
			continue
		}
		room <- struct{}{}
		if failed.Load() != nil {
			break
		}
		acting.Go(func() {
			defer func() { <-room }()
			count, err := j.act(ctx, d, act, count, &s, dry)
			if err != nil {
				err = fmt.Errorf("sweep blob %s: %w", d.ref(), err)
				failed.CompareAndSwap(nil, &err)
				return
			}
			adding.Lock()
			defer adding.Unlock()
			s.count(d, count)
		})
	}
	acting.Wait()
	if err := failed.Load(); err != nil {
		return s, *err
	}
	if s.Next > 0 {
		s.Next += grace.Milliseconds()
	}
	if s.Deleted.Blobs > 0 && !dry {
		_, err = j.SweepBlobs(ctx, now.Add(-max(grace, chunksAge)))
	}
	return s, err
}

// count adds a blob. One that is unmarked is a named one, too.
func (s *Swept) count(d *described, as *BlobCount) {
	s.All.add(d)
	as.add(d)
	switch as {
	case &s.Unmarked:
		s.Named.add(d)
	case &s.Marked, &s.Waiting:
		s.Next = min(cmp.Or(s.Next, d.at), d.at)
	}
}

// chunksAge is the least age of chunks that a sweep deletes: an upload takes seconds.
const chunksAge = 24 * time.Hour

// act is what a sweep does with a blob.
type act int

const (
	keep act = iota
	mark
	unmark
	remove
)

// decide returns what to do with a blob, and where to count it.
func (s *Swept) decide(d *described, before int64) (act, *BlobCount) {
	switch {
	case d.named && d.phase == marked:
		return unmark, &s.Unmarked
	case d.named:
		return keep, &s.Named
	case d.at >= before && d.phase == plain:
		return keep, &s.New
	case d.at >= before:
		return keep, &s.Waiting
	case d.phase == plain:
		return mark, &s.Marked
	}
	return remove, &s.Deleted
}

// act does what was decided, unless dry, and returns where to count the blob.
func (j *Journal) act(ctx context.Context, d *described, do act, count *BlobCount, s *Swept, dry bool) (*BlobCount, error) {
	if !d.named {
		if is, err := j.isDescriptor(ctx, d); is || err != nil {
			return &s.Descriptors, err
		}
	}
	if dry {
		return count, nil
	}
	done, err := j.sweep(ctx, d, do)
	switch {
	case done || err != nil:
		return count, err
	case d.named:
		return &s.Named, nil
	}
	return &s.New, nil // it was stored again meanwhile
}

// sweep does it. It is not done if the last description is another one meanwhile.
func (j *Journal) sweep(ctx context.Context, d *described, do act) (done bool, err error) {
	ref := d.ref()
	m, err := j.leaderGet(ctx, j.names.BlobsStream(), getRequest{LastFor: j.blobSubject(ref)})
	if errors.Is(err, natsio.ErrNotFound) || err == nil && m.seq != d.seq {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var info jetstream.ObjectInfo
	_ = json.Unmarshal(m.data, &info) // what is no description is marked and deleted, too
	info.Name, info.Bucket = ref.String(), j.names.BlobsBucket()
	switch {
	case do == unmark:
		err = j.unmark(ctx, ref, info, d.seq)
	case do == mark:
		info.Metadata = map[string]string{markKey: "true"}
		err = j.putDescription(ctx, ref, d.seq, info)
	case d.phase != deletion:
		err = j.putDescription(ctx, ref, d.seq, jetstream.ObjectInfo{ObjectMeta: jetstream.ObjectMeta{Name: info.Name}, Bucket: info.Bucket, Deleted: true})
	}
	if errors.Is(err, errDescribed) {
		return false, nil
	}
	if err == nil && do == remove {
		err = j.purgeDescriptions(ctx, ref)
	}
	return err == nil, err
}

// purgeDescriptions deletes the descriptions of a blob up to the last one that says that
// it is deleted.
func (j *Journal) purgeDescriptions(ctx context.Context, ref codec.Ref) error {
	last := uint64(0)
	for m, err := range j.read(ctx, j.names.BlobsStream(), j.blobSubject(ref), 1, 0, true) {
		if err != nil {
			return err
		}
		var info jetstream.ObjectInfo
		if json.Unmarshal(m.data, &info) == nil && info.Deleted {
			last = m.seq
		}
	}
	ctx, cancel := context.WithTimeout(ctx, purgeTime)
	defer cancel()
	return j.conn.Retry(ctx, func(ctx context.Context) error {
		request := map[string]any{"filter": j.blobSubject(ref), "seq": last + 1}
		return j.conn.Ask(ctx, "STREAM.PURGE."+j.names.BlobsStream(), request, new(natsio.Answer))
	})
}

// phase of a blob, as its last description says.
type phase uint8

const (
	plain phase = iota
	marked
	deletion // it was being deleted when a sweep ended
)

// described is a blob with its last description, in 64 bytes.
type described struct {
	hash  codec.Hash
	seq   uint64 // of the description
	at    int64  // Unix ms, of that
	size  int64  // in bytes, as that says
	phase phase
	named bool
}

func (d *described) ref() codec.Ref { return codec.Ref{Hash: d.hash} }

// describedBlobs returns all blobs, by their hash.
func (j *Journal) describedBlobs(ctx context.Context) (all []described, err error) {
	stream, subjects := j.names.BlobsStream(), j.names.BlobSubject("")
	if state, err := j.state(ctx, stream, ""); err != nil {
		return nil, err
	} else if state.NumSubjects > sweepMax {
		return nil, fmt.Errorf("sweep blobs: REFOLD_BLOBS has %d subjects, and %d at most are compared", state.NumSubjects, sweepMax)
	}
	for m, err := range j.read(ctx, stream, subjects+"*", 1, 0, true) {
		if err != nil {
			return nil, fmt.Errorf("list blobs: %w", err)
		}
		name, err := base64.URLEncoding.DecodeString(strings.TrimPrefix(m.subject, subjects))
		if err != nil || j.conn.IsForeign(m.header) {
			continue // others may write objects that are no blobs
		}
		ref, err := codec.ParseRef(string(name))
		if err != nil {
			continue
		}
		var info jetstream.ObjectInfo
		_ = json.Unmarshal(m.data, &info) // what is no description is of a blob all the same
		d := described{hash: ref.Hash, seq: m.seq, at: m.time, size: int64(min(info.Size, blobBytesMax))}
		switch {
		case info.Deleted:
			d.phase = deletion
		case isMarked(&info):
			d.phase = marked
		}
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b described) int {
		return cmp.Or(a.compare(b.hash), cmp.Compare(b.seq, a.seq)) // the last description first
	})
	return slices.CompactFunc(all, func(a, b described) bool { return a.hash == b.hash }), nil
}

func (d *described) compare(h codec.Hash) int { return slices.Compare(d.hash[:], h[:]) }

// isDescriptor reports whether a blob is the descriptor of a tool. A session computes the
// names of descriptors from its tools, so that nothing may spell them.
func (j *Journal) isDescriptor(ctx context.Context, d *described) (bool, error) {
	if d.size > planner.DescriptorBytesMax {
		return false, nil
	}
	content, err := j.GetBlobUpTo(ctx, d.ref(), planner.DescriptorBytesMax)
	if errors.Is(err, natsio.ErrNotFound) || errors.Is(err, ErrOtherBytes) || errors.Is(err, ErrTooLarge) {
		return false, nil
	}
	return planner.IsDescriptor(content), err
}
