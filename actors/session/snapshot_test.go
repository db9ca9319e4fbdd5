package session_test

// A snapshot is a cache that comes from outside. Whatever is in it, restoring
// it ends with a state that keeps every invariant, or with an error: never
// with a fold that panics later, in the middle of a lane.

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// busy is a session in the middle of things: a batch with one call settled,
// one open, one waiting and one refused, two runs queued, facts, a host.
func busy(t testing.TB) *session.State {
	t.Helper()
	w := newTold(t)
	w.must(w.tell(session.DoorCtl, session.TypeHostSessionUpdated, map[string]any{"status": "ready", "id": "h1"}))
	w.must(w.tell(session.DoorCtl, session.TypeFactsSet, map[string]any{"facts": map[string]any{"a": "1", "b": "2"}}))
	w.must(w.tell(session.DoorCtl, session.TypeSessionConfigured, map[string]any{"provider": "p", "model": "m", "enable": []any{}, "queue_max": 4}))
	w.must(w.tell(session.DoorCtl, session.TypeToolProfileSelected, map[string]any{"profile": "openai"}))
	w.run(map[string]any{"params": map[string]any{}, "disable": []any{}, "deadlines_ms": map[string]any{}})
	w.run(map[string]any{"active_tools": []any{}})
	w.must(w.tell(session.DoorIn, session.TypeRunRequested, map[string]any{"input": map[string]any{"text": "x"}, "submission": "s"}))
	w.must(w.tell(session.DoorLLM, session.TypeToolCallsObserved, map[string]any{"effect": "r1t1", "calls": []any{
		map[string]any{"tool_name": "stat", "arguments": `{"path":"a"}`}, map[string]any{"tool_name": "stat", "arguments": `{"path":"b"}`},
		map[string]any{"tool_name": "shell", "arguments": `{"command":"ls"}`}, map[string]any{"tool_name": "nosuch", "arguments": ``},
	}}))
	w.must(w.tell(session.DoorTool, session.TypeToolCallSettled, map[string]any{"effect": "r1t1c0", "status": "succeeded"}))
	return w.state
}

// asking is a session that waits for the model.
func asking(t testing.TB) *session.State {
	t.Helper()
	w := newTold(t)
	w.run(nil)
	return w.state
}

// snapshotOf returns a snapshot with the hash that its bytes have.
func snapshotOf(t testing.TB, r *session.Record) session.Snapshot {
	t.Helper()
	state, err := codec.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return session.Snapshot{
		Hash: codec.Digest(state), Install: r.Install, Leaf: r.Leaf, Rules: int(r.Rules), Seq: r.Seq, State: state, V: session.Version,
	}
}

// [] clears a list and an absent one leaves it, so a snapshot must keep them apart.
func TestRestoreKeepsAbsentAndEmptyApart(t *testing.T) {
	t.Parallel()
	s := busy(t)
	restored, err := session.Restore(snapshotOf(t, &s.Record), given(s.InstallRecord()))
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range []*session.State{s, restored} {
		if run := state.Run.Config; run.Disable == nil || run.Enable != nil || run.Params == nil || run.ActiveTools != nil || run.DeadlinesMS == nil {
			t.Errorf("the active run's config is %+v", run)
		}
		if queued := state.Queue[0].Config; queued.ActiveTools == nil || len(*queued.ActiveTools) != 0 {
			t.Errorf("the queued run's active_tools are %v, want none, given", queued.ActiveTools)
		}
		if state.Config.Run.Enable == nil {
			t.Error("the session's enable is absent, want it empty")
		}
	}
}

