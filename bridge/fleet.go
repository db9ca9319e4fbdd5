package bridge

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/internal/worker"
	"github.com/refold/refold/subjects"
)

// Fleet makes a bridge one of several workers of a target. Each worker has files
// that the others don't have: those of its host sessions.
type Fleet struct {
	Target string // of the tools: host
	Worker string // the worker's name; it must be the same after a restart, else its host sessions are lost
	// Lost is how long a worker's own target must be unserved before others answer
	// for it; 0: 30 s, at least 5 s.
	Lost time.Duration
}

// Route is the target of this worker's own calls, host-<worker>, and the route of
// its host sessions.
func (f Fleet) Route() string { return f.Target + "-" + f.Worker }

// Validate reports every problem of f.
func (f Fleet) Validate() error {
	var all []error
	if f.Target == "" || f.Worker == "" || subjects.ValidTarget(f.Route()) != nil {
		all = append(all, fmt.Errorf("worker %q of target %q: choose a name of A-Z a-z 0-9 _ -, so that both have at most 63 bytes together", f.Worker, f.Target))
	}
	if f.Lost != 0 && f.Lost < lostLeast {
		all = append(all, fmt.Errorf("a worker is lost after %v: at least %v", f.Lost, lostLeast))
	}
	return errors.Join(all...)
}

const (
	lostDefault = 30 * time.Second
	lostLeast   = 5 * time.Second
	adoptEvery  = 2 * time.Second // between two checks for lost workers
)

// Fleet serves a target as one of its workers: the calls that any worker may
// execute, such as the opening of a host session, and the calls of its own host
// sessions. e must return Fleet.Route as the route of host sessions that it
// opens. While it runs, this bridge also answers for lost workers: their calls
// fail with `host_session_lost`, or `outcome_unknown` if they may have run, and
// the host session then has the status error. A worker that comes back continues.
// Fleet must be called before Run.
func (b *Bridge) Fleet(f Fleet, e executor.Executor, options ...ServeOption) error {
	if err := f.Validate(); err != nil {
		return err
	}
	if f.Lost == 0 {
		f.Lost = lostDefault
	}
	// Its own target first: a host session must not be opened before its calls
	// are served.
	if err := errors.Join(b.Tool(f.Route(), e, options...), b.Tool(f.Target, e, options...)); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fleets = append(b.fleets, f)
	return nil
}

// reaper answers for the lost workers of one fleet.
type reaper struct {
	bridge  *Bridge
	fleet   Fleet
	life    worker.Lifetimes
	silent  map[string]time.Time          // unserved targets, and since when
	adopted map[string]context.CancelFunc // targets that this bridge answers for
	denied  bool                          // we may not list targets, and have logged that
	work    sync.WaitGroup
}

// serveLost answers for lost workers until this bridge drains.
func (b *Bridge) serveLost(life worker.Lifetimes, f Fleet) {
	a := &reaper{bridge: b, fleet: f, life: life, silent: make(map[string]time.Time), adopted: make(map[string]context.CancelFunc)}
	defer a.work.Wait()
	tick := time.NewTicker(adoptEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			a.check()
			continue
		case <-life.Drain.Done():
		}
		for _, leave := range a.adopted {
			leave()
		}
		return
	}
}

// check adopts targets that have been unserved for long enough, and leaves those
// that are served again. Two bridges may answer for one worker: claims, and the
// first settlement, decide between them.
func (a *reaper) check() {
	b := a.bridge
	served, sure := b.wire.Members.Serving()
	if !sure {
		clear(a.silent) // we have not listened long enough
		return
	}
	targets, err := b.bus.BridgeTargets(a.life.Drain, session.ClassTool)
	if err != nil {
		var denied *natsio.PermissionError
		if errors.As(err, &denied) && !a.denied {
			a.denied = true
			b.options.Logger.Warn("answers_for_no_lost_worker", "error", err.Error(), "do", "grant it as docs/operations.md says")
		}
		return
	}
	now := time.Now()
	for _, target := range targets {
		if !strings.HasPrefix(target, a.fleet.Target+"-") || target == a.fleet.Route() {
			continue
		}
		leave, adopted := a.adopted[target]
		if served[string(session.ClassTool)+"/"+target] > 0 {
			delete(a.silent, target)
			if adopted {
				b.options.Logger.Info("worker_is_back", "target", target)
				leave()
				delete(a.adopted, target)
			}
			continue
		}
		since, known := a.silent[target]
		if !known {
			a.silent[target] = now
		}
		if known && !adopted && now.Sub(since) >= a.fleet.Lost-presence.GoneAfter {
			a.adopt(target)
		}
	}
}

func (a *reaper) adopt(target string) {
	b := a.bridge
	drain, leave := context.WithCancel(a.life.Drain)
	a.adopted[target] = leave
	b.options.Logger.Warn("worker_lost", "target", target, "silent_ms", a.fleet.Lost.Milliseconds())
	life := a.life
	life.Drain = drain
	s := worker.LostTarget(target)
	a.work.Go(func() {
		defer leave()
		if err := b.worker.Serve(life, s, worker.NewNATSSource(b.bus.Effects(b.conf, s.Class, s.Name))); err != nil {
			b.options.Logger.Warn("lost_worker_not_served", "target", target, "error", err.Error())
		}
	})
}

// HostSession returns whether a session is open, and its host session, nil for
// none, from the session's view.
func (b *Bridge) HostSession(ctx context.Context, sid string) (open bool, h *executor.HostSession, err error) {
	view, err := b.wire.View(ctx, sid)
	if err != nil {
		return false, nil, err
	}
	if v := view.Host; v != nil {
		h = &executor.HostSession{ID: v.ID, Status: v.Status, Route: v.Route}
	}
	return view.Status != "closed" && view.Status != "erased", h, nil
}

// Deleted calls fn with every session whose messages were deleted according to the ledger
// of erased messages, from a sequence of the ledger on (0: its first one), and returns the
// sequence from which the next call continues. A session may come more than once.
func (b *Bridge) Deleted(ctx context.Context, from uint64, fn func(sid string)) (next uint64, err error) {
	return b.bus.ErasedSince(ctx, from, fn)
}

// EndHostSession reports to a session that its host session has ended, with its
// ID and status, through the door ctl: a bridge of host tools needs the
// permission to publish there. The session refuses the event if it now has
// another host session.
func (b *Bridge) EndHostSession(ctx context.Context, sid string, h executor.HostSession) error {
	event := session.Envelope{V: session.Version, Type: session.TypeHostSessionUpdated, At: b.clock.Now().UnixMilli(), By: b.by}
	payload, err := event.With(session.HostSessionUpdated{ID: h.ID, Status: h.Status})
	if err != nil {
		return err
	}
	_, err = b.wire.Publish(ctx, session.DoorCtl, sid, h.ID+"."+h.Status, payload)
	return err
}
