package docs_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/scenario"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// TestScenariosFitSchemas: whatever the fold says, asks for and shows on the
// way through every scenario file is a message of its schema; and so is every
// event that it takes.
func TestScenariosFitSchemas(t *testing.T) {
	t.Parallel()
	s := readSchemas(t)
	paths, err := filepath.Glob("actors/session/testdata/scenarios/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenario files: %v", err)
	}
	seen := map[string]int{}
	check := func(at, name string, err error) {
		if err != nil {
			t.Errorf("%s: %s: %v", at, name, err)
		}
		seen[name]++
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		foldFile(t, s, path, string(text), check, nil)
	}
	foldFile(t, s, "story", story, check, nil)
	// The first two are said by no fold, the last takes a transcript of 9,000 items.
	elsewhere := []string{session.NoticeSessionQuarantined, session.NoticeSessionReleased, session.NoticeLimitNear}
	for _, name := range slices.Concat(session.EventTypes(), s.noticeTypes(), slices.Collect(maps.Values(s.effects)), []string{"View", "InstallRecord"}) {
		if seen[name] == 0 && !slices.Contains(elsewhere, name) {
			t.Errorf("no scenario has a %s", name)
		}
	}
}

// foldFile folds the steps of a scenario file and checks all that it takes and
// leaves. each, if not nil, is called after every event.
func foldFile(t *testing.T, s *schemas, path, text string, check func(at, name string, err error), each func(*folding, []session.Notice)) {
	t.Helper()
	file, err := scenario.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	f := newFolding(t, nil)
	for _, step := range file.Steps {
		at := fmt.Sprintf("%s:%d", path, step.Line)
		action, err := scenario.Read(step.Input, f.install.Registry, f.state.View())
		if err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		switch action.Kind {
		case scenario.KindClock:
			f.time += action.Clock
		case scenario.KindInstall:
			if _, err := session.ParseInstall(action.Payload); action.Payload == nil || err == nil {
				f = newFolding(t, action.Payload)
				check(at, "InstallRecord", s.packed("InstallRecord", canonical(t, f.payload)))
			}
		case scenario.KindEvent:
			taken, notices := f.fold(action.Door, action.Payload)
			if env, ok := envelopeOf(action.Payload); taken && ok {
				check(at, env.Type, s.packed("Envelope", withoutNulls(t, env)))
			}
			f.checkSaid(s, at, notices, check)
			if each != nil {
				each(f, notices)
			}
		}
	}
}

