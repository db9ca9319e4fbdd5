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
	"github.com/refold/refold/internal/meter"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/subjects"
)

// Options tune a Host. The zero value is the default of each.
type Options struct {
	Lanes        int             // that the log has; 0: as many as streams.conf says
	Memory       int64           // bytes that the sessions in memory take, about; 0: 256 MiB. Equal parts for the lanes that run
	SessionsMax  int             // sessions that a lane keeps in memory; 0: as many as Memory has room for
	SnapshotEach uint64          // events between two snapshots of a session; 0: 256
	DrainFor     time.Duration   // how long a drain may take; 0: 10 s
	Version      string          // of the program, shown by `nats micro ls`
	VerifyPart   float64         // of the snapshots that are taken and loaded: refolded from the log and compared; 0: none
	Metrics      *meter.Registry // where the host's metrics are registered; nil: nothing is measured
	Traces       Traces          // takes the spans of runs; nil: no run is traced
	Doubt        bool            // audit every session when it is loaded first, as if the log had lost events
}

// Host runs sessions. Create it with New, start it with Run.
type Host struct {
	bus        *bus.Bus
	world      World
	log        *slog.Logger
	opts       Options
	installs   *journal.Installs
	registries registries // that sessions set themselves
	stops      stops
	integrity  integrity
	assignment *assignment
	membership *membership
	known      atomic.Pointer[[]presence.Member] // session-actors that were heard
	sharing    []string                          // as the share of the lanes was taken last; nil: it was not
	instance   string
	meters     *Meters
	ownsFirst  atomic.Bool // lane 0
	ready      chan struct{}
	bridges    atomic.Pointer[presence.Members] // that are heard; nil before Run

	// evolve folds an event: State.Evolve, but for tests of what a fault in
	// the fold does.
	evolve func(*session.State, session.Event) ([]session.Notice, error)
	// lives reports whether a session-actor was heard a moment ago.
	lives func(instance string) bool
	// now is the clock of the process: time.Now, but for the simulation, whose
	// clocks jump.
	now func() time.Time
	// recheck is how often a lane looks after quarantined sessions.
	recheck time.Duration
	// orphanedEvery is how often lanes that others should run are looked at.
	orphanedEvery time.Duration
	// alone is held by the lane that works on an event of a careful pass.
	alone chan struct{}
	// verifying is held by the lane that verifies a snapshot: one at a time.
	verifying chan struct{}
}

// New returns a host that works through b, which stays the caller's.
func New(b *bus.Bus, log *slog.Logger, opts Options) *Host {
	h := NewOn(b, ulid.Make().String(), time.Now, log, opts)
	h.bus = b
	return h
}

// NewOn returns a host of a name that works through w. now is its clock. It is not
// to be Run: the caller drives its lanes, and hands it what others hear of it.
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
	log = log.With("instance", instance)
	h := &Host{
		world: w, log: log, opts: opts, instance: instance, meters: Register(opts.Metrics, opts.Lanes), evolve: (*session.State).Evolve, now: now, recheck: recheckEvery, ready: make(chan struct{}),
		assignment: newAssignment(opts.Lanes), membership: newMembership(instance, opts.Lanes), orphanedEvery: orphanedEvery, verifying: make(chan struct{}, 1), alone: make(chan struct{}, 1),
		installs: journal.NewInstalls(w, log, func(ctx context.Context, install *session.Install) error {
			return putDescriptors(ctx, w, install.Composed())
		}),
	}
	h.lives = h.isAlive
	return h
}

// Instance returns the name of this process start: a ULID.
func (h *Host) Instance() string { return h.instance }

// Load reads the install records, which it must before a lane of it runs.
func (h *Host) Load(ctx context.Context) error { return h.installs.Load(ctx) }

// Ready is closed once Run answers views, has heard who else is there, and waits
// for its share of the lanes.
func (h *Host) Ready() <-chan struct{} { return h.ready }

// Run runs the sessions of its share of the lanes until ctx ends; then it says
// that it leaves, finishes what it has, hands its lanes over and returns nil. It
// returns an error if the streams can't be used, or a session follows rules that
// this release does not know. The log must hold an install record; see
// EnsureInstall. A host is run once.
func (h *Host) Run(ctx context.Context) error {
	if err := h.Load(ctx); err != nil {
		return fmt.Errorf("read install records: %w", err)
	}
	h.askIntegrity(ctx)
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
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
	failed := make(chan error, h.opts.Lanes+1)
	var running, background sync.WaitGroup
	for lane := range h.opts.Lanes {
		running.Go(func() {
			if err := h.serve(working, lane); err != nil {
				failed <- err
			}
		})
	}
	background.Go(func() { h.shares(working, members) })
	background.Go(func() { h.adoptOrphaned(working) })
	pulling, stopPulling := context.WithCancel(ctx)
	defer stopPulling()
	background.Go(func() {
		if err := h.pullsDue(pulling, working); err != nil {
			failed <- err
		}
	})
	background.Go(func() { h.asks(working) })
	background.Go(func() {
		h.bus.KeepRoom(working, func() bool {
			lanes, _, _ := h.assignment.now()
			return slices.Contains(lanes, 0)
		})
	})
	var cause error
	select {
	case <-ctx.Done():
	case cause = <-failed:
	}
	stopPulling()
	// Others hear that it leaves before it has left, and stand by.
	h.Leave()
	h.publishHeartbeat()
	running.Wait()
	cancel()
	background.Wait()
	return errors.Join(cause, stopService(), <-alive)
}

// register shows this host to `nats micro`, and answers views.
func (h *Host) register(ctx context.Context) (stop func() error, err error) {
	return h.bus.Register(ctx, presence.Service{
		Kind: subjects.KindSessionActor, Version: h.opts.Version, Description: "Runs Refold sessions",
		Metadata: map[string]string{
			"instance": h.instance, "lane_count": strconv.Itoa(h.opts.Lanes), "rules": strconv.Itoa(session.RulesVersion),
		},
		Stats: func() any {
			lanes, _, _ := h.assignment.now()
			return map[string]any{"lanes": lanes}
		},
	}, h.views(ctx))
}
