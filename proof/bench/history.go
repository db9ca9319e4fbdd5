package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// stage is what the smaller measurements use: servers with Refold's streams and the
// install record, under interval.
type stage struct {
	row
	servers *servers
	bus     *bus.Bus
	nc      *nats.Conn
	js      jetstream.JetStream
	fail    context.CancelCauseFunc // the first error ends the measurement
}

// onStage calls measure with a stage, and stops the stage's servers.
func onStage(ctx context.Context, o Options, measure func(context.Context, *stage) error) (err error) {
	g := &stage{row: row{Options: o, durability: natsio.DurabilityInterval, replicas: 1}}
	if g.servers, err = startServers(o.Dir, 1, false); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.servers.stop()) }()
	ctx, g.fail = context.WithCancelCause(ctx)
	defer g.fail(nil)
	if g.bus, err = bus.Connect(ctx, natsio.Options{InProcess: g.servers.of(0), Name: "refold-bench"}); err != nil {
		return err
	}
	defer g.bus.Close()
	if _, err := provision(ctx, g.bus, 1); err != nil {
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

// storedEvent is an event to store for many sessions.
type storedEvent struct {
	door    session.Door
	payload []byte
}

// runAll makes Refold carry out runs, each in its own session, and waits for their
// ends.
func (g *stage) runAll(ctx context.Context, inFlight, runs int) error {
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
	return l.carryOut(ctx, inFlight, runs)
}

// event stores an event of the nth session.
func (g *stage) event(put func(message) error, n int, e storedEvent) error {
	subject, err := g.bus.Names().Log(e.door, sessionID(n))
	if err != nil {
		return err
	}
	return put(message{subject: subject, data: e.payload})
}

// fillAhead is the number of publishes that may be outstanding.
const fillAhead = 10_000

// storeAll stores the messages that each passes to put, in order, as fast as the
// server accepts them. A refused message is an error.
func (g *stage) storeAll(ctx context.Context, each func(put func(message) error) error) error {
	c, err := newCommitter(g.nc, false, g.fail)
	if err != nil {
		return err
	}
	defer c.close()
	under := make(chan struct{}, fillAhead)
	take := func() error {
		select {
		case under <- struct{}{}:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	err = each(func(m message) error {
		m.stored = func() { <-under }
		err := take()
		if err == nil {
			c.put(m)
		}
		return err
	})
	for range fillAhead { // once all places are free, everything is stored
		if err == nil {
			err = take()
		}
	}
	return err
}

const foldedTick = 50 * time.Millisecond

// waitIdle waits until all events of each lane are acknowledged.
func (g *stage) waitIdle(ctx context.Context) error {
	for idle := 0; idle < 2; {
		if err := sleep(ctx, foldedTick); err != nil {
			return err
		}
		idle++
		for _, name := range laneNames() {
			consumer, err := g.js.Consumer(ctx, g.bus.Names().LogStream(), name)
			if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
				idle = 0 // the server was too busy to answer
				break
			}
			if err != nil {
				return fmt.Errorf("look at lane %s: %w", name, err)
			}
			if info := consumer.CachedInfo(); int(info.NumPending)+info.NumAckPending > 0 || info.AckFloor.Stream == 0 {
				idle = 0
				break
			}
		}
	}
	return nil
}

// skipEvents moves the lanes past all events, as if these had been folded, by resetting
// the consumers. Pulling and acknowledging millions of messages would cost the
// server, for each of them, a search of all subjects of a block.
func (g *stage) skipEvents(ctx context.Context) error {
	stream := g.bus.Names().LogStream()
	s, err := g.js.Stream(ctx, stream)
	if err != nil {
		return fmt.Errorf("look at stream %s: %w", stream, err)
	}
	last := s.CachedInfo().State.LastSeq
	for _, lane := range laneNames() {
		if _, err := g.js.ResetConsumerToSequence(ctx, stream, lane, last+1); err != nil {
			return fmt.Errorf("take lane %s past message %d: %w", lane, last, err)
		}
	}
	return g.waitIdle(ctx)
}

func laneNames() (lanes []string) {
	for i := range subjects.LanesDefault {
		lanes = append(lanes, subjects.LaneName(i))
	}
	return lanes
}

// ofEachLane returns the first session of each lane, numbered from from.
func ofEachLane(from int) (sessions []int) {
	taken := map[int]bool{}
	for n := from; len(taken) < subjects.LanesDefault; n++ {
		if lane := subjects.Lane(subjects.Partition(sessionID(n))); !taken[lane] {
			taken[lane] = true
			sessions = append(sessions, n)
		}
	}
	return sessions
}
