package sim

// The stage of the simulation. Every outside call of a process waits until the
// simulation lets it happen and decides its outcome. One goroutine runs at a
// time; time is that of a bubble of testing/synctest and passes when the
// simulation says so. All draws come from one list of numbers, so that a run can
// be repeated, and shrunk by drawing less.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/presence"
)

// draws is the source of a run's decisions: the given numbers, then a generator,
// or zeros, with which nothing goes wrong.
type draws struct {
	seed  uint64 // for the report of a crash
	given []uint32
	rand  *rand.Rand // nil: zeros
	taken []uint32
}

// seeded returns the draws of a seed.
func seeded(seed uint64) *draws { return &draws{seed: seed, rand: rand.New(rand.NewPCG(seed, 5))} }

// draw returns 0 to n-1. 0 always does the least harm.
func (d *draws) draw(n int) int {
	if n <= 1 {
		return 0
	}
	var v uint32
	switch at := len(d.taken); {
	case at < len(d.given):
		v = d.given[at] % uint32(n)
	case d.rand != nil:
		v = uint32(d.rand.IntN(n))
	}
	d.taken = append(d.taken, v)
	return int(v)
}

// spent reports whether all given numbers are taken, and there are no others.
func (d *draws) spent() bool { return d.rand == nil && len(d.taken) >= len(d.given) }

// becomes is the outcome of a call.
type becomes int

const (
	works  becomes = iota
	slowly         // it happens, and is answered later
	lost           // it happens, and the answer is lost
	fails          // it does not happen
)

var (
	errGone    = fmt.Errorf("the network is gone: %w", journal.ErrUnknownOutcome)
	errRefused = errors.New("the server is not there")
	errKilled  = fmt.Errorf("the process was killed: %w", natsio.ErrClosed)
)

// waiting is a call that waits to happen.
type waiting struct {
	proc   *proc
	key    string
	caller string // in the process
	late   bool   // it has happened; its answer waits
	n      int    // order in which the simulation saw it
	done   chan becomes
}

// carries is the context key of the part of a process that calls.
type carries struct{}

// callerOf distinguishes two simultaneous equal calls of a process.
func callerOf(ctx context.Context) string {
	carried, _ := ctx.Value(carries{}).(string)
	return carried
}

// proc is a process, from its start to its end.
type proc struct {
	stage  *stage
	name   string // b1.3: the third life of b1
	ctx    context.Context
	cancel context.CancelFunc
	dead   bool
	killed bool // it died, and had not been told to stop
	bornAt time.Time
	deadAt time.Time

	joinedAt time.Time     // end of the last cut
	joins    uint64        // how often its connection was made anew
	cutAt    time.Time     // beginning of the present cut; zero: none
	cutOff   atomic.Bool   // the same, for goroutines that time wakes
	skew     time.Duration // how far ahead the clock of its machine is
	clock    *natsio.Clock // the server's, as it knows it
}

func (p *proc) now() time.Time { return p.clock.Now() }

func (p *proc) cut() bool { return p.cutOff.Load() }

// steady reports whether the process has been connected for a while.
func (p *proc) steady() bool {
	const while = 2 * presence.GoneAfter
	return !p.dead && !p.cut() && time.Since(p.bornAt) > while && time.Since(p.joinedAt) > while
}

// stage is the state of a run that is not the server's.
type stage struct {
	*draws
	mu      sync.Mutex
	waits   []*waiting
	seen    int
	calm    bool // nothing goes wrong any more
	faults  int  // percentage of calls that don't just work
	lines   []string
	broken  []string // laws that did not hold
	started time.Time

	happened map[string]int
}

// did counts what happened.
func (s *stage) did(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.happened[what]++
}

// say records what happened.
func (s *stage) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf("%9.3fs ", time.Since(s.started).Seconds())+fmt.Sprintf(format, args...))
}