func TestRestoreRefusesWhatNoFoldLeaves(t *testing.T) {
	t.Parallel()
	offer := func(tool, variant int) planner.Offer { return planner.Offer(variant<<16 | tool) }
	for name, spoil := range map[string]func(r *session.Record){
		"a window before the transcript": func(r *session.Record) { r.Turn.Items = -1 },
		"a window beyond the transcript": func(r *session.Record) { r.Turn.Items = 99 },
		"no group":                       func(r *session.Record) { r.Turn.Batch.Group = -1 },
		"a group beyond the plan":        func(r *session.Record) { r.Turn.Batch.Group = 9 },
		"a batch that is over":           func(r *session.Record) { r.Turn.Batch.Group = len(r.Turn.Batch.Plan.Groups) },
		"a call in two groups":           func(r *session.Record) { r.Turn.Batch.Plan.Groups[1] = []int{1, 2} },
		"a call that is not":             func(r *session.Record) { r.Turn.Batch.Plan.Groups[1] = []int{7} },
		"another plan's hash":            func(r *session.Record) { r.Turn.Batch.PlanHash[0]++ },
		"fewer calls than planned":       func(r *session.Record) { r.Turn.Batch.Calls = r.Turn.Batch.Calls[:3] },
		"negative excess":                func(r *session.Record) { r.Turn.Batch.Excess = -1 },
		"too much excess":                func(r *session.Record) { r.Turn.Batch.Excess = 1 << 40 },
		"an open call of no tool":        func(r *session.Record) { r.Turn.Batch.Calls[1].ToolID = "nosuch" },
		"a waiting call of no tool":      func(r *session.Record) { r.Turn.Batch.Calls[2].ToolID = "" },
		"a status that is none":          func(r *session.Record) { r.Turn.Batch.Calls[0].Status = "odd" },
		"an open call without deadline":  func(r *session.Record) { r.Turn.Batch.Calls[1].RunMS = 0 },
		"a result with arguments":        func(r *session.Record) { r.Turn.Batch.Calls[0].Arguments = "{}" },
		"a result of no event":           func(r *session.Record) { r.Turn.Batch.Calls[0].Seq = 0 },
		"a long detail":                  func(r *session.Record) { r.Turn.Batch.Calls[3].Detail = sentence.Text(strings.Repeat("x", 257)) },
		"an offer of no tool":            func(r *session.Record) { r.Turn.Toolset.Offers = []planner.Offer{offer(500, 0)} },
		"an offer of no descriptor":      func(r *session.Record) { r.Turn.Toolset.Offers = []planner.Offer{offer(0, 3)} },
		"verdicts of other tools":        func(r *session.Record) { r.Turn.Toolset.Verdicts = r.Turn.Toolset.Verdicts[1:] },
		"another registry's toolset":     func(r *session.Record) { r.Turn.Toolset.Registry[0]++ },
		"a generation beside its batch":  func(r *session.Record) { r.Turn.Open = true },
		"an active run without a turn":   func(r *session.Record) { r.Turn = nil },
		"another run's turn":             func(r *session.Record) { r.Turn.Run = 2 },
		"a turn that was not asked":      func(r *session.Record) { r.Turn.Number = 2 },
		"calls of no run":                func(r *session.Record) { r.Run, r.Queue = nil, nil },
		"a run without provider":         func(r *session.Record) { r.Run.Config.Provider = "" },
		"a run with unknown tools":       func(r *session.Record) { r.Run.Config.Force = []string{"nosuch"} },
		"a run with a huge system text":  func(r *session.Record) { r.Run.Config.System = strings.Repeat("x", 1<<20) },
		"a run numbered beyond all":      func(r *session.Record) { r.Runs = 1 },
		"a run queued twice":             func(r *session.Record) { r.Queue[1].Number = r.Queue[0].Number },
		"a queued run that is active":    func(r *session.Record) { r.Queue[0].Number = r.Run.Number },
		"a queued run without model":     func(r *session.Record) { r.Queue[1].Config.Model = "" },
		"a session config out of bounds": func(r *session.Record) { r.Config.QueueMax = 1000 },
		"a session config with unknowns": func(r *session.Record) { r.Config.Run.Profile = "nosuch" },
		"a profile that is not":          func(r *session.Record) { r.Profile = new("nosuch") },
		"no wake for a deadline":         func(r *session.Record) { r.Wakes = nil },
		"a wake that was not asked":      func(r *session.Record) { r.Wakes[0].Number = 7 },
		"one wake twice":                 func(r *session.Record) { r.Wakes = append(r.Wakes, r.Wakes[0]) },
		"facts out of order":             func(r *session.Record) { slices.Reverse(r.Facts) },
		"a fact twice":                   func(r *session.Record) { r.Facts[1] = r.Facts[0] },
		"a long fact":                    func(r *session.Record) { r.Facts[0].Value = strings.Repeat("x", 257) },
		"a host status that is none":     func(r *session.Record) { r.Host.Status = "sleepy" },
		"a long id":                      func(r *session.Record) { r.IDs = []string{strings.Repeat("x", 65)} },
		"too many ids":                   func(r *session.Record) { r.IDs = make([]string, 129) },
		"a long submission":              func(r *session.Record) { r.Submissions[0].Name = strings.Repeat("x", 65) },
		"submissions out of order":       func(r *session.Record) { r.Submissions = append(r.Submissions, session.Submission{Name: "a"}) },
		"items that don't add up":        func(r *session.Record) { r.ItemBytes-- },
		"an item of nobody":              func(r *session.Record) { r.Items[0].Role = "god" },
		"an item of the future":          func(r *session.Record) { r.Items[0].Seq = 1 << 40 },
		"a run that ended without a way": func(r *session.Record) { r.Last = &session.Ended{Number: 1} },
		"a run that ended too long": func(r *session.Record) {
			r.Last = &session.Ended{Number: 1, Lifecycle: session.Failed, Detail: sentence.Text(long("d", 257))}
		},
		"a run that ended and was not":  func(r *session.Record) { r.Last = &session.Ended{Number: 9, Lifecycle: session.Failed} },
		"no session":                    func(r *session.Record) { r.Session = "" },
		"an event that was not counted": func(r *session.Record) { r.Count = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := busy(t)
			spoil(&s.Record)
			restored, err := session.Restore(snapshotOf(t, &s.Record), given(s.InstallRecord()))
			if err == nil {
				t.Errorf("it was restored: %+v", restored.View())
			}
		})
	}
}

