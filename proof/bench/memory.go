package bench

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"
	"time"

	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/subjects"
)

// Footprint is the memory that sessions take in a session-actor, without the
// memory of the NATS server in this process.
type Footprint struct {
	Sleeping, Awake         int     // sessions
	SleepingEach, AwakeEach float64 // bytes a session
	AwakeTurns              int     // of the model, a run each
}

// sleepersAwake is the number of sessions that a lane keeps while the others sleep.
const sleepersAwake = 4

// awakeTurns is the number of model turns of an awake session, and sleepingEvents
// the number of events of a sleeping one.
const (
	awakeTurns     = 10
	sleepingEvents = 6
)

// profileRate is the number of allocated bytes between two samples of the memory
// profile. It is small, so that remaining memory is measured exactly.
const profileRate = 4096

// Memory measures what a session-actor keeps of sleeping and of idle awake
// sessions.
func Memory(ctx context.Context, o Options, sleeping, awake int) (f Footprint, err error) {
	before := runtime.MemProfileRate
	runtime.MemProfileRate = profileRate
	defer func() { runtime.MemProfileRate = before }()
	f = Footprint{Sleeping: sleeping, Awake: awake, AwakeTurns: awakeTurns}
	short, err := longHistory(sleepingEvents)
	if err != nil {
		return f, err
	}
	long, err := longHistory(2 * awakeTurns)
	if err != nil {
		return f, err
	}
	f.SleepingEach, err = footprint(ctx, o, engine.Options{SessionsMax: sleepersAwake}, sleeping, short)
	if err != nil {
		return f, fmt.Errorf("sleeping sessions: %w", err)
	}
	f.AwakeEach, err = footprint(ctx, o, engine.Options{SessionsMax: awake + 1, Memory: math.MaxInt64}, awake, long)
	if err != nil {
		return f, fmt.Errorf("awake sessions: %w", err)
	}
	return f, nil
}

// footprint returns the memory that a session-actor keeps for each of n sessions
// with these events: the slope between a few sessions, enough to make its buffers
// as large, and n more. The session-actor is restarted for each measurement.
func footprint(ctx context.Context, o Options, keep engine.Options, n int, events []storedEvent) (each float64, err error) {
	err = onStage(ctx, o, func(ctx context.Context, g *stage) error {
		g.host, g.hostOnly = keep, true
		g.host.DrainFor = time.Second
		few := max(n/10, 1)
		least, err := g.keeps(ctx, 0, few, events)
		if err != nil {
			return err
		}
		// Sessions that were folded before are not loaded again.
		most, err := g.keeps(ctx, few, few+few+n, events)
		each = (most - least) / float64(n)
		return err
	})
	return each, err
}

// Events are folded while they are stored: followEvents at a time, of which each
// lane may be followBehind behind. Far behind, the server would search all
// subjects of a block for a lane's next event, and would be measured instead.
const (
	followEvents = 2000
	followBehind = followEvents / subjects.LanesDefault
)

// keeps has the sessions folded, and returns the bytes then in use.
func (g *stage) keeps(ctx context.Context, from, to int, events []storedEvent) (bytes float64, err error) {
	begun := time.Now()
	y, err := startSystem(ctx, g.servers, g.row, g.fail)
	if err != nil {
		return 0, err
	}
	defer y.stop()
	atOnce := max(followEvents/len(events), 1)
	for at := from; at < to; at += atOnce {
		if err := g.fill(ctx, at, min(at+atOnce, to), events); err != nil {
			return 0, err
		}
		if err := g.waitNear(ctx, followBehind); err != nil {
			return 0, err
		}
	}
	if err := g.waitNear(ctx, 0); err != nil {
		return 0, err
	}
	g.step(begun, "folded %d sessions of %d events", to-from, len(events))
	// Background work, such as snapshots, ends by itself.
	bytes = inUse()
	for range settleSamples {
		if err := sleep(ctx, settleTick); err != nil {
			return 0, err
		}
		bytes = min(bytes, inUse())
	}
	runtime.KeepAlive(y)
	g.step(begun, "they keep %.1f MiB", bytes/(1<<20))
	return bytes, nil
}

const (
	settleSamples = 6
	settleTick    = 500 * time.Millisecond
)

// inUse returns the bytes that this process holds, without the NATS server's.
func inUse() (bytes float64) {
	runtime.GC()
	runtime.GC() // the profile is of the last collection but one
	var records []runtime.MemProfileRecord
	for n, ok := runtime.MemProfile(nil, false); !ok; {
		records = make([]runtime.MemProfileRecord, n+100)
		n, ok = runtime.MemProfile(records, false)
		records = records[:min(n, len(records))]
	}
	for i := range records {
		if r := &records[i]; r.InUseObjects() > 0 && !ofServer(r.Stack()) {
			each := float64(r.InUseBytes()) / float64(r.InUseObjects())
			bytes += float64(r.InUseBytes()) / (1 - math.Exp(-each/profileRate))
		}
	}
	return bytes
}

func ofServer(stack []uintptr) bool {
	frames := runtime.CallersFrames(stack)
	for {
		frame, more := frames.Next()
		if strings.Contains(frame.Function, "nats-server/v2") {
			return true
		}
		if !more {
			return false
		}
	}
}
