package erase

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// Store is what an eraser reads and writes: a *bus.Bus, which documents each method.
type Store interface {
	Names() subjects.Names
	LastErasure(ctx context.Context) (journal.Erasure, uint64, error)
	PutErasure(ctx context.Context, e journal.Erasure, after uint64) (uint64, error)
	TombstoneOf(ctx context.Context, sid string) (seq uint64, err error)
	EventSeqs(ctx context.Context, sid string, before uint64) ([]uint64, error)
	TextOf(ctx context.Context, sid string) (notices, dead []uint64, err error)
	EffectsOf(ctx context.Context, sid string) (uint64, error)
	Erase(ctx context.Context, stream string, seq uint64, plain bool) error
	EraseSnapshot(ctx context.Context, sid string) error
	RewriteSnapshots(ctx context.Context) (int, error)
	LaneBacklog(ctx context.Context) (uint64, error)
}

// Limits of an eraser.
const (
	// share is the part of the time that deletes take, unless the caller has another one
	// (docs/adr/0107).
	share = 0.05
	// deleteTakes is what a delete is expected to take: 29 to 42 ms (docs/adr/0107).
	deleteTakes = 34 * time.Millisecond
	// plainShare and plainTakes are share and deleteTakes of plain deletes (docs/adr/0111).
	plainShare = 0.25
	plainTakes = time.Millisecond
	// backlogMax is the number of undelivered events of a lane over which the eraser pauses:
	// a delete then takes half a second.
	backlogMax = 10_000
	// backlogEvery is how often it asks for that number.
	backlogEvery = time.Second
	// tombstoneEvery and tombstoneWithin are how often and for how long it looks for a
	// tombstone and its snapshot.
	tombstoneEvery  = 5 * time.Millisecond
	tombstoneWithin = 30 * time.Second
)

// Options are the optional parts of an eraser.
type Options struct {
	// Plain deletes messages without overwriting them: their bytes stay in the server's files
	// until half of their block is dead.
	Plain bool
	Share float64           // of the time that deletes take, over 0 and at most 1; 0: a twentieth, a quarter if Plain
	Told  func(deleted int) // called after each delete, with the number of messages that the eraser has deleted; nil: nobody
}

// Expected returns how long the deletion of that many messages is expected to take.
func (o Options) Expected(messages int) time.Duration {
	if o.Plain {
		return time.Duration(float64(messages) * float64(plainTakes) / o.share())
	}
	return time.Duration(float64(messages) * float64(deleteTakes) / o.share())
}

func (o Options) share() float64 {
	if o.Plain {
		return cmp.Or(o.Share, plainShare)
	}
	return cmp.Or(o.Share, share)
}

// Counts are the messages about a session that are there to be deleted, or were deleted.
type Counts struct {
	Events  int `json:"events"`       // of the log
	Notices int `json:"notices"`      // of REFOLD_OUT
	Dead    int `json:"dead_letters"` // of REFOLD_DEAD
}

// All returns their sum.
func (c Counts) All() int { return c.Events + c.Notices + c.Dead }

// Eraser deletes messages, one at a time. It must not be used concurrently.
type Eraser struct {
	store   Store
	opts    Options
	sleep   func(context.Context, time.Duration) error
	deleted int       // by this eraser
	asked   time.Time // when the backlog was asked for

	last journal.Erasure // of the ledger
	at   uint64          // its sequence there
}

// New returns an eraser.
func New(store Store, o Options) *Eraser {
	return &Eraser{store: store, opts: o, sleep: natsio.Sleep}
}

// Count returns what a deletion of the session would delete now. It is a little more for a
// session that is not erased yet: its tombstone's event and notice.
func Count(ctx context.Context, s Store, sid string) (c Counts, err error) {
	seqs, err := s.EventSeqs(ctx, sid, 0)
	if err != nil {
		return c, err
	}
	notices, dead, err := s.TextOf(ctx, sid)
	return Counts{Events: len(seqs), Notices: len(notices), Dead: len(dead)}, err
}

// Prepare deletes the session's snapshot, before SessionErased is published: the snapshot
// that replaces it would leave its bytes in the server's files. A session without a
// snapshot is loaded from its events. A plain eraser leaves it to be replaced.
func (e *Eraser) Prepare(ctx context.Context, sid string) error {
	if e.opts.Plain {
		return nil
	}
	return e.paced(ctx, func() error { return e.store.EraseSnapshot(ctx, sid) })
}