// withoutNulls returns an event without the fields of its body that are null:
// the fold takes an optional one as absent, the schemas describe what to say.
func withoutNulls(t *testing.T, env session.Envelope) []byte {
	t.Helper()
	var fields codec.Pairs
	if codec.Decode(env.Data, &fields) == nil {
		fields = slices.DeleteFunc(fields, func(f codec.Pair) bool { return slices.Equal(f.Value, raw(t, "null")) })
		packed, err := codec.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		env.Data = packed
	}
	packed, err := codec.Marshal(env)
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

// checkSaid checks all that an event left: notices, open effects, the view.
func (f *folding) checkSaid(s *schemas, at string, notices []session.Notice, check func(at, name string, err error)) {
	for _, n := range notices {
		check(at, n.Type, s.check("Notice", n.JSON()))
	}
	for _, e := range f.state.Open() {
		name := s.effects[e.Class]
		check(at, name, s.packed(name, e.Payload))
	}
	check(at, "View", s.check("View", jsonOf(f.t, f.state.View())))
	check(at, "Snapshot", s.packed("Snapshot", f.state.Snapshot().Bytes()))
}

// folding is a session that is folded under a made-up clock.
type folding struct {
	t       *testing.T
	payload []byte // of the install record
	install *session.Install
	state   *session.State
	time    int64
	seq     uint64
}

// newFolding opens a session under an install record; nil is the built-in one.
func newFolding(t *testing.T, record []byte) *folding {
	t.Helper()
	if record == nil {
		record = session.BuiltinInstall()
	}
	install, err := session.ParseInstall(record)
	if err != nil {
		t.Fatal(err)
	}
	return &folding{t: t, payload: record, install: install, state: session.New(install, "s1"), time: 1_000_000, seq: 1}
}

// fold folds an event. It is taken if it had its effect: it was not rejected,
// and it is no settlement that was found bad.
func (f *folding) fold(door session.Door, payload []byte) (taken bool, notices []session.Notice) {
	f.seq++
	before := f.body()
	notices, err := f.state.Evolve(session.Event{Session: "s1", Door: door, Seq: f.seq, Time: f.time, Payload: payload})
	// What changed nothing is a repeat, of a settlement that was bad perhaps.
	changed := len(notices) > 0 || !slices.Equal(before, f.body())
	return err == nil && changed && !f.bad(notices) && !f.badAttempt(payload), notices
}

// body returns the bytes of the state without its head.
func (f *folding) body() []byte {
	f.t.Helper()
	r := f.state.Record
	r.Seq, r.Count, r.Chain, r.Leaf, r.Clock, r.NoticeN = 0, 0, codec.Hash{}, codec.Hash{}, 0, 0
	packed, err := codec.Marshal(&r)
	if err != nil {
		f.t.Fatal(err)
	}
	return packed
}

// bad reports that the last event was a settlement found bad: the run failed
// so, or the call.
func (f *folding) bad(notices []session.Notice) bool {
	for _, n := range notices {
		if end, ok := n.Data.(session.RunFinished); ok && end.Code == session.CodeBadSettlement {
			return true
		}
		if paused, ok := n.Data.(session.SchedulePaused); ok && paused.Code == session.CodeBadSettlement {
			return true
		}
		if failed, ok := n.Data.(spaces.WorkspaceFailed); ok && failed.Code == session.CodeBadSettlement {
			return true
		}
	}
	if t := f.state.Turn; t != nil && t.Step != nil && t.Step.Code == session.CodeBadSettlement {
		return true // and the rules decided instead
	}
	return slices.ContainsFunc(f.state.Items, func(it session.Item) bool {
		return it.Seq == f.seq && it.Code == session.CodeBadSettlement
	}) || f.state.Turn != nil && f.state.Turn.Batch != nil && slices.ContainsFunc(f.state.Turn.Batch.Calls, func(c session.Call) bool {
		return c.Seq == f.seq && c.Code == session.CodeBadSettlement
	})
}

// badAttempt reports that the last event was a settlement found bad, after
// which the generation is asked again: a good one has failed.
func (f *folding) badAttempt(payload []byte) bool {
	if t := f.state.Turn; t == nil || t.RetryAt == 0 {
		return false
	}
	env, ok := envelopeOf(payload)
	var b session.GenerationSettled
	return ok && env.Type == session.TypeToolCallsObserved || // which fails by nothing else
		ok && env.Type == session.TypeGenerationSettled && (codec.Decode(env.Data, &b) != nil || b.Status != "failed")
}

// canonical returns a payload in msgpack.
func canonical(t *testing.T, payload []byte) []byte {
	t.Helper()
	packed, err := codec.Canonicalize(payload)
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

// envelopeOf reads an envelope, if payload is one.
func envelopeOf(payload []byte) (env session.Envelope, ok bool) {
	packed, err := codec.Canonicalize(payload)
	return env, err == nil && codec.Decode(packed, &env) == nil
}

// reach folds a new session to where an event of this type can be said, under
// an install record that lets clients say all.
func reach(t *testing.T, typ string) *folding {
	t.Helper()
	var record session.InstallRecord
	if err := codec.Unmarshal(session.BuiltinInstall(), &record); err != nil {
		t.Fatal(err)
	}
	for field := range reflect.TypeFor[session.RunConfig]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("msgpack"), ",")
		record.Policy.Ingress = append(record.Policy.Ingress, name)
	}
	record.Policy.Ingress = append(record.Policy.Ingress, "roles", "compact")
	record.Tools = append(record.Tools, planner.ToolSpec{
		ArgsSchema: raw(t, `{"type":"object"}`), Executor: planner.Executor{Kind: planner.ExecutorHostLoop, Target: "desk"},
		ToolID: "desk.ask", ToolName: "ask",
	}, planner.ToolSpec{
		Approval: planner.ApprovalAlways, ArgsSchema: raw(t, `{"type":"object"}`),
		Executor: planner.Executor{Kind: planner.ExecutorEffect, Target: "desk"}, ToolID: "desk.pay", ToolName: "pay",
	}, planner.ToolSpec{
		ArgsSchema: raw(t, `{"type":"object"}`), Executor: planner.Executor{Kind: planner.ExecutorSession}, ToolID: "desk.team", ToolName: "team",
	})
	record.Spaces = []spaces.Grant{embeddedGrant()}
	payload, err := codec.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	f := newFolding(t, payload)
	steps := []string{
		`configure {"provider":"openai","model":"m1"}`,
		`run "go"`,
		`settle r1t1 calls open_session{}`,
	}
	switch typ {
	case session.TypeToolCallSettled, session.TypeCompactRequested:
	case session.TypeTranscriptImported: // before the first run
		steps = steps[:1]
	case session.TypeSessionTombstone: // the first event of a session whose messages are deleted
		f.seq, steps = 1_000, nil
	case session.TypeApprovalDecided:
		steps[0] = `configure {"provider":"openai","model":"m1","active_tools":["pay"]}`
		steps[2] = `settle r1t1 calls pay{}`
	case session.TypeReplyGiven:
		steps[0] = `configure {"provider":"openai","model":"m1","active_tools":["wait_for"]}`
		steps[2] = `settle r1t1 calls wait_for{"name":"payment 7"}`
	case session.TypeChildSettled:
		steps[0] = `configure {"provider":"openai","model":"m1","active_tools":["team"]}`
		steps[2] = `settle r1t1 calls team{}`
	case session.TypeChildRequested: // the first event of the child
		steps = nil
	case session.TypeChildStopped:
		steps = []string{`event child {"type":"ChildRequested","data":{"call":"r1t1c0","config":{"provider":"openai","model":"m1"},"depth":1,"input":{"text":"go"},"origin":{"run":1,"session":"p1"},"parent":"p1","root":"p1"}}`}
	case session.TypeRunEdited:
		steps[2] = `run "then"`
	case session.TypeRunResumeRequested:
		steps[2] = `pause`
	case session.TypeRunCompleted, session.TypeRunFailed:
		steps[0] = `configure {"provider":"openai","model":"m1","completion":"explicit"}`
		steps[2] = `settle r1t1 text "what then?"`
	case session.TypeToolBatchSettled:
		steps[0] = `configure {"provider":"openai","model":"m1","active_tools":["ask"]}`
		steps[2] = `settle r1t1 calls ask{}`
	case session.TypeStepPrepared:
		steps[0] = `configure {"provider":"openai","model":"m1","step_hook":{"hook":"h"}}`
		steps = steps[:2]
	case session.TypeScheduleSet, session.TypeScheduleRemoved, session.TypeSchedulePause, session.TypeScheduleResume, session.TypeScheduleFired:
		f.seq, f.time = 10, 1_763_715_600_000 // the revision of the examples is 12
		steps = []string{steps[0], `schedule set weekday-report "Write." next=+71h`}
		if typ == session.TypeScheduleResume {
			steps = append(steps, "schedule pause weekday-report")
		}
	case session.TypeToolCallsObserved, session.TypeGenerationSettled, session.TypeWakeSettled, session.TypeSteerRequested,
		session.TypeRunCancelRequested, session.TypeRunInterrupt, session.TypeRunPauseRequested, session.TypeSessionClosed:
		steps = steps[:2]
	case session.TypeWorkspaceSnapshotReady, session.TypeWorkspaceSyncUnchanged, session.TypeWorkspaceSyncFailed, session.TypeWorkspaceApplyRequested:
		steps = append(steps[:1], "sync support")
	default:
		steps = steps[:1]
	}
	for _, step := range steps {
		action, err := scenario.Read(step, f.install.Registry, f.state.View())
		if err != nil {
			t.Fatal(err)
		}
		if taken, _ := f.fold(action.Door, action.Payload); !taken {
			t.Fatalf("%s: not taken", step)
		}
	}
	if typ == session.TypeWorkspaceApplyRequested {
		ready := fullSpace(session.TypeWorkspaceSnapshotReady)
		data, err := codec.Marshal(ready)
		if err != nil {
			t.Fatal(err)
		}
		if payload, err = codec.Marshal(session.Envelope{Data: data, Type: session.TypeWorkspaceSnapshotReady, V: 1}); err != nil {
			t.Fatal(err)
		}
		if taken, notices := f.fold(session.DoorSpace, payload); !taken {
			t.Fatalf("not staged: %s", jsonOf(t, notices))
		}
	}
	return f
}

// doors returns the doors that a schema of an event names.
func (s *schemas) doors(typ string) (all []session.Door) {
	list, _ := s.docs[typ]["x-doors"].([]any)
	for _, door := range list {
		all = append(all, session.Door(fmt.Sprint(door)))
	}
	return all
}
