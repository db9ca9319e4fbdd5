package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/subjects"
)

// Options tune a Host. The zero value of each is its default.
type Options struct {
	Lanes        int           // number of the log's lanes; 0: the default of streams.conf
	Memory       int64         // bytes for sessions in memory, about, in equal parts for the running lanes; 0: 256 MiB
	SessionsMax  int           // sessions that a lane keeps in memory; 0: limited by Memory only
	SnapshotEach uint64        // events between two snapshots of a session; 0: 256
	DrainFor     time.Duration // limit of a drain; 0: 10 s
	Version      string        // of the program, shown by `nats micro ls`
	NoScrub      bool          // no snapshot is compared with the log in the background
	Meters       *Meters       // from Register, for hosts that run one after another; nil: nothing is measured
	Traces       Traces        // receives the spans of runs; nil: no run is traced
	Doubt        bool          // audit every session at its first load, as if the log had lost events
}

// Host runs sessions. Create it with New, start it with Run.
type Host struct {
	bus         *bus.Bus
	world       watched
	log         *slog.Logger
	opts        Options
	installs    *journal.Installs
	registries  registries // set by sessions
	quarantined quarantined
	integrity   integrity
	wrong       wrong
	assignment  *assignment
	membership  *membership
	known       atomic.Pointer[[]presence.Member] // session-actors by their heartbeats
	sharing     []string                          // members at the last division of the lanes; nil: there was none
	instance    string
	clock       *natsio.Clock // of now; nil for a host that does not Run
	meters      *Meters
	ownsFirst   atomic.Bool // this host owns lane 0
	ready       chan struct{}
	bridges     atomic.Pointer[presence.Members] // bridges by their heartbeats; nil before Run

	// evolve folds an event: State.Evolve, except in tests of faults in the fold.
	evolve  func(*session.State, session.Event) ([]session.Notice, error)
	skipped skipped
	// lives reports whether a session-actor sent a heartbeat a moment ago.
	lives func(instance string) bool
	// now is the server's clock, as this process knows it.
	now func() time.Time
	// recheck is how often a lane checks its quarantined sessions.
	recheck time.Duration
	// roundFor and retriedEvery are the constants of these names, except in tests.
	roundFor, retriedEvery time.Duration
	// orphanedEvery is how often the lanes of other hosts are checked.
	orphanedEvery time.Duration
	// alone is held by the lane that processes an event of a careful pass.
	alone chan struct{}
	// scrubbing is held by the lane that compares a session with the log.
	scrubbing chan struct{}
}

// New returns a host that uses b. The caller keeps ownership of b.
func New(b *bus.Bus, log *slog.Logger, opts Options) *Host {
	clock := b.NewClock(natsio.NewLocalClock())
	h := NewOn(b, ulid.Make().String(), clock.Now, log, opts)
	h.bus, h.clock = b, clock
	return h
}

// NewOn returns a host with the given instance name, World and clock. The caller
// must not Run it, but drives its lanes and hands it the heartbeats of others.
func NewOn(w World, instance string, now func() time.Time, log *slog.Logger, opts Options) *Host {
	if opts.Lanes == 0 {
		opts.Lanes = subjects.LanesDefault
	}
	if opts.Memory == 0 {
		opts.Memory = memoryDefault
	}
	if opts.SnapshotEach == 0 {
		opts.SnapshotEach = 256
	}
	if opts.DrainFor == 0 {
		opts.DrainFor = 10 * time.Second
	}
	if opts.Meters == nil {
		opts.Meters = Register(nil, opts.Lanes)
	}
	log = log.With("instance", instance)
	h := &Host{
		world: watched{w}, log: log, opts: opts, instance: instance, meters: opts.Meters, evolve: (*session.State).Evolve, now: now, recheck: recheckEvery, roundFor: roundFor, retriedEvery: retriedEvery, ready: make(chan struct{}),
		assignment: newAssignment(opts.Lanes), membership: newMembership(instance, opts.Lanes), orphanedEvery: orphanedEvery, scrubbing: make(chan struct{}, 1), alone: make(chan struct{}, 1),
		installs: journal.NewInstalls(w, log, func(ctx context.Context, install *session.Install) error {
			return putDescriptors(ctx, w, install.Offered())
		}),
	}
	h.lives = h.isAlive
	return h
}

// Instance returns this process's name, a ULID that is new at each start.
func (h *Host) Instance() string { return h.instance }

// Load reads the install records. It must be called before a lane runs.
func (h *Host) Load(ctx context.Context) error { return h.installs.Load(ctx) }