// Session deletes the messages of an erased session, after its owner has stored a
// tombstone at or after the sequence after and the snapshot of it. It first completes what
// an eraser before it has begun. The events are deleted last: if the log has the tombstone
// alone, nothing is left elsewhere. It returns what it has deleted, also with an error. The
// same call again completes the deletion.
func (e *Eraser) Session(ctx context.Context, sid string, after uint64) (c Counts, err error) {
	if err := e.Finish(ctx); err != nil {
		return c, err
	}
	tombstone, err := e.await(ctx, sid, after)
	if err != nil {
		return c, err
	}
	notices, dead, err := e.store.TextOf(ctx, sid)
	if err != nil {
		return c, err
	}
	if err := e.deleteAll(ctx, e.store.Names().NoticesStream(), notices, e.opts.Plain, &c.Notices); err != nil {
		return c, err
	}
	if err := e.deleteAll(ctx, e.store.Names().DeadStream(), dead, e.opts.Plain, &c.Dead); err != nil {
		return c, err
	}
	seqs, err := e.store.EventSeqs(ctx, sid, tombstone)
	for err == nil && len(seqs) > 0 {
		ranges, n := rangesOf(seqs, journal.RangesMax)
		seqs = seqs[n:]
		if err := e.enter(ctx, journal.Erasure{Session: sid, Tombstone: tombstone, Ranges: ranges, Left: uint64(len(seqs)), Before: e.explained(), Plain: e.opts.Plain}); err != nil {
			return c, err
		}
		err = e.finish(ctx, &c.Events)
	}
	return c, err
}

// Snapshots makes the server drop the bytes of former snapshots, of all sessions, and
// returns how many snapshots it has stored again for that.
func (e *Eraser) Snapshots(ctx context.Context) (int, error) {
	return e.store.RewriteSnapshots(ctx)
}

// Finish completes the erasure that the ledger has under way, if there is one.
func (e *Eraser) Finish(ctx context.Context) (err error) {
	if e.last, e.at, err = e.store.LastErasure(ctx); err != nil || e.at == 0 || e.last.Done {
		return err
	}
	return e.finish(ctx, new(int))
}

// explained returns how many events of the log all erasures have deleted; none may be
// under way.
func (e *Eraser) explained() uint64 {
	if e.at == 0 {
		return 0
	}
	return e.last.Before + e.last.Events()
}

// finish deletes what the ledger's last entry names, and enters that it is done. It adds
// to n what it deletes.
func (e *Eraser) finish(ctx context.Context, n *int) error {
	for _, r := range e.last.Ranges {
		for seq := r[0]; seq <= r[1]; seq++ {
			if err := e.deleteAll(ctx, e.store.Names().LogStream(), []uint64{seq}, e.last.Plain, n); err != nil {
				return err
			}
		}
	}
	done := e.last
	done.Done = true
	return e.enter(ctx, done)
}

// enter appends an entry to the ledger.
func (e *Eraser) enter(ctx context.Context, entry journal.Erasure) (err error) {
	at, err := e.store.PutErasure(ctx, entry, e.at)
	if errors.Is(err, journal.ErrOvertaken) {
		return fmt.Errorf("another eraser is at work: let it end, and try again (%w)", err)
	}
	if err == nil {
		e.last, e.at = entry, at
	}
	return err
}

func (e *Eraser) deleteAll(ctx context.Context, stream string, seqs []uint64, plain bool, n *int) error {
	for _, seq := range seqs {
		if err := e.paced(ctx, func() error { return e.store.Erase(ctx, stream, seq, plain) }); err != nil {
			return err
		}
		*n++
		e.deleted++
		if e.opts.Told != nil {
			e.opts.Told(e.deleted)
		}
	}
	return nil
}

// paced carries out one delete, and waits before and after it as the limits say.
func (e *Eraser) paced(ctx context.Context, del func() error) error {
	for time.Since(e.asked) > backlogEvery {
		most, err := e.store.LaneBacklog(ctx)
		if err != nil {
			return err
		}
		if most <= backlogMax {
			e.asked = time.Now()
			break
		}
		if err := e.sleep(ctx, backlogEvery); err != nil {
			return err
		}
	}
	begun := time.Now()
	if err := del(); err != nil {
		return err
	}
	took := float64(time.Since(begun))
	return e.sleep(ctx, time.Duration(took/e.opts.share()-took))
}

// ErrNoTombstone says that the session's owner has not stored the tombstone and its snapshot.
var ErrNoTombstone = errors.New("its session-actor has not stored the tombstone and a snapshot without text: see that one runs and stores snapshots (refold doctor), and delete the session again")

// await returns the sequence of the session's tombstone once a snapshot at it or later is
// stored.
func (e *Eraser) await(ctx context.Context, sid string, after uint64) (tombstone uint64, err error) {
	for waited := time.Duration(0); ; waited += tombstoneEvery {
		tombstone, err = e.store.TombstoneOf(ctx, sid)
		switch {
		case err != nil:
			return 0, err
		case tombstone > after:
			return tombstone, nil
		case waited > tombstoneWithin:
			return 0, fmt.Errorf("session %s: %w", sid, ErrNoTombstone)
		}
		if err := e.sleep(ctx, tombstoneEvery); err != nil {
			return 0, err
		}
	}
}

// rangesOf returns at most limit ranges of the first n of sorted sequences.
func rangesOf(seqs []uint64, limit int) (ranges [][2]uint64, n int) {
	for _, seq := range seqs {
		last := len(ranges) - 1
		switch {
		case last >= 0 && ranges[last][1]+1 == seq:
			ranges[last][1] = seq
		case len(ranges) == limit:
			return ranges, n
		default:
			ranges = append(ranges, [2]uint64{seq, seq})
		}
		n++
	}
	return ranges, n
}
