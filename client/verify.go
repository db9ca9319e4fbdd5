package client

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/audit"
	"github.com/refold/refold/internal/journal"
)

// VerifyOptions are the options of Verify.
type VerifyOptions struct {
	// Jobs is how many sessions are folded at a time; 0 is 1. The result does not
	// depend on it.
	Jobs int
	// Each, if not nil, is called with every session, in the order in which they
	// began. If it returns an error, Verify stops and returns that.
	Each func(*Replayed) error
	// Differs, if not nil, is called with each session that differs, in the same
	// order, before Each.
	Differs func(*Replayed) error
}

// Verified is the result of folding the whole log again.
type Verified struct {
	Sessions  int    `json:"sessions"`
	Events    uint64 `json:"events"`
	Rejected  uint64 `json:"rejected"`  // of them
	Skipped   int    `json:"skipped"`   // messages that are no events
	Differ    int    `json:"differ"`    // sessions
	Effects   uint64 `json:"effects"`   // compared and the same
	Gone      uint64 `json:"gone"`      // effects that are no longer stored
	Snapshots int    `json:"snapshots"` // compared

	// Holes are sequences without an event. Only other differences may show whose
	// events they were.
	Holes []Hole `json:"holes,omitempty"`

	Took         time.Duration `json:"took_ns"`           // for reading and folding
	SessionBytes uint64        `json:"bytes_per_session"` // of memory
}

// Identical reports whether nothing differs and nothing is missing.
func (v *Verified) Identical() bool { return v.Differ == 0 && len(v.Holes) == 0 }

// Hole is a range of sequences, both included, at which the log has no event.
type Hole struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
}

// Verify reads the log once, folds all sessions together, and compares them with
// the stored effects and snapshots, each of which it also reads once. It writes
// nothing. It holds the states of all sessions in memory. Events that arrive
// meanwhile make no difference.
func (c *Client) Verify(ctx context.Context, o VerifyOptions) (*Verified, error) {
	before, begun := heapBytes(), time.Now()
	p, err := audit.All(ctx, c.bus, c.installs.Pinned, o.Jobs)
	if err != nil {
		return nil, err
	}
	v := &Verified{Skipped: p.Scanned.Skipped, Took: time.Since(begun)}
	for _, hole := range p.Scanned.Holes {
		v.Holes = append(v.Holes, Hole(hole))
	}
	if n := p.Len(); n > 0 {
		v.SessionBytes = (max(heapBytes(), before) - before) / uint64(n)
	}
	for a, differs := range p.Results(o.Each != nil) {
		r := replayedOf(a)
		if differs {
			// It may have continued since, and Replay reports the differences in
			// detail.
			if r, err = c.Replay(ctx, a.Session, 0, nil); err != nil {
				return nil, err
			}
		}
		if err := v.report(r, o); err != nil {
			return nil, err
		}
	}
	for _, sid := range p.Lost {
		r, err := c.VerifySession(ctx, sid)
		if errors.Is(err, ErrNoSession) {
			continue
		}
		if err == nil {
			err = v.report(r, o)
		}
		if err != nil {
			return nil, err
		}
	}
	return v, nil
}

func heapBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Add adds the result of one session.
func (v *Verified) Add(r *Replayed) {
	v.Sessions++
	v.Events += r.Events
	v.Rejected += uint64(r.Rejected)
	v.Effects += r.EffectsSame
	v.Gone += r.EffectsGone
	if r.SnapshotAt != 0 {
		v.Snapshots++
	}
	if !r.Identical() {
		v.Differ++
	}
}

func (v *Verified) report(r *Replayed, o VerifyOptions) error {
	v.Add(r)
	if !r.Identical() && o.Differs != nil {
		if err := o.Differs(r); err != nil {
			return err
		}
	}
	if o.Each != nil {
		return o.Each(r)
	}
	return nil
}

// VerifySession is Verify for one session. It returns ErrNoSession if nothing of
// the session is stored. A session without events in the log but with other
// stored data differs.
func (c *Client) VerifySession(ctx context.Context, sid string) (*Replayed, error) {
	r, err := c.replay(ctx, sid, 0, nil)
	if err == nil && r.State == nil && r.Identical() {
		return nil, ErrNoSession // at most a quarantine is stored
	}
	return r, err
}

// Quarantine stops a session that differs: its events after the last one folded
// in r wait until the quarantine is deleted. It returns false, and does nothing,
// if the session is already quarantined.
func (c *Client) Quarantine(ctx context.Context, r *Replayed) (stopped bool, err error) {
	if r.Identical() {
		return false, fmt.Errorf("quarantine %s: nothing differs", r.Session)
	}
	if q, err := c.quarantineOf(ctx, r.Session); err != nil || q.Seq != 0 {
		return false, err
	}
	at := journal.NewStop(r.Seq+1, "refold verify: "+r.Differences[0])
	body, err := at.Bytes()
	if err != nil {
		return false, err
	}
	last, err := c.bus.LastSummary(ctx, r.Session)
	if err != nil {
		return false, err
	}
	notice := session.NewQuarantined(r.Session, at.Seq, time.Now().UnixMilli(), at.Reason, last)
	// The notice first: a stored quarantine always has one.
	if err := c.bus.Notify(ctx, r.Session, 0, notice.JSON()); err != nil {
		return false, err
	}
	return true, c.bus.PutQuarantine(ctx, r.Session, body)
}
