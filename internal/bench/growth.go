package bench

import (
	"context"
	"fmt"
	"time"
)

// Grown is what a run costs Refold beside so many older sessions.
type Grown struct {
	Sessions int
	RunsPerS float64
	EventCPU time.Duration // of the whole process, for an event
	Relative float64       // EventCPU, by that with 1,000 sessions; 0: not known
	Event    time.Duration // of the clock, for an event: of all in flight together
	P50, P99 time.Duration // of a run
}

// eventsOfRun is how many events the log holds of a run.
const eventsOfRun = 6

// growthInFlight is how many runs are in flight while growth is measured.
const growthInFlight = 100

// Growth measures o.Runs runs with 100, 1,000, … sessions in the streams, up to
// most, under interval. The older ones are stored as they are when their run is
// over: all its events, effects, claims and notices.
func Growth(ctx context.Context, o Options, most int, done func(Grown) error) error {
	base, err := calibrated(ctx, o)
	if err != nil {
		return err
	}
	var of1000 time.Duration
	for sessions := 100; sessions <= most; sessions *= 10 {
		err := onStage(ctx, o, func(ctx context.Context, g *stage) error {
			g.stored, g.inFlight = base.stored, growthInFlight
			if err := g.grow(ctx, sessions); err != nil {
				return fmt.Errorf("fill the streams: %w", err)
			}
			y, err := startSystem(ctx, g.servers, g.row, g.failure.fail)
			if err != nil {
				return err
			}
			defer y.stop()
			l, err := startLoad(ctx, g.servers, false, g.failure.fail)
			if err != nil {
				return err
			}
			defer l.stop()
			// The lanes change hands first, and what is read once is read.
			if err := l.flyFrom(ctx, sessions, growthInFlight, growthInFlight); err != nil {
				return err
			}
			l.measure(true)
			begun, used := time.Now(), cpuUsed()
			if err := l.flyFrom(ctx, sessions+growthInFlight, growthInFlight, o.Runs); err != nil {
				return err
			}
			took, used := time.Since(begun), cpuUsed()-used
			sorted := l.latencies()
			events := time.Duration(max(o.Runs, 1) * eventsOfRun)
			grown := Grown{
				Sessions: sessions, RunsPerS: float64(len(sorted)) / took.Seconds(), EventCPU: used / events, Event: took / events,
				P50: part(sorted, 0.5), P99: part(sorted, 0.99),
			}
			if sessions == 1000 {
				of1000 = grown.EventCPU
			}
			if of1000 > 0 {
				grown.Relative = float64(grown.EventCPU) / float64(of1000)
			}
			return done(grown)
		})
		if err != nil {
			return fmt.Errorf("%d sessions: %w", sessions, err)
		}
	}
	return nil
}

// flyFrom flies so many runs of the sessions from a number on, and waits for
// their ends.
func (l *load) flyFrom(ctx context.Context, from, inFlight, runs int) error {
	l.mu.Lock()
	l.next, l.stopped, l.drained = from, false, make(chan struct{})
	l.mu.Unlock()
	l.fly(min(inFlight, runs), from+runs)
	return l.wait(ctx, drainWithin+time.Duration(runs)*time.Second)
}
