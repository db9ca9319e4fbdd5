package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/subjects"
)

// The guard finds the event that kills every process that works on it, and stops
// its session (docs/adr/0030). The server tells that a former owner ended without
// acknowledging what it had been given. The first such end costs one note for the
// lane; after the second one without progress the same events are worked on alone,
// each behind a mark that names it.
const (
	// carefulEnds is after how many unclean ends of owners a careful pass is made.
	carefulEnds = 2
	// killsMax is how many processes in a row may end while they work on one event
	// alone before its session is stopped. Processes are killed from outside, too:
	// with 2, the simulation and refold chaos stopped healthy sessions.
	killsMax = 4
	// livesBeats is how many heartbeats ago an owner that lives was heard at most:
	// one that died lost its lane only four later.
	livesBeats = 2
	// noteWithin is how long the guard's note may hold a lane up.
	noteWithin = 10 * time.Second
)

// guardNote is what the bucket has under subjects.GuardKey, from an unclean end on
// until everything is acknowledged that was under way then.
type guardNote struct {
	UpTo uint64 `json:"up_to"` // the last event of the lane that was under way
	Ends int    `json:"ends"`  // unclean ends since an owner passed UpTo
	By   string `json:"by"`    // instance of the owner that put this

	// The mark: the event that this owner works on alone.
	Session string `json:"session,omitempty"`
	Seq     uint64 `json:"seq,omitempty"`
	Kills   int    `json:"kills,omitempty"` // processes that ended while they did so
}

// guard is what a lane suspects. The zero value suspects nothing.
type guard struct {
	left uint64    // what a former owner left, until the first event of the epoch tells what is open
	note guardNote // UpTo 0: nothing is suspected
	rev  uint64    // of the note in the bucket
}

// killedError says that an event kills the processes that work on it.
type killedError struct{ kills int }

func (e *killedError) Error() string {
	return fmt.Sprintf("%d session-actors ended, one after the other, while they worked on this event and nothing else:"+
		" it takes more memory than they have, or crashes them", e.kills)
}

// isHeard reports whether a session-actor that was heard at a time still lives.
func isHeard(at, now time.Time) bool { return now.Sub(at) <= livesBeats*presence.HeartbeatEvery }

// learnLeft learns when an epoch begins whether a former owner ended uncleanly. What
// can't be read is not suspected: a lane does not wait for the bucket.
func (l *laneActor) learnLeft(ctx context.Context) {
	g := &l.guard
	*g = guard{left: l.lane.Left()}
	if g.left == 0 {
		return
	}
	within, cancel := context.WithTimeout(ctx, noteWithin)
	defer cancel()
	data, rev, err := l.host.world.LaneNote(within, subjects.GuardKey(l.lane.Number()))
	if g.rev = rev; err == nil && data != nil {
		err = json.Unmarshal(data, &g.note)
	}
	if err != nil {
		g.note = guardNote{}
		if ctx.Err() == nil {
			l.log.Warn("what the guard noted can't be read: it begins anew", "note", string(data), "error", err)
		}
	}
}

// suspects reports whether an event is to be worked on alone.
func (l *laneActor) suspects(ctx context.Context, e session.Event) bool {
	g := &l.guard
	if left := g.left; left != 0 {
		g.left = 0
		l.suspect(ctx, left, e.Seq)
	}
	return e.Session != "" && e.Seq <= g.note.UpTo && g.note.Ends >= carefulEnds
}

// suspect takes note that the owner before ended when everything from first up to
// left was under way.
func (l *laneActor) suspect(ctx context.Context, left, first uint64) {
	g := &l.guard
	switch open := first <= g.note.UpTo; {
	case first > left && !open:
		g.note = guardNote{}
		return
	case !open:
		g.note = guardNote{Ends: 1}
	case g.note.By != l.host.instance && !l.host.lives(g.note.By): // one that lives has lost the lane, and killed nobody
		g.note.Ends++
		if g.note.Seq != 0 {
			g.note.Kills++
		}
	}
	g.note.UpTo, g.note.By = max(g.note.UpTo, left), l.host.instance
	if g.note.Ends >= carefulEnds {
		l.log.Warn("careful pass: events are worked on one at a time", "ends", g.note.Ends, "up_to", g.note.UpTo, "session", g.note.Session, "seq", g.note.Seq)
		return // the mark of the first event tells the rest
	}
	l.mark(ctx)
}

