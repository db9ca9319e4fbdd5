package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// session is one session with a server, from its start to its end. All calls of
// the server share it.
type session struct {
	server    *server
	log       *slog.Logger
	client    *sdk.ClientSession // set before connected is closed
	program   *program           // nil: over HTTP
	idle      func()             // closes idle connections
	began     time.Time
	connected chan struct{} // closed when client is set, or the attempt has failed
	ended     chan struct{} // closed when the session has ended
	gone      chan struct{} // closed when the server has processed the end

	listing  sync.Mutex // held while a list is requested
	mu       sync.Mutex
	tools    map[string]*Tool  // by tool_id, as listed now
	refused  map[string]string // by tool_id: why it can't be used
	problems []*Problem        // likewise
	names    []string          // all tools that the server lists
	listed   time.Time         // when the list was requested; zero: it must be again
	calls    map[string]func() // by progress token: called on progress
	uses     int
	retired  bool // no new calls; closed when the last one ends
	outdated bool // retired because secrets have changed

	with   filled
	header *atomic.Pointer[map[string]string] // of requests over HTTP
}

// begin starts a server or connects to it, and lists its tools.
func (s *server) begin(ctx context.Context, with filled) (*session, error) {
	t := &session{server: s, log: s.log, began: time.Now(), connected: make(chan struct{}), ended: make(chan struct{}), gone: make(chan struct{}), idle: func() {}, calls: map[string]func(){}, with: with, header: new(atomic.Pointer[map[string]string])}
	t.header.Store(&with.header)
	var transport sdk.Transport
	var err error
	if s.config.URL != "" {
		transport, t.idle, err = remote(&s.config, t.header)
	} else {
		t.program, err = startProgram(&s.config, with.environ, s.given.Redactor(), s.log)
		transport = t.program
	}
	if err != nil {
		return nil, err
	}
	sdkClient := sdk.NewClient(&sdk.Implementation{Name: "refold", Version: s.version}, &sdk.ClientOptions{
		Logger:       slog.New(slog.DiscardHandler), // relevant errors are returned, too
		Capabilities: &sdk.ClientCapabilities{},     // it accepts no requests
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			t.changed()
		},
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { t.progress(r.Params) },
		MultiRoundTrip:              &sdk.MultiRoundTripOptions{Disabled: true},
	})
	answered := s.await("initialize")
	t.client, err = sdkClient.Connect(ctx, transport, nil)
	answered()
	err = s.outOfError(err)
	close(t.connected) // changed may be waiting: a server may report changed tools early
	if err != nil {
		t.end()
		return nil, s.describe(t, err)
	}
	go func() {
		_ = t.client.Wait() // whatever the reason, the session has ended
		t.end()
		close(t.ended)
	}()
	answered = s.await("tools/list")
	err = s.outOfError(t.list(ctx, time.Now()))
	if answered(); err != nil {
		t.close()
		return nil, s.describe(t, fmt.Errorf("list its tools: %w", err))
	}
	return t, nil
}

// await reports that the server does not answer a request of its start, if that
// takes longer than silenceTold. The caller must call answered.
func (s *server) await(request string) (answered func()) {
	timer := time.AfterFunc(silenceTold, func() {
		s.log.Warn("mcp_server_silent", "waits_for", request, "at_most", startMax.String(),
			"do", "a program that is downloaded first takes longer; else see whether it is an MCP server, and over standard input and output")
		if s.silent != nil {
			s.silent(s.name, request)
		}
	})
	return func() { timer.Stop() }
}

// describe adds to an error how the program ended.
func (s *server) describe(t *session, err error) error {
	if t.program == nil {
		return err
	}
	state, words := t.program.lastWords()
	if words != "" {
		s.log.Warn("mcp_server_last_words", "text", words)
	}
	return fmt.Errorf("%w (the program ended: %s; the bridge's log has what it wrote)", err, state)
}

func (t *session) end() {
	if t.program != nil {
		t.program.stop()
	}
	t.idle()
}

