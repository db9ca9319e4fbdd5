package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/subjects"
)

// Stop is where and why a session is quarantined.
type Stop = journal.Stop

// stopOf returns the quarantine of a session, nil if there is none.
func (h *Host) stopOf(ctx context.Context, sid string) (*Stop, error) {
	body, found, err := h.world.GetQuarantine(ctx, sid)
	if err != nil || !found {
		return nil, err
	}
	stop := journal.ParseStop(body)
	return &stop, nil
}

// quarantine stops one session; its lane goes on. The session's events from e on
// count as stored, those in batch of included (nil: no batch failed). They stay in
// the log.
func (l *Lane) quarantine(e session.Event, cause error, of *batch) {
	stop := journal.NewStop(e.Seq, cause.Error())
	l.log.Error("session quarantined", "session", e.Session, "seq", e.Seq, "error", stop.Reason)
	var killed *killedError
	if errors.As(cause, &killed) {
		stop.Kills = killed.kills
	}
	var panicked *panicError
	if errors.As(cause, &panicked) {
		l.log.Error("fold panicked", "session", e.Session, "seq", e.Seq, "stack", string(panicked.stack))
	}
	if s := l.sessions[e.Session]; s != nil {
		s.state, s.stopping = nil, true // it is ahead of what is done, or half folded
	}
	l.occupy(e.Session)
	l.do(&marking{outside: l.outside, event: e, stop: stop, cause: cause, of: of})
}

// marking stores a quarantine. If another owner has stored an earlier one, that one counts.
type marking struct {
	outside
	event session.Event
	stop  Stop
	cause error
	of    *batch
	err   error
}

func (w *marking) String() string { return "quarantines " + w.event.Session }

func (w *marking) Do(ctx context.Context, tell func(Input)) {
	w.err = w.retry(ctx, "quarantine", w.event, func() error {
		earlier, err := w.host.stopOf(ctx, w.event.Session)
		if err != nil {
			return err
		}
		if earlier != nil && earlier.Seq <= w.stop.Seq {
			w.stop = *earlier
			return nil
		}
		if err := w.host.putStop(ctx, w.event.Session, w.stop); err != nil {
			return err
		}
		w.host.meters.stops(w.cause)
		return nil
	})
	tell(w)
}

func (w *marking) step(l *Lane) {
	if w.err != nil {
		l.fail(w.err)
		return
	}
	sid := w.event.Session
	l.keep(&actor{sid: sid, stop: &w.stop, proven: true, used: l.clock})
	lists := [][]*outputs{l.folded}
	if w.of != nil {
		lists = append(lists, w.of.outputs)
	}
	for _, list := range lists {
		for _, o := range list {
			switch e := o.arrival.Event; {
			case e.Session != sid:
			case e.Seq >= w.stop.Seq:
				*o = outputs{arrival: o.arrival, parked: o.parked}
			case o.actor != nil:
				o.actor.stopping = false
			}
		}
	}
	if w.of != nil {
		w.of.marks--
		l.finish(w.of)
	}
	if !l.isReleased(sid) {
		l.free(sid)
	}
}

// putStop stores a quarantine and says so. Said first and stored last, it may
// be said twice, and is never silent.
func (h *Host) putStop(ctx context.Context, sid string, stop Stop) error {
	body, err := stop.Bytes()
	if err != nil {
		return err
	}
	notice := session.Notice{
		Type: session.NoticeSessionQuarantined, Seq: stop.Seq, At: time.Now().UnixMilli(), Session: sid,
		Data: session.SessionQuarantined{Reason: stop.Reason},
	}
	if err := h.world.Store(ctx, []journal.Output{{Session: sid, Notice: notice.JSON()}})[0]; err != nil {
		return err
	}
	return h.world.PutQuarantine(ctx, sid, body)
}

// stopsIn returns the quarantines of a lane's sessions, as they were after since,
// but for those that are known. An error is logged.
func (o outside) stopsIn(ctx context.Context, lane int, since time.Time, known map[string]bool) (found map[string]*Stop, err error) {
	defer func() {
		if err != nil && ctx.Err() == nil {
			o.log.Warn("quarantined sessions not listed", "error", err)
		}
	}()
	all, err := o.host.stops.all(ctx, o.host, since)
	if err != nil {
		return nil, err
	}
	found = map[string]*Stop{}
	for _, sid := range all {
		if subjects.LaneOf(subjects.Partition(sid), o.host.opts.Lanes) != lane || known[sid] {
			continue
		}
		// The list is of a moment ago, and the session may go on since.
		stop, err := o.host.stopOf(ctx, sid)
		if err != nil {
			return nil, err
		}
		if stop != nil {
			found[sid] = stop
		}
	}
	return found, nil
}

// stopped returns the sessions in memory that are known to be quarantined.
func (l *Lane) stopped() map[string]bool {
	known := map[string]bool{}
	for sid, s := range l.sessions {
		if s.stop != nil {
			known[sid] = true
		}
	}
	return known
}

// takeStops takes the quarantined sessions of the lane into memory: a release is
// the end of what is remembered here, since it leaves nothing behind. When they are
// listed at the beginning of an epoch, loads need not look: who stops a session of
// this lane after that is its owner.
func (l *Lane) takeStops(found map[string]*Stop) {
	for sid, stop := range found {
		switch s := l.sessions[sid]; {
		case s != nil && (s.stop != nil || s.stopping):
		case s == nil || !s.proven || s.state.Seq >= stop.Seq:
			l.keep(&actor{sid: sid, stop: stop, used: l.clock})
		default:
			s.stop = stop
		}
	}
}

// stops is what the lanes of a host share: which sessions are quarantined, as
// of a moment ago.
type stops struct {
	mu     sync.Mutex
	listed time.Time
	found  []string
}

// all returns the quarantined sessions of all lanes, as they were after since.
func (q *stops) all(ctx context.Context, h *Host, since time.Time) ([]string, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.listed.After(since) {
		return q.found, nil
	}
	listed := time.Now()
	var found []string
	for sid, err := range h.world.Quarantined(ctx) {
		if err != nil {
			return nil, err
		}
		found = append(found, sid)
	}
	q.found, q.listed = found, listed
	return found, nil
}
