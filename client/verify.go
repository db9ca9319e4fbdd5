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

// VerifyOptions say how the whole log is folded again.
type VerifyOptions struct {
	// Jobs is how many sessions are folded at a time; 0 is 1. The outcome does
	// not depend on it.
	Jobs int
	// Each, if not nil, is called with every session, in the order in which they
	// began; its error ends the call and comes back as it is.
	Each func(*Replayed) error
	// Differs, if not nil, is called with each session that differs, in the same
	// order, before Each.
	Differs func(*Replayed) error
}

// Verified is what folding the whole log again came to.
type Verified struct {
	Sessions  int    `json:"sessions"`
	Events    uint64 `json:"events"`
	Rejected  uint64 `json:"rejected"`  // of them
	Skipped   int    `json:"skipped"`   // messages that are no events
	Differ    int    `json:"differ"`    // sessions
	Effects   uint64 `json:"effects"`   // compared and the same
	Gone      uint64 `json:"gone"`      // effects that are not stored any more
	Snapshots int    `json:"snapshots"` // compared

	// Holes are sequences at which the log has no event any more. Whose it was is
	// told by what else differs, if by anything.
	Holes []Hole `json:"holes,omitempty"`

	Took         time.Duration `json:"took_ns"`           // of reading and folding
	SessionBytes uint64        `json:"bytes_per_session"` // of memory, all that is held of it
}

// Identical reports whether nothing differs and nothing is missing.
func (v *Verified) Identical() bool { return v.Differ == 0 && len(v.Holes) == 0 }

// Hole is a range of sequences, both included, at which the log has no event.
type Hole struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
}

// Verify reads the log once, folds all sessions side by side, and compares them
// with the effects that are stored and with the snapshots, each of which it
// reads once too. It writes nothing. It holds the states of all sessions in
// memory. Sessions that go on meanwhile differ for that in nothing.
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
			// It may have gone on since, and what is wrong is looked at closely.
			if r, err = c.Replay(ctx, a.Session, 0, nil); err != nil {
				return nil, err
			}
		}
		if err := v.tell(r, o); err != nil {
			return nil, err
		}
	}
	for _, sid := range p.Lost {
		r, err := c.VerifySession(ctx, sid)
		if errors.Is(err, ErrNoSession) {
			continue
		}
		if err == nil {
			err = v.tell(r, o)
		}
		if err != nil {
			return nil, err
		}
	}
	return v, nil
}

// heapBytes returns how much memory is in use.
func heapBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Add adds what one session came to.
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

func (v *Verified) tell(r *Replayed, o VerifyOptions) error {
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

// VerifySession is Verify for one session. ErrNoSession means that nothing of
// it is stored at all; a session of which something is, and the log has no
// event, differs.
func (c *Client) VerifySession(ctx context.Context, sid string) (*Replayed, error) {
	r, err := c.replay(ctx, sid, 0, nil)
	if err == nil && r.State == nil && r.Identical() {
		return nil, ErrNoSession // it may be quarantined, and that is all
	}
	return r, err
}

// Quarantine stops a session that differs: from the event after the last one
// that was folded here on, its events wait until the quarantine is deleted. It
// returns false, and does nothing, if the session is quarantined already.
func (c *Client) Quarantine(ctx context.Context, r *Replayed) (stopped bool, err error) {
	if r.Identical() {
		return false, fmt.Errorf("quarantine %s: nothing differs", r.Session)
	}
	if _, found, err := c.bus.GetQuarantine(ctx, r.Session); err != nil || found {
		return false, err
	}
	at := journal.NewStop(r.Seq+1, "refold verify: "+r.Differences[0])
	body, err := at.Bytes()
	if err != nil {
		return false, err
	}
	notice := session.Notice{
		Type: session.NoticeSessionQuarantined, Seq: at.Seq, At: time.Now().UnixMilli(), Session: r.Session,
		Data: session.SessionQuarantined{Reason: at.Reason},
	}
	// Said first and stored last, it is never silent.
	if err := c.bus.Notify(ctx, r.Session, 0, notice.JSON()); err != nil {
		return false, err
	}
	return true, c.bus.PutQuarantine(ctx, r.Session, body)
}
