package devserver

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/internal/meter"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/sessionactor"
	"github.com/refold/refold/subjects"
)

// Options configure a Server. Dir and Install are required.
type Options struct {
	Dir     string       // of JetStream's files; created if it doesn't exist
	Lock    *DirLock     // of Dir, if the caller holds it; nil: Start locks Dir. Stop releases the lock
	Port    int          // of NATS on 127.0.0.1; 0: any free one
	Prefix  string       // of all subjects; empty: refold
	Install []byte       // record to publish if the log has none
	Logger  *slog.Logger // nil: no logs
	Version string       // shown by `nats micro ls`

	// Durability is when the server syncs: with DurabilityInterval every two
	// minutes, which is faster, otherwise before it acknowledges.
	Durability natsio.Durability
	// SyncInterval, if given, is in place of the two minutes of DurabilityInterval.
	SyncInterval time.Duration

	Memory int64 // limit of the sessions in memory, in bytes; 0: 256 MiB

	Metrics *meter.Registry   // for the session-actor's metrics; nil: none
	Traces  engine.Traces     // receives the spans of runs; nil: no run is traced
	Observe executor.Observer // receives every start of the bridge; nil: none

	// Roles gives the server accounts and users of the roles, with their files
	// in Dir/roles ([Server.Context]). A program without a key has the permissions
	// of clients and approvers. Without Roles every program may do everything.
	Roles bool
	// KeysOnly refuses programs without a key. It requires Roles.
	KeysOnly bool
	// Model is a provider that a bridge in another process serves, as the user
	// [Models]; empty: none. It requires Roles.
	Model string

	// Prepare, if given, is called when the streams exist, before a session can
	// open and before Install is published.
	Prepare func(context.Context, *bus.Bus) error
	// Serve adds tools and models to the bridge, and to the next one if the connection
	// is closed for good. Nil: no bridge runs.
	Serve func(*bridge.Bridge) error
}

// Server is a running NATS server, session-actor and bridge.
type Server struct {
	lock   *DirLock
	dir    string
	prefix string
	roles  bool
	nats   *server.Server
	actor  *sessionactor.Actor
	bridge atomic.Pointer[bridge.Bridge] // the present one; nil: there is none
	log    *slog.Logger

	stopBridge context.CancelFunc
	stopActor  context.CancelFunc
	failed     chan error // errors of parts that ended without Stop
	acting     sync.WaitGroup
	bridging   sync.WaitGroup
	stop       sync.Once
}

const readyWithin = 10 * time.Second

// Start starts everything and returns when runs and views can be requested. The
// error says what to do; nothing runs then. If another server uses the directory,
// the error names that server.
func Start(ctx context.Context, o Options) (*Server, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{log: o.Logger, dir: o.Dir, roles: o.Roles, failed: make(chan error, 2), stopBridge: func() {}, stopActor: func() {}}
	if err := s.start(ctx, o); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, o Options) error {
	var err error
	if s.lock = o.Lock; s.lock == nil {
		if s.lock, err = Lock(o.Dir); err != nil {
			return err
		}
	}
	if s.lock.shared != nil {
		s.log.Warn("directory_not_locked", "dir", o.Dir, "error", s.lock.shared, "note", "start no other server on it")
	}
	names, err := subjects.New(o.Prefix)
	if err != nil {
		return err
	}
	s.prefix = names.Prefix()
	if err := s.startNATS(o, names); err != nil {
		return err
	}
	if err := s.lock.writeHolder(s.nats.ClientURL()); err != nil {
		return fmt.Errorf("write to the lock of %s: %w", o.Dir, err)
	}
	if err := s.startActor(ctx, o); err != nil || o.Serve == nil {
		return err
	}
	return s.startBridge(ctx, o)
}

// startActor starts the session-actor, and returns when it is ready.
func (s *Server) startActor(ctx context.Context, o Options) error {
	options := sessionactor.Options{
		Connect:  natsio.Options{InProcess: s.nats, Context: s.Context(actor), Prefix: o.Prefix, Name: "refold-dev", Logger: o.Logger},
		Replicas: 1, Prepare: o.Prepare, Install: o.Install, ClosedExit: sessionactor.ClosedExit,
		Engine: engine.Options{Version: o.Version, Memory: o.Memory, Meters: engine.Register(o.Metrics, 0), Traces: o.Traces},
	}
	if o.Model != "" {
		options.Consumers = []sessionactor.Consumer{{Class: session.ClassLLM, Target: o.Model}}
	}
	s.actor = sessionactor.New(options)
	var hosting context.Context
	hosting, s.stopActor = context.WithCancel(context.WithoutCancel(ctx))
	s.acting.Go(func() {
		if err := s.actor.Run(hosting); err != nil {
			s.failed <- fmt.Errorf("session-actor: %w", err)
		}
	})
	return s.until(ctx, s.actor.Ready())
}

