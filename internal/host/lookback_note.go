package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/fault"
	"github.com/refold/refold/subjects"
)

// noteWithin is how long a note may hold acknowledgements up, once in an era.
const noteWithin = 10 * time.Second

// lookback is what is to be looked back upon. Until that is done, it is noted in
// the bucket: whoever takes the lane next, behind what this owner acknowledged,
// looks back as far.
type lookback struct {
	noting chan struct{} // held by who changes the note

	mu      sync.Mutex
	since   time.Time // last events of sessions are looked at from then on
	upTo    uint64    // and up to there: the lane was acknowledged so far when it was taken last
	due     time.Time // zero: nothing
	learned int       // how often it was learned what is to be
	looked  int       // the same, when that was looked back upon; the note is to be taken away
	unnoted bool      // it could not be noted
	rev     uint64    // of the note; 0: none is known
	noted   bool      // it is there, whoever put it
}

// pastNote is the note in the bucket.
type pastNote struct {
	Since int64  `json:"since"` // Unix ms
	By    string `json:"by"`    // the instance of the owner
}

// parsePastNote reads a note.
func parsePastNote(data []byte) (note pastNote, err error) {
	if err = json.Unmarshal(data, &note); err == nil && note.Since <= 0 {
		err = errors.New("it names no time")
	}
	return note, err
}

// learnPast learns how far the lane is acknowledged, then what a former owner has
// noted: in this order, since that was noted before it acknowledged anything. It
// returns the note that there is.
func (l *laneActor) learnPast(ctx context.Context) (note pastNote, err error) {
	floor, err := l.lane.Floor(ctx)
	if err != nil || floor == 0 {
		return note, err // nothing is acknowledged, so all comes again
	}
	last, err := l.lastBefore(ctx, floor)
	if err != nil {
		return note, err
	}
	data, rev, err := l.host.world.LaneNote(ctx, subjects.PastKey(l.lane.Number()))
	if err != nil {
		return note, err
	}
	since := last.Add(-lookBackTo)
	if data != nil {
		if note, err = parsePastNote(data); err != nil {
			l.log.Warn("the lane's note can't be read, and gives way to another", "note", string(data), "error", err)
			note = pastNote{}
		} else if noted := time.UnixMilli(note.Since); noted.Before(since) {
			since = noted
		}
	}
	b := &l.back
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.due.IsZero() {
		b.since, b.upTo = since, floor
	}
	if b.looked == b.learned {
		b.due = time.Now().Add(lookBackAfter)
	}
	b.learned++
	if since.Before(b.since) {
		b.since = since
	}
	b.upTo = max(b.upTo, floor)
	b.putAt(rev, data != nil)
	return note, nil
}

// putAt takes note of the newest revision of the note. The lock is held.
func (b *lookback) putAt(rev uint64, noted bool) {
	if rev > b.rev {
		b.rev, b.noted = rev, noted
	}
}

// notePast notes, before the first events of an era are acknowledged, from when
// on the lane is to be looked back: behind them nobody would look so far. It ends
// without when that can't be noted in time: a lane goes on, and the note is tried
// again beside.
func (l *laneActor) notePast(ctx context.Context, s *slice) {
	if !s.first || fault.On(fault.PastNotNoted) {
		return
	}
	within, cancel := context.WithTimeout(ctx, noteWithin)
	defer cancel()
	err := l.notes(within)
	for wait := retryFirst; err != nil && pause(within, wait); wait = min(2*wait, retryMax) {
		err = l.notes(within)
	}
	l.back.mu.Lock()
	defer l.back.mu.Unlock()
	if l.back.unnoted = err != nil; l.back.unnoted && ctx.Err() == nil {
		l.log.Warn("acknowledged before it was noted from when on to look back", "error", err)
	}
}

// notes puts the note, if there is none of this process that says enough. Each
// owner puts its own: a former one can't take it away.
func (l *laneActor) notes(ctx context.Context) error {
	if !l.holdNote(ctx) {
		return ctx.Err()
	}
	defer func() { <-l.back.noting }()
	note, err := l.learnPast(ctx)
	b := &l.back
	b.mu.Lock()
	since, rev, due := b.since.UnixMilli(), b.rev, b.due
	b.mu.Unlock()
	if err != nil || due.IsZero() || note.By == l.host.instance && note.Since <= since {
		return err
	}
	return l.putNote(ctx, &pastNote{since, l.host.instance}, rev)
}

// putNote puts a note in place of the one that has a revision; nil: none.
func (l *laneActor) putNote(ctx context.Context, note *pastNote, after uint64) (err error) {
	var data []byte
	if note != nil {
		if data, err = json.Marshal(note); err != nil {
			return err
		}
	}
	rev, err := l.host.world.PutLaneNote(ctx, subjects.PastKey(l.lane.Number()), data, after)
	l.back.mu.Lock()
	defer l.back.mu.Unlock()
	l.back.putAt(rev, note != nil)
	return err
}

func (l *laneActor) holdNote(ctx context.Context) bool {
	select {
	case l.back.noting <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// dueBack returns what is to be looked back upon now, and of which state of
// knowledge that is; false: nothing.
func (b *lookback) dueBack() (since time.Time, upTo uint64, learned int, is bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.since, b.upTo, b.learned, !b.due.IsZero() && !time.Now().Before(b.due) && b.looked < b.learned
}

// hasLooked takes note that what was learned then is looked back upon. If there is
// more by now, the note stays, and it is looked back upon all of it later.
func (b *lookback) hasLooked(learned int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.learned != learned {
		b.due = time.Now().Add(lookBackAfter)
		return
	}
	b.looked = learned
}

// forgetPast takes the note away of what is looked back upon.
func (l *laneActor) forgetPast(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, floorWithin)
	defer cancel()
	if !l.holdNote(ctx) {
		return ctx.Err()
	}
	defer func() { <-l.back.noting }()
	b := &l.back
	b.mu.Lock()
	done, rev, noted := !b.due.IsZero() && b.looked == b.learned, b.rev, b.noted
	b.mu.Unlock()
	if !done {
		return nil
	}
	if noted {
		if err := l.putNote(ctx, nil, rev); err != nil && !errors.Is(err, bus.ErrOvertaken) { // another's is another's
			return fmt.Errorf("take the lane's note away: %w", err)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.looked == b.learned {
		b.due, b.unnoted = time.Time{}, false
	}
	return nil
}
