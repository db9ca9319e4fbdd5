package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/delivery"
)

// driver runs a Lane: one goroutine steps it, and others carry out its work.
type driver struct {
	*Lane
	lane     lane
	arrivals arrivals
	results  results // of work
	works    sync.WaitGroup
	puts     sync.WaitGroup // snapshots
}

func newDriver(h *Host, lane lane) *driver {
	return &driver{Lane: h.NewLane(lane.Number(), lane.Owned), lane: lane, arrivals: newArrivals(), results: results{more: make(chan struct{}, 1)}}
}

// Epoch queues an epoch for the lane, in order with the events around it.
func (d *driver) Epoch(uint64) { d.arrivals.put(arrival{is: &EpochStarted{Left: d.lane.Left()}}) }

// Deliver queues an event for the lane.
func (d *driver) Deliver(e delivery.Delivery) {
	d.host.meters.delivered(d.number, e.Pending)
	d.arrivals.put(arrival{&Delivered{Event: e.Event, TraceParent: e.TraceParent, Ack: e.Ack}, e.Handle})
}

// Skipped counts an event that names no session.
func (d *driver) Skipped(seq uint64, subject string) { d.host.skip(seq, subject) }

// run owns the lane and folds its events, until ctx ends or the lane is drained. An
// error means that this host can't run the lane.
func (d *driver) run(ctx context.Context) error {
	working, cancel := context.WithCancel(ctx)
	defer cancel()
	putting, stopPutting := context.WithCancel(context.WithoutCancel(ctx))
	defer d.puts.Wait()
	defer stopPutting()
	var owning error
	owned := make(chan struct{})
	go func() {
		defer close(owned)
		owning = d.lane.Run(working, d)
	}()
	if !d.host.opts.NoScrub {
		d.works.Go(func() { d.daily(working, d.scrub) })
	}
	if d.number == 0 {
		d.works.Go(func() { d.daily(working, d.reclaim) })
	}
	cause := d.loop(working, putting, cancel, owned)
	cancel()
	d.host.meters.left(d.number)
	if d.number == 0 {
		d.host.ownsFirst.Store(false)
	}
	d.works.Wait()
	d.Close()
	if cause == nil {
		cause = owning
	}
	if cause != nil {
		return fmt.Errorf("lane %d: %w", d.number, cause)
	}
	d.putLast(putting)
	return nil
}

// loop steps the lane until it is owned no more.
func (d *driver) loop(working, putting context.Context, giveUp func(), owned <-chan struct{}) (cause error) {
	recheck, tick := time.NewTicker(d.host.recheck), time.NewTicker(tickEvery)
	defer recheck.Stop()
	defer tick.Stop()
	for {
		more := d.arrivals.more
		if d.IsFull() {
			more = nil
		}
		var all []Input
		select {
		case <-owned:
			return cause
		case <-more:
		case <-d.results.more:
			all = d.results.take()
		case <-recheck.C:
			all = []Input{Recheck{}}
		case <-tick.C:
			all = []Input{Tick{}}
		}
		if cause != nil || working.Err() != nil {
			continue // let the lane end; its next owner gets these events again
		}
		for _, in := range all {
			d.Step(in, d.host.now())
		}
		d.takeBuffered()
		if cause = d.carryOut(working, putting); cause != nil {
			giveUp()
		}
	}
}

// takeBuffered steps the deliveries that are buffered.
func (d *driver) takeBuffered() {
	for range batchMax {
		if d.IsFull() {
			return
		}
		in := d.arrivals.take()
		if in == nil {
			return
		}
		d.Step(in, d.host.now())
	}
}

// carryOut starts the work that is ready, and returns why the lane is given back.
func (d *driver) carryOut(working, putting context.Context) error {
	more := false
	if d.IsStoring() && !d.IsFull() {
		runtime.Gosched() // deliveries first
		more = !d.arrivals.isEmpty()
	}
	r := d.Ready(more)
	for _, ack := range r.Ack {
		ack()
	}
	for _, w := range r.Work {
		d.works.Go(func() { w.Do(working, d.results.put) })
	}
	for _, w := range r.Sends {
		d.works.Add(1)
		w.Do(working, func(in Input) {
			d.results.put(in)
			d.works.Done()
		})
	}
	d.putAll(putting, r.Snapshots)
	return r.GiveBack
}

func (d *driver) putAll(putting context.Context, snapshots []Work) {
	for _, w := range snapshots {
		d.puts.Go(func() { w.Do(putting, d.results.put) })
	}
}

// results are the results of work that were not passed to Step yet, in order. Their
// number is that of the lane's work.
type results struct {
	mu   sync.Mutex
	all  []Input
	more chan struct{} // of capacity 1: there are some
}

// put queues a result. It does not block: it is called by the goroutines of committers.
func (r *results) put(in Input) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, in)
	select {
	case r.more <- struct{}{}:
	default:
	}
}

// take returns what is queued.
func (r *results) take() []Input {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.all
	r.all = nil
	return all
}

// putLast stores the last snapshots, for at most lastSnapshotsFor.
func (d *driver) putLast(putting context.Context) {
	timer := time.NewTimer(lastSnapshotsFor)
	defer timer.Stop()
	for {
		d.putAll(putting, d.Ready(false).Snapshots)
		if !d.IsSnapshotting() {
			return
		}
		select {
		case <-d.results.more:
			for _, in := range d.results.take() {
				d.Step(in, d.host.now())
			}
		case <-timer.C:
			return
		}
	}
}

// Backoff of retries.
const (
	retryFirst = 50 * time.Millisecond
	retryMax   = 2 * time.Second
)

// retry calls try until it succeeds, ctx ends, or a retry can't help.
func (o outside) retry(ctx context.Context, what string, e session.Event, try func() error) error {
	_, err := o.retryRound(ctx, math.MaxInt64, what, e, try)
	return err
}

// retryRound is retry for a limited time. failed reports that the time is over and
// that the work may succeed later.
func (o outside) retryRound(ctx context.Context, limit time.Duration, what string, e session.Event, try func() error) (failed bool, err error) {
	began := time.Now()
	for wait := retryFirst; ; wait = min(2*wait, retryMax) {
		err := try()
		var unknown *session.UnknownRulesError
		switch {
		case err == nil || errors.As(err, &unknown) || ctx.Err() != nil:
			return false, err
		case time.Since(began) >= limit:
			return true, err
		}
		o.host.wrong.fails(what, err)
		o.log.Warn("failed, trying again", "what", what, "session", e.Session, "seq", e.Seq, "error", err)
		if !pause(ctx, wait) {
			return false, ctx.Err()
		}
	}
}

// pause waits for d; it returns false if ctx ended first.
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
