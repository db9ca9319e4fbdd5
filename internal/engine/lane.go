package engine

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/refold/refold/actors/session"
)

// Limits of a lane.
const (
	batchMax   = 64          // folded events that a batch waits to have
	foldedMax  = 1024        // events that are delivered and not acknowledged
	batchesMax = 4           // batches that are stored at a time
	tickEvery  = time.Second // time between two Ticks
)

// Lane is one lane of the log, without goroutine, clock or I/O. Step takes inputs
// in the order in which they happened; Ready returns what must be done outside
// after some of them. A Lane is to sessions what raft's RawNode is to a log. Its
// methods are called by one goroutine at a time.
type Lane struct {
	outside
	number int
	owned  func() bool // reports whether the server has pinned this process to the lane
	now    time.Time   // time of the latest input
	ready  Ready

	queue    []Input       // epochs and deliveries that are not taken yet
	waiting  bool          // nothing is taken until some work is done
	then     func()        // called when everything folded is stored; nothing is taken before; nil: none
	closed   bool          // it has ended
	rechecks bool          // a recheck of the quarantined sessions is due
	released []*resumption // released sessions that are being resumed

	sessions map[string]*actor
	parked   map[string][]*outputs // sessions with pending work, and their events that wait for it, in order
	loads    []*load               // not begun yet
	loading  int                   // those that are under way one by one
	listed   bool                  // all quarantined sessions are known, since the epoch began
	recorded bool                  // all install records up to the delivered events are known

	order      []*outputs // events that are delivered and not acknowledged, in order
	folded     []*outputs // in no batch yet; those of one session in order
	storing    []*batch
	waking     []*batch // stored except for their wakes, in order
	scheduling bool     // wakes are being stored
	snapshots  snapshots
	stored     successes

	clock   uint64    // counts uses, for eviction
	batches uint64    // counts batches
	bytes   int       // memory of the sessions, without registries
	newest  uint64    // sequence of this epoch's latest event; 0: none yet
	moved   time.Time // when an event was acknowledged, or the first one delivered
	end     uint64    // sequence of the log's last event when the epoch began, or later
	arrived bool      // something arrived since the last recheck
	epochs  int       // epochs begun
	guard   guard
	alone   atomic.Bool // this lane holds Host.alone

	damaged []*found // sessions to be quarantined once their pending work is done
}

// NewLane returns a lane that the host runs until Close is called. owned reports
// whether this process owns it.
func (h *Host) NewLane(number int, owned func() bool) *Lane {
	h.assignment.setRunning(number, true)
	return &Lane{
		outside: outside{h, h.log.With("lane", number)}, number: number, owned: owned,
		sessions: map[string]*actor{}, parked: map[string][]*outputs{}, snapshots: snapshots{under: map[string]bool{}},
	}
}

// outside is what work may use.
type outside struct {
	host *Host
	log  *slog.Logger
}

// Input is something that happened: an EpochStarted, a Delivered, a Tick, a
// Recheck, or the result of some Work.
type Input interface {
	// step applies it to the lane.
	step(l *Lane)
}

// EpochStarted begins an epoch: all sessions in memory become unproven. Left is the
// last event that was delivered to a former owner that ended uncleanly; 0: it ended
// cleanly.
type EpochStarted struct{ Left uint64 }

// Delivered is a delivered event. The lane owns its payload from then on.
type Delivered struct {
	Event       session.Event
	TraceParent string // header of the event
	Ack         func() // acknowledges it
}

// Tick reports that about a second has passed.
type Tick struct{}

// Recheck reports that a recheck of the quarantined sessions is due.
type Recheck struct{}

// Work is what the lane needs done outside of it: anything that blocks, reads or
// stores.
type Work interface {
	// Do does the work and passes the result to report, as an input for Step. After
	// ctx ends it returns soon, and may skip report. report does not block.
	Do(ctx context.Context, report func(Input))
	// String is a name, unique among the lane's pending work.
	String() string
}

