package sim

// The clocks of machines, and what processes know of the server's.

import (
	"context"
	"log/slog"
	"time"

	"github.com/refold/refold/internal/natsio"
)

// clockOffMost is how much the server's time that a process knows may be wrong while
// nobody sets the server's clock. A measurement errs by half of its round trip, which
// takes five seconds at most.
const clockOffMost = 3 * time.Second

// measured is the context key of the measurement that a process makes before it works.
type measured struct{}

// startClock gives a process the clock of its daemon, on a machine whose clock is wrong
// by skew. It is measured once before the process works, and then as the daemons do.
func (s *sim) startClock(p *proc, skew time.Duration) {
	p.skew = skew
	if skew.Abs() > time.Minute {
		s.did("clock is wrong by minutes")
	}
	local := func() (time.Time, time.Duration) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return time.Now().Add(p.skew), time.Since(p.bornAt)
	}
	p.clock = natsio.NewClock(local, func(ctx context.Context) (at time.Time, err error) {
		if ctx.Value(measured{}) != nil {
			return s.now(), nil
		}
		err = p.call(ctx, "server's time", func() error {
			s.latest = s.newest() // of before the measurement
			at = s.now()
			return nil
		})
		return at, err
	}, slog.New(slog.DiscardHandler))
	if err := p.clock.Measure(context.WithValue(p.ctx, measured{}, true)); err != nil {
		panic(err)
	}
	go p.clock.Keep(p.ctx)
}

// clocksLate checks that the start_by of an effect that a bridge starts has not passed
// by the server's time.
func (r *referee) clocksLate(p *proc, name string, startBy time.Time) {
	if late := r.j.now().Sub(startBy); late > clockOffMost && !r.j.play.clockSet {
		r.j.breaks("%s starts %s %v past its start_by by the server's time", p.name, name, late)
	}
}

// clocksEarly checks that the start_by of an effect that a bridge settles as never
// started has passed by the server's time.
func (r *referee) clocksEarly(p *proc, name string, startBy time.Time) {
	r.j.did("start_by passed")
	if early := startBy.Sub(r.j.now()); early > clockOffMost && !r.j.play.clockSet {
		r.j.breaks("%s settles %s as not started by its start_by, %v before that by the server's time", p.name, name, early)
	}
}
