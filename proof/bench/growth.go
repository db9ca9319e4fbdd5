package bench

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"time"
)

// Grown is the cost of a run among a number of older sessions.
type Grown struct {
	Sessions int
	Recent   int // of these, sessions whose effects and claims are still stored
	RunsPerS float64
	EventCPU time.Duration // of the whole process, for an event
	Relative float64       // EventCPU, relative to 1,000 sessions; 0: not known
	Collect  time.Duration // of EventCPU, for garbage collection; some of it is the cost of live memory
	Event    time.Duration // wall-clock time an event, over all runs in flight
	P50, P99 time.Duration // of a run
	Heap     uint64        // bytes in use before the runs, by the whole process
	Taken    time.Duration // the longest first run of a lane
}

// eventsOfRun is the number of events that the log has of a run.
const eventsOfRun = 6

// growthInFlight is how many runs are in flight while growth is measured.
const growthInFlight = 100

// Growth measures o.Runs runs with least sessions in the streams, then ten times as
// many and so on, up to most, under interval. Refold carries out the older runs
// first; at most recent of them are of the last hour.
func Growth(ctx context.Context, o Options, least, most, recent int, done func(Grown) error) error {
	var of1000 time.Duration
	for sessions := least; sessions <= most; sessions *= 10 {
		err := onStage(ctx, o, func(ctx context.Context, g *stage) error {
			grown := Grown{Sessions: sessions, Recent: min(sessions, recent)}
			if err := g.grow(ctx, sessions-grown.Recent, sessions); err != nil {
				return fmt.Errorf("fill the streams: %w", err)
			}
			if err := g.measureAmong(ctx, &grown); err != nil {
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

// grow makes Refold carry out a run in each of a number of sessions. What the
// streams keep for an hour is gone for the first old ones.
func (g *stage) grow(ctx context.Context, old, sessions int) error {
	begun := time.Now()
	if old > 0 {
		if err := g.runAll(ctx, 0, growthInFlight, old); err != nil {
			return err
		}
		if err := g.age(ctx); err != nil {
			return err
		}
	}
	if sessions > old {
		if err := g.runAll(ctx, old, growthInFlight, sessions-old); err != nil {
			return err
		}
	}
	g.step(begun, "carried out runs of %d sessions", sessions)
	return nil
}

// age makes effects and claims an hour old, and removes the schedules of wakes,
// which would have fired by then.
func (g *stage) age(ctx context.Context) error {
	timers, err := g.js.Stream(ctx, g.bus.Names().TimersStream())
	if err != nil {
		return err
	}
	if err := timers.Purge(ctx); err != nil {
		return err
	}
	effects, err := g.js.Stream(ctx, g.bus.Names().EffectsStream())
	if err != nil {
		return err
	}
	before := effects.CachedInfo().Config
	short := before
	short.MaxAge, short.Duplicates = time.Second, time.Second
	if _, err := g.js.UpdateStream(ctx, short); err != nil {
		return err
	}
	for left := uint64(1); left > 0; {
		if err := sleep(ctx, foldedTick); err != nil {
			return err
		}
		info, err := effects.Info(ctx)
		if err != nil {
			return err
		}
		left = info.State.Msgs
	}
	_, err = g.js.UpdateStream(ctx, before)
	return err
}

// measureAmong measures runs among older sessions.
func (g *stage) measureAmong(ctx context.Context, grown *Grown) error {
	warming := time.Now()
	y, err := startSystem(ctx, g.servers, g.row, g.fail)
	if err != nil {
		return err
	}
	defer y.stop()
	l, err := startLoad(ctx, g.servers, false, g.fail)
	if err != nil {
		return err
	}
	defer l.stop()
	from, err := g.take(ctx, l, grown)
	if err != nil {
		return err
	}
	// The warm-up reads everything that is read only once.
	if err := l.carryOut(ctx, from, growthInFlight, growthInFlight); err != nil {
		return err
	}
	runtime.GC() // every measurement begins without garbage
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	grown.Heap = m.HeapAlloc
	g.step(warming, "started Refold, and completed its first runs")
	l.measure(true)
	begun, used, collected := time.Now(), cpuUsed(), collecting()
	if err := l.carryOut(ctx, from+growthInFlight, growthInFlight, g.Runs); err != nil {
		return err
	}
	took, used, collected := time.Since(begun), cpuUsed()-used, collecting()-collected
	sorted := l.latencies()
	events := time.Duration(max(g.Runs, 1) * eventsOfRun)
	grown.RunsPerS = float64(len(sorted)) / took.Seconds()
	grown.EventCPU, grown.Collect, grown.Event = used/events, collected/events, took/events
	grown.P50, grown.P99 = part(sorted, 0.5), part(sorted, 0.99)
	g.step(begun, "measured %d runs", g.Runs)
	return nil
}

// take runs a session of each lane in turn: for a lane's first message the server
// searches all its subjects. It returns the number of the next session.
func (g *stage) take(ctx context.Context, l *load, grown *Grown) (next int, err error) {
	begun := time.Now()
	for _, n := range ofEachLane(grown.Sessions) {
		begin := time.Now()
		if err := l.carryOut(ctx, n, 1, 1); err != nil {
			return n, err
		}
		grown.Taken = max(grown.Taken, time.Since(begin))
		next = n + 1
	}
	g.step(begun, "took the lanes, the longest in %.2f s", grown.Taken.Seconds())
	return next, nil
}

// collecting returns the processor time of garbage collection, as the runtime
// estimates it, up to the last collection.
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
