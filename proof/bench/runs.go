package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/internal/meter"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// Options say what is measured. The zero value is not usable: set Durabilities,
// InFlight, and Seconds or Runs.
type Options struct {
	Dir          string // where servers keep their files; "": the system's directory for temporary ones
	Durabilities []natsio.Durability
	InFlight     []int
	Replicas     int           // servers, and copies of each stream; 0: one
	For          time.Duration // how long a side is measured
	Runs         int           // measure this number of runs instead
	Rounds       int           // how often each row is measured; 0: once
	Log          *slog.Logger  // of the daemons; nil: none
	// Processes starts this program again to play a part (Part.Play). A row then
	// compares a bridge that has the server's durability as its option with a
	// bridge of default options. Nil: everything is in this process, and Refold
	// is compared with the ceiling.
	Processes func(Part) *exec.Cmd
	// Telemetry starts metrics and traces. A row then compares Refold with and
	// without them. Nil: neither is done.
	Telemetry func(context.Context) (*Watch, error)
	// Step is called after a longer part of the work, with its duration; nil: not
	// called.
	Step func(what string, took time.Duration)
}

// Watch has the metrics and traces of a measurement. Stop ends them.
type Watch struct {
	Metrics *meter.Registry   // of the session-actor; nil: nothing is measured
	Traces  engine.Traces     // of the session-actor; nil: nothing is traced
	Observe executor.Observer // of the bridge; nil: neither
	Stop    func()
}

// step reports the end of work that began at begun.
func (o Options) step(begun time.Time, format string, args ...any) {
	if o.Step != nil {
		o.Step(fmt.Sprintf(format, args...), time.Since(begun))
	}
}

// Side is the result of one side of a row.
type Side struct {
	RunsPerS float64
	P50, P99 time.Duration
	Runs     int            // measured ones
	CPU      time.Duration  // of the whole process, servers and clients included, for a run
	PerRun   map[string]int // messages stored, by stream and kind
	// PerCommit is the number of messages of a commit, by stream.
	PerCommit map[string]float64
	Commits   float64 // a run: under always each is a sync
	BytesEach float64 // of a message's payload
}

// Row is one durability with one number of runs in flight: of several rounds the
// one with the median ratio. With processes or telemetry the ceiling is Refold
// with a bridge that has the durability as its option, or Refold without
// telemetry.
type Row struct {
	Durability natsio.Durability
	InFlight   int
	Replicas   int
	Ceiling    Side
	Refold     Side
	Ratios     []float64 // of all rounds, in their order
}

// Ratio is Refold's share of the ceiling's runs a second.
func (r Row) Ratio() float64 {
	if r.Ceiling.RunsPerS == 0 {
		return 0
	}
	return r.Refold.RunsPerS / r.Ceiling.RunsPerS
}

// row has what a side needs to know.
type row struct {
	Options
	durability       natsio.Durability
	inFlight         int
	replicas         int
	round            int
	hostOnly         bool   // no bridge runs
	watched          bool   // metrics are kept, and a part of the runs is traced
	bridgeDurability string // the bridge's durability option; "": none
	stored           template
	perRun           map[string]int // the expected messages; nil: not known
}

// grouped reports whether messages are stored in atomic batches, as Refold does:
// where the server syncs each message, or a cluster replicates it.
func (r row) grouped() bool { return r.durability == natsio.DurabilityAlways || r.replicas > 1 }

// daemonLog returns the logger of the daemons.
func (r row) daemonLog() *slog.Logger {
	if r.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return r.Log
}

// Runs measures each row, each side on fresh servers, and calls done with it. It
// fails if a run does not end well, or if the two sides did not store the same
// kinds and numbers of messages.
func Runs(ctx context.Context, o Options, done func(Row) error) error {
	base, err := calibrated(ctx, o)
	if err != nil {
		return err
	}
	for _, d := range o.Durabilities {
		for _, n := range o.InFlight {
			r := base
			r.durability, r.inFlight = d, n
			measured, err := r.rounds(ctx)
			if err != nil {
				return fmt.Errorf("%s, %d in flight, %w", d, n, err)
			}
			if err := done(measured); err != nil {
				return err
			}
		}
	}
	return nil
}

// rounds measures a row r.Rounds times, and returns the round with the median
// ratio, the lower one of two. The sides alternate in going first: a machine, and
// more so its disk, gets slower and faster for minutes at a time.
func (r row) rounds(ctx context.Context) (Row, error) {
	var all []Row
	var ratios []float64
	for i := range max(r.Rounds, 1) {
		r.round = i
		m, err := r.both(ctx)
		if err != nil {
			return Row{}, err
		}
		all, ratios = append(all, m), append(ratios, m.Ratio())
	}
	slices.SortStableFunc(all, func(a, b Row) int { return cmp.Compare(a.Ratio(), b.Ratio()) })
	median := all[(len(all)-1)/2]
	median.Ratios = ratios
	return median, nil
}

