package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/delivery"
	"github.com/refold/refold/internal/presence"
)

// World is what a StepHost reads and stores. What each method promises is told
// by *bus.Bus.
type World = world

// StepHost is a host whose lanes run in steps. It is for the simulation
// (docs/simulator.md), where the order of things is drawn by seed; nothing else
// uses it.
type StepHost struct {
	host    *Host
	roster  *roster
	known   atomic.Pointer[[]presence.Member]
	sharing []string // as the share was taken last; nil: it was not
}

// NewStepHost returns a host that works through w. now is its clock.
func NewStepHost(w World, instance string, now func() time.Time, log *slog.Logger, opts Options) *StepHost {
	h := newHost(w, log, opts)
	h.instance, h.now = instance, now
	h.registries.keep()
	// Of two lanes that come at once either might be first: each has a place.
	h.alone = make(chan struct{}, h.opts.Lanes)
	s := &StepHost{host: h, roster: newRoster(instance, opts.Lanes)}
	h.lives = s.lives
	return s
}

// Load reads the install records, as a host does at its start.
func (s *StepHost) Load(ctx context.Context) error { return s.host.installs.Load(ctx) }

// View returns a session's View as JSON, as a request for it is answered; nil if
// the log has no event of it.
func (s *StepHost) View(ctx context.Context, sid string) ([]byte, error) {
	data, err := s.host.view(ctx, sid)
	if errors.Is(err, errNoSession) {
		return nil, nil
	}
	return data, err
}

// Due settles a wake that has come due, as a host does with what it pulls. It
// returns 0 if that may be acknowledged, else when it is to be delivered again.
func (s *StepHost) Due(ctx context.Context, sid, wake string, payload []byte, fired time.Time) (again time.Duration) {
	return s.host.settleDue(ctx, sid, wake, payload, fired)
}

// Beat returns a heartbeat of the host.
func (s *StepHost) Beat() []byte { return s.host.beat() }

// lives reports whether an instance was heard a moment ago.
func (s *StepHost) lives(instance string) bool {
	known := s.known.Load()
	return known != nil && slices.ContainsFunc(*known, func(m presence.Member) bool {
		return m.Instance == instance && isHeard(m.Heard, s.host.now())
	})
}

// Share takes in what was heard of members, and returns which lanes the host is
// to run. The first call begins its share.
func (s *StepHost) Share(known []presence.Member) []bool {
	s.known.Store(&known)
	if sharing, _, _ := s.roster.look(known); !slices.Equal(sharing, s.sharing) {
		s.sharing = sharing
		s.host.divide(sharing)
	}
	mine := make([]bool, s.host.opts.Lanes)
	for n := range mine {
		mine[n], _, _ = s.host.places.wants(n)
	}
	return mine
}

// Close says that the host leaves: it is to run nothing any more.
func (s *StepHost) Close() { s.host.places.close() }

// Stepper runs one lane of a host in steps: what the loop of a lane would take
// from its channels and clocks as it comes, a Stepper takes when it is told to,
// and one at a time.
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
}

// callerKey is the key under which a context says who of a host calls its World.
type callerKey struct{}

// Caller says which part of which lane a call of a World is made by, so that two
// that ask for the same at once can be told apart. It is empty for a View.
func Caller(ctx context.Context) string {
	who, _ := ctx.Value(callerKey{}).(string)
	return who
}

// Lane returns a lane of the host. What l delivers is for the caller to hand
// over, by Take.
func (s *StepHost) Lane(l *delivery.Lane) *Stepper {
	return &Stepper{host: s.host, lane: newLaneActor(s.host, l), steps: make(chan func(context.Context) error), ended: make(chan struct{})}
}

