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
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/streams"
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
	g := &stage{row: row{Options: o, durability: natsio.DurabilityInterval, replicas: 1}}
	if g.servers, err = startServers(o.Dir, 1, false); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.servers.stop()) }()
	ctx, g.failure = failing(ctx)
	defer g.failure.cancel(nil)
	if g.bus, err = bus.Connect(ctx, natsio.Options{InProcess: g.servers.of(0), Name: "refold-bench"}); err != nil {
		return err
	}
	defer g.bus.Close()
	conf, err := streams.ParseConf(refold.StreamsConf, g.bus.Names())
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
		if err := g.runAll(ctx, 1, 1); err != nil {
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

// runAll lets Refold carry out runs, each in a session of its own, and waits
// for their ends.
func (g *stage) runAll(ctx context.Context, inFlight, runs int) error {
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
	l.startRuns(min(inFlight, runs), runs)
	return l.wait(ctx)
}

// fill publishes the events of sessions from one number to another, all alike,
// as fast as the log takes them. No other publisher may be active.
func (g *stage) fill(ctx context.Context, from, to int, events []said) error {
	f, err := g.newFiller(ctx, g.bus.Names().LogStream())
	if err != nil {
		return err
	}
	defer f.close()
	for n := from; n < to; n++ {
		for _, e := range events {
			subject, err := g.bus.Names().Log(e.door, sessionID(n))
			if err != nil {
				return err
			}
			if err := f.put(ctx, message{subject: subject, data: e.payload}); err != nil {
				return err
			}
		}
	}
	return f.end(ctx)
}

const foldedTick = 50 * time.Millisecond

// folded waits until all events of all lanes are acknowledged.
func (g *stage) folded(ctx context.Context) error {
	return g.drained(ctx, g.bus.Names().LogStream(), laneNames())
}

// drained waits until all that consumers of a stream deliver is acknowledged.
func (g *stage) drained(ctx context.Context, stream string, consumers []string) error {
	return g.near(ctx, stream, consumers, 0)
}

// near waits until of what each of these consumers delivers at most so many
// messages are not acknowledged.
func (g *stage) near(ctx context.Context, stream string, consumers []string, most int) error {
	tick := time.NewTicker(foldedTick)
	defer tick.Stop()
	for idle := 0; idle < 2; {
		if most > 0 {
			idle = 1 // it goes on anyway
		}
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
			if info := consumer.CachedInfo(); int(info.NumPending)+info.NumAckPending > most || info.AckFloor.Stream == 0 {
				idle = 0
				break
			}
		}
	}
	return nil
}