// both measures both sides, in odd rounds Refold first.
func (r row) both(ctx context.Context) (m Row, err error) {
	m = Row{Durability: r.durability, InFlight: r.inFlight, Replicas: r.replicas}
	than, what := r, r
	ceiling, refold := r.ceiling, func(ctx context.Context) (Side, error) { return what.refold(ctx, nil) }
	switch {
	case r.Processes != nil:
		than.bridgeDurability = r.durability.String()
		ceiling, refold = than.processes, what.processes
	case r.Telemetry != nil:
		what.watched = true
		ceiling = func(ctx context.Context) (Side, error) { return than.refold(ctx, nil) }
	}
	for i := range 2 {
		if first := i == r.round%2; first {
			if m.Ceiling, err = ceiling(ctx); err != nil {
				return m, fmt.Errorf("the ceiling: %w", err)
			}
		} else if m.Refold, err = refold(ctx); err != nil {
			return m, fmt.Errorf("the daemons: %w", err)
		}
	}
	if differs := difference(m.Ceiling.PerRun, m.Refold.PerRun); differs != "" {
		return m, fmt.Errorf("the ceiling and Refold stored different messages a run, so the ratio says nothing: %s", differs)
	}
	return m, nil
}

// calibrated returns a row with the messages that one run of Refold stores.
func calibrated(ctx context.Context, o Options) (row, error) {
	names, err := subjects.New("")
	if err != nil {
		return row{}, err
	}
	r := row{Options: o, replicas: max(o.Replicas, 1)}
	first := r
	first.durability, first.inFlight, first.Runs = natsio.DurabilityInterval, 1, 1
	var stored *census
	side, err := first.refold(ctx, &stored)
	if err != nil {
		return row{}, fmt.Errorf("one run of Refold: %w", err)
	}
	r.perRun = side.PerRun
	r.stored, err = stored.template(names)
	return r, err
}

// started is a running side.
type started interface{ stop() }

func (r row) ceiling(ctx context.Context) (Side, error) {
	return r.side(ctx, nil, func(ctx context.Context, s *servers, fail func(error)) (started, error) {
		return startCeiling(ctx, s, r, r.stored, fail)
	})
}

func (r row) refold(ctx context.Context, stored **census) (Side, error) {
	return r.side(ctx, stored, func(ctx context.Context, s *servers, fail func(error)) (started, error) {
		return startSystem(ctx, s, r, fail)
	})
}

// side measures one side on its own servers.
func (r row) side(ctx context.Context, stored **census, start func(context.Context, *servers, func(error)) (started, error)) (side Side, err error) {
	runtime.GC()
	debug.FreeOSMemory() // the previous side's memory must not count for this one
	s, err := r.servers(ctx)
	if err != nil {
		return side, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	running, err := start(ctx, s, fail)
	if err != nil {
		return side, errors.Join(err, context.Cause(ctx))
	}
	defer running.stop()
	l, err := startLoad(ctx, s, r.grouped(), fail)
	if err != nil {
		return side, err
	}
	defer l.stop()
	if err := r.measure(ctx, l, &side); err != nil {
		return side, err
	}
	c, err := count(ctx, s, l.runs(), r.perRun)
	if err != nil {
		return side, err
	}
	if stored != nil {
		*stored = c
	}
	side.PerCommit = make(map[string]float64, len(c.messages))
	messages := 0
	for stream, n := range c.messages {
		side.PerCommit[stream] = float64(n) / float64(c.commits[stream])
		side.Commits += float64(c.commits[stream]) / float64(l.runs())
		messages += n
	}
	side.BytesEach = float64(c.bytes) / float64(messages)
	side.PerRun, err = c.perRun(l.runs())
	return side, err
}

// servers starts the servers of a side.
func (r row) servers(ctx context.Context) (*servers, error) {
	if r.Processes != nil && r.perRun != nil { // calibration runs in this process
		return r.startServerProcess(ctx)
	}
	return startServers(r.Dir, r.replicas, r.durability == natsio.DurabilityAlways)
}

// warmPart is the part of a row's time that passes before it is measured.
const warmPart = 5

// measure starts runs and fills in their figures.
func (r row) measure(ctx context.Context, l *load, side *Side) (err error) {
	if r.Runs == 0 {
		l.startRuns(r.inFlight, 0)
		if err := errors.Join(sleep(ctx, r.For/warmPart), l.more(ctx, r.inFlight)); err != nil {
			return err
		}
	}
	begun, used := time.Now(), cpuUsed()
	l.measure(true)
	if r.Runs == 0 {
		// Runs that began together end together: if they take longer than the time,
		// measure until all of them have ended.
		wave := make(chan error, 1)
		go func() { wave <- l.more(ctx, r.inFlight) }()
		err = errors.Join(sleep(ctx, r.For), <-wave)
	} else {
		err = l.carryOut(ctx, r.inFlight, r.Runs)
	}
	l.measure(false)
	took, used := time.Since(begun), cpuUsed()-used
	if err != nil {
		return err
	}
	sorted := l.latencies()
	side.Runs = len(sorted)
	side.RunsPerS = float64(len(sorted)) / took.Seconds()
	side.CPU = used / time.Duration(max(len(sorted), 1))
	side.P50, side.P99 = part(sorted, 0.5), part(sorted, 0.99)
	return l.drain(ctx)
}

// sleep waits for d, unless ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// cpuUsed returns the processor time of this process until now. On a machine with
// other load it is more exact than wall-clock time.
func cpuUsed() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
