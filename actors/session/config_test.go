package session_test

// Configs at their limits, and host sessions that come and go.

import (
	"errors"
	"slices"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

func TestConfigLimits(t *testing.T) {
	t.Parallel()
	install := largestInstall(t)
	every := everyTool(install)
	more := append(slices.Clone(every), every[0])
	params := func(n int) map[string]any { // of n bytes, encoded
		return map[string]any{"p": long("", n-6)}
	}
	for name, c := range map[string]struct {
		field string
		value any
		want  error
	}{
		"system":       {"system", long("s", session.SystemBytesMax), nil},
		"system, more": {"system", long("s", session.SystemBytesMax+1), session.RejectLimitExceeded},
		"params":       {"params", params(session.ParamsBytesMax), nil},

		"format, words":          {"response_format", map[string]any{"type": "text"}, nil},
		"format, an object":      {"response_format", map[string]any{"type": "json_object"}, nil},
		"format, a schema":       {"response_format", map[string]any{"type": "json_schema", "name": "sum", "strict": true, "schema": map[string]any{"type": "object"}}, nil},
		"format, none":           {"response_format", map[string]any{}, session.RejectInvalidData},
		"format, no schema":      {"response_format", map[string]any{"type": "json_schema"}, session.RejectInvalidData},
		"format, a bad name":     {"response_format", map[string]any{"type": "json_schema", "name": "a b", "schema": map[string]any{}}, session.RejectInvalidData},
		"format, a schema of no": {"response_format", map[string]any{"type": "json_object", "schema": map[string]any{}}, session.RejectInvalidData},
		"format, another field":  {"response_format", map[string]any{"type": "text", "more": 1}, session.RejectInvalidData},
		"params, more":           {"params", params(session.ParamsBytesMax + 1), session.RejectLimitExceeded},
		"active_tools":           {"active_tools", every, nil},
		"active_tools, more":     {"active_tools", more, session.RejectLimitExceeded},
		"enable, more":           {"enable", more, session.RejectLimitExceeded},
		"disable, more":          {"disable", more, session.RejectLimitExceeded},
		"force, more":            {"force", more, session.RejectLimitExceeded},
		"turns_max":              {"turns_max", session.TurnsMax, nil},
		"least deadlines":        {"deadlines_ms", map[string]any{"turn": 100, "call": 100}, nil},
		"lesser turn":            {"deadlines_ms", map[string]any{"turn": 99}, session.RejectInvalidData},
		"negative call":          {"deadlines_ms", map[string]any{"call": -1}, session.RejectInvalidData},
		"longest deadlines":      {"deadlines_ms", map[string]any{"turn": session.DeadlineMaxMS, "call": session.DeadlineMaxMS}, nil},
		"tool_choice, long":      {"tool_choice", long("t", session.NameBytesMax+1), session.RejectUnknownTool},
		"tool_choice, none":      {"tool_choice", "host.nosuch", session.RejectUnknownTool},
		"profile, long":          {"profile", long("p", session.NameBytesMax+1), session.RejectUnknownProfile},
		"provider, a subject":    {"provider", "a.b", session.RejectInvalidData},
		"provider, empty":        {"provider", "", session.RejectMissingProvider},
		"model, empty":           {"model", "", session.RejectMissingModel},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := toldUnder(t, install)
			config := merged(map[string]any{"provider": "openai", "model": "m"}, map[string]any{c.field: c.value})
			data := map[string]any{"input": map[string]any{"text": "go"}, "config": config}
			if _, err := w.tell(session.DoorCtl, session.TypeRunRequested, data); !errors.Is(err, c.want) {
				t.Errorf("a run: got %v, want %v", err, c.want)
			}
			want := c.want
			if errors.Is(want, session.RejectMissingProvider) || errors.Is(want, session.RejectMissingModel) {
				want = nil // a session's config may leave them to runs
			}
			if _, err := w.tell(session.DoorCtl, session.TypeSessionConfigured, config); !errors.Is(err, want) {
				t.Errorf("a session: got %v, want %v", err, want)
			}
		})
	}
}

