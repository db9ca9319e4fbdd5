// Package listen serves a daemon's HTTP endpoints: /metrics, /healthz, /readyz
// and, if permitted, /debug/pprof/.
//
// A request must address the server by an IP address, as localhost or by one of
// the given names. Otherwise any web page could read the endpoints through a
// browser that reaches them, by letting its own name resolve to this server.
package listen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"regexp"
	"strings"
	"sync/atomic"
	"time"
)

// Options configure a Server.
type Options struct {
	Address string // host:port
	Pprof   bool   // serve /debug/pprof/ too; Address must be a loopback address
	Metrics http.Handler
	Hosts   []string // names by which clients may address it, besides IP addresses and localhost
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
	for _, name := range o.Hosts {
		if !isHost.MatchString(name) {
			return fmt.Errorf("--http-host %q: want the name of a host without a port, such as bridge-1", name)
		}
	}
	return nil
}

var isHost = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]*)$`)

// Limits of a request.
const (
	headerBytesMax = 64 << 10
	headersWithin  = 5 * time.Second
	readyWithin    = 2 * time.Second
)

// Server serves the endpoints. Close ends it.
type Server struct {
	listener net.Listener
	http     *http.Server
	ended    chan error
	draining atomic.Bool
	notReady atomic.Pointer[func(ctx context.Context) []string]
	broken   atomic.Pointer[string] // why the daemon can't work; nil: it can
}

// New listens at the address of o and serves the endpoints. Until Reads is
// called, the daemon is not ready.
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
	mux.HandleFunc("GET /healthz", s.healthy)
	mux.HandleFunc("GET /readyz", s.ready)
	if o.Pprof {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	s.http = &http.Server{Handler: o.addressed(mux), ReadHeaderTimeout: headersWithin, MaxHeaderBytes: headerBytesMax}
	go func() { s.ended <- s.http.Serve(l) }()
	return s, nil
}

// addressed returns a handler that refuses requests to other hosts' names.
func (o Options) addressed(next http.Handler) http.Handler {
	known := map[string]bool{"localhost": true}
	for _, name := range o.Hosts {
		known[hostName(name)] = true
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := hostName(r.Host)
		if _, err := netip.ParseAddr(name); err != nil && !known[name] {
			http.Error(w, fmt.Sprintf("this server is not known as %q: request it by its IP address, or start it with --http-host and this name", name), http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostName returns the host of a Host header, in lower case and without brackets,
// a port and the last dot.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// Address returns the address at which it listens.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Reads sets the function that returns why the daemon is not ready, nothing if it
// is.
func (s *Server) Reads(notReady func(ctx context.Context) []string) { s.notReady.Store(&notReady) }

// Drain makes the daemon not ready, because it was told to end.
func (s *Server) Drain() { s.draining.Store(true) }

// Broken makes the daemon neither healthy nor ready, for this reason; an empty one: it
// is healthy again.
func (s *Server) Broken(why string) {
	if why == "" {
		s.broken.Store(nil)
	} else {
		s.broken.Store(&why)
	}
}

func (s *Server) healthy(w http.ResponseWriter, _ *http.Request) {
	text := "ok"
	if why := s.broken.Load(); why != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		text = *why
	}
	_, _ = fmt.Fprintln(w, text) // an error means that the client is gone
}

type readiness struct {
	Ready   bool     `json:"ready"`
	Reasons []string `json:"reasons,omitempty"`
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyWithin)
	defer cancel()
	var body readiness
	switch notReady, why := s.notReady.Load(), s.broken.Load(); {
	case s.draining.Load():
		body.Reasons = []string{"it was told to end"}
	case why != nil:
		body.Reasons = []string{*why}
	case notReady == nil:
		body.Reasons = []string{"it starts"}
	default:
		body.Reasons = (*notReady)(ctx)
	}
	body.Ready = len(body.Reasons) == 0
	w.Header().Set("Content-Type", "application/json")
	if !body.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(body) // an error means that the client is gone
}

// Close ends the listener and the requests in progress.
func (s *Server) Close() error {
	err := s.http.Close()
	if ended := <-s.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}
