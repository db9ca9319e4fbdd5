package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
)

// BlobCount is a number of blobs, and the sum of the sizes in their descriptions.
type BlobCount struct {
	Blobs int   `json:"blobs"`
	Bytes int64 `json:"bytes"`
}

// Swept is what a sweep of blobs has found and done; a dry one, what it would do.
type Swept struct {
	All         BlobCount `json:"all"`
	Named       BlobCount `json:"named"`       // by something that is stored
	Descriptors BlobCount `json:"descriptors"` // of tools, which nothing names: they stay
	New         BlobCount `json:"new"`         // nothing names them, and they were stored within the grace period
	Marked      BlobCount `json:"marked"`      // by this sweep
	Waiting     BlobCount `json:"waiting"`     // marked by an earlier one within the grace period
	Unmarked    BlobCount `json:"unmarked"`    // by this sweep, since something names them again
	Deleted     BlobCount `json:"deleted"`
	// When the first of those that wait can be deleted, Unix ms; 0: none waits.
	Next int64 `json:"next,omitempty"`
}

// sweptOf returns what the journal reports.
func sweptOf(s *journal.Swept) Swept {
	return Swept{
		All: BlobCount(s.All), Named: BlobCount(s.Named), Descriptors: BlobCount(s.Descriptors), New: BlobCount(s.New),
		Marked: BlobCount(s.Marked), Waiting: BlobCount(s.Waiting), Unmarked: BlobCount(s.Unmarked), Deleted: BlobCount(s.Deleted), Next: s.Next,
	}
}

// Grace periods of sweeps.
const (
	SweepGrace    = 24 * time.Hour // of SweepOptions without one
	SweepGraceMin = time.Hour      // the longest that an effect is open: what stores blobs names them within it
)

// SweepOptions are the optional parts of a sweep.
type SweepOptions struct {
	Grace  time.Duration    // see SweepBlobs; at least SweepGraceMin; 0: SweepGrace
	DryRun bool             // count, and change nothing
	Now    func() time.Time // the clock of the log; nil: the server is asked
}

// SweepBlobs deletes blobs that nothing names: no event, install record, pack, snapshot,
// effect or imported conversation. It marks those that were stored before the grace period,
// and deletes those that an earlier sweep has marked before the grace period, so that it
// takes two sweeps a grace period apart to delete a blob. A blob that is stored once more
// in between loses its mark. After any error call it again; several sweeps may run at once.
// It reads the whole log. It needs the rights of an eraser.
//
// If the log has an install record whose rules this release does not know, a sweep is
// refused: the record may name blobs.
func (c *Client) SweepBlobs(ctx context.Context, o SweepOptions) (Swept, error) {
	grace := cmp.Or(o.Grace, SweepGrace)
	if grace < SweepGraceMin {
		return Swept{}, fmt.Errorf("a grace period of %v is too short: what stores a blob may take an hour until it names it; give at least %v", grace, SweepGraceMin)
	}
	now := o.Now
	if now == nil {
		clock := c.bus.NewClock(natsio.NewLocalClock())
		if err := clock.Measure(ctx); err != nil {
			return Swept{}, fmt.Errorf("sweep blobs: ask the server for its time: %w", err)
		}
		now = clock.Now
	}
	swept, err := c.bus.SweepOrphans(ctx, now(), grace, o.DryRun)
	var denied *natsio.PermissionError
	if errors.As(err, &denied) {
		err = fmt.Errorf("%w; a sweep needs the role eraser", err)
	}
	return sweptOf(&swept), err
}

// Keep reports whether the blob of a part that Store has returned is still stored, and
// keeps it from a sweep until the part is in an event. Ask it before a part is used that
// was stored more than a few minutes before. True for a part without a blob.
func (c *Client) Keep(ctx context.Context, part session.Content) (bool, error) {
	if part.Blob == nil {
		return true, nil
	}
	return c.bus.KeepBlob(ctx, *part.Blob)
}
