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
	batchMax   = 64          // folded events that wait for more to be stored with them
	foldedMax  = 1024        // events that wait to be stored, or for those before them to be
	batchesMax = 4           // batches that are stored at a time
	tickEvery  = time.Second // between two Ticks
)

// Lane is one lane of the log, without goroutine, clock or I/O. Inputs are handed
// to Step in the order in which they happened; after some of them, Ready says what
// must be done outside. It is to sessions what raft's RawNode is to a log. Its
// methods are called by one goroutine at a time.
type Lane struct {
	outside
	number int
	owned  func() bool // reports whether the server has pinned this process to the lane
	now    time.Time   // of the latest input
	ready  Ready

	queue    []Input     // epochs and deliveries that are not taken yet
	waiting  bool        // nothing is taken before some work is done
	then     func()      // is called, and nothing taken before, when all that is folded is stored; nil: nothing
	closed   bool        // it has ended
	rechecks bool        // quarantined sessions are to be looked after
	released []*resuming // sessions that go on behind a quarantine

	sessions map[string]*actor
	parked   map[string][]*outputs // sessions that work is under way for, and their events that wait for it, in order
	loads    []*load               // that are to be begun
	loading  int                   // those that are under way, one by one
	listed   bool                  // quarantined sessions are in memory, since the epoch began
	recorded bool                  // install records are known up to what was delivered

	order      []*outputs // of all that was delivered and is not acknowledged, in order
	folded     []*outputs // in no batch yet; those of one session in order
	storing    []*batch
	waking     []*batch // stored but for their wakes, in order
	scheduling bool     // wakes are being stored
	snapshots  snapshots

	clock   uint64 // counts uses, for eviction
	batches uint64 // counts batches
	bytes   int    // that the sessions take, without registries
	newest  uint64 // sequence of the latest event of this epoch; 0: none yet
	end     uint64 // sequence of the log's last event when the epoch began, or later
	arrived bool   // something arrived since quarantines were looked after
	epochs  int    // that have begun
	guard   guard
	alone   atomic.Bool // this lane holds the host's alone

	verifying bool     // a snapshot is being verified
	wrong     []*wrong // snapshots that are to be replaced later
}

// NewLane returns a lane of the host, which runs it until Close is called. owned
// reports whether this process owns it.
func (h *Host) NewLane(number int, owned func() bool) *Lane {
	h.assignment.runs(number, true)
	return &Lane{
		outside: outside{h, h.log.With("lane", number)}, number: number, owned: owned,
		sessions: map[string]*actor{}, parked: map[string][]*outputs{}, snapshots: snapshots{under: map[string]bool{}},
	}
}

// outside is what work is done with.
type outside struct {
	host *Host
	log  *slog.Logger
}

// Input is something that happened: an EpochStarted, a Delivered, a Tick, a
// Recheck, or what became of some Work.
type Input interface {
	// step has the lane take note of it.
	step(l *Lane)
}

// EpochStarted begins an epoch: all that is in memory becomes unproven. Left is the
// last event that a former owner had been given when it ended uncleanly; 0: it
// did not.
type EpochStarted struct{ Left uint64 }

// Delivered is an event that the lane delivers. The lane owns its payload from
// then on.
type Delivered struct {
	Event       session.Event
	TraceParent string // that the event came with
	Ack         func() // acknowledges it
}

// Tick says that about a second has passed.
type Tick struct{}

// Recheck says that it is time to look after quarantined sessions.
type Recheck struct{}

// Work is what a lane needs done outside of it: what blocks, reads or stores.
type Work interface {
	// Do does it, and hands tell what became of it, to be handed to Step. When ctx
	// ends it returns soon, and may tell nothing.
	Do(ctx context.Context, tell func(Input))
	// String names it, as no other work of the lane that is under way.
	String() string
}

// Ready is what must be done outside.
type Ready struct {
	// Ack acknowledges events, to be called in this order. All that they want
	// stored is stored, and so is all that was delivered before them.
	Ack []func()
	// Work is independent of one another and of the order in which it is done.
	Work []Work
	// Snapshots is work, too: snapshots of stored states, one of a session at a
	// time. It may go on for a while when the lane has ended.
	Snapshots []Work
	// GiveBack is why this host can't go on with the lane; nil: it can. What Step
	// is told after that changes nothing.
	GiveBack error
}

// Step takes note of an input, at the time now. It returns soon.
func (l *Lane) Step(in Input, now time.Time) {
	_, puts := in.(*snapshot)
	if l.ready.GiveBack == nil && (puts || !l.closed) {
		l.now = now
		in.step(l)
		l.advance()
	}
}

// Ready returns what must be done, and was not returned before. more says that deliveries
// wait to be stepped: folded events may wait for those, to be stored together.
func (l *Lane) Ready(more bool) Ready {
	l.startLoads()
	l.dispatch(more)
	l.putSnapshots()
	r := l.ready
	l.ready = Ready{GiveBack: r.GiveBack}
	return r
}

