package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/internal/prompt"
	"github.com/refold/refold/internal/secrets"
	"github.com/refold/refold/internal/streams"
	"github.com/refold/refold/internal/worker"
	"github.com/refold/refold/subjects"
)

// Options say how a bridge connects and behaves. The zero value connects to a
// server on this machine, without credentials, under the prefix refold.
type Options struct {
	URL     string // of NATS, several separated by commas; empty: the context's, else nats://127.0.0.1:4222
	Creds   string // path of a credentials file
	Context string // name of a context of the nats tool, or path of its file
	Prefix  string // of all subjects; empty: refold
	Name    string // of this bridge, for people; empty: bridge

	// InboxPrefix begins the subjects of replies, if permissions give each role
	// its own; empty: the context's, else _INBOX.
	InboxPrefix string
	// InProcess, if given, is a NATS server in this process, to which the
	// bridge connects instead.
	InProcess nats.InProcessConnProvider
	// Like, if given, is a connection of the program: the bridge dials its own, with
	// the address, credentials and TLS of this one, which it neither changes nor
	// closes. URL, Creds and Context are not read then.
	Like *nats.Conn

	// Provision creates or updates the streams at the start, as a
	// session-actor does. Without it they must exist.
	Provision bool
	// Replicas of streams, with Provision; 0: one, or as many as a stream has.
	Replicas int

	// AcceptStreamSettings are settings of streams, such as REFOLD_LOG.max_age, that
	// Provision leaves as they are on the server, although they endanger history.
	AcceptStreamSettings []string

	// Durability is the expected durability of the servers: always, interval or
	// replicated. Connect fails if they differ. Empty: any.
	Durability string
	// Monitor has monitoring addresses of the servers, separated by commas, and
	// SystemCreds the path of a credentials file, or a context's file, of a user
	// of the system account: either shows how the servers sync.
	Monitor, SystemCreds string

	// Slots is how many effects of all targets run at once in this process, up to
	// 4096, in the order of [Priority]; 0: each target has only its own
	// [Concurrency].
	Slots int
	// Grace is how long executions in progress may continue when the bridge is
	// told to stop; 0: 20 s.
	Grace   time.Duration
	Version string // of the program, shown by `nats micro ls`

	// Secrets are sources of the secrets that packs need, tried in this order. The
	// environment comes last, limited to names in a catalog. SecretsCatalogs are
	// files that add to the built-in catalog.
	Secrets         []Secrets
	SecretsCatalogs []string
	// SecretNames are secrets to check when the bridge starts: it warns of those
	// that are too short to be redacted.
	SecretNames []SecretName
	// LookupEnv is os.LookupEnv, for a bridge that may read the environment for the
	// needs of packs; nil: it reads nothing.
	LookupEnv func(name string) (value string, ok bool)

	Logger *slog.Logger // nil: no logs

	Observe executor.Observer // receives every start; nil: none
}

// Validate reports every problem of o, nil if there is none.
func (o Options) Validate() error {
	var all []error
	if _, err := subjects.New(o.Prefix); err != nil {
		all = append(all, err)
	}
	if _, err := natsio.ParseDurability(o.Durability); err != nil {
		all = append(all, err)
	}
	if _, err := streams.ParseMonitors(o.Monitor); err != nil {
		all = append(all, err)
	}
	if o.Replicas < 0 || o.Replicas > 5 {
		all = append(all, fmt.Errorf("replicas: 0 to 5, not %d", o.Replicas))
	}
	if o.Slots < 0 || o.Slots > worker.SlotsMax {
		all = append(all, fmt.Errorf("slots: 0 to %d, not %d", worker.SlotsMax, o.Slots))
	}
	if o.Grace < 0 {
		all = append(all, fmt.Errorf("grace: not negative, got %v", o.Grace))
	}
	return errors.Join(all...)
}

// Bridge executes the effects of its targets. One process may have several.
type Bridge struct {
	options Options
	bus     *bus.Bus
	conf    *streams.Conf
	wire    *worker.NATS
	results *prompt.Results
	worker  *worker.Worker
	clock   *natsio.Clock // the server's

	instance string // ULID of this process's start
	by       string // the bridge's name in settlements, for people

	pulls atomic.Bool // Run pulls effects

	mu     sync.Mutex
	ran    bool
	served []worker.Target
	fleets []Fleet
	packs  []*builtPack
}

