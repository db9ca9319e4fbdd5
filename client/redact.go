package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/erase"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// Redaction says what removing the text of an event takes.
type Redaction struct {
	Session  string        `json:"session"`
	Seq      uint64        `json:"seq"`  // of the event
	Type     string        `json:"type"` // of the event
	Notices  int           `json:"notices"`
	Dead     int           `json:"dead_letters"`
	Blobs    int           `json:"blobs"`       // that the event named: refold blobs sweep deletes them if nothing else does
	Done     bool          `json:"done"`        // its text is removed already
	Expected time.Duration `json:"expected_ns"` // that it takes
}

// RedactionError says why the text of an event can't be removed, and what to do.
type RedactionError struct {
	Session string
	Seq     uint64
	Why     string
}

func (e *RedactionError) Error() string {
	return fmt.Sprintf("the text of event %d of session %s can't be removed: %s", e.Seq, e.Session, e.Why)
}

// planned is a redaction that was planned.
type planned struct {
	Redaction
	erase   erase.Redaction
	fillers []session.Filler
	latest  uint64 // sequence of the session's latest event
	held    bool   // states had the text, and former snapshots may
}

// Redactable returns what Deleter.Redact would do for the event at a sequence of the log,
// and writes nothing. A *RedactionError says why it would refuse.
func (c *Client) Redactable(ctx context.Context, sid string, seq uint64) (Redaction, error) {
	p, err := c.planRedaction(ctx, sid, seq)
	return p.Redaction, err
}

// planRedaction folds the session twice, with and without the text of the event.
func (c *Client) planRedaction(ctx context.Context, sid string, seq uint64) (*planned, error) {
	p := &planned{Redaction: Redaction{Session: sid, Seq: seq}, erase: erase.Redaction{Session: sid}}
	refuse := func(why string) (*planned, error) { return p, &RedactionError{sid, seq, why} }
	f := twoFolds{at: seq}
	for e, err := range c.bus.ReadSession(ctx, sid, 1, 0, true) {
		if err == nil {
			err = f.fold(ctx, c, e)
		}
		if f.fault != nil {
			break
		}
		if err != nil {
			return p, err
		}
	}
	switch {
	case f.with == nil:
		return p, fmt.Errorf("session %s: %w", sid, ErrNoSession)
	case errors.Is(f.fault, session.ErrRedacted):
		p.Type, p.Done = f.typ, true
		return p, nil
	case f.fault != nil:
		return refuse(f.fault.Error())
	case f.redacted.Seq == 0:
		return p, errNotThere(sid, seq)
	case f.with.Seq == seq:
		return refuse("it is the session's latest event: try again after the next one")
	case f.equal == 0:
		return refuse("the session uses it still, or has decided by it: a config, facts, a queued run, an open call, the latest turn. Try again after the next run, or delete the session")
	}
	q, err := c.quarantineOf(ctx, sid)
	switch {
	case err != nil:
		return p, err
	case q.Seq != 0:
		return refuse("the session is stopped: refold release " + sid + ", and try again")
	}
	return p, p.collect(ctx, c, &f)
}

// twoFolds folds a session with and without the text of one event.
type twoFolds struct {
	at       uint64         // sequence of the event
	with     *session.State // as it was; nil before the first event
	without  *session.State // without the text of the event
	redacted session.Event  // zero before the event
	fillers  []session.Filler
	typ      string
	fault    error  // why it has no copy without text
	equal    uint64 // sequence from which both states are the same; 0: they are not

	notices []uint64          // sequences of events whose notices differ
	effects map[string][]byte // that differ: as they were
}

func (f *twoFolds) fold(ctx context.Context, c *Client, e session.Event) (err error) {
	if f.with == nil {
		if f.with, err = c.begin(ctx, e); err == nil {
			f.without, err = c.begin(ctx, e)
		}
		if err != nil {
			return err
		}
	}
	other := e
	if e.Seq == f.at {
		env, _ := session.ReadEnvelope(e.Payload) // Redact reads it again
		f.typ = env.Type
		if other, f.fillers, f.fault = session.Redact(e); f.fault != nil {
			return f.fault
		}
		f.redacted = other
	}
	if err := f.with.Foldable(); err != nil {
		return err
	}
	told, _ := f.with.Evolve(e)
	toldWithout, _ := f.without.Evolve(other)
	if e.Seq < f.at || f.equal != 0 {
		return nil
	}
	if !sameNotices(told, toldWithout) {
		f.notices = append(f.notices, e.Seq)
	}
	f.compareEffects()
	if bytes.Equal(f.with.Bytes(), f.without.Bytes()) {
		f.equal = e.Seq
	}
	return nil
}

func sameNotices(a, b []session.Notice) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// compareEffects keeps the open effects that the state without the text does not have.
func (f *twoFolds) compareEffects() {
	same := map[string][]byte{}
	for _, e := range f.without.Open() {
		same[e.Name] = e.Payload
	}
	for _, e := range f.with.Open() {
		if !bytes.Equal(same[e.Name], e.Payload) {
			if f.effects == nil {
				f.effects = map[string][]byte{}
			}
			f.effects[e.Name] = e.Payload
		}
	}
}