// meet orders a process that time has woken after all that the simulation did
// before time passed. The race detector does not know that order otherwise.
func (s *stage) meet() {
	s.mu.Lock()
	defer s.mu.Unlock()
}

// breaks records that a law did not hold.
func (s *stage) breaks(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.say("BROKEN: %s", text)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = append(s.broken, text)
}

func (s *stage) start(name string) *proc {
	ctx, cancel := context.WithCancel(context.Background())
	return &proc{stage: s, name: name, ctx: ctx, cancel: cancel, bornAt: time.Now()}
}

// call makes a call that the simulation decides over. do is its effect.
func (p *proc) call(ctx context.Context, key string, do func() error) error {
	what, err := p.wait(ctx, key, false)
	switch {
	case err != nil:
		return err
	case what == fails:
		return errRefused
	}
	err = do()
	switch what {
	case lost:
		return errGone
	case slowly:
		if _, gone := p.wait(ctx, key, true); gone != nil {
			return gone
		}
	}
	return err
}

// wait waits until the simulation lets a call happen.
func (p *proc) wait(ctx context.Context, key string, late bool) (becomes, error) {
	w := &waiting{proc: p, key: key, caller: callerOf(ctx), late: late, done: make(chan becomes, 1)}
	p.stage.mu.Lock()
	if p.dead {
		p.stage.mu.Unlock()
		return fails, errKilled
	}
	p.stage.waits = append(p.stage.waits, w)
	p.stage.mu.Unlock()
	select {
	case what := <-w.done:
		if p.dead {
			return fails, errKilled
		}
		return what, nil
	case <-ctx.Done():
	case <-p.ctx.Done():
	}
	p.stage.mu.Lock()
	defer p.stage.mu.Unlock()
	p.stage.waits = slices.DeleteFunc(p.stage.waits, func(have *waiting) bool { return have == w })
	if p.dead {
		return fails, errKilled
	}
	return fails, fmt.Errorf("%w: %w", journal.ErrUnknownOutcome, context.Cause(ctx))
}

// kill ends a process at once: it does nothing any more.
func (s *stage) kill(p *proc) {
	s.mu.Lock()
	p.dead, p.deadAt = true, time.Now()
	s.waits = slices.DeleteFunc(s.waits, func(w *waiting) bool { return w.proc == p })
	s.mu.Unlock()
	p.cancel()
	synctest.Wait()
}

// rest waits until all stand still, and returns the waiting calls, oldest first.
func (s *stage) rest() []*waiting {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortStableFunc(s.waits, func(a, b *waiting) int {
		switch {
		case a.n != 0 && b.n != 0:
			return a.n - b.n
		case a.n != 0:
			return -1
		case b.n != 0:
			return 1
		}
		return cmp.Or(strings.Compare(a.proc.name+a.key, b.proc.name+b.key), strings.Compare(a.caller, b.caller))
	})
	var ready []*waiting
	for _, w := range s.waits {
		if w.n == 0 {
			s.seen++
			w.n = s.seen
		}
		if !w.proc.cut() {
			ready = append(ready, w)
		}
	}
	return ready
}

// let lets a call happen.
func (s *stage) let(w *waiting) {
	what := works
	if !s.calm && !w.late && s.faults > 0 {
		if v := s.draw(100); v > 0 && v <= s.faults {
			what = becomes(1 + s.draw(3))
		}
	}
	s.mu.Lock()
	s.waits = slices.DeleteFunc(s.waits, func(have *waiting) bool { return have == w })
	s.mu.Unlock()
	if what != works {
		s.did([...]string{"", "answer late", "answer lost", "call fails"}[what])
	}
	s.say("%s: %s%s", w.proc.name, w.key, [...]string{"", " (answered late)", " (answer lost)", " (fails)"}[what])
	w.done <- what
	synctest.Wait()
}

// pass lets time pass.
func (s *stage) pass(d time.Duration) {
	s.meet()
	time.Sleep(d) // in the bubble, where nothing else makes time pass
	synctest.Wait()
}
