package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	refold "github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/subjects"
)

// stage is what the smaller measurements work on: servers with Refold's
// streams and the install record, under interval.
type stage struct {
	row
	servers *servers
	bus     *bus.Bus
	nc      *nats.Conn
	js      jetstream.JetStream
	failure *failure
}

// onStage calls measure with a stage, and takes it down.
func onStage(ctx context.Context, o Options, measure func(context.Context, *stage) error) (err error) {
	g := &stage{row: row{Options: o, durability: bus.DurabilityInterval, replicas: 1}}
	if g.servers, err = startServers(o.Dir, 1, false); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.servers.stop()) }()
	ctx, g.failure = failing(ctx)
	defer g.failure.cancel(nil)
	if g.bus, err = bus.Connect(ctx, bus.Options{InProcess: g.servers.of(0), Name: "refold-bench"}); err != nil {
		return err
	}
	defer g.bus.Close()
	conf, err := bus.ParseConf(refold.StreamsConf, g.bus.Names())
	if err != nil {
		return err
	}
	if err := g.bus.Provision(ctx, conf, 1); err != nil {
		return err
	}
	if _, _, err := g.bus.PublishInstall(ctx, []byte(install), true); err != nil {
		return err
	}
	if g.nc, err = nats.Connect("", nats.InProcessServer(g.servers.of(0))); err != nil {
		return err
	}
	defer g.nc.Close()
	if g.js, err = jetstream.New(g.nc); err != nil {
		return err
	}
	if err := measure(ctx, g); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	return nil
}

// said is an event that is published again for other sessions.
type said struct {
	door    session.Door
	payload []byte
}

// record lets Refold carry out one run with a model, and returns its events.
func record(ctx context.Context, o Options, model bridge.Model) (events []said, err error) {
	err = onStage(ctx, o, func(ctx context.Context, g *stage) error {
		g.model = model
		if err := g.fly(ctx, 1, 1); err != nil {
			return err
		}
		for e, err := range g.bus.ReadSession(ctx, sessionID(0), 1, 0, true) {
			if err != nil {
				return err
			}
			events = append(events, said{e.Door, e.Payload})
		}
		return nil
	})
	return events, err
}

// fly lets Refold carry out runs, each of a session of its own, and waits for
// their ends.
func (g *stage) fly(ctx context.Context, inFlight, runs int) error {
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
	l.fly(min(inFlight, runs), runs)
	return l.wait(ctx, drainWithin+time.Duration(runs)*time.Second)
}

// fillAtOnce is how many messages are handed over before their storing is
// waited for.
const fillAtOnce = 20_000

// fill publishes the events of sessions from one number to another, all alike,
// as fast as the log takes them. No session-actor may run.
func (g *stage) fill(ctx context.Context, from, to int, events []said) error {
	c, err := newCommitter(g.nc, true, g.failure.fail)
	if err != nil {
		return err
	}
	defer c.close()
	names := g.bus.Names()
	var group []message
	for n := from; n < to; n++ {
		for i, e := range events {
			subject, err := names.Log(e.door, sessionID(n))
			if err != nil {
				return err
			}
			group = append(group, message{subject: subject, data: e.payload, stored: func() {}})
			if last := n == to-1 && i == len(events)-1; len(group) < fillAtOnce && !last {
				continue
			}
			stored := make(chan struct{})
			group[len(group)-1].stored = func() { close(stored) }
			c.put(group...)
			select {
			case <-stored:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			group = group[:0:0]
		}
	}
	return nil
}

// pass acknowledges all events unseen, as if they had been folded.
func (g *stage) pass(ctx context.Context) error {
	for i := range subjects.LanesDefault {
		p, err := newPuller(g.nc, g.bus.Names().LogStream(), subjects.LaneName(i), subjects.LaneGroup, func(*slice) {}, g.failure.fail)
		if err != nil {
			return err
		}
		defer p.close() //nolint:revive // all lanes are passed side by side
	}
	return g.folded(ctx)
}

const foldedTick = 50 * time.Millisecond

// folded waits until all events of all lanes are acknowledged.
func (g *stage) folded(ctx context.Context) error {
	var lanes []string
	for i := range subjects.LanesDefault {
		lanes = append(lanes, subjects.LaneName(i))
	}
	return g.drained(ctx, g.bus.Names().LogStream(), lanes)
}

// drained waits until all that consumers of a stream deliver is acknowledged.
func (g *stage) drained(ctx context.Context, stream string, consumers []string) error {
	tick := time.NewTicker(foldedTick)
	defer tick.Stop()
	for idle := 0; idle < 2; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		idle++
		for _, name := range consumers {
			consumer, err := g.js.Consumer(ctx, stream, name)
			if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
				idle = 0 // the server is busy: that is no answer
				break
			}
			if err != nil {
				return fmt.Errorf("look at consumer %s: %w", name, err)
			}
			if info := consumer.CachedInfo(); info.NumPending > 0 || info.NumAckPending > 0 || info.AckFloor.Stream == 0 {
				idle = 0
				break
			}
		}
	}
	return nil
}