// Ready is closed once Run answers views, has received the other members'
// heartbeats, and waits for its share of the lanes.
func (h *Host) Ready() <-chan struct{} { return h.ready }

// Run runs the sessions of its share of the lanes until ctx ends. Then it announces
// that it leaves, drains and hands over its lanes, and returns nil. It returns an
// error if the streams can't be used, if a session follows rules that this release does
// not know, if another system's messages arrive in its first seconds (a
// *natsio.ForeignError), or if the connection is closed for good (a
// *natsio.ClosedError). The log must hold an install record; see EnsureInstall. A
// host runs once.
func (h *Host) Run(ctx context.Context) error {
	if err := h.Load(ctx); err != nil {
		return fmt.Errorf("read install records: %w", err)
	}
	h.checkIntegrity(ctx)
	heard := h.bus.ForeignMessages
	h.meters.foreign.Store(&heard)
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	_ = h.clock.Measure(ctx) // Keep tries again, and tells why it failed
	members, err := h.bus.TrackMembers(working, subjects.KindSessionActor)
	if err != nil {
		return fmt.Errorf("hear of other hosts: %w", err)
	}
	bridges, err := h.bus.TrackMembers(working, subjects.KindBridge)
	if err != nil {
		return fmt.Errorf("hear of bridges: %w", err)
	}
	h.bridges.Store(bridges)
	alive := make(chan error, 1)
	go func() { alive <- h.bus.Heartbeat(working, subjects.KindSessionActor, h.instance, h.Heartbeat) }()

	stopService, err := h.register(working)
	if err != nil {
		cancel()
		return errors.Join(err, <-alive)
	}
	failed := make(chan error, h.opts.Lanes+3)
	var running, background sync.WaitGroup
	for lane := range h.opts.Lanes {
		running.Go(func() { report(failed, h.serve(working, lane)) })
	}
	background.Go(func() { h.keepShare(working, members) })
	background.Go(func() { h.adoptOrphaned(working) })
	pulling, stopPulling := context.WithCancel(ctx)
	defer stopPulling()
	background.Go(func() { report(failed, h.pullDue(pulling, working)) })
	background.Go(func() { h.watchStreams(working, failed) })
	background.Go(func() { report(failed, h.refuseForeign(working)) })
	background.Go(func() { h.readGauges(working) })
	background.Go(func() { h.clock.Keep(working) })
	background.Go(func() {
		h.bus.KeepRoom(working, func() bool {
			lanes, _, _ := h.assignment.now()
			return slices.Contains(lanes, 0)
		})
	})
	cause, closed := h.awaitEnd(ctx, failed)
	stopPulling()
	if closed {
		cancel() // nothing can be stored or handed over any more
		running.Wait()
		background.Wait()
		_ = stopService() // it fails without a connection
		return cause
	}
	// Other hosts must learn of this before the lanes are free, to stand by.
	h.Leave()
	h.publishHeartbeat()
	running.Wait()
	cancel()
	background.Wait()
	return errors.Join(cause, stopService(), <-alive)
}

// refuseForeign returns a *natsio.ForeignError if another system is heard. It logs
// whether one was joined earlier.
func (h *Host) refuseForeign(ctx context.Context) error {
	if found, err := h.bus.ForeignEvents(ctx); err != nil {
		h.log.Debug("newest_events_not_read", "error", err.Error())
	} else if found != "" {
		h.log.Warn("foreign_events", "note", found)
	}
	return h.bus.RefuseForeign(ctx)
}

// report sends an error to failed, if it is one.
func report(failed chan<- error, err error) {
	if err != nil {
		failed <- err
	}
}

// awaitEnd waits until ctx ends, a lane fails or the connection is closed for good.
func (h *Host) awaitEnd(ctx context.Context, failed <-chan error) (cause error, closed bool) {
	open, stop := h.bus.WhileOpen(ctx)
	defer stop()
	select {
	case <-open.Done():
	case cause = <-failed:
	}
	if err := h.bus.ClosedForGood(); err != nil {
		return err, true
	}
	return cause, false
}

// register announces this host to `nats micro`, and answers views.
func (h *Host) register(ctx context.Context) (stop func() error, err error) {
	return h.bus.Register(ctx, presence.Service{
		Kind: subjects.KindSessionActor, Version: h.opts.Version, Description: "Runs Refold sessions",
		Metadata: map[string]string{
			"instance": h.instance, "lane_count": strconv.Itoa(h.opts.Lanes), "rules": strconv.Itoa(session.RulesVersion),
		},
		Stats: func() any { return h.stats() },
	}, h.views(ctx))
}
