package host

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// puttingMax is how many snapshots are put at once.
const puttingMax = 32

// snapshotting puts the snapshots of a lane, beside it: those of one session one
// after another, and of several that wait only the newest, so that none takes
// the place of a newer one.
type snapshotting struct {
	world  world
	log    *slog.Logger
	meters *Meters

	mu     sync.Mutex
	next   map[string]*snapshot // waits
	order  []string             // of those
	former map[*snapshot][]*snapshot
	barred map[*actor]bool // those whose states are not to be stored
	known  []*snapshot     // put, or not: it is known
	until  time.Time       // none is tried before: the last one failed
	held   int             // while it is not 0, nothing new is begun
	begun  []*snapshot     // are being put, or about to be
	closed bool
	woken  chan struct{}
	ended  chan struct{}
}

func newSnapshotting(w world, log *slog.Logger, m *Meters) *snapshotting {
	return &snapshotting{
		world: w, log: log, meters: m, next: map[string]*snapshot{}, former: map[*snapshot][]*snapshot{}, barred: map[*actor]bool{},
		woken: make(chan struct{}, 1), ended: make(chan struct{}),
	}
}

// put has snapshots of stored states put. It waits for nothing; done of each is
// closed when it, or a newer one in its place, is.
func (k *snapshotting) put(list ...*snapshot) {
	if len(list) == 0 {
		return
	}
	k.mu.Lock()
	for _, p := range list {
		sid := p.actor.sid
		if k.barred[p.actor] {
			p.err = errBarred
			k.known = append(k.known, p)
			close(p.done)
			continue
		}
		if old := k.next[sid]; old != nil {
			k.former[p] = slices.Concat(k.former[old], []*snapshot{old})
			delete(k.former, old)
		} else {
			k.order = append(k.order, sid)
		}
		k.next[sid] = p
	}
	k.begin()
	k.mu.Unlock()
	k.wake()
}

// together has what is put until its end begin at once.
func (k *snapshotting) together() (end func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held++
	return func() {
		k.mu.Lock()
		k.held--
		k.begin()
		k.mu.Unlock()
		k.wake()
	}
}

// errBarred says that a state is not to be stored.
var errBarred = errors.New("the session is stopped: its state is not what the log folds to")

// bar has no snapshot of s put any more that is not put yet (nil: nobody's). What
// waits gives way to what is put next.
func (k *snapshotting) bar(s *actor) {
	if s == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.barred[s] = true
}

// bars reports whether no snapshot of s is put any more.
func (k *snapshotting) bars(s *actor) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.barred[s]
}

func (k *snapshotting) wake() {
	select {
	case k.woken <- struct{}{}:
	default:
	}
}

// errPutPaused says that no snapshot is put for a while after one failed.
var errPutPaused = errors.New("not tried: one failed a moment ago")

// run puts what waits, until ctx ends or finish was called and nothing waits.
func (k *snapshotting) run(ctx context.Context) {
	defer close(k.ended)
	for ctx.Err() == nil {
		k.mu.Lock()
		some, closed := k.begun, k.closed && len(k.order) == 0
		k.mu.Unlock()
		if len(some) == 0 {
			if closed {
				return
			}
			select {
			case <-k.woken:
			case <-ctx.Done():
			}
			continue
		}
		paused := k.paused()
		var puts sync.WaitGroup
		for _, p := range some {
			if paused {
				p.err = errPutPaused
				continue
			}
			puts.Go(func() { p.err = k.one(ctx, p) })
		}
		puts.Wait()
		k.judge(some)
	}
}

// begin takes some of what waits to be put next, unless others are being put.
// Whoever puts begins, not run when it comes to it: so which snapshots are under
// way together, and which give way to newer ones, is not for the processor to
// say. The lock is held.
func (k *snapshotting) begin() {
	if k.held > 0 || len(k.begun) > 0 {
		return
	}
	n := min(len(k.order), puttingMax)
	for _, sid := range k.order[:n] {
		k.begun = append(k.begun, k.next[sid])
		delete(k.next, sid)
	}
	k.order = append(k.order[:0], k.order[n:]...)
}

// one puts a snapshot.
func (k *snapshotting) one(ctx context.Context, p *snapshot) error {
	ctx, cancel := context.WithTimeout(ctx, snapshotWithin)
	defer cancel()
	return k.world.PutSnapshot(ctx, p.actor.sid, p.seq, p.data)
}

// judge says what became of some, and begins the next. A snapshot is a cache: one
// that is not stored costs time at the next load.
func (k *snapshotting) judge(some []*snapshot) {
	k.mu.Lock()
	defer k.mu.Unlock()
	told := false
	for _, p := range some {
		p.data = nil
		if p.err != nil {
			if !errors.Is(p.err, errPutPaused) {
				if !told {
					k.log.Warn("snapshot not stored", "session", p.actor.sid, "error", p.err)
				}
				told = true
				k.until = time.Now().Add(snapshotPause)
			}
		}
		k.meters.snapshot(p.err)
		for _, one := range append(k.former[p], p) {
			one.err = p.err
			k.known = append(k.known, one)
			close(one.done)
		}
		delete(k.former, p)
	}
	k.begun = nil
	k.begin()
}

// results returns those of which it became known since the last call whether
// they are stored.
func (k *snapshotting) results() []*snapshot {
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.known
	k.known = nil
	return known
}

// paused reports whether none is tried now.
func (k *snapshotting) paused() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Now().Before(k.until)
}

// finish waits until all that waits is put, for d at most.
func (k *snapshotting) finish(d time.Duration) {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.wake()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-k.ended:
	case <-timer.C:
	}
}