// The bytes of queued runs are bounded, and a run that doesn't fit is refused, not
// cut.
func TestQueueBytes(t *testing.T) {
	t.Parallel()
	install := largestInstall(t)
	w := toldUnder(t, install)
	large := largestConfig(install)
	w.run(large)
	queued := 0
	var err error
	for err == nil {
		if _, err = w.tell(session.DoorCtl, session.TypeRunRequested, map[string]any{"input": map[string]any{"text": "a"}, "config": large}); err == nil {
			queued++
		}
	}
	if !errors.Is(err, session.RejectLimitExceeded) || queued < 1 || queued >= session.QueueDefault {
		t.Errorf("%d runs queued, then %v, want %v before the queue is full", queued, err, session.RejectLimitExceeded)
	}
	queue, encodeErr := codec.Marshal(w.state.Queue)
	if encodeErr != nil || len(queue) > session.QueueBytesMax+session.QueueMax<<8 {
		t.Errorf("the queue has %d bytes: %v", len(queue), encodeErr)
	}
	w.run(map[string]any{"system": "a small one still fits"})
}

// A host session's worker and working directory are reported once, and apply to
// that host session only.
func TestHostRoute(t *testing.T) {
	t.Parallel()
	w := ready(t)
	w.calls("r1t1", made(1, "close_session", "{}"))
	w.must(w.tell(session.DoorTool, session.TypeToolCallSettled, map[string]any{
		"effect": "r1t1c0", "status": "succeeded", "host_session": map[string]any{"id": "h1", "status": "ready", "route": "w1", "root": "/w"},
	}))
	for _, c := range []struct {
		update map[string]any
		want   session.HostSession
	}{
		{map[string]any{"id": "h1", "status": "expired"}, session.HostSession{ID: "h1", Status: "expired", Root: "/w", Route: "w1"}},
		{map[string]any{"id": "h1", "status": "ready"}, session.HostSession{ID: "h1", Status: "ready", Root: "/w", Route: "w1"}},
		{map[string]any{"id": "h2", "status": "ready"}, session.HostSession{ID: "h2", Status: "ready"}},
		{map[string]any{"id": "h1", "status": "ready"}, session.HostSession{ID: "h1", Status: "ready"}},
	} {
		w.must(w.tell(session.DoorCtl, session.TypeHostSessionUpdated, c.update))
		if *w.state.Host != c.want {
			t.Errorf("after %v the host session is %+v, want %+v", c.update, *w.state.Host, c.want)
		}
	}
	w.must(w.tell(session.DoorCtl, session.TypeHostSessionUpdated, map[string]any{"status": "none", "id": "h1"}))
	if w.state.Host != nil {
		t.Errorf("the host session is %+v, want none", *w.state.Host)
	}
}

// Under a policy that lists no field, a client requests runs without a config. What each
// field does is in the table of docs/semantics.md, and tested there.
func TestIngressOfNothing(t *testing.T) {
	t.Parallel()
	install, err := session.ParseInstall([]byte(`{"v":1,"rules":1,"tools":[],"policy":{"ingress":[]},"config":{"provider":"p","model":"m"}}`))
	if err != nil {
		t.Fatal(err)
	}
	w := toldUnder(t, install)
	w.must(w.tell(session.DoorIn, session.TypeRunRequested, map[string]any{"input": map[string]any{"text": "x"}}))
	request := map[string]any{"input": map[string]any{"text": "x"}, "config": map[string]any{"provider": "p", "model": "m"}}
	if _, err := w.tell(session.DoorIn, session.TypeRunRequested, request); !errors.Is(err, session.RejectNotPermitted) {
		t.Errorf("under a policy that lists nothing: got %v, want %v", err, session.RejectNotPermitted)
	}
}
