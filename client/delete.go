package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/erase"
	"github.com/refold/refold/internal/journal"
)

// Erase erases a session for good, through the door ctl, also one that is closed: its runs
// are cancelled, open effects are withdrawn, and it accepts nothing more. Its messages stay
// in the streams until Delete. id is the event's; empty: a new ULID.
func (c *Client) Erase(ctx context.Context, sid, reason, id string) (seq uint64, err error) {
	return c.publish(ctx, session.DoorCtl, sid, session.TypeSessionErased, session.SessionErased{Reason: reason}, id)
}

// Hold holds a session, or releases it, through the door ctl: a held session can't be
// erased. id is the event's; empty: a new ULID.
func (c *Client) Hold(ctx context.Context, sid string, held bool, reason, id string) (seq uint64, err error) {
	return c.publish(ctx, session.DoorCtl, sid, session.TypeSessionHeld, session.SessionHeld{Held: held, Reason: reason}, id)
}

// Deletable is what the streams hold of a session.
type Deletable struct {
	Session  string        `json:"session"`
	Events   int           `json:"events"`             // of the log
	Notices  int           `json:"notices"`            // of REFOLD_OUT
	Dead     int           `json:"dead_letters"`       // of REFOLD_DEAD
	Effects  uint64        `json:"effects"`            // effects and claims: they are not deleted, and are kept for an hour
	Expected time.Duration `json:"expected_ns"`        // that the deletion takes
	Children []string      `json:"children,omitempty"` // sessions of which this holds, too: see DeleteOptions.WithChildren
}

// All returns the number of messages.
func (d *Deletable) All() int { return d.Events + d.Notices + d.Dead }

// DeleteOptions are the optional parts of a deletion.
type DeleteOptions struct {
	// Plain deletes without overwriting, which takes a millisecond a message instead of 34:
	// the bytes stay in the server's files until half of their block is dead.
	Plain bool
	Share float64           // of the time that deletes take, over 0 and at most 1: 1 slows everything beside it down a lot; 0: a twentieth, a quarter if Plain
	Told  func(deleted int) // called after each deleted message, with their number; nil: nobody
	// WithChildren deletes the children of a session with it, theirs, and so on. Without it
	// a session that has any is refused, with a *ChildrenError: they would outlive it.
	WithChildren bool
}

// of returns them for the eraser.
func (o *DeleteOptions) of() erase.Options {
	return erase.Options{Plain: o.Plain, Share: o.Share, Told: o.Told}
}

// ChildrenError says that a session can't be deleted alone.
type ChildrenError struct {
	Session  string
	Children []string
}

func (e *ChildrenError) Error() string {
	return fmt.Sprintf("session %s has children, which would outlive it: %s; refold delete --with-children deletes them with it", e.Session, strings.Join(e.Children, ", "))
}

// Deletable returns what Delete would delete, and writes nothing.
func (c *Client) Deletable(ctx context.Context, sid string, o DeleteOptions) (d Deletable, err error) {
	children, err := c.Children(ctx, sid)
	if err != nil {
		return d, err
	}
	if len(children) > 0 && !o.WithChildren {
		return d, &ChildrenError{sid, children}
	}
	if d, err = c.deletable(ctx, sid, o); err != nil {
		return d, err
	}
	for _, child := range children {
		of, err := c.deletable(ctx, child, o)
		if err != nil {
			return d, err
		}
		d.add(&of)
	}
	return d, nil
}

// add adds what is of one more session.
func (d *Deletable) add(one *Deletable) {
	d.Events, d.Notices, d.Dead, d.Effects = d.Events+one.Events, d.Notices+one.Notices, d.Dead+one.Dead, d.Effects+one.Effects
	d.Expected += one.Expected
	if one.Session != d.Session {
		d.Children = append(d.Children, one.Session)
	}
}

// deletable is Deletable for one session.
func (c *Client) deletable(ctx context.Context, sid string, o DeleteOptions) (d Deletable, err error) {
	d.Session = sid
	expected := o.of().Expected
	counts, err := erase.Count(ctx, c.bus, sid)
	if err != nil {
		return d, err
	}
	d.Events, d.Notices, d.Dead = counts.Events, counts.Notices, counts.Dead
	if d.Events == 0 {
		return d, fmt.Errorf("session %s: %w", sid, ErrNoSession)
	}
	if tombstone, err := c.tombstoneAlone(ctx, sid); err != nil || tombstone != 0 {
		d.Events, d.Expected = 0, expected(d.Notices+d.Dead)
		return d, err
	}
	d.Expected = expected(counts.All())
	d.Effects, err = c.bus.EffectsOf(ctx, sid)
	return d, err
}

// Deleter deletes sessions. It must not be used concurrently.
type Deleter struct {
	c      *Client
	eraser *erase.Eraser
	with   bool // children, too
	any    bool // a session was deleted
}

// Deleter returns a deleter. One deleter at a time works on the streams: the error of a
// second one says so.
func (c *Client) Deleter(o DeleteOptions) *Deleter {
	return &Deleter{c: c, eraser: erase.New(c.bus, o.of()), with: o.WithChildren}
}