// IsFull reports that so much waits that nothing is to be delivered: what is
// stored slowly is not taken fast.
func (l *Lane) IsFull() bool { return len(l.order)+len(l.queue) >= foldedMax }

// IsStoring reports that a batch is being stored.
func (l *Lane) IsStoring() bool { return len(l.storing) > 0 }

// Close is called when the lane has ended, and all its work but for snapshots has
// returned. Ready returns the last snapshots then, which the next owner asks for
// first, and nothing is stepped but what becomes of snapshots.
func (l *Lane) Close() {
	l.letGo()
	l.host.assignment.runs(l.number, false)
	l.closed, l.waiting, l.loads, l.folded = true, true, nil, nil
	if l.ready.GiveBack == nil {
		l.snapshotAll()
	}
	for _, s := range l.sessions {
		l.host.registries.letGo(s.registries...)
		s.registries = nil
	}
}

// fail says that this host can't go on with the lane.
func (l *Lane) fail(err error) { l.ready.GiveBack = err }

// do has work done.
func (l *Lane) do(w Work) { l.ready.Work = append(l.ready.Work, w) }

// attempt is work whose only result is whether it failed. If so, the lane is given
// back.
type attempt struct {
	outside
	name string
	try  func(ctx context.Context, w outside) error // touches nothing of the lane
	then func(l *Lane)
	err  error
}

func (w *attempt) String() string { return w.name }

func (w *attempt) Do(ctx context.Context, tell func(Input)) {
	w.err = w.try(ctx, w.outside)
	tell(w)
}

func (w *attempt) step(l *Lane) {
	if w.err != nil {
		l.fail(w.err)
		return
	}
	w.then(l)
}

// wait has work done before anything else is taken.
func (l *Lane) wait(name string, try func(ctx context.Context, w outside) error, then func()) {
	l.waiting = true
	l.do(&attempt{outside: l.outside, name: name, try: try, then: func(l *Lane) {
		l.waiting = false
		then()
	}})
}

// flush has nothing taken before all that is folded is stored, and calls then.
func (l *Lane) flush(then func()) { l.then = then }

// isFlushed reports whether all that is folded is stored, and no session is being
// loaded. Those that are to be released wait for that themselves.
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

// advance takes what waits, as far as nothing is in the way.
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

// A Tick makes room in memory: a lane that is idle gives way when the host runs
// more lanes.
func (Tick) step(l *Lane) {
	l.evict(nil)
	l.replaceAgain()
}

// take takes an epoch or a delivery.
func (l *Lane) take(in Input) {
	d, delivered := in.(*Delivered)
	switch {
	case !delivered:
		// What was folded in the epoch before is stored before anything is
		// proven anew: its events come again, and are not folded again.
		l.flush(func() { l.begin(in.(*EpochStarted)) })
	case l.guards(d):
		l.queue = slices.Insert(l.queue, 0, in) // behind what the guard notes first
	default:
		l.deliver(d)
		if l.alone.Load() {
			l.flush(l.letGo)
		}
	}
}

// deliver takes an event in, and folds it unless it has to wait for something.
func (l *Lane) deliver(d *Delivered) {
	l.newest = d.Event.Seq
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

// park has an event wait for work that is under way for its session.
func (l *Lane) park(o *outputs) {
	o.parked = true
	l.parked[o.arrival.Event.Session] = append(l.parked[o.arrival.Event.Session], o)
}

// occupy says that work is under way for a session.
func (l *Lane) occupy(sid string) {
	if _, busy := l.parked[sid]; !busy {
		l.parked[sid] = nil
	}
}

// free says that the work for a session is done, and folds the events that waited
// for it.
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

// fold folds the event of o, which is among those that are folded, into its
// session, once that is in memory and proven.
func (l *Lane) fold(o *outputs) {
	e := o.arrival.Event
	s := l.sessions[e.Session]
	if err := l.guard.kills(e); err != nil && (s == nil || !s.stops(e.Seq)) {
		l.park(o)
		l.quarantine(e, err, nil)
		return
	}
	switch {
	case s == nil || s.state == nil && !s.stops(e.Seq):
		l.load(o, nil)
		return
	case !s.proven:
		l.load(o, s)
		return
	}
	l.clock++
	s.used = l.clock
	switch {
	case s.stops(e.Seq):
		s.state = nil // its events count as stored; what it was is not needed
		l.weigh(s)
	case e.Seq <= s.state.Seq:
		// Folded: what it says is stored, or waits in front of this to be.
	default:
		if err := l.host.next(s, o); err != nil {
			l.park(o)
			l.quarantine(e, err, nil)
		}
	}
}
