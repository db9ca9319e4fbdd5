package client_test

// Requests that are repeated long after, when the server no longer recognises their
// ids: the session does, and the client returns the outcome of the first.

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/bus/bustest"
)

// again stores an event once more, as a repeat after the server's duplicate window.
func (w *world) again(seq uint64) uint64 {
	w.t.Helper()
	e, err := w.Event(w.ctx, seq)
	bustest.OK(w.t, err)
	repeat, err := w.Publish(w.ctx, e.Door, e.Session, e.Payload, "")
	bustest.OK(w.t, err)
	if repeat == seq {
		w.t.Fatal("the server recognised the repeat")
	}
	return repeat
}

func TestRepeatedRegistryHasTheOutcomeOfTheFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	registry := json.RawMessage(`{"tools":[{"tool_id":"a.b","tool_name":"b","args_schema":{"type":"object"},"executor":{"kind":"effect","target":"a"}}]}`)
	first, err := w.SetRegistry(w.ctx, "s1", registry, "registry-1")
	bustest.OK(t, err)
	v, err := w.Taken(w.ctx, "s1", first)
	bustest.OK(t, err)
	for what, seq := range map[string]uint64{"a repeat": w.again(first), "another": w.again(first)} {
		if got, err := w.Taken(w.ctx, "s1", seq); err != nil || got.Registry != v.Registry {
			t.Errorf("%s: got registry %s (%v), want %s", what, got.Registry, err, v.Registry)
		}
	}
	payload := []byte(`{"v":1,"id":"registry-1","type":"ToolRegistrySet","data":{"tools":[]}}`)
	other, err := w.Publish(w.ctx, session.DoorCtl, "s1", payload, "")
	bustest.OK(t, err)
	var refused *client.RejectedError
	if _, err := w.Taken(w.ctx, "s1", other); !errors.As(err, &refused) || refused.Code != session.RejectDuplicateEvent {
		t.Errorf("other content under the same id: got %v, want duplicate_event", err)
	}
}

func TestRepeatedRunHasTheOutcomeOfTheFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t).host()
	first, err := w.Run(w.ctx, "s1", "hi", client.RunOptions{ID: "run-1"})
	bustest.OK(t, err)
	w.answer("s1", 1, "hello")
	w.end("s1", first)
	w.theOne("End of a repeat", w.again(first), 0, nil)
	follower, err := w.Follow(w.ctx, "s1")
	bustest.OK(t, err)
	defer follower.Close()
	if end, err := follower.End(w.ctx, w.again(first), "", client.Watch{}); err != nil || end.Run != 1 || end.Output == nil || end.Output.Text != "hello" {
		t.Errorf("a follower of a repeat: got %+v (%v), want run 1 with hello", end, err)
	}
}

func TestFollowerOfAFinishedSubmissionReturnsItsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t).host()
	seq := w.submit("hi", client.RunOptions{})
	w.answer("s1", 1, "hello")
	w.end("s1", seq)
	later := w.ask("s1", "more")
	w.answer("s1", 2, "another answer")
	w.end("s1", later)
	core, err := client.Connect(w.ctx, client.Options{URL: w.node.URL(), CoreOnly: true}) // as refold run does
	bustest.OK(t, err)
	defer core.Close()
	for what, c := range map[string]*client.Client{"a client": w.Client, "one that does not use JetStream": core} {
		follower, err := c.Follow(w.ctx, "s1")
		bustest.OK(t, err)
		defer follower.Close()
		seq, err := c.Run(w.ctx, "s1", "hi", client.RunOptions{Submission: "once"})
		bustest.OK(t, err)
		var run uint32
		end, err := follower.End(w.ctx, seq, "once", client.Watch{Run: func(n uint32) { run = n }})
		if err != nil || end.Run != 1 || run != 1 || end.Output == nil || end.Output.Text != "hello" {
			t.Errorf("%s: got %+v of run %d (%v), want run 1 with hello", what, end, run, err)
		}
	}
}

// TestConnectReadsTheEnvironment: a program finds the server that the command line
// program finds.
func TestConnectReadsTheEnvironment(t *testing.T) { //nolint:paralleltest // it sets variables
	node := bustest.Server(t)
	none := "nats://127.0.0.1:1"
	file := filepath.Join(t.TempDir(), "here.json")
	bustest.OK(t, os.WriteFile(file, []byte(`{"url":"`+node.URL()+`"}`), 0o600))
	for name, c := range map[string]struct {
		url, context string // of the environment
		o            client.Options
		want         bool
	}{
		"NATS_URL":                     {node.URL(), "", client.Options{}, true},
		"NATS_CONTEXT":                 {"", file, client.Options{}, true},
		"NATS_URL before NATS_CONTEXT": {none, file, client.Options{}, false},
		"an option before NATS_URL":    {none, "", client.Options{URL: node.URL()}, true},
		"a server of the process":      {none, "", client.Options{InProcess: node}, true},
	} {
		t.Setenv("NATS_URL", c.url)
		t.Setenv("NATS_CONTEXT", c.context)
		c.o.CoreOnly = true
		got, err := client.Connect(t.Context(), c.o)
		if (err == nil) != c.want {
			t.Errorf("%s: got %v, want a connection: %v", name, err, c.want)
		}
		if err == nil {
			got.Close()
		}
	}
}
