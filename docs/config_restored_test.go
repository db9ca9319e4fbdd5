package docs_test

// What: a state that the fold reaches is a state that a snapshot can hold. A check of
// restored states that refuses a legal one would stop a session after the next crash.
//
// How: each field of a config, with two values, in the session's config and in those of an
// active and a queued run, while the run is paused, resumed, interrupted and ended. After
// each event the state is restored from its snapshot.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// doorsSource is the content of a doorsCase's session.
type doorsSource struct{ install *session.Install }

func (s doorsSource) Install(codec.Hash) (*session.Install, error) { return s.install, nil }
func (s doorsSource) Registry(uint64, codec.Hash) (*planner.Registry, error) {
	return nil, errors.New("the session has no registry of its own")
}
func (s doorsSource) Space(uint64, codec.Hash) (*space.Manifest, error) {
	return doorsManifest(), nil
}

// TestEveryConfigFieldIsRestored: see the top of this file.
func TestEveryConfigFieldIsRestored(t *testing.T) {
	t.Parallel()
	s := readSchemas(t)
	rows, values := doorsRows(t), doorsValues(t)
	for _, field := range configFieldNames(reflect.TypeFor[session.RunConfig](), "", rows) {
		for i := range 2 {
			t.Run(fmt.Sprintf("%s/%d", field, i), func(t *testing.T) {
				t.Parallel()
				c := newDoorsCase(t, field, doorsValue(t, s, values, field))
				restored(t, c, []any{c.a, c.b}[i])
			})
		}
	}
}

// restored lets a session with a value of the field live.
func restored(t *testing.T, c *doorsCase, value any) {
	t.Helper()
	f := newFolding(t, c.payload(nil))
	config, taken := c.config(value), map[string]bool{}
	for _, e := range []struct {
		door session.Door
		typ  string
		data any
	}{
		{session.DoorCtl, session.TypeSessionConfigured, config},
		{session.DoorCtl, session.TypeRunRequested, map[string]any{"input": map[string]any{"text": "go"}, "config": config}},
		{session.DoorIn, session.TypeRunRequested, map[string]any{"input": map[string]any{"text": "next"}, "config": config}},
		{session.DoorCtl, session.TypeRunPauseRequested, map[string]any{}},
		{session.DoorStep, session.TypeStepPrepared, map[string]any{"effect": "r1t1s", "status": "ok"}},
		{session.DoorCtl, session.TypeRunResumeRequested, map[string]any{}},
		{session.DoorLLM, session.TypeGenerationSettled, map[string]any{"effect": "r1t1", "status": "failed", "error": map[string]any{"code": "overloaded", "retryable": true}}},
		{session.DoorLLM, session.TypeToolCallsObserved, map[string]any{"effect": "r1t1", "calls": []any{map[string]any{"tool_name": "a", "arguments": "{}"}, map[string]any{"tool_name": "b"}}, "usage": map[string]any{"input_tokens": 1500}}},
		{session.DoorCtl, session.TypeRunPauseRequested, map[string]any{}},
		{session.DoorTool, session.TypeToolCallSettled, map[string]any{"effect": "r1t1c0", "status": "succeeded"}},
		{session.DoorTool, session.TypeToolCallSettled, map[string]any{"effect": "r1t1c1", "status": "failed", "error": map[string]any{"code": "x"}}},
		{session.DoorCtl, session.TypeRunResumeRequested, map[string]any{"budget": map[string]any{}}},
		{session.DoorCtl, session.TypeRunInterrupt, map[string]any{}},
		{session.DoorLLM, session.TypeGenerationSettled, map[string]any{"effect": "r1t2", "status": "ok", "text": map[string]any{"text": "done"}}},
		{session.DoorCtl, session.TypeRunCancelRequested, map[string]any{"run": 1}},
		{session.DoorCtl, session.TypeRunPauseRequested, map[string]any{}},
		{session.DoorCtl, session.TypeSessionClosed, map[string]any{}},
	} {
		accepted, _ := f.fold(e.door, jsonOf(t, map[string]any{"type": e.typ, "data": e.data}))
		taken[e.typ] = taken[e.typ] || accepted
		again, err := session.Restore(f.state.Snapshot(), doorsSource{f.install})
		if err != nil {
			t.Fatalf("after %s %s: the snapshot is refused: %v", e.typ, jsonOf(t, e.data), err)
		}
		if !bytes.Equal(again.Bytes(), f.state.Bytes()) {
			t.Fatalf("after %s: the restored state differs", e.typ)
		}
	}
	for _, typ := range []string{session.TypeSessionConfigured, session.TypeRunRequested, session.TypeRunPauseRequested, session.TypeRunResumeRequested, session.TypeSessionClosed} {
		if !taken[typ] {
			config, _ := json.Marshal(config)
			t.Errorf("no %s was accepted with the config %s", typ, config)
		}
	}
}
