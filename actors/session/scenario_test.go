package session_test

// The scenario files are the specification: each step's event is folded, and
// what it leaves is drawn and compared. After every step the state's own
// invariants are checked. Each file is run twice: once on one state, and once on
// a state that goes through its snapshot after every step, which must leave the
// same, so that every scenario is a test of snapshots too.

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/scenario"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

var rewrite = flag.Bool("rewrite", false, "write what the fold does into the scenario files; then read the diff")

func TestScenarios(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenario files: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			t.Parallel()
			runScenario(t, path, false)
			runScenario(t, path, true)
		})
	}
}

func runScenario(t *testing.T, path string, snapshots bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := scenario.Parse(string(text))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	w := &world{t: t, time: 1_000_000, snapshots: snapshots}
	for i := range file.Steps {
		step := &file.Steps[i]
		got, err := w.do(step.Input)
		if err != nil {
			t.Fatalf("%s:%d: %v", path, step.Line, err)
		}
		if *rewrite && !snapshots {
			step.Want = got
		} else if got != step.Want {
			t.Errorf("%s:%d (through snapshots: %v): %s\n--- got:\n%s--- want:\n%s", path, step.Line, snapshots, step.Input, got, step.Want)
		}
	}
	if *rewrite && !snapshots {
		if err := os.WriteFile(path, []byte(file.Format()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// world is one session under a made-up clock.
type world struct {
	t       *testing.T
	install *session.Install
	sets    []*planner.Registry // that events set
	read    []*space.Manifest   // that events brought
	state   *session.State
	history []session.Event
	seqs    []uint64
	time    int64

	progress []scenario.Said   // of the event folded last
	messages []session.Message // that it sent

	snapshots bool // go through a snapshot after every event
}

// do carries out one step and returns what it leaves.
func (w *world) do(input string) (string, error) {
	var action scenario.Action
	var err error
	if w.install != nil {
		action, err = scenario.Read(input, w.install.Registry, w.state.View())
	} else {
		action, err = scenario.Read(input, nil)
	}
	if err != nil {
		return "", err
	}
	switch action.Kind {
	case scenario.KindInstall:
		return w.pin(action.Payload)
	case scenario.KindClock:
		w.time += action.Clock
		return "", nil
	case scenario.KindShow:
		return w.show(action.Show)
	}
	return w.fold(action)
}

func (w *world) pin(payload []byte) (string, error) {
	if payload == nil {
		payload = session.BuiltinInstall()
	}
	install, err := session.ParseInstall(payload)
	if err != nil {
		return err.Error() + "\n", nil
	}
	w.install, w.state = install, session.New(install, "s1")
	return fmt.Sprintf("%d tools, rules %d\n", install.Registry.Len(), install.Rules), nil
}

func (w *world) fold(a scenario.Action) (string, error) {
	if w.state == nil {
		return "", fmt.Errorf("no install record is pinned")
	}
	e := session.Event{Session: "s1", Door: a.Door, Seq: uint64(len(w.history) + 2), Time: w.time, Payload: a.Payload}
	before, open := w.state.View(), w.state.Open()
	notices, rejected := w.state.Evolve(e)
	progress := w.state.Progress()
	w.messages = w.state.Messages()
	after := w.state.View()
	w.history, w.seqs = append(w.history, e), append(w.seqs, e.Seq)
	if set, err := session.ParseRegistrySet(e); err == nil {
		w.sets = append(w.sets, set)
	}
	if m, _, err := session.ParseSnapshotReady(e); err == nil {
		w.read = append(w.read, m)
	}
	if err := w.state.Check(); err != nil {
		return "", fmt.Errorf("invariant: %w", err)
	}
	if got, want := w.state.Withdrawals(), gone(open, w.state.Open(), a.Settles); !slices.Equal(got, want) {
		return "", fmt.Errorf("withdrawn are %v, want %v: what was open, is not, and was not settled", got, want)
	}
	if w.snapshots && w.state.Foldable() == nil {
		w.throughSnapshot()
	}
	w.progress = heard(w.t, progress)
	said := heard(w.t, notices)
	if rejected != nil && (len(said) == 0 || said[len(said)-1].Type != session.NoticeEventRejected) {
		return "", fmt.Errorf("rejected %v without a notice", rejected)
	}
	return scenario.Picture(before, after, a.Settles, said), nil
}

// gone returns what an event withdraws: what was open, is not, and was not
// settled by it.
func gone(before, after []session.Effect, settles string) []session.Withdrawal {
	var withdrawn []session.Withdrawal
	for _, e := range before {
		if e.Name != settles && !slices.ContainsFunc(after, func(open session.Effect) bool { return open.Name == e.Name }) {
			withdrawn = append(withdrawn, withdrawalOf(&e))
		}
	}
	return withdrawn
}

// withdrawalOf returns the withdrawal of an open effect.
func withdrawalOf(e *session.Effect) session.Withdrawal {
	w := session.Withdrawal{Name: e.Name, Class: e.Class, Target: e.Target, Claimed: e.Claimed}
	if e.Claimed {
		w.Hash = codec.Sum(e.Payload)
	}
	return w
}

// throughSnapshot replaces the state by what its snapshot restores.
func (w *world) throughSnapshot() {
	w.t.Helper()
	snap, err := session.ParseSnapshot(w.state.Snapshot().Bytes())
	if err != nil {
		w.t.Fatal(err)
	}
	restored, err := session.Restore(snap, shelf{install: w.install, registries: w.sets, manifests: w.read})
	if err != nil {
		w.t.Fatal(err)
	}
	if restored.Hash() != w.state.Hash() {
		w.t.Fatalf("a snapshot restores to other bytes")
	}
	w.state = restored
}

func (w *world) show(what string) (string, error) {
	switch what {
	case "progress":
		return scenario.ShowProgress(w.progress), nil
	case "messages":
		return scenario.ShowMessages(w.messages)
	}
	return scenario.Show(what, w.state.View(), w.seqs, func(e session.ViewEffect) []byte {
		for _, open := range w.state.Open() {
			if open.Name == e.Effect {
				return open.Payload
			}
		}
		w.t.Fatalf("%s is open in the view and not in the state", e.Effect)
		return nil
	})
}

// heard returns notices as observers read them.
func heard(t *testing.T, notices []session.Notice) (said []scenario.Said) {
	t.Helper()
	for _, n := range notices {
		var s scenario.Said
		if err := json.Unmarshal(n.JSON(), &s); err != nil {
			t.Fatal(err)
		}
		said = append(said, s)
	}
	return said
}
