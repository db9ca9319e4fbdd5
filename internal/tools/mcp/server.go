package mcp

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/refold/refold/internal/secrets"
)

// server is one MCP server: its session, if it has one now, and when it may
// have the next.
type server struct {
	name    string
	config  Server
	target  string
	env     map[string]string // that the config refers to
	sources secrets.Source
	given   secrets.Given // values that it was given
	lock    Lock
	version string // of this program
	log     *slog.Logger

	mu      sync.Mutex
	talk    *talk         // nil: none
	opening chan struct{} // closed when an attempt ended; nil: none is under way
	failed  error         // of the latest attempt
	faults  int           // in a row
	next    time.Time     // no attempt before
	closed  bool
	base    context.Context
	cancel  context.CancelFunc
	beside  sync.WaitGroup

	said map[string]string // by tool_id: what was said last of how it changed
	full map[string]string // the same, with the hashes
}

// take returns a session of the server that was given what with says, started if
// there is none. give must be called after it.
func (s *server) take(ctx context.Context, with filled) (*talk, error) {
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
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return nil, notReady(ctx, err)
			}
			continue
		}
		select {
		case <-opening:
		case <-ctx.Done():
			return nil, notReady(ctx, err)
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

// now returns the session, or until when to wait for one: for an attempt, or for
// a time with what failed last.
func (s *server) now(with filled) (t *talk, wait time.Duration, opening <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.talk != nil && !s.talk.retired && !s.talk.with.same(with) {
		s.renew(s.talk, with)
	}
	switch {
	case s.closed:
		return nil, 0, nil, errClosed
	case s.talk != nil && s.talk.alive() && !s.talk.retired:
		s.talk.uses++
		return s.talk, 0, nil, nil
	case s.talk != nil:
		return nil, 0, s.talk.gone, s.failed
	case s.opening != nil:
		return nil, 0, s.opening, s.failed
	}
	if wait := time.Until(s.next); wait > 0 {
		return nil, wait, nil, s.failed
	}
	s.opening = make(chan struct{})
	s.beside.Go(func() { s.open(with) })
	return nil, 0, s.opening, s.failed
}

// renew has a session work with other secrets. Requests over HTTP have them from
// now on; a program is ended after its last call, and started again with them.
func (s *server) renew(t *talk, with filled) {
	s.log.Info("mcp_secrets_changed")
	if t.program == nil {
		t.with = with
		t.header.Store(&with.header)
		return
	}
	t.retired, t.outdated = true, true
	if t.uses == 0 {
		s.beside.Go(t.close)
	}
}

// open makes one attempt.
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
	s.talk = t
	s.log.Info("mcp_server_ready", "tools", len(t.tools), "protocol", t.session.InitializeResult().ProtocolVersion)
	s.beside.Go(func() { s.watch(t) })
}

// fault counts one, and returns for how long the server is left alone.
func (s *server) fault() time.Duration {
	wait := min(restartMin<<min(s.faults, 10), restartMax)
	s.faults++
	s.next = time.Now().Add(wait)
	return wait
}

// watch waits for a session's end.
func (s *server) watch(t *talk) {
	<-t.ended
	defer close(t.gone)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.talk == t {
		s.talk = nil
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

// give gives a session back. One that is broken gets no new calls: a program is
// ended at once, since nobody hears it any more, and what is reached over HTTP
// when the last call has ended. One that is stuck is ended if nobody else waits
// for it.
func (s *server) give(t *talk, broken, stuck bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.uses--
	was := t.retired
	if broken || stuck && t.uses == 0 {
		t.retired = true
	}
	if t.program == nil {
		if t.retired && s.talk == t {
			s.talk = nil
		}
		if t.retired && t.uses == 0 {
			s.beside.Go(t.close)
		}
		return
	}
	if t.retired && !was || t.outdated && t.uses == 0 {
		s.beside.Go(t.close)
	}
}

// close ends the server's session for good.
func (s *server) close() {
	s.mu.Lock()
	s.closed = true
	t := s.talk
	s.mu.Unlock()
	s.cancel()
	if t != nil {
		t.close()
	}
	s.beside.Wait()
}

// compare says what changed of the tools that were imported, once each.
func (s *server) compare(tools map[string]*Tool, refused map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range s.pinned() {
		s.full[id] = changeInFull(s.lock[id], tools[id], refused[id])
		what := change(s.lock[id], tools[id], refused[id])
		if what == s.said[id] {
			continue
		}
		s.said[id] = what
		if what == "" {
			s.log.Info("mcp_tool_as_imported", "tool", id)
			continue
		}
		s.log.Warn("mcp_tool_changed", "tool", id, "changed", what, "do", "calls of it are refused: look at what changed, then import the tools again")
	}
}

// change says how a tool differs from what was imported, empty if it does not.
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

// changes returns what is said now, by tool_id.
func (s *server) changes() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]string{}
	for id, what := range s.full {
		if what != "" {
			all[id] = what
		}
	}
	return all
}

// missing says why the server is not there, empty if it is, or if nobody has
// asked for it yet.
func (s *server) missing() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.talk != nil || s.failed == nil {
		return ""
	}
	return clip(s.failed.Error(), errorTextMax)
}
