// Package listen serves a daemon's HTTP endpoints: /metrics, /healthz, /readyz
// and, if permitted, /debug/pprof/.
package listen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"sync/atomic"
	"time"
)

// Options say what is answered.
type Options struct {
	Address string // host:port
	Pprof   bool   // /debug/pprof/ as well; the address must be a loopback one
	Metrics http.Handler
}

// Validate reports every problem of o, nil if there is none.
func (o Options) Validate() error {
	host, _, err := net.SplitHostPort(o.Address)
	if err != nil {
		return fmt.Errorf("--http %s: want HOST:PORT, such as 127.0.0.1:9464", o.Address)
	}
	if ip := net.ParseIP(host); o.Pprof && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("--pprof: profiles show what is in memory: give --http a loopback address, such as 127.0.0.1:9464, not %s", o.Address)
	}
	return nil
}

// Times that a request may take.
const (
	headersWithin = 5 * time.Second
	readyWithin   = 2 * time.Second
)

// Server answers. Close ends it.
type Server struct {
	listener net.Listener
	http     *http.Server
	ended    chan error
	draining atomic.Bool
	notReady atomic.Pointer[func(ctx context.Context) []string]
}

// New listens at the address of o and answers. Until Reads is called the daemon
// is not ready.
func New(o Options) (*Server, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("--http %s: %w", o.Address, err)
	}
	s := &Server{listener: l, ended: make(chan error, 1)}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", o.Metrics)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", s.ready)
	if o.Pprof {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: headersWithin}
	go func() { s.ended <- s.http.Serve(l) }()
	return s, nil
}

// Address returns where it listens.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Reads sets the function that returns why the daemon is not ready, if so.
func (s *Server) Reads(notReady func(ctx context.Context) []string) { s.notReady.Store(&notReady) }

// Drain says that the daemon has been told to end: it is not ready from now on.
func (s *Server) Drain() { s.draining.Store(true) }

// readiness is the body of /readyz.
type readiness struct {
	Ready   bool     `json:"ready"`
	Reasons []string `json:"reasons,omitempty"`
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyWithin)
	defer cancel()
	var is readiness
	switch of := s.notReady.Load(); {
	case s.draining.Load():
		is.Reasons = []string{"it was told to end"}
	case of == nil:
		is.Reasons = []string{"it starts"}
	default:
		is.Reasons = (*of)(ctx)
	}
	is.Ready = len(is.Reasons) == 0
	w.Header().Set("Content-Type", "application/json")
	if !is.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(is) // the client is gone
}

// Close ends the listener and what is being answered.
func (s *Server) Close() error {
	err := s.http.Close()
	if ended := <-s.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}
