package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/subjects"
)

// CallRow describes the measured calls: how many are in flight, of tools that take
// from Least to Most, retry-safe or not. With Short most take little, as real tools
// do: of 1 to 50 ms half take less than 3.
type CallRow struct {
	InFlight    int
	Least, Most time.Duration
	Short       bool
	RetrySafe   bool
}

// callSteps is the number of durations of a row's calls; each is used as often.
const callSteps = 50

// durations returns the durations of a row's calls, the shortest first: evenly
// spread, or with Short skewed to the short end of a logarithmic scale.
func (r CallRow) durations() (all [callSteps]time.Duration) {
	for i := range all {
		part := float64(i) / (callSteps - 1)
		all[i] = r.Least + time.Duration(float64(r.Most-r.Least)*part)
		if r.Short && r.Least > 0 {
			all[i] = time.Duration(float64(r.Least) * math.Pow(float64(r.Most)/float64(r.Least), part*part))
		}
	}
	return all
}

// Mean returns the average duration of a call's tool.
func (r CallRow) Mean() time.Duration {
	sum := time.Duration(0)
	for _, d := range r.durations() {
		sum += d
	}
	return sum / callSteps
}

// Called is the result of a row, for one bridge.
type Called struct {
	CallRow
	Calls     int
	CallsPerS float64
	// Bound is the most that so many calls in flight can reach if the bridge itself
	// took no time, in calls a second; 0 where the tool takes no time.
	Bound float64
	// Overhead is the average time from a call's delivery to its stored
	// settlement, without its tool.
	Overhead time.Duration
	CPU      time.Duration // of the whole process, the server included, for a call
	CPUShare float64       // of all processors, from 0 to 1
}

// Calls measures each row with o.Runs tool calls through one bridge, under
// interval, and calls done with the result. There is no session-actor: effects
// are published as it would, as fast as the bridge takes them, and settlements
// are not folded. Calls fails if a call does not succeed.
func Calls(ctx context.Context, o Options, rows []CallRow, done func(Called) error) error {
	for _, r := range rows {
		var c Called
		err := onStage(ctx, o, func(ctx context.Context, g *stage) (err error) {
			c, err = g.calls(ctx, r)
			return err
		})
		if err == nil {
			err = done(c)
		}
		if err != nil {
			return fmt.Errorf("%d in flight, tools of %v to %v: %w", r.InFlight, r.Least, r.Most, err)
		}
	}
	return nil
}

// served is the target's name in stats.
const served = string(session.ClassTool) + "/" + target

// warmCalls is the most calls that are carried out before the measurement.
const warmCalls = 500

func (g *stage) calls(ctx context.Context, r CallRow) (Called, error) {
	c := Called{CallRow: r, Calls: g.Runs}
	tools := &busy{row: r, takes: r.durations(), ended: make(chan struct{}, 2*r.InFlight)}
	b, err := bridge.Connect(ctx, bridge.Options{InProcess: g.servers.of(1), Name: "refold-bench", Logger: g.daemonLog(), Grace: time.Second})
	if err != nil {
		return c, err
	}
	if err := b.Tool(target, tools, bridge.Concurrency(r.InFlight)); err != nil {
		b.Close()
		return c, err
	}
	y := &system{bridge: b}
	y.run(ctx, g.fail, "bridge", b.Run)
	defer y.stop()
	effects, err := newCommitter(g.nc, false, g.fail)
	if err != nil {
		return c, err
	}
	defer effects.close()
	f := feed{stage: g, tools: tools, bridge: b, effects: effects}
	if err := f.carry(ctx, min(warmCalls, g.Runs)); err != nil {
		return c, err
	}
	before, own := b.Stats().Targets[served], tools.took.Load()
	begun, used := time.Now(), cpuUsed()
	if err := f.carry(ctx, g.Runs); err != nil {
		return c, err
	}
	took, used := time.Since(begun), cpuUsed()-used
	after := b.Stats().Targets[served]
	if after.Failed > 0 {
		return c, fmt.Errorf("%d calls failed", after.Failed)
	}
	all := msTotal(after) - msTotal(before) - time.Duration(tools.took.Load()-own)
	n := time.Duration(g.Runs)
	c.CallsPerS, c.Overhead, c.CPU = float64(g.Runs)/took.Seconds(), all/n, used/n
	c.CPUShare = used.Seconds() / took.Seconds() / float64(runtime.NumCPU())
	if mean := r.Mean(); mean > 0 {
		c.Bound = float64(r.InFlight) / mean.Seconds()
	}
	return c, nil
}

// msTotal returns the time of all effects of a target together.
func msTotal(t bridge.TargetStats) time.Duration {
	return time.Duration(t.LatencyMS * float64(t.Done+t.Failed) * float64(time.Millisecond))
}

// busy is a tool that takes time.
type busy struct {
	row   CallRow
	takes [callSteps]time.Duration
	began atomic.Int64
	took  atomic.Int64 // nanoseconds, of all calls together
	ended chan struct{}
}

// Execute takes one of the row's durations, in a fixed order.
func (b *busy) Execute(ctx context.Context, _ executor.Call) (executor.Result, error) {
	begun := time.Now()
	defer func() {
		b.took.Add(int64(time.Since(begun)))
		b.ended <- struct{}{}
	}()
	// 37 and callSteps have no common divisor, so all durations are used alike.
	d := b.takes[b.began.Add(1)*37%callSteps]
	if d <= 0 {
		return executor.Result{Output: looked}, nil
	}
	return executor.Result{Output: looked}, sleep(ctx, d)
}

// feed publishes calls: at any time up to twice as many as the bridge runs at once.
type feed struct {
	*stage
	tools     *busy
	bridge    *bridge.Bridge
	effects   *committer
	published int
}

// carry publishes n calls, and waits until all are settled.
func (f *feed) carry(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, drainWithin+time.Duration(n)*f.tools.row.Most, errors.New("the calls did not end"))
	defer cancel()
	first := f.published
	for ended := 0; ended < n; {
		if f.published-first < n && f.published-first-ended < cap(f.tools.ended) {
			if err := f.publish(); err != nil {
				return err
			}
			continue
		}
		select {
		case <-f.tools.ended:
			ended++
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for {
		t := f.bridge.Stats().Targets[served]
		if t.Done+t.Failed >= uint64(f.published) {
			return nil
		}
		if err := sleep(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}

// callsOfRun is the number of calls in one run of the feed's sessions.
const callsOfRun = 8

// publish stores the next effect, as a session-actor does.
func (f *feed) publish() error {
	run := f.published / callsOfRun
	sid, call := sessionID(run), f.published%callsOfRun
	f.published++
	now := time.Now()
	e := session.ToolCall{
		Arguments: argument, At: now.UnixMilli(), Batch: "r1t1", Call: call, Class: session.ClassTool, Effect: fmt.Sprint("r1t1c", call),
		RetrySafe: f.tools.row.RetrySafe, RunMS: time.Minute.Milliseconds(), Session: sid, StartBy: now.Add(time.Minute).UnixMilli(),
		ToolID: "bench.look", ToolName: "look", V: session.Version,
	}
	e.IdempotencyKey = sid + "." + e.Effect
	payload, err := codec.Marshal(e)
	if err != nil {
		return err
	}
	subject, err := f.bus.Names().Effect(subjects.EffectName{Class: session.ClassTool, Target: target, Session: sid, Effect: e.Effect})
	if err != nil {
		return err
	}
	f.effects.put(message{subject: subject, fenced: true, msgpack: true, data: payload, stored: func() {}})
	return nil
}
