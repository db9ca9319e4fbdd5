package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/delivery"
)

// batchMax is how many delivered events are folded before anything else of the
// lane is looked at; foldedMax how many may wait for those before them to be
// stored.
const (
	batchMax  = 64
	foldedMax = 1024
	// slicesMax is how many slices of a lane are stored at a time.
	slicesMax = 4
	// lookEvery is how often a lane learns what became of its snapshots, and makes
	// room in memory.
	lookEvery = time.Second
)

// laneActor folds the sessions of one lane. Its fields belong to the goroutine
// of run, but for the channels and what puts snapshots.
type laneActor struct {
	host      *Host
	lane      lane
	log       *slog.Logger
	arrivals  chan arrival
	sessions  map[string]*actor
	group     []arrival             // room for a batch
	parked    map[string][]*outputs // events of sessions that are being loaded, in order
	listed    bool                  // quarantined sessions are in memory, since the epoch began
	recorded  bool                  // install records are known up to what was delivered
	order     []*outputs            // of all that was delivered and is not acknowledged, in order
	folded    []*outputs            // not handed over; those of one session in order
	storing   []*slice              // handed over
	waking    []*slice              // stored but for their wakes, in order
	snapshots *snapshotting
	clock     uint64 // counts uses, for eviction
	slices    uint64 // counts slices that were handed over
	bytes     int    // that the sessions take; those that have left are counted until the next recount
	evictFrom uint64 // use from which on it is tried again to evict
	newest    uint64 // sequence of the latest event of this epoch; 0: none yet
	end       uint64 // sequence of the log's last event when the epoch began, or later
	arrived   bool   // something arrived since quarantines were looked after
	epochs    int    // that have begun
	guard     guard

	toStore [slicesMax]chan *slice           // one for each goroutine that stores
	stored  chan func(context.Context) error // takes note of what was stored
	loads   chan *loading                    // sessions that were loaded

	flushing   bool          // the lane waits until all is stored
	scheduling int           // how many of waking have their wakes being stored
	toSchedule chan []*slice // to the goroutine that stores them

	samples chan sample // snapshots to be verified beside
	calls   chan func() // to be run between two batches

	weights map[codec.Hash]heldWeight // of registries that the sessions set, each counted once

	beside sync.WaitGroup                                        // all that runs beside
	as     func(ctx context.Context, who string) context.Context // tells a World who asks
}

// arrival is a delivered event, or the beginning of an epoch.
type arrival struct {
	event       session.Event
	traceparent string // that the event came with
	ack         func()
	epoch       bool
}

func newLaneActor(h *Host, lane lane) *laneActor {
	l := &laneActor{
		host: h, lane: lane, log: h.log.With("lane", lane.Number()),
		arrivals: make(chan arrival, batchMax), sessions: map[string]*actor{}, parked: map[string][]*outputs{},
		stored: make(chan func(context.Context) error, slicesMax+1), toSchedule: make(chan []*slice, 1), loads: make(chan *loading, batchMax),
		samples: make(chan sample, 1),
		calls:   make(chan func()), weights: map[codec.Hash]heldWeight{},
	}
	l.as = func(ctx context.Context, _ string) context.Context { return ctx }
	for i := range l.toStore {
		l.toStore[i] = make(chan *slice, 1)
	}
	l.snapshots = newSnapshotting(h.world, l.log, h.meters)
	return l
}

// Epoch begins an epoch: all that is in memory becomes unproven, in order with the
// events around it.
func (l *laneActor) Epoch(uint64) { l.arrivals <- arrival{epoch: true} }

// Deliver hands an event over.
func (l *laneActor) Deliver(d delivery.Delivery) {
	l.host.meters.delivered(l.lane.Number(), d.Pending)
	l.arrivals <- arrival{event: d.Event, traceparent: d.TraceParent, ack: d.AckLater()}
}

// run owns the lane and folds what it delivers, until ctx ends or the lane is
// drained. An error means that this host can't go on with this lane.
func (l *laneActor) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	owning := make(chan error, 1)
	go func() {
		owning <- l.lane.Run(ctx, l)
		close(l.arrivals)
	}()
	beside := &l.beside
	beside.Go(func() { l.verifies(ctx) })
	beside.Go(func() { l.rounds(ctx) })
	for _, slices := range l.toStore {
		beside.Go(func() { l.storeSlices(ctx, slices) })
	}
	beside.Go(func() { l.storeWakes(ctx) })
	putting, stopPutting := context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		stopPutting()
		<-l.snapshots.ended
	}()
	go l.snapshots.run(putting)
	cause := l.loop(ctx, cancel)
	cancel()
	l.host.meters.left(l.lane.Number())
	if l.lane.Number() == 0 {
		l.host.ownsFirst.Store(false)
	}
	l.storeNoMore()
	beside.Wait()
	if err := <-owning; cause == nil {
		cause = err
	}
	if cause != nil {
		return fmt.Errorf("lane %d: %w", l.lane.Number(), cause)
	}
	l.snapshotAll()
	return nil
}

// loop folds what arrives while what was folded before is being stored, until
// the lane has ended.
func (l *laneActor) loop(ctx context.Context, giveUp func()) (cause error) {
	recheck, look := time.NewTicker(l.host.recheck), time.NewTicker(lookEvery)
	defer recheck.Stop()
	defer look.Stop()
	for open := true; open; {
		var err error
		arrivals := l.arrivals
		if len(l.order) >= foldedMax {
			arrivals = nil // what is stored slowly is not taken fast
		}
		select {
		case first, more := <-arrivals:
			if open = more; !open || cause != nil || ctx.Err() != nil {
				continue // let the lane end; what it gave comes again, elsewhere
			}
			l.arrived = true
			err = l.batch(ctx, first)
		case takeNote := <-l.stored:
			err = takeNote(ctx)
		case g := <-l.loads:
			err = l.unpark(ctx, g)
		case f := <-l.calls:
			f()
		case <-recheck.C:
			if cause == nil && ctx.Err() == nil {
				err = l.recheck(ctx)
			}
		case <-look.C:
			if cause == nil && ctx.Err() == nil {
				l.lookAround()
			}
		}
		if err != nil {
			if ctx.Err() == nil {
				cause = err
			}
			l.drop()
			giveUp()
		}
		if cause == nil && ctx.Err() == nil {
			l.handOver()
		}
	}
	return cause
}

