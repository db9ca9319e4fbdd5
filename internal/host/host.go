package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/subjects"
)

// Options tune a Host. The zero value is the default of each.
type Options struct {
	Lanes        int           // lanes to run; 0: all of streams.conf
	SessionsMax  int           // sessions that a lane keeps in memory; 0: 4,096
	SnapshotEach uint64        // events between two snapshots of a session; 0: 256
	DrainFor     time.Duration // how long a drain may take; 0: 10 s
	Version      string        // of the program, shown by `nats micro ls`
}

// Host runs sessions. Create it with New, start it with Run.
type Host struct {
	bus        *bus.Bus
	world      world
	log        *slog.Logger
	opts       Options
	installs   *bus.Installs
	registries registries // that sessions set themselves
	stops      stops
	instance   string
	ready      chan struct{}

	// evolve folds an event: State.Evolve, but for tests of what a fault in
	// the fold does.
	evolve func(*session.State, session.Event) ([]session.Notice, error)
	// recheck is how often a lane looks after quarantined sessions.
	recheck time.Duration
	// sweepFirst is how long after the start a lane that nobody owns is swept.
	sweepFirst time.Duration
	// sweeping is held by the lane that is swept: one at a time.
	sweeping chan struct{}
}

// New returns a host that works through b, which stays the caller's.
func New(b *bus.Bus, log *slog.Logger, opts Options) *Host {
	h := newHost(b, log, opts)
	h.bus = b
	return h
}

// newHost returns a host that works through w, and runs no lanes yet.
func newHost(w world, log *slog.Logger, opts Options) *Host {
	if opts.Lanes == 0 {
		opts.Lanes = subjects.LanesDefault
	}
	if opts.SessionsMax == 0 {
		opts.SessionsMax = 4096
	}
	if opts.SnapshotEach == 0 {
		opts.SnapshotEach = 256
	}
	if opts.DrainFor == 0 {
		opts.DrainFor = 10 * time.Second
	}
	instance := ulid.Make().String()
	log = log.With("instance", instance)
	return &Host{
		world: w, log: log, opts: opts, instance: instance, evolve: (*session.State).Evolve, recheck: recheckEvery, ready: make(chan struct{}),
		sweepFirst: sweepFirst, sweeping: make(chan struct{}, 1),
		installs: bus.NewInstalls(w, log, func(ctx context.Context, install *session.Install) error {
			return putDescriptors(ctx, w, install.Registry)
		}),
	}
}

// Instance returns the name of this process start: a ULID.
func (h *Host) Instance() string { return h.instance }

// Ready is closed once Run answers views and waits for lanes.
func (h *Host) Ready() <-chan struct{} { return h.ready }

// Run owns lanes and runs their sessions until ctx ends; then it finishes what
// it has, hands its lanes over and returns nil. It returns an error if the
// streams can't be used, or a session follows rules that this release does not
// know. The log must hold an install record; see EnsureInstall. A host is run
// once.
func (h *Host) Run(ctx context.Context) error {
	if err := h.installs.Load(ctx); err != nil {
		return fmt.Errorf("read install records: %w", err)
	}
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	beat := h.heartbeat()
	alive := make(chan error, 1)
	go func() { alive <- h.bus.Heartbeat(working, h.instance, func() []byte { return beat }) }()

	stopService, err := h.bus.Register(working, bus.Service{
		Kind: "session-actor", Version: h.opts.Version, Description: "Runs Refold sessions",
		Metadata: map[string]string{"instance": h.instance, "lanes": strconv.Itoa(h.opts.Lanes), "rules": strconv.Itoa(session.RulesVersion)},
	}, h.views(working))
	if err != nil {
		cancel()
		return errors.Join(err, <-alive)
	}
	failed := make(chan error, h.opts.Lanes)
	lanes := make([]*laneActor, h.opts.Lanes)
	var running sync.WaitGroup
	for i := range lanes {
		lanes[i] = newLaneActor(h, h.bus.Lane(i))
		running.Go(func() {
			if err := lanes[i].run(working); err != nil {
				failed <- err
			}
		})
	}
	close(h.ready)
	var cause error
	select {
	case <-ctx.Done():
	case cause = <-failed:
	}
	h.drain(lanes)
	cancel()
	running.Wait()
	return errors.Join(cause, stopService(), <-alive)
}

// drain hands every lane over, as far as the time allows.
func (h *Host) drain(lanes []*laneActor) {
	ctx, cancel := context.WithTimeout(context.Background(), h.opts.DrainFor)
	defer cancel()
	var draining sync.WaitGroup
	for _, l := range lanes {
		draining.Go(func() {
			if err := l.lane.Drain(ctx); err != nil {
				h.log.Warn("lane not drained in time", "lane", l.lane.Number(), "error", err)
			}
		})
	}
	draining.Wait()
}

// heartbeat returns what this host says of itself while it lives.
func (h *Host) heartbeat() []byte {
	body, err := json.Marshal(struct {
		Kind  string `json:"kind"`
		Lanes int    `json:"lanes"`
		Rules int    `json:"rules"`
	}{"session-actor", h.opts.Lanes, session.RulesVersion})
	if err != nil {
		panic("host: a heartbeat does not encode: " + err.Error())
	}
	return body
}
