package bench

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"time"

	"github.com/refold/refold/subjects"
)

// Grown is what a run costs Refold among so many older sessions.
type Grown struct {
	Sessions int
	Recent   int // of which effects and claims are stored, too
	RunsPerS float64
	EventCPU time.Duration // of the whole process, for an event
	Relative float64       // EventCPU, by that with 1,000 sessions; 0: not known
	Collect  time.Duration // of EventCPU, for garbage: some of it belongs to no event but to what is live
	Event    time.Duration // of the clock, for an event: of all in flight together
	P50, P99 time.Duration // of a run
	Heap     uint64        // bytes in use before the runs, by the whole process
	Taken    time.Duration // of the first run of a lane that is taken for it, the longest
}

// eventsOfRun is how many events the log holds of a run.
const eventsOfRun = 6

// growthInFlight is how many runs are in flight while growth is measured.
const growthInFlight = 100

// Growth measures o.Runs runs with least sessions in the streams, ten times as
// many and so on, up to most, under interval. The older ones are stored as they are some time after
// their run (grow); at most recent of them are of the last hour.
func Growth(ctx context.Context, o Options, least, most, recent int, done func(Grown) error) error {
	base, err := calibrated(ctx, o)
	if err != nil {
		return err
	}
	var of1000 time.Duration
	for sessions := least; sessions <= most; sessions *= 10 {
		err := onStage(ctx, o, func(ctx context.Context, g *stage) error {
			g.stored, g.inFlight = base.stored, growthInFlight
			grown, err := g.measureAmong(ctx, sessions, min(sessions, recent))
			if err != nil {
				return err
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

// measureAmong measures runs among so many older sessions.
func (g *stage) measureAmong(ctx context.Context, sessions, recent int) (Grown, error) {
	grown := Grown{Sessions: sessions, Recent: recent}
	if err := g.grow(ctx, sessions, recent); err != nil {
		return grown, fmt.Errorf("fill the streams: %w", err)
	}
	warming := time.Now()
	y, err := startSystem(ctx, g.servers, g.row, g.failure.fail)
	if err != nil {
		return grown, err
	}
	defer y.stop()
	l, err := startLoad(ctx, g.servers, false, g.failure.fail)
	if err != nil {
		return grown, err
	}
	defer l.stop()
	from, err := g.take(ctx, l, sessions, &grown)
	if err != nil {
		return grown, err
	}
	// The warm-up reads all that is read only once.
	if err := l.startRunsFrom(ctx, from, growthInFlight, growthInFlight); err != nil {
		return grown, err
	}
	runtime.GC() // every measurement begins without garbage
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	grown.Heap = m.HeapAlloc
	g.step(warming, "started Refold, and ended its first runs")
	stopProfile, err := g.profileOf(fmt.Sprintf("growth-%d", sessions))
	if err != nil {
		return grown, err
	}
	l.measure(true)
	begun, used, collected := time.Now(), cpuUsed(), collecting()
	if err := l.startRunsFrom(ctx, from+growthInFlight, growthInFlight, g.Runs); err != nil {
		return grown, err
	}
	took, used, collected := time.Since(begun), cpuUsed()-used, collecting()-collected
	if err := stopProfile(); err != nil {
		return grown, err
	}
	sorted := l.latencies()
	events := time.Duration(max(g.Runs, 1) * eventsOfRun)
	grown.RunsPerS = float64(len(sorted)) / took.Seconds()
	grown.EventCPU, grown.Collect, grown.Event = used/events, collected/events, took/events
	grown.P50, grown.P99 = part(sorted, 0.5), part(sorted, 0.99)
	g.step(begun, "measured %d runs", g.Runs)
	return grown, nil
}

// take has the lanes taken, one after the other, by a run of a session of each:
// the server looks then at all subjects of the lane. It returns the number of
// the next session.
func (g *stage) take(ctx context.Context, l *load, from int, grown *Grown) (next int, err error) {
	begun, taken := time.Now(), map[int]bool{}
	for next = from; len(taken) < subjects.LanesDefault; next++ {
		lane := subjects.Lane(subjects.Partition(sessionID(next)))
		if taken[lane] {
			continue
		}
		taken[lane] = true
		asked := time.Now()
		if err := l.startRunsFrom(ctx, next, 1, 1); err != nil {
			return next, fmt.Errorf("lane %d: %w", lane, err)
		}
		grown.Taken = max(grown.Taken, time.Since(asked))
	}
	g.step(begun, "took %d lanes, the longest in %.2f s", len(taken), grown.Taken.Seconds())
	return next, nil
}

// collecting returns the processor time that collecting garbage took, as the
// runtime estimates it, up to the last collection.
func collecting() time.Duration {
	sample := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/gc/mark/idle:cpu-seconds"}}
	metrics.Read(sample)
	seconds := 0.0
	for i, sign := range []float64{1, -1} {
		if v := sample[i].Value; v.Kind() == metrics.KindFloat64 {
			seconds += sign * v.Float64()
		}
	}
	return time.Duration(seconds * float64(time.Second))
}

// startRunsFrom carries out so many runs of the sessions from a number on, and
// waits for their ends.
func (l *load) startRunsFrom(ctx context.Context, from, inFlight, runs int) error {
	l.mu.Lock()
	l.next, l.stopped, l.drained = from, false, make(chan struct{})
	l.mu.Unlock()
	l.startRuns(min(inFlight, runs), from+runs)
	return l.wait(ctx)
}
