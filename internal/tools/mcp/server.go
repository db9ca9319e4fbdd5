package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/secrets"
)

// server is one MCP server: its present session, and when the next one may begin.
type server struct {
	name    string
	config  Server
	target  string
	env     map[string]string // to which the config refers
	sources secrets.Source
	given   secrets.Given // secrets that it was given
	lock    Lock
	version string // of this program
	silent  func(server, request string)
	log     *slog.Logger

	mu         sync.Mutex
	session    *session      // nil: none
	opening    chan struct{} // closed when an attempt to begin a session ends; nil: none is in progress
	failed     error         // of the latest attempt
	faults     int           // failures in a row
	next       time.Time     // no attempt before
	closed     bool
	base       context.Context
	cancel     context.CancelFunc
	background sync.WaitGroup

	logged  map[string]string // by tool_id: the change that was logged last
	current map[string]string // likewise, with the hashes
}

// acquire returns a session of the server with that configuration, and begins one
// if needed. release must be called after it.
func (s *server) acquire(ctx context.Context, with filled) (*session, error) {
	until := time.Now().Add(patience)
	for {
		t, wait, opening, err := s.now(with)
		if t != nil || err != nil && opening == nil && wait == 0 {
			return t, err
		}
		if opening == nil {
			if time.Now().Add(wait).After(until) {
				return nil, err
			}
			switch waited := executor.Wait(ctx, wait); {
			case errors.Is(waited, executor.ErrStopping):
				return nil, waited
			case waited != nil:
				return nil, notReady(ctx, err)
			}
			continue
		}
		select {
		case <-opening:
		case <-ctx.Done():
			return nil, notReady(ctx, err)
		case <-executor.Stopping(ctx):
			return nil, executor.ErrStopping
		}
	}
}

// notReady returns why there was no session in time.
func notReady(ctx context.Context, last error) error {
	if last != nil {
		return last
	}
	return fmt.Errorf("it is not there yet: %w", context.Cause(ctx))
}

// now returns the session, or what to wait for: an attempt, or a time. err is
// the latest failure.
func (s *server) now(with filled) (t *session, wait time.Duration, opening <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session != nil && !s.session.retired && !s.session.with.same(with) {
		s.renew(s.session, with)
	}
	switch {
	case s.closed:
		return nil, 0, nil, errClosed
	case s.session != nil && s.session.alive() && !s.session.retired:
		s.session.uses++
		return s.session, 0, nil, nil
	case s.session != nil:
		return nil, 0, s.session.gone, s.failed
	case s.opening != nil:
		return nil, 0, s.opening, s.failed
	}
	if wait := time.Until(s.next); wait > 0 {
		return nil, wait, nil, s.failed
	}
	s.opening = make(chan struct{})
	s.background.Go(func() { s.open(with) })
	return nil, 0, s.opening, s.failed
}

// renew changes the secrets of a session. Over HTTP, requests have the new ones
// from now on; a program is stopped after its last call, and restarted with them.
func (s *server) renew(t *session, with filled) {
	s.log.Info("mcp_secrets_changed")
	if t.program == nil {
		t.with = with
		t.header.Store(&with.header)
		return
	}
	t.retired, t.outdated = true, true
	if t.uses == 0 {
		s.background.Go(t.close)
	}
}

// open makes one attempt to begin a session.
func (s *server) open(with filled) {
	ctx, cancel := context.WithTimeout(s.base, startMax)
	defer cancel()
	t, err := s.begin(ctx, with)
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.opening)
	s.opening, s.failed = nil, err
	if err != nil {
		if s.closed {
			return
		}
		wait := s.fault()
		s.log.Warn("mcp_server_not_there", "error", err.Error(), "again_after", wait.String())
		return
	}
	s.session = t
	s.log.Info("mcp_server_ready", "tools", len(t.tools), "protocol", t.client.InitializeResult().ProtocolVersion)
	s.background.Go(func() { s.watch(t) })
}

// fault counts a failure, and returns how long to wait before the next attempt.
func (s *server) fault() time.Duration {
	wait := min(restartMin<<min(s.faults, 10), restartMax)
	s.faults++
	s.next = time.Now().Add(wait)
	return wait
}

func (s *server) watch(t *session) {
	<-t.ended
	defer close(t.gone)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == t {
		s.session = nil
	}
	lived := time.Since(t.began)
	switch {
	case s.closed:
		return
	case t.program == nil && t.retired, t.outdated:
		s.log.Info("mcp_session_given_up", "after", lived.Round(time.Millisecond).String())
		return
	case lived > steadyAfter:
		s.faults = 0
	}
	s.failed = fmt.Errorf("it ended after %v", lived.Round(time.Millisecond))
	attrs := []any{"after", lived.Round(time.Millisecond).String(), "again_after", s.fault().String()}
	if t.program != nil {
		state, words := t.program.lastWords()
		s.failed = fmt.Errorf("%w: %s", s.failed, state)
		attrs = append(attrs, "state", state, "stderr", words)
	}
	s.log.Warn("mcp_server_ended", attrs...)
}

// release returns a session. A broken one gets no new calls: a program is stopped
// at once, since nothing reads its output any more, and a session over HTTP is
// closed after its last call. A session whose server is stuck is closed if no
// other call uses it.
func (s *server) release(t *session, broken, stuck bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.uses--
	was := t.retired
	if broken || stuck && t.uses == 0 {
		t.retired = true
	}
	if t.program == nil {
		if t.retired && s.session == t {
			s.session = nil
		}
		if t.retired && t.uses == 0 {
			s.background.Go(t.close)
		}
		return
	}
	if t.retired && !was || t.outdated && t.uses == 0 {
		s.background.Go(t.close)
	}
}

// close ends the server's session permanently.
func (s *server) close() {
	s.mu.Lock()
	s.closed = true
	t := s.session
	s.mu.Unlock()
	s.cancel()
	if t != nil {
		t.close()
	}
	s.background.Wait()
}

// compare logs changes of imported tools, each once.
func (s *server) compare(tools map[string]*Tool, refused map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range s.pinned() {
		s.current[id] = changeInFull(s.lock[id], tools[id], refused[id])
		what := change(s.lock[id], tools[id], refused[id])
		if what == s.logged[id] {
			continue
		}
		s.logged[id] = what
		if what == "" {
			s.log.Info("mcp_tool_as_imported", "tool", id)
			continue
		}
		s.log.Warn("mcp_tool_changed", "tool", id, "changed", what, "do", "calls of it are refused: look at what changed, then import the tools again")
	}
}

// change describes how a tool differs from what was imported, or returns "".
func change(pinned Pin, tool *Tool, refused string) string {
	switch {
	case refused != "":
		return "it can't be used: " + refused
	case tool == nil:
		return "the server does not list it"
	}
	return strings.Join(pinned.differences(tool.Pin), ", ")
}

// prefix begins the tool_ids of the server.
func (s *server) prefix() string { return idPrefix + s.name + "." }

// changes returns the present changes, by tool_id.
func (s *server) changes() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]string{}
	for id, what := range s.current {
		if what != "" {
			all[id] = what
		}
	}
	return all
}

// missing returns why the server is not there, or "" if it is, or has not been
// used yet.
func (s *server) missing() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session != nil || s.failed == nil {
		return ""
	}
	return s.clip(s.failed.Error(), errorTextMax)
}
