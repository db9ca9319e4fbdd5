package service

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/internal/secrets"
	"github.com/refold/refold/internal/tools/retry"
	"github.com/refold/refold/space"
	"github.com/refold/refold/subjects"
)

// Wire is the access to NATS. A *bus.Bus implements it.
type Wire interface {
	Services(ctx context.Context) ([]presence.FoundService, error)
	Request(ctx context.Context, r presence.ServiceRequest) (presence.ServiceReply, error)
}

// Options say which services are tools. The zero value accepts all.
type Options struct {
	Target string   // target of the tools, in registries; empty: services
	Prefix string   // of Refold's own subjects; empty: refold
	Only   []string // names of the services to use; none: all
	// Headers are request headers with secrets, each with the secret's name.
	// Secrets has the values.
	Headers map[string]string
	Secrets secrets.Source
	// Every is how often services are queried; 0: 10 s.
	Every time.Duration
	// Patience is how long a call waits for a missing service to return, within
	// the call's run time; 0: 30 s.
	Patience time.Duration
	Logger   *slog.Logger // nil: no logs
}

// TargetDefault is the target of tools if Options have none.
const TargetDefault = "services"

// Tools carries out the calls of tools that are services. It is an
// executor.Executor.
type Tools struct {
	o         Options
	refreshMu sync.Mutex    // held during a query
	given     secrets.Given // secrets that services were given

	mu        sync.Mutex
	wire      Wire
	refreshed time.Time // when the latest successful query began
	known     map[string]*entry
	refused   map[string]string      // by tool_id: why an offered tool can't be used
	instances map[string]*instance   // by name and ID
	calls     map[*sentCall]struct{} // those that wait for a reply
	problems  map[string]string      // errors by service and endpoint

	unanswered chan struct{} // a call was sent a while ago
}

// entry is a tool, which may be gone.
type entry struct {
	tool *Tool
	silence
}

// silence is how long a tool or an instance has not been heard. One late answer says
// nothing, nor do several queries that follow each other at once.
type silence struct {
	heard  time.Time // when the latest query began that had an answer
	misses int       // queries in a row without one
	gone   bool
}

func (s *silence) answered(began time.Time) { *s = silence{heard: began} }

// missed counts a query without an answer. It reports whether that makes it gone.
func (s *silence) missed(began time.Time, every time.Duration) bool {
	s.misses++
	if s.gone || s.misses < missesMax || began.Sub(s.heard) < missesMax*every {
		return false
	}
	s.gone = true
	return true
}

// New returns Tools without services: see Start. The error reports every
// problem of o.
func New(o Options) (*Tools, error) {
	var all []error
	o.Target = cmp.Or(o.Target, TargetDefault)
	if err := subjects.ValidTarget(o.Target); err != nil {
		all = append(all, err)
	}
	o.Prefix = cmp.Or(o.Prefix, "refold")
	if o.Every < 0 || o.Patience < 0 {
		all = append(all, errors.New("every and patience are not negative"))
	}
	if slices.Contains(o.Only, "") {
		all = append(all, errors.New("the name of a service is empty"))
	}
	for _, header := range slices.Sorted(maps.Keys(o.Headers)) {
		switch reserved := strings.ToLower(header); {
		case !headerName.MatchString(header) || strings.HasPrefix(reserved, "refold-") || strings.HasPrefix(reserved, "nats-"):
			all = append(all, fmt.Errorf("header %q: is letters, digits and -, and does not begin with Refold- or Nats-", header))
		case !space.IsSecretName(o.Headers[header]):
			all = append(all, fmt.Errorf("header %s: %q names no secret: use letters, digits and _, such as CRM_KEY", header, o.Headers[header]))
		}
	}
	o.Every = cmp.Or(o.Every, everyDefault)
	o.Patience = cmp.Or(o.Patience, patienceDefault)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if err := errors.Join(all...); err != nil {
		return nil, fmt.Errorf("tools of services: %w", err)
	}
	return &Tools{o: o, known: map[string]*entry{}, problems: map[string]string{}, instances: map[string]*instance{}, calls: map[*sentCall]struct{}{}, unanswered: make(chan struct{}, 1)}, nil
}

// Start queries services, and repeats that until stop is called. It fails if
// they can't be queried. It does not fail without services: those that start
// later are found.
func (ts *Tools) Start(ctx context.Context, wire Wire) (stop func(), err error) {
	ts.mu.Lock()
	ts.wire = wire
	ts.mu.Unlock()
	if err := ts.refresh(ctx, time.Now()); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var background sync.WaitGroup
	background.Go(func() {
		for ts.nextQuery(ctx) {
			if err := ts.refresh(ctx, time.Now()); err != nil && ctx.Err() == nil {
				ts.o.Logger.Warn("services_not_asked", "error", err.Error())
			}
		}
	})
	return func() { cancel(); background.Wait() }, nil
}