// collect finds what the streams have of the text.
func (p *planned) collect(ctx context.Context, c *Client, f *twoFolds) (err error) {
	sid := f.with.Session
	p.Type, p.Blobs, p.fillers, p.latest, p.held = f.typ, len(f.fillers), f.fillers, f.with.Seq, f.equal != f.at
	if p.erase.Event, err = journal.RedactedOf(f.redacted); err != nil {
		return err
	}
	stored, err := c.bus.ListEffects(ctx, sid)
	if err != nil {
		return err
	}
	for _, e := range stored {
		if bytes.Equal(f.effects[e.Name.Effect], e.Payload) {
			until := time.UnixMilli(e.Time).Add(time.Hour).UTC().Format(time.RFC3339)
			return &RedactionError{sid, f.at, "the effect " + e.Name.Effect + " has it, too, and is kept until " + until + ": try again then"}
		}
	}
	if err := p.findNotices(ctx, c, f.notices); err != nil {
		return err
	}
	snap, err := c.Snapshot(ctx, sid)
	if err == nil && snap != nil {
		p.erase.Snapshot = snap.Seq >= f.at && snap.Seq < f.equal
	}
	messages := 1 + p.Notices + p.Dead
	p.Expected = settled + erase.Options{}.Expected(messages)
	return err
}

// findNotices finds the notices about these events, and the dead letters.
func (p *planned) findNotices(ctx context.Context, c *Client, about []uint64) error {
	if len(about) == 0 {
		return nil
	}
	isAbout := func(notice []byte) bool {
		var n struct{ Seq uint64 }
		return json.Unmarshal(notice, &n) != nil || slices.Contains(about, n.Seq)
	}
	last := uint64(0)
	for n, err := range c.bus.ReadNotices(ctx, p.Session, 0, 0) {
		if err != nil {
			return err
		}
		first, _, _ := bytes.Cut(n.Payload, []byte("\n"))
		if last = 0; isAbout(first) {
			last = n.Seq
			p.erase.Notices = append(p.erase.Notices, n.Seq)
		}
	}
	if last != 0 {
		return &RedactionError{p.Session, p.Seq, "the session's latest notice has it, too, and lists are made of that: try again after the next run has begun"}
	}
	for d, err := range c.bus.DeadLetters(ctx, "") {
		if err != nil {
			return err
		}
		if d.Session == p.Session && isAbout(d.Body) {
			p.erase.Dead = append(p.erase.Dead, d.Seq)
		}
	}
	p.Notices, p.Dead = len(p.erase.Notices), len(p.erase.Dead)
	return nil
}

// settled is how long the position of a lane is old before an event below it may go. The
// server writes positions ten times a second: one that is killed delivers no event again
// that was acknowledged a second ago.
const settled = time.Second

// Redact removes the text of the event at a sequence of the log, for good: the event is
// overwritten, and a copy without text, with the same hash, stands in the ledger in its
// place. Everything that reads the log reads the copy, and the session's state, chain and
// numbers stay what they are. Notices and dead letters with the text are deleted, too. It
// needs a session-actor, and the rights of an eraser.
//
// It refuses with a *RedactionError what would change the session, or what has the text
// and can't be deleted: it says what to do. After another error, also when ctx ends, call it
// again: it completes the work. An event whose text is removed already is no error. The
// texts of other events stay, also where a model repeats this one.
func (d *Deleter) Redact(ctx context.Context, sid string, seq uint64) (Redaction, error) {
	begun := time.Now()
	if err := d.eraser.Finish(ctx); err != nil {
		return Redaction{Session: sid, Seq: seq}, err
	}
	p, err := d.c.planRedaction(ctx, sid, seq)
	if err != nil || p.Done {
		d.any = d.any || p.Done // whoever did it may have ended before Close
		return p.Redaction, err
	}
	if err := d.c.acknowledged(ctx, sid, p.latest); err != nil {
		return p.Redaction, err
	}
	for _, f := range p.fillers {
		if _, err := d.c.bus.PutBlob(ctx, f.Content()); err != nil {
			return p.Redaction, err
		}
	}
	d.any = d.any || p.held
	if err := d.eraser.Redact(ctx, &p.erase); err != nil {
		return p.Redaction, err
	}
	p.Done, p.Expected = true, time.Since(begun)
	return p.Redaction, nil
}

// acknowledged waits until the lane of a session has acknowledged its event at seq, and
// then until that is settled.
func (c *Client) acknowledged(ctx context.Context, sid string, seq uint64) error {
	for waited := time.Duration(0); ; waited += acknowledgedEvery {
		lanes, err := c.bus.LanesAged(ctx)
		if err != nil {
			return err
		}
		of := subjects.LaneOf(subjects.Partition(sid), max(len(lanes), 1))
		if of < len(lanes) && lanes[of].Floor >= seq {
			return natsio.Sleep(ctx, settled)
		}
		if waited >= acknowledgedWithin {
			return fmt.Errorf("session %s: no session-actor has acknowledged its latest event, %d: see that one runs (refold doctor), and try again", sid, seq)
		}
		if err := natsio.Sleep(ctx, acknowledgedEvery); err != nil {
			return err
		}
	}
}

// How often and for how long acknowledged looks.
const (
	acknowledgedEvery  = 200 * time.Millisecond
	acknowledgedWithin = 30 * time.Second
)
