package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/internal/sessionactor"
	"github.com/refold/refold/internal/streams"
)

// atOnce is how many effects of a target the bridge carries out at a time: the
// most that is allowed, since they take no time.
const atOnce = 1024

// system is Refold: a session-actor and a bridge, each with its own connection.
type system struct {
	watch   *Watch
	bridge  *bridge.Bridge
	stops   []context.CancelFunc // in the order of the starts
	running []*sync.WaitGroup
}

func startSystem(ctx context.Context, s *servers, o row, fail func(error)) (y *system, err error) {
	y = &system{}
	defer func(started *system) { // a failing return makes y nil
		if err != nil {
			started.stop()
		}
	}(y)
	y.watch = &Watch{Stop: func() {}}
	if o.watched {
		if y.watch, err = o.Telemetry(ctx); err != nil {
			return nil, err
		}
	}
	actor := sessionactor.New(sessionactor.Options{
		Connect: s.busOptions(0, "refold-bench-actor", o.daemonLog()), Replicas: o.replicas, Install: []byte(install),
		Engine: engine.Options{Meters: engine.Register(y.watch.Metrics, 0), Traces: y.watch.Traces},
	})
	y.run(ctx, fail, "session-actor", actor.Run)
	select {
	case <-actor.Ready():
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if !o.hostOnly {
		if err := y.startBridge(ctx, s, o, fail); err != nil {
			return nil, err
		}
	}
	return y, nil
}

// provision creates the streams, and stores the install record.
func provision(ctx context.Context, b *bus.Bus, replicas int) (*streams.Conf, error) {
	conf, err := streams.ParseConf(streams.File, b.Names())
	if err != nil {
		return nil, err
	}
	if err := b.Provision(ctx, conf, replicas); err != nil {
		return nil, err
	}
	_, err = engine.EnsureInstall(ctx, b, []byte(install))
	return conf, err
}

func (y *system) startBridge(ctx context.Context, s *servers, o row, fail func(error)) error {
	var err error
	y.bridge, err = bridge.Connect(ctx, s.bridgeOptions(1, o, y.watch))
	if err != nil {
		return err
	}
	err = errors.Join(
		y.bridge.Model(provider, instant{}, bridge.Concurrency(atOnce)),
		y.bridge.Tool(target, instant{}, bridge.Concurrency(atOnce)))
	if err != nil {
		return err
	}
	y.run(ctx, fail, "bridge", y.bridge.Run)
	return nil
}

// run runs a daemon until stop. It is a failure if the daemon ends before.
func (y *system) run(ctx context.Context, fail func(error), name string, run func(context.Context) error) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() {
		if err := run(ctx); err != nil {
			fail(fmt.Errorf("%s: %w", name, err))
		}
	})
	y.stops = append(y.stops, stop)
	y.running = append(y.running, &running)
}

// stop ends the bridge, and then the session-actor.
func (y *system) stop() {
	for i := len(y.stops) - 1; i >= 0; i-- {
		y.stops[i]()
		y.running[i].Wait()
	}
	if y.bridge != nil {
		y.bridge.Close()
	}
	if y.watch != nil {
		y.watch.Stop()
	}
}