// nextQuery waits until services are queried again: regularly, and soon after a call
// was sent that is not answered at once. It returns false if ctx ends.
func (ts *Tools) nextQuery(ctx context.Context) bool {
	regular := time.NewTimer(ts.o.Every)
	defer regular.Stop()
	select {
	case <-regular.C:
		return true
	case <-ts.unanswered:
		ts.mu.Lock()
		wait := time.Until(ts.refreshed.Add(queryGapMin))
		ts.mu.Unlock()
		return executor.Wait(ctx, wait) == nil
	case <-ctx.Done():
		return false
	}
}

// Known returns the tools offered at present, by tool_id.
func (ts *Tools) Known() (all []*Tool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(ts.known)) {
		if e := ts.known[id]; !e.gone && ts.refused[id] == "" {
			all = append(all, e.tool)
		}
	}
	return all
}

// refresh queries services, unless a query after since has succeeded.
func (ts *Tools) refresh(ctx context.Context, since time.Time) error {
	ts.refreshMu.Lock()
	defer ts.refreshMu.Unlock()
	ts.mu.Lock()
	wire, refreshed := ts.wire, ts.refreshed
	ts.mu.Unlock()
	if wire == nil {
		return errors.New("services were not asked yet: Start comes first")
	}
	if refreshed.After(since) {
		return nil
	}
	now := time.Now()
	found, err := wire.Services(ctx)
	if err != nil {
		return err
	}
	tools, problems := Find(found, ts.o.Target, ts.o.Prefix, ts.o.Only, ts.given.Redactor())
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.refreshed = now
	ts.learn(tools, problems, now)
	ts.learnInstances(found, now)
	return nil
}

// learn stores the tools offered at present, and logs changes.
func (ts *Tools) learn(tools []*Tool, problems []*Problem, began time.Time) {
	refused := map[string]string{}
	errs := map[string]string{}
	for _, p := range problems {
		key := p.Service + " " + p.Endpoint
		errs[key], refused[p.ToolID] = p.Error(), p.Error()
		if ts.problems[key] != errs[key] {
			ts.o.Logger.Error("service_tool_refused", "service", p.Service, "endpoint", p.Endpoint, "error", p.Error())
		}
	}
	ts.problems, ts.refused = errs, refused
	offered := map[string]bool{}
	for _, t := range tools {
		offered[t.Function.ToolID()] = true
		ts.offer(t, began)
	}
	for id, e := range ts.known {
		if refused[id] != "" || offered[id] {
			continue
		}
		if e.missed(began, ts.o.Every) {
			ts.o.Logger.Warn("service_tool_gone", "tool", id, "service", e.tool.Service, "endpoint", e.tool.Endpoint,
				"do", "calls in progress end; others wait for "+ts.o.Patience.String()+" and fail then: start the service, or take the tool out of the install record")
		}
	}
}

func (ts *Tools) offer(t *Tool, began time.Time) {
	id := t.Function.ToolID()
	log := ts.o.Logger.With("tool", id, "service", t.Service, "endpoint", t.Endpoint, "version", t.Version)
	e := ts.known[id]
	if e == nil {
		log.Info("service_tool_found", "subject", t.Subject)
		ts.known[id] = &entry{tool: t, silence: silence{heard: began}}
		return
	}
	if e.gone {
		log.Info("service_tool_back")
	}
	e.answered(began)
	if changed := differences(e.tool, t); len(changed) > 0 {
		log.Warn("service_tool_changed", "changed", strings.Join(changed, " "),
			"do", "sessions go on with what they were told: publish it with refold tools import services | refold install -")
		e.tool = t
	}
}

// differences names the properties in which two tools differ.
func differences(a, b *Tool) (names []string) {
	was, is := a.metadata, b.metadata
	for _, m := range []struct {
		name string
		same bool
	}{
		{"service", a.Service == b.Service && a.Endpoint == b.Endpoint},
		{"subject", a.Subject == b.Subject},
		{"schema", sameJSON(was.Schema, is.Schema)},
		{"description", was.Description == is.Description},
		{"tool_name", a.Function.ToolName() == b.Function.ToolName()},
		{"retry_safe", was.RetrySafe == is.RetrySafe},
		{"parallel_safe", was.ParallelSafe == is.ParallelSafe},
		{"access", was.Access == is.Access},
		{"resource_key", was.ResourceKey == is.ResourceKey},
		{"resource_kind", was.ResourceKind == is.ResourceKind},
		{"requires", slices.Equal(was.Requires, is.Requires)},
		{"approval", was.Approval == is.Approval},
		{"deadline_ms", was.DeadlineMS == is.DeadlineMS},
	} {
		if !m.same {
			names = append(names, m.name)
		}
	}
	return names
}