// Delete erases a session and deletes its messages: its events, except for the tombstone,
// its notices, except for the last one, its dead letters and its snapshot. Deletes take a
// twentieth of the time: Deletable has the expected duration. It needs a session-actor, and
// the rights of an eraser.
//
// It first completes what a deleter before it has left undone. After an error, also when
// ctx ends, call it again: it completes the deletion. Called again later it deletes what was
// published meanwhile. A session that is held is refused, with a *RejectedError. Of a
// session whose messages are deleted already it deletes nothing, and that is no error.
//
// Effects and claims of the session are not deleted: without them a bridge could still
// start an effect that was withdrawn. They are gone after an hour.
//
// A session's children are erased after it, and deleted before it. What they tell each
// other after that has no text, and stays until each is deleted again.
func (d *Deleter) Delete(ctx context.Context, sid, reason string) (Deletable, error) {
	return d.delete(ctx, sid, reason, 0)
}

// ErrChanged says that a session has got an event that the caller did not see.
var ErrChanged = errors.New("the session has another last event meanwhile")

// DeleteAfter is Delete for a session whose last event is at sequence last, as its state
// or its archive says. If it has another one, nothing is deleted, and the error is
// ErrChanged.
func (d *Deleter) DeleteAfter(ctx context.Context, sid, reason string, last uint64) (Deletable, error) {
	return d.delete(ctx, sid, reason, last)
}

func (d *Deleter) delete(ctx context.Context, sid, reason string, last uint64) (deleted Deletable, err error) {
	deleted.Session = sid
	begun := time.Now()
	children, err := d.c.Children(ctx, sid)
	if err != nil {
		return deleted, err
	}
	if len(children) > 0 && !d.with {
		return deleted, &ChildrenError{sid, children}
	}
	all := append([]string{sid}, children...)
	after := make([]uint64, len(all))
	for i := range all {
		alone, err := d.c.tombstoneAlone(ctx, all[i])
		if err == nil && alone == 0 {
			after[i], err = d.erase(ctx, all[i], reason, last)
		}
		last = 0 // the children have other events
		if err != nil {
			return deleted, err
		}
	}
	d.any = true
	for i := len(all) - 1; i >= 0; i-- {
		one, err := d.session(ctx, all[i], after[i])
		deleted.add(&one)
		deleted.Expected = time.Since(begun)
		if err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

// session deletes the messages of one erased session.
func (d *Deleter) session(ctx context.Context, sid string, after uint64) (deleted Deletable, err error) {
	counts, err := d.eraser.Session(ctx, sid, after)
	deleted = Deletable{Session: sid, Events: counts.Events, Notices: counts.Notices, Dead: counts.Dead}
	if err == nil {
		deleted.Effects, err = d.c.bus.EffectsOf(ctx, sid)
	}
	return deleted, err
}

// erase publishes SessionErased, unless the session is held, and returns its sequence. It
// must come after the event at last, unless that is 0.
func (d *Deleter) erase(ctx context.Context, sid, reason string, last uint64) (uint64, error) {
	if q, err := d.c.quarantineOf(ctx, sid); err != nil || q.Seq != 0 {
		if err == nil {
			err = fmt.Errorf("session %s can't be deleted while it is stopped: refold release %s, and try again: %w", sid, sid, &QuarantinedError{Reason: q.Reason})
		}
		return 0, err
	}
	if err := d.eraser.Prepare(ctx, sid); err != nil {
		return 0, err
	}
	seq, err := d.c.eraseAfter(ctx, sid, reason, last)
	if err != nil {
		return 0, err
	}
	_, err = d.c.Taken(ctx, sid, seq)
	var refused *RejectedError
	if errors.As(err, &refused) && refused.Code == session.RejectSessionErased {
		err = nil // its owner stores another tombstone over what was published meanwhile
	}
	return seq, err
}

func (c *Client) eraseAfter(ctx context.Context, sid, reason string, last uint64) (seq uint64, err error) {
	if last == 0 {
		return c.Erase(ctx, sid, reason, "")
	}
	event, err := envelope(byOf(ctx, c.by), session.TypeSessionErased, session.SessionErased{Reason: reason}, ulid.Make().String())
	if err != nil {
		return 0, err
	}
	seq, err = c.bus.PublishAfter(ctx, session.DoorCtl, sid, event, last)
	if errors.Is(err, journal.ErrOvertaken) {
		return 0, fmt.Errorf("session %s: %w", sid, ErrChanged)
	}
	if err == nil {
		c.published(sid, seq)
	}
	return seq, err
}

// Close makes the server drop the bytes of former snapshots, if a session was deleted: it
// stores every snapshot once more. It returns their number.
func (d *Deleter) Close(ctx context.Context) (rewritten int, err error) {
	if !d.any {
		return 0, nil
	}
	return d.eraser.Snapshots(ctx)
}

// tombstoneAlone returns the sequence of the tombstone of a session that has no event after
// it; 0: the session must be erased first, or once more.
func (c *Client) tombstoneAlone(ctx context.Context, sid string) (uint64, error) {
	tombstone, err := c.bus.TombstoneOf(ctx, sid)
	if err != nil || tombstone == 0 {
		return 0, err
	}
	for _, err := range c.bus.ReadSession(ctx, sid, tombstone+1, 0, true) {
		return 0, err
	}
	return tombstone, nil
}

// DeletedSessions returns the names in the ledger of deleted sessions, sorted.
func (c *Client) DeletedSessions(ctx context.Context) ([]string, error) {
	names := map[string]bool{}
	if _, err := c.bus.ErasedSince(ctx, 0, func(sid string) { names[sid] = true }); err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(names)), nil
}