// close ends the session, and the program that was started for it. Calls in
// progress fail.
func (t *session) close() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if t.program != nil {
			t.program.stop() // it needs no answer
		}
		_ = t.client.Close()
	}()
	timer := time.NewTimer(closeMax + 2*stopMax)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		t.log.Warn("mcp_session_not_closed")
	}
}

// alive reports whether the session has not ended.
func (t *session) alive() bool {
	select {
	case <-t.ended:
		return false
	default:
		return true
	}
}

// changed marks the list of tools as outdated and requests it at once, so that
// changes are logged early.
func (t *session) changed() {
	t.mu.Lock()
	t.listed = time.Time{}
	t.mu.Unlock()
	now := time.Now()
	go func() {
		if <-t.connected; t.client == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), listMax)
		defer cancel()
		if err := t.list(ctx, now); err != nil && t.alive() {
			t.log.Warn("mcp_tools_not_listed", "error", err.Error())
		}
	}()
}

// list requests all pages of the server's tools, unless they were requested
// after since.
func (t *session) list(ctx context.Context, since time.Time) error {
	t.listing.Lock()
	defer t.listing.Unlock()
	t.mu.Lock()
	listed := t.listed
	t.mu.Unlock()
	if listed.After(since) {
		return nil
	}
	now := time.Now()
	var all []*sdk.Tool
	cursor, size := "", 0
	for page := 0; ; page++ {
		if page == pagesMax || len(all) > toolsMax {
			return fmt.Errorf("it lists more than %d tools, or %d pages of them", toolsMax, pagesMax)
		}
		r, err := t.client.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if err != nil {
			return err
		}
		text, err := json.Marshal(r.Tools)
		if err != nil {
			return err
		}
		if size += len(text); size > listBytesMax {
			return fmt.Errorf("it lists tools of more than %d MiB", listBytesMax>>20)
		}
		all = append(all, r.Tools...)
		if r.NextCursor == "" {
			break
		}
		cursor = r.NextCursor
	}
	t.learn(all, now)
	return nil
}

func (t *session) learn(all []*sdk.Tool, now time.Time) {
	tools, problems := find(t.server.name, &t.server.config, t.server.target, all, t.server.given.Redactor())
	byID, refused := make(map[string]*Tool, len(tools)), make(map[string]string, len(problems))
	for _, tool := range tools {
		byID[tool.Function.ToolID()] = tool
	}
	for _, p := range problems {
		refused[p.ToolID] = p.Error()
	}
	names := make([]string, 0, len(all))
	for _, tool := range all {
		names = append(names, tool.Name)
	}
	t.mu.Lock()
	t.tools, t.refused, t.problems, t.names, t.listed = byID, refused, problems, names, now
	t.mu.Unlock()
	t.server.compare(byID, refused)
}

// look returns a tool as the server lists it now, or why it can't be used.
func (t *session) look(ctx context.Context, id string) (tool *Tool, refused string, err error) {
	t.mu.Lock()
	old := time.Since(t.listed) > listAgeMax
	t.mu.Unlock()
	if old {
		ctx, cancel := context.WithTimeout(ctx, listMax)
		defer cancel()
		if err := t.list(ctx, time.Now().Add(-listAgeMax)); err != nil {
			return nil, "", fmt.Errorf("list its tools: %w", t.server.outOfError(err))
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tools[id], t.refused[id], nil
}

// progress notifies a call of its progress.
func (t *session) progress(p *sdk.ProgressNotificationParams) {
	token, ok := p.ProgressToken.(string)
	if !ok {
		return
	}
	t.mu.Lock()
	call := t.calls[token]
	t.mu.Unlock()
	if call == nil {
		return
	}
	t.log.Debug("mcp_progress", "call", token, "progress", p.Progress, "total", p.Total, "text", t.server.clip(p.Message, errorTextMax))
	call()
}

// follow calls f on progress of a call until stop is called.
func (t *session) follow(token string, f func()) (stop func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls[token] = f
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.calls, token)
	}
}

// errClosed is the error of calls after Close.
var errClosed = errors.New("this bridge is stopping")
