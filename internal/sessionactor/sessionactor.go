// Package sessionactor makes a session-actor of its parts: a connection, the streams,
// the first install record, and the engine. The daemon session-actor, `refold dev` and
// programs with package embedded run this one.
//
// # Path
//
// Run connects, creates or updates the streams (bus.Provision), creates the consumers
// that others may not create, publishes the install record if the log has none, and
// runs the engine until its context ends. If the connection is closed for good, it
// does all of that again, on a new one (natsio.Reopen).
package sessionactor

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/streams"
	"github.com/refold/refold/subjects"
)

// ClosedExit is the default of Options.ClosedExit of programs.
const ClosedExit = 30 * time.Second

// Options configure an Actor. Connect and Install are required.
type Options struct {
	Connect natsio.Options // with the expected durability; a nil Logger logs nothing

	Replicas  int        // of every stream; 0: one for a new stream, others stay as they are
	Accept    []string   // settings of streams that stay as they are, such as REFOLD_LOG.max_age
	Consumers []Consumer // of bridges and webhooks that may create none

	// Prepare, if given, is called when the streams exist, before a session can open
	// and before Install is published.
	Prepare func(context.Context, *bus.Bus) error
	Install []byte // record to publish if the log has none

	Engine engine.Options

	// ClosedExit is how long to try to connect again after a connection was closed for
	// good; 0: not at all. Broken, if given, is told why the session-actor does not work
	// meanwhile, and an empty text when it works again.
	ClosedExit time.Duration
	Broken     func(why string)

	Settings []any // of the program, for the log line of its start: keys and values
}

// Consumer names the consumer of a target's bridges, or with the class webhook that of a
// webhook.
type Consumer struct {
	Class  session.Class
	Target string
}

// Actor is a session-actor. New makes one; it is safe for concurrent use.
type Actor struct {
	o     Options
	log   *slog.Logger
	host  atomic.Pointer[engine.Host] // the present one; nil: it has not begun
	ready chan struct{}
	once  sync.Once // closes ready
}

// New returns a session-actor that does nothing before Run.
func New(o Options) *Actor {
	if o.Connect.Logger == nil {
		o.Connect.Logger = slog.New(slog.DiscardHandler)
	}
	return &Actor{o: o, log: o.Connect.Logger, ready: make(chan struct{})}
}

// Ready is closed once the session-actor answers views, on its first connection.
func (a *Actor) Ready() <-chan struct{} { return a.ready }

// NotReady returns why the session-actor is not ready, in sentences for people;
// nothing if it is.
func (a *Actor) NotReady(ctx context.Context) []string {
	h := a.host.Load()
	if h == nil {
		return []string{"it starts"}
	}
	return h.NotReady(ctx)
}

// Run runs sessions until ctx ends, and then hands the lanes over and returns nil. The
// error says what to do: the server can't be used, or a part ended by itself. An actor
// runs once.
func (a *Actor) Run(ctx context.Context) error {
	return natsio.Reopen(ctx, a.o.ClosedExit, a.log, a.o.Broken, a.run)
}

// run connects, prepares the log and runs the engine until ctx or the connection ends.
// It calls up when the engine begins.
func (a *Actor) run(ctx context.Context, up func()) error {
	b, err := bus.Connect(ctx, a.o.Connect)
	if err != nil {
		return err
	}
	defer b.Close()
	if err := a.provision(ctx, b); err != nil {
		return err
	}
	if a.o.Prepare != nil {
		if err := a.o.Prepare(ctx, b); err != nil {
			return err
		}
	}
	stored, err := engine.EnsureInstall(ctx, b, a.o.Install)
	if err != nil {
		return err
	}
	h := engine.New(b, a.log, a.o.Engine)
	a.host.Store(h)
	a.log.Info("session_actor_starts", append([]any{
		"version", a.o.Engine.Version, "instance", h.Instance(), "url", b.URL(), "server", b.ServerVersion(), "prefix", b.Names().Prefix(),
		"replicas", a.o.Replicas, "install_published", stored, "closed_exit", a.o.ClosedExit.String(), "traces", a.o.Engine.Traces != nil,
	}, a.o.Settings...)...)
	up()
	if err := a.carry(ctx, h); err != nil {
		return err
	}
	a.log.Info("session_actor_stopped", "instance", h.Instance())
	return nil
}

// provision creates or updates the streams and the consumers.
func (a *Actor) provision(ctx context.Context, b *bus.Bus) error {
	conf, err := streams.ParseConf(streams.File, b.Names())
	if err != nil {
		return err
	}
	if err := conf.Accept(a.o.Accept...); err != nil {
		return err
	}
	if err := b.Provision(ctx, conf, a.o.Replicas); err != nil {
		return err
	}
	for _, c := range a.o.Consumers {
		var err error
		if c.Class == subjects.ClassWebhook {
			_, err = b.EnsureWebhook(ctx, conf, c.Target)
		} else {
			_, err = b.EnsureBridge(ctx, conf, c.Class, c.Target)
		}
		if err != nil {
			return fmt.Errorf("consumer of %s/%s: %w", c.Class, c.Target, err)
		}
	}
	return nil
}

// carry runs a host, and closes ready when that is.
func (a *Actor) carry(ctx context.Context, h *engine.Host) error {
	ended := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-h.Ready():
			a.once.Do(func() { close(a.ready) })
		case <-ended:
		}
	})
	defer watching.Wait()
	defer close(ended)
	return h.Run(ctx)
}
