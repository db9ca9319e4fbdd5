package host

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
)

// World is what a Stepper's host reads and stores. What each method promises is
// told by *bus.Bus.
type World = world

// Stepper runs one lane of a host in steps: what the loop of a lane would take
// from its channels and clocks as it comes, a Stepper takes when it is told to,
// and one at a time. It is for the simulation (docs/simulator.md), where the
// order of things is drawn by seed; nothing else uses it.
//
// A step that has to wait for its World goes on beside the caller: Idle tells
// when it is done, and the next one may begin. What is folded is handed over and
// stored beside, as in a lane; Finish takes what is stored.
type Stepper struct {
	host  *Host
	lane  *laneActor
	steps chan func(context.Context) error
	busy  atomic.Bool
	ended chan struct{}
	err   error // why the lane was given up; read it when ended is closed

	held atomic.Int64 // sessions in memory
}

// NewStepper returns a host of one lane that works through w; owned tells
// whether it believes to own the lane, unowned whether nobody does.
func NewStepper(w World, instance string, owned, unowned func() bool, log *slog.Logger, opts Options) *Stepper {
	opts.Lanes = 1
	h := newHost(w, log, opts)
	h.instance = instance
	return &Stepper{
		host: h, lane: newLaneActor(h, steppedLane{owned, unowned}),
		steps: make(chan func(context.Context) error), ended: make(chan struct{}),
	}
}

// steppedLane is the lane of a Stepper, which delivers by Era and Deliver.
type steppedLane struct{ owned, unowned func() bool }

func (steppedLane) Number() int                              { return 0 }
func (steppedLane) Run(context.Context, bus.LaneOwner) error { return nil }
func (steppedLane) Drain(context.Context) error              { return nil }
func (l steppedLane) Owned() bool                            { return l.owned() }
func (l steppedLane) Unowned(context.Context) (bool, error)  { return l.unowned(), nil }

// Run takes steps until ctx ends, which is what a kill is, or the lane is given
// up: then it returns why.
func (s *Stepper) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	l := s.lane
	var beside sync.WaitGroup
	beside.Go(func() { l.settleLate(ctx) })
	beside.Go(func() { l.storeSlices(ctx) })
	beside.Go(func() { l.snapshots.run(ctx) })
	defer close(s.ended)
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case f := <-l.calls:
			f()
		case step := <-s.steps:
			err := step(ctx)
			switch {
			case err == nil:
				l.handOver()
			case ctx.Err() == nil:
				s.err = err
				fallthrough
			default:
				l.drop()
				cancel()
			}
			s.held.Store(int64(len(l.sessions)))
			s.busy.Store(false)
		}
	}
	cancel()
	close(l.toStore)
	beside.Wait()
	return s.err
}

// step has the lane take a step, which must be idle.
func (s *Stepper) step(f func(context.Context) error) {
	if !s.busy.CompareAndSwap(false, true) {
		panic("host: a Stepper takes one step at a time")
	}
	select {
	case s.steps <- f:
	case <-s.ended:
	}
}

// Idle reports that no step is being taken.
func (s *Stepper) Idle() bool { return !s.busy.Load() }

// Held returns how many sessions were in memory after the last step.
func (s *Stepper) Held() int { return int(s.held.Load()) }

// Load reads the install records, as a host does at its start.
func (s *Stepper) Load() {
	s.step(func(ctx context.Context) error {
		err := s.host.installs.Load(ctx)
		for err != nil && ctx.Err() == nil { // a process would be started again
			err = s.host.installs.Load(ctx)
		}
		return err
	})
}

// Era begins an era.
func (s *Stepper) Era() {
	s.step(func(ctx context.Context) error { return s.lane.take(ctx, arrival{era: true}) })
}

// Deliver hands an event over. more says that others wait behind it.
func (s *Stepper) Deliver(e session.Event, ack func(), more bool) {
	s.step(func(ctx context.Context) error {
		s.lane.arrived = true
		return s.lane.take(ctx, arrival{event: e, ack: ack, behind: more})
	})
}

// HasStored reports that a slice was stored, or given up, and waits for Finish.
func (s *Stepper) HasStored() bool { return len(s.lane.stored) > 0 }

// Finish acknowledges what was stored.
func (s *Stepper) Finish() {
	s.step(func(ctx context.Context) error { return s.lane.finish(ctx, <-s.lane.stored) })
}

// Tick looks after wakes, snapshots and sessions that may sleep, as a lane does
// every second.
func (s *Stepper) Tick(now time.Time) {
	s.step(func(context.Context) error {
		s.lane.lookAtWakes(now.UnixMilli())
		s.lane.lookAtSnapshots()
		s.lane.sleep(now)
		return nil
	})
}

// Recheck looks after quarantined sessions.
func (s *Stepper) Recheck() { s.step(s.lane.recheck) }

// Sweep looks after sessions that wait and are not in memory, beside the lane,
// and returns when that is done.
func (s *Stepper) Sweep(ctx context.Context) error {
	if !s.lane.isMine(ctx) {
		return nil
	}
	_, err := s.lane.sweep(ctx)
	return err
}

// View returns a session's View as JSON, as a request for it is answered.
func (s *Stepper) View(ctx context.Context, sid string) ([]byte, error) {
	data, err := s.host.view(ctx, sid)
	if errors.Is(err, errNoSession) {
		return nil, nil
	}
	return data, err
}