// Ready is what must be done outside.
type Ready struct {
	// Ack acknowledges events, and must be called in this order. All outputs of
	// these events and of all events before them are stored.
	Ack []func()
	// Work may be done concurrently and in any order.
	Work []Work
	// Sends is work whose Do does not block, and always reports, maybe later.
	Sends []Work
	// Snapshots is work that stores snapshots of stored states, one at a time for
	// each session. It may go on for a while after the lane has ended.
	Snapshots []Work
	// GiveBack is why this host can't run the lane; nil: it can. Later inputs
	// change nothing.
	GiveBack error
}

// Step applies an input at the time now. It does not block.
func (l *Lane) Step(in Input, now time.Time) {
	_, puts := in.(*snapshot)
	if l.ready.GiveBack == nil && (puts || !l.closed) {
		l.now = now
		in.step(l)
		l.advance()
	}
}

// Ready returns what must be done and was not returned before. more reports that
// deliveries are buffered: folded events may wait for these, to be stored with
// them.
func (l *Lane) Ready(more bool) Ready {
	l.startLoads()
	l.dispatch(more)
	l.putSnapshots()
	r := l.ready
	l.ready = Ready{GiveBack: r.GiveBack}
	return r
}

// IsFull reports that no more events should be delivered, because too many wait to
// be stored.
func (l *Lane) IsFull() bool { return len(l.order)+len(l.queue) >= foldedMax }

// IsStoring reports whether a batch is being stored.
func (l *Lane) IsStoring() bool { return len(l.storing) > 0 }

// Close is called when the lane has ended and all its work except snapshots has
// returned. Ready then returns the last snapshots, of the sessions that the next
// owner will load first. Step then accepts only results of snapshots.
func (l *Lane) Close() {
	l.endAlone()
	l.host.assignment.setRunning(l.number, false)
	l.host.wrong.stall(l.number, false, l.host.now())
	l.closed, l.waiting, l.loads, l.folded = true, true, nil, nil
	if l.ready.GiveBack == nil {
		l.snapshotAll()
	}
	for _, s := range l.sessions {
		l.host.registries.release(s.registries...)
		s.registries = nil
	}
}

func (l *Lane) fail(err error) { l.ready.GiveBack = err }

func (l *Lane) do(w Work) { l.ready.Work = append(l.ready.Work, w) }

// attempt is work whose only result is an error or none. After an error, the lane
// is given back.
type attempt struct {
	outside
	name string
	try  func(ctx context.Context, w outside) error // must not touch the lane
	then func(l *Lane)
	err  error
}

func (w *attempt) String() string { return w.name }

func (w *attempt) Do(ctx context.Context, report func(Input)) {
	w.err = w.try(ctx, w.outside)
	report(w)
}

func (w *attempt) step(l *Lane) {
	if w.err != nil {
		l.fail(w.err)
		return
	}
	w.then(l)
}

// wait adds work, and nothing is taken before it is done.
func (l *Lane) wait(name string, try func(ctx context.Context, w outside) error, then func()) {
	l.waiting = true
	l.do(&attempt{outside: l.outside, name: name, try: try, then: func(l *Lane) {
		l.waiting = false
		then()
	}})
}

// flush stops taking inputs until everything folded is stored, and then calls then.
func (l *Lane) flush(then func()) { l.then = then }

// isFlushed reports whether everything folded is stored and no session is being
// loaded. Released sessions are not waited for: they wait for the flush themselves.
func (l *Lane) isFlushed() bool {
	if len(l.storing) > 0 || len(l.waking) > 0 {
		return false
	}
	for sid := range l.parked {
		if !l.isReleased(sid) {
			return false
		}
	}
	return !slices.ContainsFunc(l.folded, func(o *outputs) bool { return !o.parked })
}

// advance takes waiting inputs until it must wait for something.
func (l *Lane) advance() {
	for !l.waiting && l.ready.GiveBack == nil {
		switch {
		case l.then != nil:
			if !l.isFlushed() {
				return
			}
			then := l.then
			l.then = nil
			then()
		case l.rechecks:
			l.rechecks = false
			l.recheck()
		case len(l.released) > 0 && !l.now.Before(l.released[0].at):
			r := l.released[0]
			l.flush(func() { l.resume(r) })
		case len(l.queue) > 0:
			next := l.queue[0]
			l.queue = slices.Delete(l.queue, 0, 1)
			l.take(next)
		default:
			return
		}
	}
}

