package session_test

// What sessions without a workspace left before Refold had workspaces, and must
// leave still: testdata/unchanged.golden was written by the fold of the commit
// before them, a91cdd4, from the same events. A line says how many events were
// folded, and the weights and hashes of what they left: the snapshot, and all
// outputs (notices, progress, refusals, open effects and withdrawals, after each
// event).
//
// A line that changes says that logs which are stored already fold to other
// bytes. That needs new rules, or a line under *Wire* in CHANGELOG.md. Then, or
// when the events of a scenario change, -rewrite writes the file.

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/scenario"
	"github.com/refold/refold/codec"
)

const unchangedGolden = "testdata/unchanged.golden"

// unchangedConversations are the recordings whose first run is one of
// stockInstall's tools.
var unchangedConversations = []string{"warehouse-audit", "warehouse-smalltalk", "warehouse-stocktake"}

func TestSessionsWithoutWorkspaceAreUnchanged(t *testing.T) {
	t.Parallel()
	got := map[string]string{}
	paths, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenario files: %v", err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".txt")
		if !strings.Contains(name, "space") {
			got[name] = traceOfScenario(t, path)
		}
	}
	for _, conversation := range unchangedConversations {
		w := &traced{state: session.New(stockInstall(t), "s1"), seq: 1}
		for _, e := range recordedHistory(t, conversation) {
			door, payload := say(e.door, e.typ, e.data)
			w.fold(t, door, 1_000_000, payload)
		}
		got[conversation] = w.end()
	}
	var file strings.Builder
	for _, name := range slices.Sorted(maps.Keys(got)) {
		fmt.Fprintf(&file, "%s: %s\n", name, got[name])
	}
	if *rewrite {
		if err := os.WriteFile(unchangedGolden, []byte(file.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(unchangedGolden)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for line := range strings.Lines(string(golden)) {
		name, trace, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		want[name] = trace
	}
	for name, trace := range want {
		if got[name] != trace {
			t.Errorf("%s:\n got %s\nwant %s", name, got[name], trace)
		}
	}
	if len(want) < 80 {
		t.Errorf("%s has %d lines: a scenario was lost", unchangedGolden, len(want))
	}
}

// traced is a session, and what it has put out so far.
type traced struct {
	builtin []byte // the built-in record
	state   *session.State
	seq     uint64
	events  int
	outputs strings.Builder
	weights strings.Builder // after each event
	states  strings.Builder // snapshots after each event
}

func (w *traced) fold(t *testing.T, door session.Door, at int64, payload []byte) {
	t.Helper()
	w.seq++
	w.events++
	notices, rejected := w.state.Evolve(session.Event{Session: "s1", Door: door, Seq: w.seq, Time: at, Payload: payload})
	fmt.Fprintf(&w.outputs, "%d %v\n", w.seq, rejected)
	for _, n := range slices.Concat(notices, w.state.Progress()) {
		fmt.Fprintf(&w.outputs, "%s\n", n.JSON())
	}
	for _, e := range w.state.Open() {
		fmt.Fprintf(&w.outputs, "+ %s %s %s %x\n", e.Name, e.Class, e.Target, e.Payload)
	}
	for _, gone := range w.state.Withdrawals() {
		fmt.Fprintf(&w.outputs, "- %+v\n", gone)
	}
	fmt.Fprintf(&w.weights, "%d ", w.state.Weight())
	fmt.Fprintf(&w.states, "%x\n", w.state.Snapshot().Bytes())
}

func (w *traced) end() string {
	short := func(b *strings.Builder) string { return fmt.Sprintf("%.16x", sha256.Sum256([]byte(b.String()))) }
	return fmt.Sprintf("%d events, snapshot %s, outputs %s, weights %s", w.events, short(&w.states), short(&w.outputs), short(&w.weights))
}

// builtinBefore returns the built-in record of logs that began before it had a
// config.
func builtinBefore(t testing.TB) []byte {
	t.Helper()
	var rec session.InstallRecord
	if err := codec.Decode(session.BuiltinInstall(), &rec); err != nil {
		t.Fatal(err)
	}
	rec.Config = nil
	record, err := codec.Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	return record
}

func traceOfScenario(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := scenario.Parse(string(text))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	w, at := &traced{builtin: builtinBefore(t)}, int64(1_000_000)
	for _, step := range file.Steps {
		var action scenario.Action
		if w.state == nil {
			action, err = scenario.Read(step.Input, nil)
		} else {
			action, err = scenario.Read(step.Input, w.state.InstallRecord().Registry, w.state.View())
		}
		if err != nil {
			t.Fatalf("%s:%d: %v", path, step.Line, err)
		}
		switch action.Kind {
		case scenario.KindInstall:
			w.install(action.Payload)
		case scenario.KindClock:
			at += action.Clock
		case scenario.KindEvent:
			w.fold(t, action.Door, at, action.Payload)
		}
	}
	return w.end()
}

// install begins a session under another install record, if that is valid.
func (w *traced) install(payload []byte) {
	if payload == nil {
		payload = w.builtin
	}
	install, err := session.ParseInstall(payload)
	if err != nil {
		fmt.Fprintf(&w.outputs, "%v\n", err)
		return
	}
	w.state, w.seq = session.New(install, "s1"), 1
}