// Run takes steps until ctx ends, which is what a kill and the end of a drain are,
// or the lane is given up: then it returns why. What is stored is snapshotted.
func (s *Stepper) Run(ctx context.Context) error {
	s.host.places.runs(s.lane.lane.Number(), true)
	defer s.host.places.runs(s.lane.lane.Number(), false)
	ctx, cancel := context.WithCancel(ctx)
	l := s.lane
	l.as = func(ctx context.Context, who string) context.Context {
		return context.WithValue(ctx, callerKey{}, fmt.Sprintf("lane %d %s", l.lane.Number(), who))
	}
	as := func(who string) context.Context { return l.as(ctx, who) }
	beside := &l.beside
	for i, slices := range l.toStore {
		beside.Go(func() { l.storeSlices(as(fmt.Sprint("stores ", i)), slices) })
	}
	beside.Go(func() { l.storeWakes(as("schedules")) })
	putting, stopPutting := context.WithCancel(context.WithoutCancel(as("puts")))
	go l.snapshots.run(putting)
	defer func() {
		stopPutting()
		<-l.snapshots.ended
		close(s.ended)
	}()
	folding := as("folds")
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case f := <-l.calls:
			f()
		case step := <-s.steps:
			switch err := step(folding); {
			case err == nil:
				l.handOver()
			case ctx.Err() == nil:
				s.err = err
				fallthrough
			default:
				l.drop()
				cancel()
			}
			s.busy.Store(false)
		}
	}
	cancel()
	l.storeNoMore()
	beside.Wait()
	if s.err == nil {
		l.snapshotAll()
	}
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

// Arrival is what a lane hands over: the beginning of an epoch, or an event.
type Arrival struct {
	Epoch bool
	Event session.Event
	Ack   func()
}

// Take hands over what has arrived, at most 64 at once: one batch.
func (s *Stepper) Take(all []Arrival) {
	of := func(a Arrival) arrival { return arrival{event: a.Event, ack: a.Ack, epoch: a.Epoch} }
	for _, a := range all[1:] {
		s.lane.arrivals <- of(a)
	}
	s.step(func(ctx context.Context) error {
		s.lane.arrived = true
		return s.lane.batch(ctx, of(all[0]))
	})
}

// IsFull reports that so much waits to be stored that nothing is taken.
func (s *Stepper) IsFull() bool { return len(s.lane.order) >= foldedMax }

// HasStored reports that a slice, or the wakes of some, was stored or given up, and
// waits for Finish.
func (s *Stepper) HasStored() bool { return len(s.lane.stored) > 0 }

// Finish acknowledges what was stored.
func (s *Stepper) Finish() {
	s.step(func(ctx context.Context) error { return (<-s.lane.stored)(ctx) })
}

// HasLoaded reports that sessions were loaded, and wait for Unpark.
func (s *Stepper) HasLoaded() bool { return len(s.lane.loads) > 0 }

// Unpark takes in sessions that were loaded, and folds the events that wait for
// them.
func (s *Stepper) Unpark() {
	s.step(func(ctx context.Context) error { return s.lane.unpark(ctx, <-s.lane.loads) })
}

// Tick learns what became of snapshots and makes room in memory, as a lane does
// every second.
func (s *Stepper) Tick() {
	s.step(func(context.Context) error {
		s.lane.lookAround()
		return nil
	})
}

// Recheck looks after quarantined sessions. Before, the host forgets which
// registries it holds, as it does elsewhere when no session has them any more.
func (s *Stepper) Recheck() {
	s.host.registries.forget()
	s.step(s.lane.recheck)
}

// Memory is what a lane has in memory.
type Memory struct {
	Sessions []InMemory // by name
	Waits    int        // events folded that are not stored
	Loaded   int        // sessions that are being loaded
	Putting  int        // snapshots on their way
	Most     int        // sessions that it may keep
}

// InMemory is a session in memory.
type InMemory struct {
	Session         string
	Seq, Stored     uint64
	Hash            func() string // of the state; for as long as the Stepper is idle
	Proven, Stopped bool
	Unsure          bool // a snapshot of it is on its way
	Asked           int  // names that are remembered
}

// Memory returns what is in memory. The Stepper must be idle.
func (s *Stepper) Memory() Memory {
	l := s.lane
	m := Memory{Waits: len(l.folded), Loaded: len(l.parked), Most: l.host.opts.SessionsMax}
	for _, s := range slices.Concat(l.storing, l.waking) {
		m.Waits += len(s.outputs)
	}
	l.snapshots.mu.Lock()
	m.Putting = len(l.snapshots.next) + len(l.snapshots.former)
	l.snapshots.mu.Unlock()
	for sid, a := range l.sessions {
		one := InMemory{Session: sid, Stored: a.stored, Proven: a.proven, Stopped: a.stop != nil, Unsure: a.unsure > 0, Asked: len(a.asked)}
		if a.state != nil {
			one.Seq, one.Hash = a.state.Seq, func() string { return a.state.Hash().String() }
		}
		m.Sessions = append(m.Sessions, one)
	}
	slices.SortFunc(m.Sessions, func(a, b InMemory) int { return strings.Compare(a.Session, b.Session) })
	return m
}
