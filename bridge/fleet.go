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

// Fleet says that a bridge is one of several workers of a target, each of which
// has what the others have not: the files of its host sessions.
type Fleet struct {
	Target string // of the tools: host
	Worker string // this one's name; the same after each start, else what it had is lost
	// Lost is for how long nobody must have served a worker's own target before
	// others answer for it; 0: 30 s, at least 5 s.
	Lost time.Duration
}

// Route is the target of this worker's own calls, host-<worker>: what its host
// sessions have as their route.
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
	adoptEvery  = 2 * time.Second // between two looks for workers that are gone
)

// Fleet serves a target as one of its workers: the calls that any worker may
// carry out, such as the opening of a host session, and the calls of its own host
// sessions. The results of e must have Fleet.Route as the route of the host
// sessions that it opens. While it runs, this bridge also answers for workers
// that are gone: their calls fail with `host_session_lost`, or `outcome_unknown`
// if they may have run, and the host session has the status error from then on.
// A worker that comes back goes on where it was. It must come before Run.
func (b *Bridge) Fleet(f Fleet, e executor.Executor, options ...ServeOption) error {
	if err := f.Validate(); err != nil {
		return err
	}
	if f.Lost == 0 {
		f.Lost = lostDefault
	}
	// First its own: nothing is opened here before what follows finds its way.
	if err := errors.Join(b.Tool(f.Route(), e, options...), b.Tool(f.Target, e, options...)); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fleets = append(b.fleets, f)
	return nil
}

// adopter answers for the workers of one fleet that are gone.
type adopter struct {
	bridge *Bridge
	fleet  Fleet
	life   worker.Lifetimes
	silent map[string]time.Time          // targets that nobody serves, and since when
	taken  map[string]context.CancelFunc // targets that this bridge answers for
	denied bool                          // we may not ask who there is, and have said so
	work   sync.WaitGroup
}

// adopt looks for workers that are gone, until this bridge drains.
func (b *Bridge) adopt(life worker.Lifetimes, f Fleet) {
	a := &adopter{bridge: b, fleet: f, life: life, silent: make(map[string]time.Time), taken: make(map[string]context.CancelFunc)}
	defer a.work.Wait()
	look := time.NewTicker(adoptEvery)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			a.look()
			continue
		case <-life.Drain.Done():
		}
		for _, leave := range a.taken {
			leave()
		}
		return
	}
}

// look takes on what nobody has served for long enough, and leaves what somebody
// serves again. Two bridges may answer for one worker: claims, and the first
// settlement, decide between them.
func (a *adopter) look() {
	b := a.bridge
	served, sure := b.wire.Members.Serving()
	if !sure {
		clear(a.silent) // we have not listened: nobody is known to be gone
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
		leave, taken := a.taken[target]
		if served[string(session.ClassTool)+"/"+target] > 0 {
			delete(a.silent, target)
			if taken {
				b.options.Logger.Info("worker_is_back", "target", target)
				leave()
				delete(a.taken, target)
			}
			continue
		}
		since, known := a.silent[target]
		if !known {
			a.silent[target] = now
		}
		if known && !taken && now.Sub(since) >= a.fleet.Lost-presence.GoneAfter {
			a.take(target)
		}
	}
}

// take begins to answer for a worker.
func (a *adopter) take(target string) {
	b := a.bridge
	drain, leave := context.WithCancel(a.life.Drain)
	a.taken[target] = leave
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

// HostSession asks for a session's view, and tells whether the session is open,
// and its host session; nil for none.
func (b *Bridge) HostSession(ctx context.Context, sid string) (open bool, h *executor.HostSession, err error) {
	view, err := b.wire.View(ctx, sid)
	if err != nil {
		return false, nil, err
	}
	if v := view.HostSession; v != nil {
		h = &executor.HostSession{ID: v.ID, Status: v.Status, Route: v.Route}
	}
	return view.Status != "closed", h, nil
}

// EndHostSession tells a session that its host session has ended, with its ID and
// status, through the door ctl: a bridge of host tools needs the right to publish
// there. A session that has another host session by now refuses it.
func (b *Bridge) EndHostSession(ctx context.Context, sid string, h executor.HostSession) error {
	event := session.Envelope{V: session.Version, Type: session.TypeHostSessionUpdated, At: time.Now().UnixMilli(), By: b.by}
	payload, err := event.With(session.HostSessionUpdated{ID: h.ID, Status: h.Status})
	if err != nil {
		return err
	}
	_, err = b.wire.Publish(ctx, session.DoorCtl, sid, h.ID+"."+h.Status, payload)
	return err
}