// inside runs f between two batches of the lane, and returns when it has; false:
// it never will, since ctx has ended.
func (l *laneActor) inside(ctx context.Context, f func()) bool {
	done := make(chan struct{})
	select {
	case l.calls <- func() { defer close(done); f() }:
		<-done
		return true
	case <-ctx.Done():
		return false
	}
}

// drop forgets the sessions whose memory is ahead of what is stored.
func (l *laneActor) drop() {
	lists := [][]*outputs{l.folded}
	for _, s := range slices.Concat(l.storing, l.waking) {
		lists = append(lists, s.outputs)
	}
	for _, list := range lists {
		for _, o := range list {
			delete(l.sessions, o.arrival.event.Session)
		}
	}
	l.folded, l.order = nil, nil
	clear(l.parked)
}

// batch folds first and what is buffered behind it.
func (l *laneActor) batch(ctx context.Context, first arrival) error {
	group := l.group[:0]
	group = append(group, first)
	for open := true; open && len(group) < batchMax; {
		select {
		case next, more := <-l.arrivals:
			if open = more; more {
				group = append(group, next)
			}
		default:
			open = false
		}
	}
	defer func() {
		clear(group)
		l.group = group[:0]
	}()
	known := 0 // of how many the sessions are in memory, or being loaded
	for i, a := range group {
		take := l.take
		switch {
		case !a.epoch && l.suspects(ctx, a.event):
			take, known = l.takeAlone, max(known, i+1)
		case i == known:
			known += l.loadAhead(ctx, group[i:])
		}
		if err := take(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// take folds one arrival.
func (l *laneActor) take(ctx context.Context, a arrival) error {
	if a.epoch {
		// What was folded in the epoch before is stored before anything is
		// proven anew: its events come again, and are not folded again.
		if err := l.flush(ctx); err != nil {
			return err
		}
		for _, s := range l.sessions {
			s.proven = false
		}
		l.list(ctx, time.Now())
		err := l.host.installs.Load(ctx)
		if l.recorded = err == nil; err != nil && ctx.Err() == nil {
			l.log.Warn("install records not read", "error", err)
		}
		l.host.askIntegrity(ctx)
		l.learnLeft(ctx)
		l.newest, l.end = 0, l.logEnd(ctx)
		l.host.ownsFirst.CompareAndSwap(false, l.lane.Number() == 0)
		l.host.meters.began(l.lane, l.epochs == 0)
		l.epochs++
		return nil
	}
	l.newest = a.event.Seq
	o := &outputs{arrival: a}
	l.order = append(l.order, o)
	if a.event.Session == "" {
		l.folded = append(l.folded, o)
		return l.retry(ctx, "read install record", a.event, func() error { return l.host.installs.See(ctx, a.event) })
	}
	l.folded = append(l.folded, o)
	if waiting, is := l.parked[a.event.Session]; is {
		o.parked = true
		l.parked[a.event.Session] = append(waiting, o)
		return nil
	}
	return l.retry(ctx, "fold", a.event, func() error { return l.fold(ctx, o) })
}

// fold folds the event of o, which is among those that are folded, into its
// session.
func (l *laneActor) fold(ctx context.Context, o *outputs) error {
	a := o.arrival
	if err := l.guard.kills(a.event); err != nil {
		return l.quarantine(ctx, a, err)
	}
	s, err := l.session(ctx, a.event)
	switch {
	case stopsSession(err):
		return l.quarantine(ctx, a, err)
	case errors.Is(err, errVoid):
		// Not acknowledged: the lane has a new epoch by now, or soon.
		l.log.Warn("delivered event ignored: the log lost it", "session", a.event.Session, "seq", a.event.Seq)
		is := func(other *outputs) bool { return other == o }
		l.order, l.folded = slices.DeleteFunc(l.order, is), slices.DeleteFunc(l.folded, is)
		return nil
	case err != nil:
		return err
	}
	l.clock++
	s.used = l.clock
	switch {
	case s.stops(a.event.Seq):
		s.state = nil // its events count as stored; what it was is not needed
	case a.event.Seq <= s.state.Seq:
		// Folded: what it says is stored, or waits in front of this to be.
	default:
		l.catchUp(ctx, s)
		if err := l.host.next(s, o); err != nil {
			return l.quarantine(ctx, a, err)
		}
	}
	return nil
}

// Waits between two tries of what the bus could not do.
const (
	retryFirst = 50 * time.Millisecond
	retryMax   = 2 * time.Second
)

// retry tries until it is done, ctx ends, or trying can't help.
func (l *laneActor) retry(ctx context.Context, what string, e session.Event, try func() error) error {
	wait := retryFirst
	for {
		err := try()
		if err == nil {
			return nil
		}
		var unknown *session.UnknownRulesError
		if errors.As(err, &unknown) || ctx.Err() != nil {
			return err
		}
		l.log.Warn("failed, trying again", "what", what, "session", e.Session, "seq", e.Seq, "error", err)
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
		wait = min(2*wait, retryMax)
	}
}

// pause waits; false: ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