// takeAlone folds one event of a careful pass and stores its outputs while no other
// lane of this process does so: should the process end meanwhile, it is this
// event's fault, or that of somebody outside.
func (l *laneActor) takeAlone(ctx context.Context, a arrival) error {
	select {
	case l.host.alone <- struct{}{}:
		defer func() { <-l.host.alone }()
	case <-ctx.Done():
		return ctx.Err()
	}
	note := &l.guard.note
	if note.Seq != a.event.Seq || note.Session != a.event.Session {
		note.Session, note.Seq, note.Kills = a.event.Session, a.event.Seq, 0
	}
	if note.Kills < killsMax {
		l.mark(ctx)
	}
	if err := l.take(ctx, a); err != nil {
		return err
	}
	return l.flush(ctx)
}

// kills returns a *killedError for an event that was marked too often.
func (g *guard) kills(e session.Event) error {
	if g.note.UpTo != 0 && g.note.Seq == e.Seq && g.note.Kills >= killsMax {
		return &killedError{g.note.Kills}
	}
	return nil
}

// mark stores the guard's note. A lane whose bucket does not take it in time goes
// on without; so does one whose note another owner has changed.
func (l *laneActor) mark(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, noteWithin)
	defer cancel()
	g := &l.guard
	data, err := json.Marshal(g.note)
	if err != nil {
		panic("host: a note of the guard does not encode: " + err.Error())
	}
	put := func() (rev uint64, err error) {
		return l.host.world.PutLaneNote(within, subjects.GuardKey(l.lane.Number()), data, g.rev)
	}
	rev, err := put()
	for wait := retryFirst; err != nil && !errors.Is(err, journal.ErrOvertaken) && pause(within, wait); wait = min(2*wait, retryMax) {
		rev, err = put()
	}
	switch {
	case err == nil:
		g.rev = rev
	case errors.Is(err, journal.ErrOvertaken):
		*g = guard{}
		fallthrough
	default:
		if ctx.Err() == nil {
			l.log.Warn("the guard's note is not stored, going on without", "session", g.note.Session, "seq", g.note.Seq, "error", err)
		}
	}
}

// trusts takes the guard's note away when everything is acknowledged that it
// suspects.
func (l *laneActor) trusts(ctx context.Context) {
	g := &l.guard
	if g.note.UpTo == 0 || l.newest < g.note.UpTo || len(l.order) > 0 && l.order[0].arrival.event.Seq <= g.note.UpTo {
		return
	}
	rev := g.rev
	*g = guard{}
	l.beside.Go(func() {
		ctx, cancel := context.WithTimeout(l.as(ctx, "guards"), noteWithin)
		defer cancel()
		_, err := l.host.world.PutLaneNote(ctx, subjects.GuardKey(l.lane.Number()), nil, rev)
		if err != nil && !errors.Is(err, journal.ErrOvertaken) && !errors.Is(err, context.Canceled) {
			l.log.Warn("the guard's note stays, and means nothing", "error", err)
		}
	})
}

// tryAgain resumes a session that killed processes before it was released. Until
// that is done it is quarantined again: should it kill this process too, the next
// one finds it stopped.
func (l *laneActor) tryAgain(ctx context.Context, s *actor) error {
	if !l.informed() {
		return errors.New("quarantines and install records are not read yet")
	}
	stop := *s.stop
	stop.Kills++
	body, err := stop.Bytes()
	if err == nil {
		err = l.host.world.PutQuarantine(ctx, s.sid, body)
	}
	if err == nil {
		err = l.resume(ctx, s)
	}
	if going := l.sessions[s.sid]; err != nil || going != nil && going.stop != nil {
		return err
	}
	return l.retry(ctx, "end quarantine", session.Event{Session: s.sid, Seq: stop.Seq}, func() error {
		return l.host.world.DeleteQuarantine(ctx, s.sid)
	})
}