// Connect connects to NATS and checks that it is usable: the error is one line that
// says what to do. The caller must call Close.
func Connect(ctx context.Context, o Options) (*Bridge, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("bridge options: %w", err)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Name == "" {
		o.Name = "bridge"
	}
	if o.Grace == 0 {
		o.Grace = worker.GraceDefault
	}
	catalog, err := secrets.NewCatalog(o.environment(), o.SecretsCatalogs...)
	if err != nil {
		return nil, fmt.Errorf("bridge options: %w", err)
	}
	nc, err := o.connect(ctx)
	if err != nil {
		return nil, err
	}
	b := &Bridge{options: o, bus: nc}
	if b.conf, err = streams.ParseConf(streams.File, nc.Names()); err == nil {
		err = b.conf.Accept(o.AcceptStreamSettings...)
	}
	switch {
	case err != nil:
	case o.Provision:
		err = nc.Provision(ctx, b.conf, o.Replicas)
	default:
		err = nc.CheckDurability(ctx, b.conf)
	}
	if err != nil {
		nc.Close()
		return nil, err
	}
	b.instance, b.wire = worker.NewULID(time.Now()), worker.NewNATS(nc)
	b.results = prompt.NewResults(b.wire)
	b.by = prompt.Clip(o.Name+"/"+b.instance, session.ByBytesMax)
	b.clock = nc.NewClock(natsio.NewLocalClock())
	b.worker = worker.New(b.wire, b.instance, b.by, b.clock.Now, o.Logger.With("instance", b.instance))
	sources := make([]secrets.Source, len(o.Secrets))
	for i, s := range o.Secrets {
		sources[i] = s
	}
	b.worker.OpenVault(o.environment(), catalog, sources...)
	b.worker.Observe(o.Observe)
	if o.Slots > 0 {
		b.worker.Share(o.Slots)
	}
	return b, nil
}

func (o Options) connect(ctx context.Context) (*bus.Bus, error) {
	wanted, err := natsio.ParseDurability(o.Durability)
	if err != nil {
		return nil, err
	}
	monitors, err := streams.ParseMonitors(o.Monitor)
	if err != nil {
		return nil, err
	}
	return bus.Connect(ctx, natsio.Options{
		URL: o.URL, Creds: o.Creds, Context: o.Context, Prefix: o.Prefix, Name: o.Name,
		Logger: o.Logger, InboxPrefix: o.InboxPrefix, InProcess: o.InProcess, Like: o.Like,
		Durability: wanted, Monitor: monitors, SystemCreds: o.SystemCreds,
	})
}

// Instance names this bridge in claims and heartbeats: a ULID.
func (b *Bridge) Instance() string { return b.instance }

// Tool makes e execute the tool calls of a target. It must be called before Run,
// once for each target.
func (b *Bridge) Tool(target string, e executor.Executor, options ...ServeOption) error {
	return b.serve(worker.Target{Class: session.ClassTool, Name: target, Executor: e}, options)
}

// Model makes m execute the generations of a provider. It must be called before
// Run, once for each provider.
func (b *Bridge) Model(provider string, m executor.Model, options ...ServeOption) error {
	return b.serve(worker.Target{Class: session.ClassLLM, Name: provider, Model: m}, options)
}

// Step makes h the step hook of this name. It must be called before Run, once for
// each hook.
func (b *Bridge) Step(hook string, h executor.StepHook, options ...ServeOption) error {
	return b.serve(worker.Target{Class: session.ClassStep, Name: hook, Hook: h}, options)
}

// Space makes r read the spaces of a target. It must be called before Run, once for
// each target.
func (b *Bridge) Space(target string, r executor.SpaceReader, options ...ServeOption) error {
	return b.serve(worker.Target{Class: session.ClassSpace, Name: target, Spaces: r}, options)
}

// Targets returns the targets of this bridge: tool/host, llm/openai, ….
func (b *Bridge) Targets() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []string
	for i := range b.served {
		all = append(all, b.served[i].String())
	}
	slices.Sort(all)
	return all
}