// sameJSON reports whether two schemas are the same JSON value.
func sameJSON(a, b json.RawMessage) bool {
	x, errX := codec.FromJSON(a)
	y, errY := codec.FromJSON(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// Execute carries out one call. If no service offers the tool, it waits up to
// Options.Patience for one.
func (ts *Tools) Execute(ctx context.Context, call executor.Call) (executor.Result, error) {
	pack := call.Pack()
	if pack != "" && !ts.knows(call.ToolID) { // an import put the pack's name before the tool_id
		call.ToolID = strings.TrimPrefix(call.ToolID, pack+".")
	}
	tool, wire, fault, err := ts.find(ctx, call.ToolID)
	switch {
	case fault != nil:
		return executor.Result{Error: fault}, err
	case call.RetrySafe && !tool.metadata.RetrySafe:
		return executor.Result{Error: &executor.Error{Code: CodeToolChanged, Detail: fmt.Sprintf(
			"service %s says that %s is not retry-safe, and this session was told that it is: publish its tools anew, for sessions that open then",
			tool.Service, call.ToolID)}}, nil
	}
	header, err := ts.header(ctx, pack)
	if err != nil {
		return executor.Result{Error: &executor.Error{Code: CodeSecretMissing, Detail: fmt.Sprintf("service %s was not asked: %v", tool.Service, err)}}, nil
	}
	call.Hide(slices.Collect(maps.Values(header))...)
	return tool.Function.Execute(context.WithValue(ctx, callOptionsKey{}, callOptions{ts, wire, header, ts.given.Redactor()}), call)
}

// header looks up the headers with secrets; for a call of a pack's tool, those
// of the pack.
func (ts *Tools) header(ctx context.Context, pack string) (map[string]string, error) {
	header := make(map[string]string, len(ts.o.Headers))
	for _, key := range slices.Sorted(maps.Keys(ts.o.Headers)) {
		name := ts.o.Headers[key]
		value, err := ts.o.Secrets.Secret(ctx, pack, name)
		switch {
		case err != nil:
			return nil, err
		case value == "":
			return nil, fmt.Errorf("secret %s is missing: give this program a file with it (--secret %s=FILE)", name, name)
		case strings.ContainsAny(value, "\r\n"):
			return nil, fmt.Errorf("secret %s has more than one line, and is for a header", name)
		}
		ts.given.Add(value)
		header[key] = value
	}
	return header, nil
}

var headerName = regexp.MustCompile(`^[A-Za-z0-9-]+$`)

// knows reports whether a service has offered a tool with that id.
func (ts *Tools) knows(id string) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.known[id] != nil
}

// ToolIDs returns the ids of the tools that services have offered, sorted. They lack
// the name of a pack that was imported.
func (ts *Tools) ToolIDs() []string {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return slices.Sorted(maps.Keys(ts.known))
}

// find returns a tool as it is at present, or why there is none. err says that the
// wait for it was broken off.
func (ts *Tools) find(ctx context.Context, id string) (tool *Tool, wire Wire, fault *executor.Error, err error) {
	fault = &executor.Error{Code: CodeServiceMissing, Retryable: true, Detail: fmt.Sprintf(
		"no service offers %s, and nothing took effect: start one that has it in its endpoint's %s; nats micro ls shows which run", id, MetadataKey)}
	until := time.Now().Add(ts.o.Patience)
	for wait := againWaitMin; ; wait = min(2*wait, againWaitMax) {
		ts.mu.Lock()
		e, wire, refused := ts.known[id], ts.wire, ts.refused[id]
		ts.mu.Unlock()
		switch {
		case refused != "":
			return nil, nil, &executor.Error{Code: CodeServiceRefused, Detail: refused}, nil
		case e != nil:
			return ts.toolOf(e), wire, nil, nil
		}
		now := time.Now()
		if next := now.Add(wait); next.After(until) || !retry.Fits(ctx, next) {
			return nil, nil, fault, nil
		}
		if err := executor.Wait(ctx, wait); err != nil {
			return nil, nil, fault, err
		}
		if err := ts.refresh(ctx, now); err != nil {
			fault.Detail = fmt.Sprintf("it is not known which service offers %s, and nothing took effect: %s", id, err)
		}
	}
}

// toolOf returns the tool of an entry, as it is at present.
func (ts *Tools) toolOf(e *entry) *Tool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return e.tool
}
