package bridgetest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"time"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/function"
)

// process is one bridge, which stands for a process of its own.
type process struct {
	n      int
	bridge *bridge.Bridge
	link   *link
	cancel context.CancelFunc
	ran    chan error
}

// stopGrace is the grace time of a bridge that ends with the test, for its
// executions in progress. A killed bridge has none.
const stopGrace = 5 * time.Second

func (s *Session) startBridge(n int) (*process, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	p := &process{n: n, link: &link{server: s.server.InProcess()}, cancel: cancel, ran: make(chan error, 1)}
	var err error
	p.bridge, err = bridge.Connect(ctx, bridge.Options{
		InProcess: p.link, Name: fmt.Sprint("bridgetest-", n), Logger: s.options.Logger, Grace: stopGrace,
	})
	if err != nil {
		cancel()
		return nil, err
	}
	if err := s.serve(p); err != nil {
		cancel()
		p.bridge.Close()
		return nil, err
	}
	go func() { p.ran <- p.bridge.Run(ctx) }()
	return p, nil
}

func (s *Session) serve(p *process) error {
	var options []bridge.ServeOption
	if s.options.Concurrency != 0 {
		options = append(options, bridge.Concurrency(s.options.Concurrency))
	}
	errs := []error{p.bridge.Model(s.provider, observedModel{s.options.Model, s})}
	byTarget := map[string]*recorder{}
	for _, f := range s.options.Tools {
		r := byTarget[f.Target()]
		if r == nil {
			r = &recorder{session: s, process: p, tools: map[string]*function.Function{}}
			byTarget[f.Target()] = r
			errs = append(errs, p.bridge.Tool(f.Target(), r, options...))
		}
		r.tools[f.ToolID()] = f
	}
	if s.options.Serve != nil {
		errs = append(errs, s.options.Serve(p.bridge))
	}
	return errors.Join(errs...)
}

// stop ends a bridge as SIGTERM does.
func (p *process) stop() error {
	p.cancel()
	err := <-p.ran
	p.bridge.Close()
	return err
}

// KillBridge kills the bridge as kill -9 does: the server receives nothing more
// from it. Another one runs when KillBridge returns. Running functions can't be
// killed: their contexts end, and their results are lost. KillBridge may be
// called from any goroutine; in a tool's function, use Crash.
func (s *Session) KillBridge() {
	s.t.Helper()
	if err := s.kill(nil); err != nil && !errors.Is(err, errEnded) {
		s.t.Errorf("kill the bridge: %v", err)
	}
}

// Crash is KillBridge in the middle of a function, whose context is ctx. It does
// not return: it ends the goroutine, after its deferred calls. If the function's
// bridge is already dead, Crash does only that.
func (s *Session) Crash(ctx context.Context) {
	own, _ := ctx.Value(processKey{}).(*process)
	if own == nil {
		s.t.Errorf("Crash: this is not the context of a tool of this session")
		return
	}
	if err := s.kill(own); err != nil && !errors.Is(err, errEnded) {
		s.t.Errorf("crash: %v", err)
	}
	runtime.Goexit()
}

type processKey struct{}

// kill cuts off the living bridge and starts another one. If only is not nil, it
// does so only if that is the living bridge.
func (s *Session) kill(only *process) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.process
	switch {
	case s.ended:
		return errEnded
	case only != nil && only != old:
		return nil
	}
	old.link.cut()
	s.dead.Go(func() {
		// It can only clean up now: it can't reach the server.
		old.cancel()
		old.bridge.Close()
		if err := <-old.ran; err != nil {
			s.options.Logger.Debug("killed_bridge_ended", "error", err.Error())
		}
	})
	var err error
	s.process, err = s.startBridge(old.n + 1)
	if err != nil {
		s.process, s.ended = nil, true
	}
	return err
}

// link is a bridge's connections to the server, which can be cut.
type link struct {
	server interface{ InProcessConn() (net.Conn, error) }

	mu    sync.Mutex
	ended bool
	conns []net.Conn
}

// errCut is the error of a connection from a dead process.
var errCut = errors.New("this bridge was killed")

// InProcessConn returns a new connection to the server.
func (l *link) InProcessConn() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil, errCut
	}
	conn, err := l.server.InProcessConn()
	if err == nil {
		l.conns = append(l.conns, conn)
	}
	return conn, err
}

// cut closes all connections, and refuses new ones.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	for _, conn := range l.conns {
		_ = conn.Close() // it may be closed already
	}
}
