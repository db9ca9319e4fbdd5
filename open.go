package refold

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/source"
	"github.com/refold/refold/subjects"
)

// Source is where the log of the sessions is: NATS, or embedded.Dir. Other packages
// can't implement it.
type Source interface {
	// Open is for Open of this package.
	Open(ctx context.Context, o source.Options) (*source.Opened, error)
}

// NATS returns the log on the servers that nc is connected to. Open dials its own
// connections, with nc's address, credentials and TLS, and neither changes nor closes
// nc; callbacks of nc are not called for them.
//
// The servers' session-actors carry the sessions: this process runs none.
func NATS(nc *nats.Conn) Source { return onNATS{nc} }

type onNATS struct{ nc *nats.Conn }

// Open checks that there is a connection.
func (n onNATS) Open(context.Context, source.Options) (*source.Opened, error) {
	if n.nc == nil {
		return nil, errors.New("refold.NATS: the connection is nil")
	}
	return &source.Opened{Like: n.nc, Close: func() {}}, nil
}

// Option is an option of Open.
type Option func(*options)

type options struct {
	prefix string
	logger *slog.Logger
	grace  time.Duration
}

// Prefix begins all subjects and names of streams; the default is refold. Programs
// under different prefixes don't see each other.
func Prefix(prefix string) Option { return func(o *options) { o.prefix = prefix } }

// Logger receives the logs of all parts. The default is none.
func Logger(log *slog.Logger) Option { return func(o *options) { o.logger = log } }

// Grace is how long calls and turns in progress may continue after Close; the default
// is 20 seconds.
func Grace(d time.Duration) Option { return func(o *options) { o.grace = d } }

// apply applies options; nil ones are left out.
func apply[T any, O ~func(*T)](to *T, all []O) {
	for _, option := range all {
		if option != nil {
			option(to)
		}
	}
}

// Runtime serves the agents of this process, and uses sessions. Sessions and runs
// outlive it. It is safe for concurrent use.
type Runtime struct {
	options options
	at      *source.Opened
	client  *client.Client
	// operator, approver and eraser do what client may not: see inside.Runtime; nil: client does.
	operator, approver, eraser *client.Client

	unread error // why this user may not read the log: see Partial; nil: it may

	serving context.Context // of the bridges
	stop    context.CancelFunc
	bridges sync.WaitGroup

	done   chan struct{} // closed when it has failed, or Close was called
	once   sync.Once     // closes done
	failed error         // why, if it failed; set before done is closed
	ended  chan struct{} // closed when Close is done
	ending sync.Once

	sessionTools bool // a bridge of this process serves the tools that every session has; under mu

	mu      sync.Mutex
	agents  map[string]*Agent
	models  map[string]string // accounts of the models that are served, by provider
	targets map[string]string // agents whose tools are served, by target
	closed  bool

	feedsMu sync.Mutex
	feeds   map[string]*feed // of the sessions that have readers
	keptMax int              // updates that a feed keeps
}

// Open opens the log, and returns when sessions can be used. ctx bounds Open alone. A user
// who may not read the log can ask, follow and control: see Partial.
// The error is one line that says what to do. The caller must call Close.
func Open(ctx context.Context, at Source, o ...Option) (*Runtime, error) {
	rt := &Runtime{
		done: make(chan struct{}), ended: make(chan struct{}), agents: map[string]*Agent{}, models: map[string]string{}, targets: map[string]string{}, feeds: map[string]*feed{}, keptMax: keptMax,
		options: options{logger: slog.New(slog.DiscardHandler)},
	}
	apply(&rt.options, o)
	rt.options.logger = cmp.Or(rt.options.logger, slog.New(slog.DiscardHandler))
	if at == nil {
		return nil, errors.New("refold.Open: name a source: embedded.Dir or refold.NATS")
	}
	if rt.options.grace < 0 {
		return nil, fmt.Errorf("refold.Open: a grace of %v: it is not negative", rt.options.grace)
	}
	names, err := subjects.New(rt.options.prefix)
	if err != nil {
		return nil, fmt.Errorf("refold.Open: %w", err)
	}
	rt.options.prefix = names.Prefix()
	if rt.at, err = at.Open(ctx, source.Options{Prefix: rt.options.prefix, Logger: rt.options.logger}); err != nil {
		return nil, err
	}
	if err := rt.connect(ctx); err != nil {
		rt.at.Close()
		return nil, err
	}
	rt.serving, rt.stop = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		select {
		case err := <-rt.at.Failed: // nil blocks
			rt.end(err)
		case <-rt.done:
		}
	}()
	return rt, nil
}