// until returns when a part is ready, or why it is not.
func (s *Server) until(ctx context.Context, ready <-chan struct{}) error {
	select {
	case <-ready:
		return nil
	case err := <-s.failed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// startBridge starts the bridge, and returns when it is about to pull effects.
func (s *Server) startBridge(ctx context.Context, o Options) error {
	var bridging context.Context
	bridging, s.stopBridge = context.WithCancel(context.WithoutCancel(ctx))
	ready := make(chan struct{})
	begun := sync.OnceFunc(func() { close(ready) })
	s.bridging.Go(func() {
		err := natsio.Reopen(bridging, sessionactor.ClosedExit, s.log, nil, func(ctx context.Context, up func()) error {
			return s.runBridge(ctx, o, func() { up(); begun() })
		})
		if err != nil {
			s.failed <- fmt.Errorf("bridge: %w", err)
		}
	})
	return s.until(ctx, ready)
}

// runBridge connects and runs a bridge until ctx or its connection ends. It calls up
// when the bridge is about to pull effects.
func (s *Server) runBridge(ctx context.Context, o Options, up func()) error {
	b, err := bridge.Connect(ctx, bridge.Options{
		InProcess: s.nats, Context: s.Context(Admin), Prefix: o.Prefix, Name: "refold-dev", Version: o.Version, Logger: o.Logger, Grace: 5 * time.Second, Observe: o.Observe,
	})
	if err != nil {
		return err
	}
	defer b.Close()
	if err := o.Serve(b); err != nil {
		return err
	}
	s.bridge.Store(b)
	up()
	return b.Run(ctx)
}

// startNATS starts a server on loopback with its files in o.Dir. It syncs each
// message before it acknowledges it, or every two minutes.
func (s *Server) startNATS(o Options, names subjects.Names) error {
	opts := &server.Options{
		ServerName: "refold-dev", Host: "127.0.0.1", Port: o.Port, JetStream: true, StoreDir: filepath.Join(o.Dir, "nats"),
		SyncAlways: o.Durability != natsio.DurabilityInterval, SyncInterval: o.SyncInterval, NoSigs: true, NoLog: true,
	}
	// If the port is taken, the server would only log that, and retry.
	l, err := net.Listen("tcp", net.JoinHostPort(opts.Host, fmt.Sprint(o.Port)))
	if err != nil {
		return fmt.Errorf("port %d is taken: choose another with --port, or 0 for any free one (%w)", o.Port, err)
	}
	opts.Port = l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return err
	}
	if o.Roles {
		if err := s.writeRoles(o, names, opts); err != nil {
			return err
		}
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		return fmt.Errorf("start a NATS server in %s: %w", o.Dir, err)
	}
	go srv.Start()
	if !srv.ReadyForConnections(readyWithin) {
		srv.Shutdown()
		srv.WaitForShutdown()
		return fmt.Errorf("the NATS server in %s was not ready within %v", o.Dir, readyWithin)
	}
	s.nats = srv
	return nil
}

// URL returns the address for clients on this machine.
func (s *Server) URL() string { return s.nats.ClientURL() }

// InProcess returns the server, for connections within this process.
func (s *Server) InProcess() *server.Server { return s.nats }

// NotReady returns why a part of the server is not ready; nothing if all are.
func (s *Server) NotReady(ctx context.Context) []string {
	reasons := s.actor.NotReady(ctx)
	if b := s.bridge.Load(); b != nil {
		reasons = append(reasons, b.NotReady(ctx)...)
	}
	return reasons
}

// Stats returns the bridge's counts; zero without a bridge.
func (s *Server) Stats() (stats bridge.Stats) {
	if b := s.bridge.Load(); b != nil {
		stats = b.Stats()
	}
	return stats
}

// Failed delivers the error of a part that ended without Stop.
func (s *Server) Failed() <-chan error { return s.failed }

// Stop ends everything, and returns when all has ended: the bridge first, so that
// it settles its effects, then the session-actor, then the server.
func (s *Server) Stop() {
	s.stop.Do(func() {
		s.stopBridge()
		s.bridging.Wait()
		s.stopActor()
		s.acting.Wait()
		if s.nats != nil {
			s.nats.Shutdown()
			s.nats.WaitForShutdown()
		}
		s.lock.Release()
	})
}