func (e *EpochStarted) step(l *Lane) {
	l.arrived = true
	l.queue = append(l.queue, e)
}

func (d *Delivered) step(l *Lane) {
	l.arrived = true
	l.queue = append(l.queue, d)
}

func (Recheck) step(l *Lane) { l.rechecks = true }

// A Tick evicts sessions, so that an idle lane frees memory when the host runs more
// lanes.
func (Tick) step(l *Lane) {
	l.evict(nil)
	damaged := l.damaged
	l.damaged = nil
	for _, f := range damaged {
		f.step(l)
	}
	l.checkStall()
	l.gauge()
}

// take takes an epoch or a delivery.
func (l *Lane) take(in Input) {
	d, delivered := in.(*Delivered)
	switch {
	case !delivered:
		// Events folded in the previous epoch are stored before anything is proven
		// again: they are delivered again, and not folded again.
		l.flush(func() { l.begin(in.(*EpochStarted)) })
	case l.needsNote(d):
		l.queue = slices.Insert(l.queue, 0, in) // after the guard's note is stored
	default:
		l.deliver(d)
		if l.alone.Load() {
			l.flush(l.endAlone)
		}
	}
}

// deliver accepts an event, and folds it unless it must wait for something.
func (l *Lane) deliver(d *Delivered) {
	l.newest = d.Event.Seq
	if len(l.order) == 0 {
		l.moved = l.now
	}
	o := &outputs{arrival: d}
	l.order, l.folded = append(l.order, o), append(l.folded, o)
	_, busy := l.parked[d.Event.Session]
	switch {
	case d.Event.Session == "":
		o.parked = true
		l.wait("reads an install record", func(ctx context.Context, w outside) error {
			return w.retry(ctx, "read install record", d.Event, func() error { return w.host.installs.See(ctx, d.Event) })
		}, func() { o.parked = false })
	case busy:
		l.park(o)
	default:
		l.fold(o)
	}
}

// park makes an event wait for the pending work on its session.
func (l *Lane) park(o *outputs) {
	o.parked = true
	l.parked[o.arrival.Event.Session] = append(l.parked[o.arrival.Event.Session], o)
}

// occupy marks a session as having pending work.
func (l *Lane) occupy(sid string) {
	if _, busy := l.parked[sid]; !busy {
		l.parked[sid] = nil
	}
}

// free marks the work on a session as done, and folds the events that waited for
// it.
func (l *Lane) free(sid string) {
	events := l.parked[sid]
	delete(l.parked, sid)
	for _, o := range events {
		if _, busy := l.parked[sid]; busy {
			l.park(o)
			continue
		}
		o.parked = false
		l.fold(o)
	}
}

// fold folds the event of o, which is in l.folded, once its session is in memory
// and proven.
func (l *Lane) fold(o *outputs) {
	e := o.arrival.Event
	s := l.sessions[e.Session]
	if err := l.guard.check(e); err != nil && (s == nil || !s.isStopped(e.Seq)) {
		l.park(o)
		l.quarantine(e, err, nil)
		return
	}
	switch {
	case s == nil || s.state == nil && !s.isStopped(e.Seq):
		l.load(o, nil)
		return
	case !s.proven:
		l.load(o, s)
		return
	}
	l.clock++
	s.used = l.clock
	switch {
	case s.isStopped(e.Seq):
		s.state = nil // its events count as stored, and the state is not needed
		l.weigh(s)
		switch {
		case s.stop.Released:
			l.park(o)
			l.release(s)
		case s.passing > 0:
			s.passing--
		case !s.unstored.Load():
			// Another host may have released it since. That host stores the outputs of
			// earlier events only.
			l.load(o, s)
		}
	case e.Seq <= s.state.Seq:
		// Already folded: its outputs are stored, or are ahead in the queue.
	default:
		if err := l.host.next(s, o); err != nil {
			l.park(o)
			l.quarantine(e, err, nil)
		}
	}
}