// A state makes no sense under another record.
func TestRestoreAsksForItsRecord(t *testing.T) {
	t.Parallel()
	s := busy(t)
	other, err := session.ParseInstall([]byte(`{"v":1,"rules":1,"tools":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.Restore(s.Snapshot(), given(other)); err == nil {
		t.Error("restored under another record than the one that it pinned")
	}
	gone := errors.New("gone")
	if _, err := session.Restore(s.Snapshot(), shelf{gone: gone}); !errors.Is(err, gone) {
		t.Errorf("got %v, want the reason why there is no record", err)
	}
	snap := s.Snapshot()
	snap.Rules = 2
	var unknown *session.UnknownRulesError
	if _, err := session.Restore(snap, given(s.InstallRecord())); !errors.As(err, &unknown) || unknown.Rules != 2 {
		t.Errorf("got %v, want rules 2 to be unknown", err)
	}
	snap = s.Snapshot()
	snap.Leaf[0]++
	if _, err := session.Restore(snap, given(s.InstallRecord())); err == nil {
		t.Error("restored although the snapshot names another last event than its state")
	}
	snap = s.Snapshot()
	snap.Seq++
	if _, err := session.Restore(snap, given(s.InstallRecord())); err == nil {
		t.Error("restored although the snapshot names another sequence than its state")
	}
}

func TestParseSnapshotRefuses(t *testing.T) {
	t.Parallel()
	s := busy(t)
	good := s.Snapshot()
	if _, err := session.ParseSnapshot(good.Bytes()); err != nil {
		t.Fatal(err)
	}
	bad := good
	bad.Hash[0]++
	if _, err := session.ParseSnapshot(bad.Bytes()); err == nil {
		t.Error("taken although its state has another hash")
	}
	bad = good
	bad.V = 2
	if _, err := session.ParseSnapshot(bad.Bytes()); err == nil {
		t.Error("taken although its version is another")
	}
	if _, err := session.ParseSnapshot(good.Bytes()[1:]); err == nil {
		t.Error("taken although its first byte is missing")
	}
}

// ParseSnapshot gives what codec gives. Restore refuses bytes that are no state,
// even if their hash is right.
func TestRestoreChecksParsedSnapshot(t *testing.T) {
	t.Parallel()
	s := busy(t)
	good := s.Snapshot()
	parsed, err := session.ParseSnapshot(good.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	var want session.Snapshot
	if err := codec.Unmarshal(good.Bytes(), &want); err != nil || !reflect.DeepEqual(parsed, want) {
		t.Errorf("got %+v, want %+v (%v)", parsed, want, err)
	}
	for _, state := range [][]byte{
		{}, {0xc1}, {0x80}, good.State[:len(good.State)-1], slices.Concat(good.State, []byte{0xc0}), slices.Concat(good.State, good.State),
	} {
		hash := codec.Digest(state)
		data := bytes.Replace(bytes.Replace(good.Bytes(), good.State, state, 1), good.Hash[:], hash[:], 1)
		snap, err := session.ParseSnapshot(data)
		if err == nil {
			_, err = session.Restore(snap, given(s.InstallRecord()))
		}
		if err == nil {
			t.Errorf("restored from a state of %d bytes, of %d", len(state), len(good.State))
		}
	}
}

// A state may keep a payload's memory until its lazy hashes are computed, and none
// of it after that.
func TestPayloadIsNotKeptOnceHashed(t *testing.T) {
	t.Parallel()
	w := newTold(t)
	for _, e := range demoHistory(t) {
		mine := slices.Clone(e.Payload)
		e.Payload = mine
		if _, err := w.state.Evolve(e); err != nil {
			t.Fatal(err)
		}
		before := w.state.Hash()
		effects := w.state.Open()
		for i := range mine {
			mine[i] = 0xff
		}
		if got := w.state.Hash(); got != before {
			t.Fatalf("event %d: the state changed when its payload's memory did", e.Seq)
		}
		for i, again := range w.state.Open() {
			if string(again.Payload) != string(effects[i].Payload) {
				t.Fatalf("event %d: %s changed when the payload's memory did", e.Seq, again.Name)
			}
		}
	}
}
