package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/subjects"
)

// The guard finds an event that kills every process that works on it, and stops its
// session (docs/adr/0030). The server reports that a former owner left delivered
// events unacknowledged. The first such end costs one note for the lane. After the
// second one without progress these events are processed one at a time, each after
// a note that names it (its mark).
const (
	// carefulEnds is the number of unclean ends after which a careful pass begins.
	carefulEnds = 2
	// killsMax is how many processes in a row may end while they work on one event
	// alone, before its session is stopped. Processes are killed from outside, too:
	// with 2, the simulation and refold chaos stopped healthy sessions.
	killsMax = 4
	// livesBeats is how many heartbeats old the last one of a live owner may be. An
	// owner that died loses its lane only after four.
	livesBeats = 2
	// noteWithin is how long storing the guard's note may delay a lane.
	noteWithin = 10 * time.Second
)

// guardNote is the value of subjects.GuardKey, from an unclean end until all events
// that were pending then are acknowledged.
type guardNote struct {
	UpTo uint64 `json:"up_to"` // the lane's last event that was pending
	Ends int    `json:"ends"`  // unclean ends since an owner passed UpTo
	By   string `json:"by"`    // instance of the owner that stored the note

	// The mark: the event that this owner processes alone.
	Session string `json:"session,omitempty"`
	Seq     uint64 `json:"seq,omitempty"`
	Kills   int    `json:"kills,omitempty"` // processes that ended while processing it alone
}

// guard is a lane's suspicion. The zero value suspects nothing.
type guard struct {
	left uint64    // EpochStarted.Left, until the epoch's first event
	note guardNote // UpTo 0: nothing is suspected
	rev  uint64    // of the stored note
}

// killedError reports that an event kills the processes that work on it.
type killedError struct{ kills int }

func (e *killedError) Error() string {
	return fmt.Sprintf("%d session-actors ended, one after the other, while they worked on this event and nothing else:"+
		" it takes more memory than they have, or crashes them", e.kills)
}

// guardNote reads the guard's note after an unclean end. An unreadable note
// suspects nothing.
func (o outside) guardNote(ctx context.Context, lane int) (note guardNote, rev uint64) {
	within, cancel := context.WithTimeout(ctx, noteWithin)
	defer cancel()
	data, rev, err := o.host.world.LaneNote(within, subjects.GuardKey(lane))
	if err == nil && data != nil {
		err = json.Unmarshal(data, &note)
	}
	if err != nil {
		note = guardNote{}
		if ctx.Err() == nil {
			o.log.Warn("the guard's note is not readable, going on without", "note", string(data), "error", err)
		}
	}
	return note, rev
}

// needsNote reports whether the guard's note must be stored before an event is
// taken, and begins that. An event that must be processed alone is then taken when
// the lane has its turn to do so.
func (l *Lane) needsNote(d *Delivered) bool {
	g, e := &l.guard, d.Event
	if left := g.left; left != 0 {
		g.left = 0
		if l.countEnd(left, e.Seq) {
			l.storeNote(false, true)
			return true
		}
	}
	if l.alone.Load() || e.Session == "" || e.Seq > g.note.UpTo || g.note.Ends < carefulEnds {
		return false
	}
	if g.note.Seq != e.Seq || g.note.Session != e.Session {
		g.note.Session, g.note.Seq, g.note.Kills = e.Session, e.Seq, 0
	}
	l.storeNote(true, g.note.Kills < killsMax)
	return true
}

// countEnd records that the previous owner ended while the events from first to left
// were pending. It reports whether the note must be stored now: in a careful pass
// it is stored with the first event's mark.
func (l *Lane) countEnd(left, first uint64) bool {
	g := &l.guard
	switch open := first <= g.note.UpTo; {
	case first > left && !open:
		g.note = guardNote{}
		return false
	case !open:
		g.note = guardNote{Ends: 1}
	case g.note.By != l.host.instance && !l.host.lives(g.note.By): // a live owner has lost the lane, and killed nobody
		g.note.Ends++
		if g.note.Seq != 0 {
			g.note.Kills++
		}
	}
	g.note.UpTo, g.note.By = max(g.note.UpTo, left), l.host.instance
	if g.note.Ends >= carefulEnds {
		l.log.Warn("careful pass: events are worked on one at a time", "ends", g.note.Ends, "up_to", g.note.UpTo, "session", g.note.Session, "seq", g.note.Seq)
		return false
	}
	return true
}

// check returns a *killedError for an event at which too many processes ended.
func (g *guard) check(e session.Event) error {
	if g.note.UpTo != 0 && g.note.Seq == e.Seq && g.note.Kills >= killsMax {
		return &killedError{g.note.Kills}
	}
	return nil
}

// storeNote stores the guard's note. If the bucket does not take it in time, the lane
// goes on without. With alone, it first waits until no other lane of this process
// is in a careful pass: if the process then ends, this event or somebody outside is
// the cause.
func (l *Lane) storeNote(alone, put bool) {
	key, note, rev, holds := subjects.GuardKey(l.number), l.guard.note, l.guard.rev, &l.alone
	var err error
	l.wait("notes", func(ctx context.Context, w outside) error {
		if alone {
			select {
			case w.host.alone <- struct{}{}:
				holds.Store(true)
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if put {
			rev, err = w.putGuardNote(ctx, key, note, rev)
		}
		return nil
	}, func() {
		if err == nil {
			l.guard.rev = rev
			return
		}
		if errors.Is(err, journal.ErrOvertaken) {
			l.guard = guard{} // another owner has changed it
		}
		l.log.Warn("the guard's note is not stored, going on without", "session", note.Session, "seq", note.Seq, "error", err)
	})
}

func (o outside) putGuardNote(ctx context.Context, key string, note guardNote, after uint64) (rev uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, noteWithin)
	defer cancel()
	data, err := json.Marshal(note)
	if err != nil {
		panic("engine: a note of the guard does not encode: " + err.Error())
	}
	for wait := retryFirst; ; wait = min(2*wait, retryMax) {
		rev, err = o.host.world.PutLaneNote(ctx, key, data, after)
		if err == nil || errors.Is(err, journal.ErrOvertaken) || !pause(ctx, wait) {
			return rev, err
		}
	}
}

// endAlone ends this lane's turn to process an event alone, if it has the turn.
func (l *Lane) endAlone() {
	if l.alone.CompareAndSwap(true, false) {
		<-l.host.alone
	}
}

// clearNote removes the guard's note once all events that it suspects are
// acknowledged.
func (l *Lane) clearNote() {
	g := &l.guard
	if g.note.UpTo == 0 || l.newest < g.note.UpTo || len(l.order) > 0 && l.order[0].arrival.Event.Seq <= g.note.UpTo {
		return
	}
	key, rev := subjects.GuardKey(l.number), g.rev
	*g = guard{}
	l.do(&attempt{outside: l.outside, name: "guards", try: func(ctx context.Context, w outside) error {
		ctx, cancel := context.WithTimeout(ctx, noteWithin)
		defer cancel()
		_, err := w.host.world.PutLaneNote(ctx, key, nil, rev)
		if err != nil && !errors.Is(err, journal.ErrOvertaken) && !errors.Is(err, context.Canceled) {
			w.log.Warn("the guard's note is not removed and has no effect", "error", err)
		}
		return nil
	}, then: func(*Lane) {}})
}
