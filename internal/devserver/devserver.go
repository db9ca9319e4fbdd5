package devserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	refold "github.com/refold/refold"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/host"
)

// Options say what runs. Dir and Install are needed.
type Options struct {
	Dir     string       // of JetStream's files; made if it doesn't exist
	Lock    *DirLock     // of Dir, if the caller has it; nil: Start locks it. Stop releases either
	Port    int          // of NATS on 127.0.0.1; 0: any free one
	Prefix  string       // of all subjects; empty: refold
	Install []byte       // record to publish if the log has none
	Logger  *slog.Logger // nil: no logs
	Version string       // shown by `nats micro ls`

	// Durability is what the server does: DurabilityInterval syncs now and then,
	// which is faster, and anything else before it acknowledges.
	Durability bus.Durability

	Memory     int64   // what sessions in memory may take, in bytes; 0: 256 MiB
	VerifyPart float64 // of the snapshots, to be compared with the log; 0: none

	// Prepare is called when the streams are there, before a session can open and
	// before Install is published. Nil: nothing.
	Prepare func(context.Context, *bus.Bus) error
	// Serve gives the bridge its tools and models. Nil: no bridge runs.
	Serve func(*bridge.Bridge) error
}

// Server is what runs.
type Server struct {
	lock   *DirLock
	nats   *server.Server
	bus    *bus.Bus
	bridge *bridge.Bridge
	log    *slog.Logger

	stopBridge context.CancelFunc
	stopHost   context.CancelFunc
	failed     chan error // what ended although nobody stopped it
	running    sync.WaitGroup
	bridging   sync.WaitGroup
	stop       sync.Once
}

const readyWithin = 10 * time.Second

// Start starts everything and returns when runs and views can be asked for.
// The error says what to do; nothing runs then. A directory that another server
// uses is an error that says who that is.
func Start(ctx context.Context, o Options) (*Server, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{log: o.Logger, failed: make(chan error, 2), stopBridge: func() {}, stopHost: func() {}}
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
	if s.nats, err = startNATS(o.Dir, o.Port, o.Durability != bus.DurabilityInterval); err != nil {
		return err
	}
	if err := s.lock.tell(s.nats.ClientURL()); err != nil {
		return fmt.Errorf("write to the lock of %s: %w", o.Dir, err)
	}
	if s.bus, err = bus.Connect(ctx, bus.Options{InProcess: s.nats, Prefix: o.Prefix, Name: "refold-dev", Logger: o.Logger}); err != nil {
		return err
	}
	conf, err := bus.ParseConf(refold.StreamsConf, s.bus.Names())
	if err != nil {
		return err
	}
	if err := s.bus.Provision(ctx, conf, 1); err != nil {
		return err
	}
	if o.Prepare != nil {
		if err := o.Prepare(ctx, s.bus); err != nil {
			return err
		}
	}
	if _, err := host.EnsureInstall(ctx, s.bus, o.Install); err != nil {
		return err
	}
	var hosting, bridging context.Context
	hosting, s.stopHost = context.WithCancel(context.WithoutCancel(ctx))
	h := host.New(s.bus, o.Logger, host.Options{Version: o.Version, Memory: o.Memory, VerifyPart: o.VerifyPart})
	s.running.Go(func() {
		if err := h.Run(hosting); err != nil {
			s.failed <- fmt.Errorf("session-actor: %w", err)
		}
	})
	select {
	case <-h.Ready():
	case err := <-s.failed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
	if o.Serve == nil {
		return nil
	}
	s.bridge, err = bridge.Connect(ctx, bridge.Options{
		InProcess: s.nats, Prefix: o.Prefix, Name: "refold-dev", Version: o.Version, Logger: o.Logger, Grace: 5 * time.Second,
	})
	if err != nil {
		return err
	}
	if err := errors.Join(o.Serve(s.bridge), s.bridge.Timers(ctx)); err != nil {
		return err
	}
	bridging, s.stopBridge = context.WithCancel(context.WithoutCancel(ctx))
	s.bridging.Go(func() {
		if err := s.bridge.Run(bridging); err != nil {
			s.failed <- fmt.Errorf("bridge: %w", err)
		}
	})
	return nil
}

// startNATS starts a server on loopback whose files are under dir. It syncs each
// message before it acknowledges it, or else every two minutes.
func startNATS(dir string, port int, always bool) (*server.Server, error) {
	if port == 0 {
		port = server.RANDOM_PORT
	}
	opts := &server.Options{
		ServerName: "refold-dev", Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: filepath.Join(dir, "nats"),
		SyncAlways: always, NoSigs: true, NoLog: true,
	}
	if port > 0 { // the server would only log it, and try again
		l, err := net.Listen("tcp", net.JoinHostPort(opts.Host, fmt.Sprint(port)))
		if err != nil {
			return nil, fmt.Errorf("port %d is taken: choose another with --port, or 0 for any free one (%w)", port, err)
		}
		if err := l.Close(); err != nil {
			return nil, err
		}
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("start a NATS server in %s: %w", dir, err)
	}
	go srv.Start()
	if !srv.ReadyForConnections(readyWithin) {
		srv.Shutdown()
		srv.WaitForShutdown()
		return nil, fmt.Errorf("the NATS server in %s was not ready within %v", dir, readyWithin)
	}
	return srv, nil
}

// URL returns where clients on this machine connect.
func (s *Server) URL() string { return s.nats.ClientURL() }

// InProcess returns the server, for connections within this process.
func (s *Server) InProcess() *server.Server { return s.nats }

// Failed delivers the error of what ended although nobody stopped it.
func (s *Server) Failed() <-chan error { return s.failed }

// Stop ends everything and returns when it has: the bridge first, so that it
// settles what it has, then the session-actor, then the server.
func (s *Server) Stop() {
	s.stop.Do(func() {
		s.stopBridge()
		s.bridging.Wait()
		if s.bridge != nil {
			s.bridge.Close()
		}
		s.stopHost()
		s.running.Wait()
		if s.bus != nil {
			s.bus.Close()
		}
		if s.nats != nil {
			s.nats.Shutdown()
			s.nats.WaitForShutdown()
		}
		s.lock.Release()
	})
}