// Run executes effects until ctx ends. Executions in progress then have
// Options.Grace to end; after that they are stopped, and settled or given back to
// other bridges, and Run returns nil. An error means that a target could not be
// served from the start, and then Run serves none; or that the connection was closed
// for good, and then executions in progress are stopped; or that the log is lost. A
// bridge runs once.
func (b *Bridge) Run(ctx context.Context) error {
	b.mu.Lock()
	targets, fleets := slices.Clone(b.served), slices.Clone(b.fleets)
	again := b.ran
	b.ran = true
	b.mu.Unlock()
	switch {
	case again:
		return errors.New("a bridge runs once: connect another")
	case len(targets) == 0:
		return errors.New("a bridge without targets has nothing to do: give it tools, models, step hooks or spaces before Run")
	}
	ctx, closing := b.bus.WhileOpen(ctx)
	defer closing()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b.warnShortSecrets(ctx)
	_ = b.clock.Measure(ctx) // Keep tries again, and tells why it failed
	life, stop := worker.NewLifetimes(ctx, b.options.Grace)
	stop = sync.OnceFunc(stop)
	defer stop()
	defer context.AfterFunc(ctx, func() {
		if b.bus.ClosedForGood() != nil {
			stop() // nothing can be settled any more
		}
	})()
	background, err := b.listen(life.Last, targets)
	defer background()
	if err != nil {
		return err
	}
	b.pulls.Store(true)
	defer b.pulls.Store(false)
	errs := make([]error, len(targets))
	var serving sync.WaitGroup
	for i, s := range targets {
		serving.Go(func() {
			errs[i] = b.worker.Serve(life, s, worker.NewNATSSource(b.bus.Effects(b.conf, s.Class, s.Name)))
			if errs[i] != nil {
				cancel() // a bridge serves all of its targets or none
			}
		})
	}
	for _, f := range fleets {
		serving.Go(func() { b.serveLost(life, f) })
	}
	var lost, beside error
	serving.Go(func() {
		if beside = b.bus.RefuseForeign(ctx); beside != nil {
			cancel()
		}
	})
	serving.Go(func() {
		names := b.bus.Names()
		lost = b.bus.WatchStreams(ctx, b.conf, func([]streams.Finding) {}, names.LogStream(), names.EffectsStream())
		if lost != nil {
			cancel()
		}
	})
	serving.Wait()
	b.logStats()
	if err := b.bus.ClosedForGood(); err != nil {
		return err
	}
	return errors.Join(append(errs, lost, beside)...)
}

// listen starts the background tasks: our heartbeats, the tracking of other
// bridges, and cancellations. All subscriptions exist when listen returns. stop
// ends them.
func (b *Bridge) listen(ctx context.Context, served []worker.Target) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	stopService := func() error { return nil }
	stop = func() {
		if err := stopService(); err != nil {
			b.options.Logger.Debug("service_not_stopped", "error", err.Error())
		}
		cancel()
		tasks.Wait()
	}
	members, err := b.bus.TrackMembers(ctx, subjects.KindBridge)
	if err != nil {
		return stop, err
	}
	b.wire.Members = members
	// Only to notice another system: a user without the right does without.
	err = b.bus.Subscribe(ctx, b.bus.Names().AliveAll(subjects.KindSessionActor), func(*nats.Msg) {})
	if denied := (*natsio.PermissionError)(nil); err != nil && !errors.As(err, &denied) {
		return stop, err
	}
	if err := b.bus.SubscribeCancel(ctx, b.worker.Cancelled); err != nil {
		return stop, err
	}
	targets := b.Targets()
	b.mu.Lock()
	body := b.worker.Heartbeats(targets, slices.Clone(b.served), b.clock.AheadMS)
	b.mu.Unlock()
	tasks.Go(func() {
		if err := b.bus.Heartbeat(ctx, subjects.KindBridge, b.instance, body); err != nil {
			b.options.Logger.Error("heartbeats_ended", "error", err.Error())
		}
	})
	tasks.Go(func() { b.worker.Watch(ctx) })
	tasks.Go(func() { b.clock.Keep(ctx) })
	endpoints, err := b.readerEndpoints(ctx, served)
	if err != nil {
		return stop, err
	}
	stats, err := b.statsEndpoint()
	if err != nil {
		return stop, err
	}
	if stopService, err = b.bus.Register(ctx, presence.Service{
		Kind: subjects.KindBridge, Version: b.options.Version, Description: "Carries out effects of Refold sessions",
		Metadata: b.metadata(strings.Join(targets, " ")),
		Stats:    func() any { return b.Stats() },
	}, append(endpoints, stats)...); err != nil {
		stopService = func() error { return nil }
		return stop, err
	}
	return stop, nil
}

// Close closes the connection. Run must have returned.
func (b *Bridge) Close() { b.bus.Close() }

// LetsAnybodyIn reports whether the NATS servers accept connections without
// credentials: then anyone who can reach them may control every session. It opens
// another connection, and takes as long as that does.
func (b *Bridge) LetsAnybodyIn() bool { return b.bus.LetsAnybodyIn() }

// Setting is one line of an effective configuration.
type Setting struct{ Key, Value string }

// Config returns the effective options, for people, without secrets.
func (b *Bridge) Config() []Setting {
	return []Setting{
		{"url", b.bus.URL()}, {"server", b.bus.ServerVersion()}, {"prefix", b.bus.Names().Prefix()}, {"name", b.options.Name},
		{"instance", b.instance}, {"targets", strings.Join(b.Targets(), " ")}, {"grace", b.options.Grace.String()},
	}
}