// connect connects the runtime's client.
func (rt *Runtime) connect(ctx context.Context) (err error) {
	if rt.client = rt.at.Client; rt.client != nil {
		return nil
	}
	to := client.Options{
		InProcess: rt.at.InProcess, URL: rt.at.URL, Creds: rt.at.Creds, Context: rt.at.Context, Like: rt.at.Like, Prefix: rt.options.prefix, Name: "refold", Logger: rt.options.logger,
	}
	rt.client, err = client.Connect(ctx, to)
	if denied := (*natsio.PermissionError)(nil); errors.As(err, &denied) { // JetStream
		to.CoreOnly = true
		rt.client, err = client.Connect(ctx, to)
	}
	if err == nil {
		rt.unread = rt.client.MayRead(ctx)
	}
	return err
}

// end tells Wait that the runtime has ended, and why.
func (rt *Runtime) end(why error) {
	rt.once.Do(func() {
		rt.failed = why
		close(rt.done)
	})
}

// connectBridge returns a bridge for an agent.
func (rt *Runtime) connectBridge(ctx context.Context, name string) (*bridge.Bridge, error) {
	return bridge.Connect(ctx, bridge.Options{
		InProcess: rt.at.InProcess, URL: rt.at.URL, Creds: rt.at.Creds, Context: rt.at.Context, Like: rt.at.Like, Prefix: rt.options.prefix, Name: name,
		Logger: rt.options.logger, Grace: rt.options.grace,
	})
}

// serve runs an agent's bridge until Close.
func (rt *Runtime) serve(name string, b *bridge.Bridge, tools *toolset) {
	rt.bridges.Go(func() {
		defer b.Close()
		defer tools.beside(rt.serving, b)()
		if err := b.Run(rt.serving); err != nil {
			rt.end(fmt.Errorf("agent %s: %w", name, err))
		}
	})
}

// Session returns a handle on a session of any agent: to follow it, to decide over its
// calls, to control it. Its Ask fails: it needs an agent, as in [Agent.Session].
func (rt *Runtime) Session(id string) *Session { return &Session{rt: rt, id: id} }

// ListOption is an option of Sessions.
type ListOption func(*client.IndexOptions)

// Named selects the sessions whose ids begin with a text.
func Named(beginning string) ListOption {
	return func(o *client.IndexOptions) { o.Name = beginning }
}

// In selects sessions in one of these states: a run's lifecycle, such as running or
// completed, or one of the states of client.IndexRow.
func In(states ...string) ListOption { return func(o *client.IndexOptions) { o.State = states } }

// ActiveSince selects the sessions that have done something since a time.
func ActiveSince(at time.Time) ListOption { return func(o *client.IndexOptions) { o.Since = at } }

// SessionInfo is what a list shows of a session.
type SessionInfo = client.IndexRow

// Sessions yields sessions, the one with the latest activity first. The last pair has
// the error, if there is one. It reads what sessions said in the last seven days;
// older sessions exist, and are not listed.
func (rt *Runtime) Sessions(ctx context.Context, o ...ListOption) iter.Seq2[SessionInfo, error] {
	var selected client.IndexOptions
	apply(&selected, o)
	return rt.client.Index(ctx, selected)
}

// ContextFile returns the path of a file, readable for this user alone, by which other
// programs of this machine join an embedded runtime: refold --context FILE. It is empty
// for a runtime on NATS, whose servers they reach as this program does.
func (rt *Runtime) ContextFile() string { return rt.at.ContextFile }

// Wait waits until Close, and returns nil, or until the runtime fails, and returns why;
// or until ctx ends. A runtime that has failed must be closed, too.
func (rt *Runtime) Wait(ctx context.Context) error {
	select {
	case <-rt.done:
		return rt.failed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close takes nothing new, and lets calls and turns in progress end within the time of
// Grace. What is then unfinished is settled, or given back to other processes. Runs go
// on: another process takes them up, or this program when it runs again. Close may be
// called more than once.
func (rt *Runtime) Close() error {
	rt.ending.Do(func() {
		rt.mu.Lock()
		rt.closed = true
		rt.mu.Unlock()
		rt.end(nil)
		rt.stop()
		rt.bridges.Wait()
		rt.endFeeds()
		rt.client.Close()
		rt.at.Close()
		close(rt.ended)
	})
	<-rt.ended
	return nil
}
