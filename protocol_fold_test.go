package refold_test

import (
	"encoding/json"
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
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/host"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/subjects"
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
	for _, name := range slices.Concat(session.EventTypes(), noticeTypes(t), []string{"Generation", "ToolCall", "Step", "Wake", "View", "InstallRecord"}) {
		if seen[name] == 0 && name != session.NoticeSessionQuarantined { // which no fold says
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
		name := effectSchemas[e.Class]
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
	return err == nil && changed && !f.bad(notices), notices
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
	record.Policy.Ingress = append(record.Policy.Ingress, "roles")
	record.Tools = append(record.Tools, planner.ToolSpec{
		ArgsSchema: raw(t, `{"type":"object"}`), Executor: planner.Executor{Kind: planner.ExecutorHostLoop, Target: "desk"},
		ToolID: "desk.ask", ToolName: "ask",
	})
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
	case session.TypeToolCallSettled:
	case session.TypeToolBatchSettled:
		steps[0] = `configure {"provider":"openai","model":"m1","active_tools":["ask"]}`
		steps[2] = `settle r1t1 calls ask{}`
	case session.TypeStepPrepared:
		steps[0] = `configure {"provider":"openai","model":"m1","step_hook":{"hook":"h"}}`
		steps = steps[:2]
	case session.TypeToolCallsObserved, session.TypeGenerationSettled, session.TypeWakeSettled:
		steps = steps[:2]
	default:
		steps = steps[:1]
	}
	for _, step := range steps {
		action, err := scenario.Read(step, f.install.Registry)
		if err != nil {
			t.Fatal(err)
		}
		if taken, _ := f.fold(action.Door, action.Payload); !taken {
			t.Fatalf("%s: not taken", step)
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

// full returns every event's body with all its fields set, each of which the
// fold takes when reach has led it there. f is the session that reach led.
func full(t *testing.T, typ string, f *folding) any {
	t.Helper()
	content := &session.Content{Parts: []session.Content{
		{Text: "Look at this:"}, {Blob: ptr(codec.RefOf([]byte("x"))), MediaType: "text/plain", Size: 1},
	}}
	usage := &session.Usage{CachedTokens: 1, InputTokens: 2, OutputTokens: 3, ReasoningTokens: 4}
	fault := &session.Fault{Code: "overloaded", Detail: "try later", Retryable: true}
	opaque := raw(t, `[{"id":"rs_1"}]`)
	switch typ {
	case session.TypeRunRequested:
		config := fullConfig(t)
		return session.RunRequested{Config: &config, Input: *content, Roles: []string{"editor"}, Submission: "a1", WhenBusy: "reject"}
	case session.TypeSessionConfigured:
		return flatConfig{RunConfig: fullConfig(t), QueueMax: 3}
	case session.TypeToolRegistrySet:
		return session.ToolRegistrySet{DefaultProfile: "mine", Profiles: fullProfiles(t), Tools: []planner.ToolSpec{fullTool(t)}}
	case session.TypeToolOverridesSet:
		return session.ToolOverridesSet{
			Disable: &[]string{"shell"}, Enable: &[]string{"edit_file"}, Force: &[]string{"host.fs.stat"}, Scope: session.ScopeSession,
		}
	case session.TypeToolProfileSelected:
		return session.ToolProfileSelected{Profile: "anthropic"}
	case session.TypeHostSessionUpdated:
		return session.HostSessionUpdated{ID: "h1", Status: "ready"}
	case session.TypeFactsSet:
		return session.FactsSet{Facts: codec.Pairs{{Key: "plan", Value: raw(t, `"pro"`)}, {Key: "region", Value: raw(t, `null`)}}}
	case session.TypeToolCallsObserved:
		return session.ToolCallsObserved{
			Calls: []session.ObservedCall{
				{Arguments: "{}", ProviderCallID: "call_1", ToolName: "open_session"},
				{ArgumentsBlob: ptr(codec.RefOf([]byte("x"))), ProviderCallID: "call_2", Size: 300_000, ToolName: "open_session"},
			},
			Effect: "r1t1", Model: "m1-2026", Opaque: opaque, Text: content, Usage: usage,
		}
	case session.TypeGenerationSettled:
		return session.GenerationSettled{
			Effect: "r1t1", Error: fault, FinishReason: "length", Model: "m1-2026", Opaque: opaque, Status: "failed", Text: content, Usage: usage,
		}
	case session.TypeToolCallSettled:
		return fullResult(f, content, fault)
	case session.TypeToolBatchSettled:
		return session.ToolBatchSettled{
			Batch: "r1t1", PlanHash: f.state.LastPlan.String(), Results: []session.ToolCallSettled{fullResult(f, content, fault)},
		}
	case session.TypeStepPrepared:
		return session.StepPrepared{
			ActiveTools: &[]string{"open_session"}, Context: raw(t, `{"phase":2}`), Effect: "r1t1s", Error: fault, Model: "m2",
			Params: raw(t, `{"seed":1}`), Status: "failed", System: "Be brief.", ToolChoice: "open_session",
		}
	case session.TypeWakeSettled:
		return session.WakeSettled{Effect: "w1"}
	}
	t.Fatalf("%s: no value with all fields set; add one", typ)
	return nil
}

func fullConfig(t *testing.T) session.RunConfig {
	t.Helper()
	return session.RunConfig{
		ActiveTools: &[]string{"read_file", "host.exec"}, DeadlinesMS: &session.DeadlinesMS{Call: 60_000, Turn: 120_000},
		Disable: []string{"shell"}, Enable: []string{"edit_file"}, Force: []string{"host.fs.stat"}, Model: "m1",
		Params: raw(t, `{"temperature":0.5}`), Profile: "gemini", Provider: "openai",
		StepHook: &session.StepHook{DeadlineMS: 5000, Fallback: session.FallbackRules, Hook: "h"},
		Steps:    fullSteps(t, planner.Builtin().Tools, "open_session"), System: "Be brief.", ToolChoice: "required", TurnsMax: 7,
	}
}

// fullSteps returns two step rules: the tools of a step are named in one of
// two ways.
func fullSteps(t *testing.T, tools []planner.ToolSpec, tool string) []planner.StepRule {
	t.Helper()
	registry, err := planner.NewRegistry(tools, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	index, _ := registry.Lookup(tool)
	rule := planner.StepRule{
		ActiveTools: &[]string{tool}, Context: raw(t, `{"phase":1}`), Model: "m2", Params: raw(t, `{"seed":1}`), System: "Be brief.",
		ToolChoice: "none", When: `used("` + tool + `") || step > 3`,
	}
	other := rule
	other.ActiveTools, other.ToolRefs = nil, &[]codec.Ref{registry.Ref(index)}
	return []planner.StepRule{rule, other}
}

// fullTool returns a tool with all its fields set but tool_ref, which would
// have to change with the rest.
func fullTool(t *testing.T) planner.ToolSpec {
	t.Helper()
	schema := raw(t, `{"type":"object"}`)
	return planner.ToolSpec{
		Access: planner.AccessRead, Alternates: []planner.Descriptor{{ArgsSchema: schema, Description: "Looks up.", ToolName: "find"}},
		Approval: planner.ApprovalNever, ArgsSchema: schema, Availability: []planner.Rule{{Kind: planner.RuleFact, Name: "region", Equals: "eu"}},
		DeadlineMS: 1000, Description: "Looks up.", Executor: planner.Executor{Kind: planner.ExecutorEffect, Target: "crm"}, ParallelSafe: true,
		Requires: []string{"crm.write"}, ResourceKey: "crm:{who}", RetrySafe: true, ToolID: "crm.lookup", ToolName: "lookup",
	}
}

func fullProfiles(t *testing.T) []planner.Profile {
	t.Helper()
	return []planner.Profile{{Profile: "mine", Steps: fullSteps(t, []planner.ToolSpec{fullTool(t)}, "crm.lookup"), Tools: []string{"crm.lookup"}}}
}

// fullResult returns the result of the first call.
func fullResult(f *folding, content *session.Content, fault *session.Fault) session.ToolCallSettled {
	return session.ToolCallSettled{
		DurationMS: 12, Effect: "r1t1c0", Error: fault, HostSession: &session.HostSession{ID: "h1", Route: "b1", Status: "error"},
		Output: content, PlanHash: f.state.LastPlan.String(), Status: "failed",
	}
}

func ptr[T any](v T) *T { return &v }

// raw returns a JSON value in msgpack.
func raw(t *testing.T, text string) codec.Raw {
	t.Helper()
	packed, err := codec.FromJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

// TestFullEvents: a body with all its fields set is taken by the fold through
// the doors that its schema names, and through no other.
func TestFullEvents(t *testing.T) {
	t.Parallel()
	s := readSchemas(t)
	for _, typ := range session.EventTypes() {
		t.Run(typ, func(t *testing.T) {
			t.Parallel()
			doors := s.doors(typ)
			for _, door := range subjects.Doors() {
				f := reach(t, typ)
				body := full(t, typ, f)
				for _, unset := range unsetFields(reflect.ValueOf(body), typ) {
					t.Errorf("%s is not set", unset)
				}
				data, err := codec.Marshal(body)
				if err != nil {
					t.Fatal(err)
				}
				payload, err := codec.Marshal(session.Envelope{At: 1_700_000_000_000, By: "ann", Data: data, ID: "01K", Type: typ, V: 1})
				if err != nil {
					t.Fatal(err)
				}
				if err := s.packed("Envelope", payload); err != nil {
					t.Fatal(err)
				}
				taken, notices := f.fold(door, payload)
				if want := slices.Contains(doors, door); taken != want {
					t.Errorf("through %s: taken %v, want %v: %s", door, taken, want, jsonOf(t, notices))
				}
			}
		})
	}
}

// oneOf are the types of which not all fields can be set at once.
var oneOf = []reflect.Type{
	reflect.TypeFor[session.Content](), reflect.TypeFor[bus.ClaimBody](), reflect.TypeFor[planner.Rule](), reflect.TypeFor[session.ObservedCall](),
}

// eitherOr are the fields in place of which another one may be set.
var eitherOr = map[string]string{"ActiveTools": "ToolRefs", "ToolRefs": "ActiveTools"}

// unsetFields returns the fields of a value that have their zero value.
func unsetFields(v reflect.Value, path string) (all []string) {
	switch v.Kind() {
	case reflect.Pointer:
		return unsetFields(v.Elem(), path)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return nil
		}
		for i := range v.Len() {
			all = append(all, unsetFields(v.Index(i), fmt.Sprintf("%s[%d]", path, i))...)
		}
	case reflect.Struct:
		if slices.Contains(oneOf, v.Type()) {
			return nil
		}
		for field := range fieldsOf(v.Type()) {
			f := v.FieldByIndex(field.Index)
			if other := eitherOr[field.Name]; other != "" && !v.FieldByName(other).IsZero() || field.Name == "ToolRef" {
				continue
			}
			if f.IsZero() || f.Kind() == reflect.Slice && f.Len() == 0 {
				all = append(all, path+"."+field.Name)
				continue
			}
			all = append(all, unsetFields(f, path+"."+field.Name)...)
		}
	}
	return all
}

// TestFullMessages: what is no event, with all its fields set, is a message of
// its schema.
func TestFullMessages(t *testing.T) {
	t.Parallel()
	s := readSchemas(t)
	hash, ref := codec.Sum([]byte("x")), codec.RefOf([]byte("x"))
	config := fullConfig(t)
	schema := raw(t, `{"type":"object"}`)
	withRef := fullTool(t)
	withRef.ToolRef = &ref
	lists := &session.ViewLists{Enable: []string{"edit_file"}, Disable: []string{"shell"}, Force: []string{"stat"}}
	total := session.UsageTotal{CachedTokens: 1, InputTokens: 2, OutputTokens: 3, ReasoningTokens: 4}
	viewRun := session.ViewRun{Number: 1, Seq: 2, Submission: "a", Provider: "openai", Model: "m1", Turns: 1, TurnsMax: 100, Usage: total, Roles: []string{"editor"}, Overrides: lists}
	packed := map[string]any{
		"Generation": session.Generation{
			At: 1, Class: session.ClassLLM, Effect: "r1t1", Items: []session.Item{{Call: 1, Code: "cancelled", Detail: "d", Role: session.RoleTool, Seq: 3}},
			Model: "m1", Params: raw(t, `{"seed":1}`), Provider: "openai", RunMS: 300_000, Session: "s1", StartBy: 2, System: "Be brief.",
			ToolChoice: "auto", Tools: []codec.Hash{hash}, Toolset: hash, V: 1,
		},
		"Step": session.Step{
			At: 1, Calls: []session.StepCall{{Code: "tool_disabled", Status: session.CallIgnored, Step: 1, ToolID: "host.exec", ToolName: "shell"}},
			Class: session.ClassStep, Context: raw(t, `{"phase":2}`), Effect: "r1t3s", Facts: codec.Pairs{{Key: "region", Value: raw(t, `"eu"`)}},
			Hook: "h", Model: "m1", Provider: "openai", Roles: []string{"editor"}, RunMS: 15_000, Session: "s1", StartBy: 2, Step: 2, Usage: total,
			Used: []string{"host.exec"}, V: 1,
		},
		"ToolCall": session.ToolCall{
			Arguments: "{}", At: 1, Batch: "r1t1", Call: 1, Class: session.ClassTool, Context: raw(t, `{"phase":2}`), Effect: "r1t1c1",
			HostSession: &session.HostSession{ID: "h1", Route: "b1", Status: "ready"}, IdempotencyKey: "s1.r1t1c1", PlanHash: hash,
			ProviderCallID: "call_1", RetrySafe: true, RunMS: 300_000, Session: "s1", StartBy: 2, ToolID: "host.fs.stat", ToolName: "stat", V: 1,
		},
		"Wake": session.Wake{At: 1, Class: session.ClassWake, Due: 2, Effect: "w1", Session: "s1", StartBy: 2, V: 1},
		"InstallRecord": session.InstallRecord{
			Capabilities: []string{"crm.write"}, Config: &config, DefaultProfile: "mine", Policy: session.Policy{Coverage: "fail", Ingress: []string{"model"}},
			Profiles: fullProfiles(t), Rules: 1, V: 1, Tools: []planner.ToolSpec{withRef},
		},
		"ToolDescriptor": planner.Descriptor{ArgsSchema: schema, Description: "Looks up.", ToolName: "lookup"},
		"Snapshot":       session.Snapshot{Hash: hash, Install: hash, Leaf: hash, Rules: 1, Seq: 1, State: raw(t, `{"seq":1}`), V: 1},
	}
	plain := map[string]any{
		"SessionOpened": session.SessionOpened{Install: hash, Rules: 1},
		"RunQueued":     session.RunPlaced{Run: 1, Seq: 2, Submission: "a"},
		"RunStarted":    session.RunPlaced{Run: 1, Seq: 2, Submission: "a"},
		"RunFinished": session.RunFinished{
			Run: 1, Lifecycle: session.Failed, Code: "turns_max", Detail: "d", Output: &session.Content{Text: "so far"},
			OutputSeq: 9, Usage: total,
		},
		"EventRejected":      session.EventRejected{Seq: 2, Type: "RunRequested", Code: session.RejectQueueFull, Detail: "d"},
		"ToolRejected":       session.ToolRejected{Effect: "r1t1c0", ToolName: "stat", Code: "tool_unknown", Detail: "d"},
		"CallsPlanned":       session.CallsPlanned{Batch: "r1t1", PlanHash: hash.String(), Groups: [][]int{{0}, {1}}, Group: 1, Calls: []string{"r1t1c1"}},
		"SessionQuarantined": session.SessionQuarantined{Reason: "the fold panicked"},
		"Claim":              bus.ClaimBody{By: "01K5E2XJ5T6RNE2Y9V2S1P7M3Q"},
		"Quarantine":         host.Stop{Seq: 1, Reason: "r"},
		"View": session.View{
			Session: "s1", Status: "open", Lifecycle: session.Running, WaitsFor: "tools", Seq: 4, Events: 3, Hash: hash.String(), Chain: hash.String(),
			Clock: 1, Rules: 1, Install: hash.String(), Registry: hash.String(), Overrides: lists, Profile: "openai", HostSession: &session.ViewHost{ID: "h1", Status: "ready", Route: "b1"},
			Facts: []session.ViewFact{{Name: "region", Value: "eu"}}, Run: &viewRun, Queue: []session.ViewRun{viewRun},
			Last: &session.ViewEnded{Number: 1, Lifecycle: session.Failed, Code: "turns_max", Detail: "d"},
			Batch: &session.ViewBatch{Batch: "r1t1", Seq: 3, PlanHash: hash.String(), Groups: [][]int{{0}}, Group: 1, Excess: 1, Calls: []session.ViewCall{{
				Effect: "r1t1c0", ToolID: "host.exec", ToolName: "shell", Status: session.CallFailed, Code: "deadline_exceeded", Detail: "d",
				HostLoop: "desk", Arguments: "{}", Deadline: 5, IdempotencyKey: "s1.r1t1c0", RetrySafe: true,
			}}},
			Turn: &session.ViewTurn{Effect: "r1t1", Registry: hash.String(), Toolset: hash.String(), Base: "profile", Profile: "openai", Step: &session.ViewStep{
				Step: 1, From: session.StepFromProfile, Profile: "openai", Rule: ptr(2), Open: true, Code: "bad_settlement", Detail: "d",
				Failed: []session.ViewRuleFailed{{Rule: 1, Code: planner.WhenFailed}},
			}},
			Tools: []session.ViewTool{{ToolID: "host.exec", ToolName: "shell", Offered: true, Why: "offered", Place: 1}},
			Open:  []session.ViewEffect{{Effect: "r1t2", Class: session.ClassLLM, Target: "openai", Deadline: 5}}, Items: 1,
			Transcript: []session.ViewItem{{Role: session.RoleTool, Seq: 3, Call: 1, Code: "cancelled"}}, Usage: total,
		},
	}
	for name, m := range messageTypes {
		if slices.Contains(session.EventTypes(), name) || name == "Envelope" || name == "LiveDelta" {
			continue // TestFullEvents; TestWire
		}
		body, isPlain := plain[name]
		check := func() error { return s.check(name, jsonOf(t, body)) }
		if !isPlain {
			body = packed[name]
			check = func() error {
				text, err := codec.Marshal(body)
				if err != nil {
					return err
				}
				return s.packed(name, text)
			}
		}
		if body == nil || reflect.TypeOf(body) != m.typ {
			t.Errorf("%s: no value with all fields set; add one", name)
			continue
		}
		for _, unset := range unsetFields(reflect.ValueOf(body), name) {
			t.Errorf("%s is not set", unset)
		}
		if err := check(); err != nil {
			t.Error(err)
		}
	}
	record, err := codec.Marshal(packed["InstallRecord"])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.ParseInstall(record); err == nil || !strings.Contains(err.Error(), "tool_ref") {
		t.Errorf("the record with all fields set: got %v, want a complaint about its tool_ref alone", err)
	}
}

// TestSpoilt: every event is spoilt in every place and every way that this test
// knows. What its schema refuses the fold refuses, and the other way round.
func TestSpoilt(t *testing.T) {
	t.Parallel()
	s := readSchemas(t)
	for _, typ := range session.EventTypes() {
		t.Run(typ, func(t *testing.T) {
			t.Parallel()
			packed, err := codec.Marshal(full(t, typ, reach(t, typ)))
			if err != nil {
				t.Fatal(err)
			}
			text, err := codec.ToJSON(packed)
			if err != nil {
				t.Fatal(err)
			}
			var data any
			if err := json.Unmarshal(text, &data); err != nil {
				t.Fatal(err)
			}
			event := map[string]any{"v": 1, "id": "01K", "type": typ, "at": 1, "by": "ann", "data": data}
			refused, n := 0, 0
			spoil(event, "", func(at string, spoilt any) {
				n++
				payload := jsonOf(t, spoilt)
				bad := s.check("Envelope", payload)
				taken, notices := reach(t, typ).fold(s.doors(typ)[0], payload)
				if taken && bad != nil && !stricter(typ, at) || !taken && bad == nil && !looser(at) {
					t.Errorf("%s: taken by the fold: %v; schema: %v; notices %.300s", at, taken, bad, jsonOf(t, notices))
				}
				if !taken {
					refused++
				}
			})
			if n < 30 || refused < n/4 {
				t.Errorf("%d of %d spoilt messages were refused: is anything spoilt?", refused, n)
			}
		})
	}
}

// stricter reports the ways in which a schema refuses what the fold takes: it
// describes what to say, and the fold passes over what says nothing.
func stricter(typ, at string) bool {
	switch {
	case typ == session.TypeWakeSettled && strings.HasPrefix(at, "/data") && !strings.HasPrefix(at, "/data/effect"):
		return true // a wake has come, whatever else its settlement says
	case strings.HasSuffix(at, "/duration_ms = -1"), at == "/data/calls/1/size = -1":
		return true // nobody reckons with it
	case at == "/data/calls/1 - arguments_blob", at == "/data/calls/1/arguments_blob = null":
		return true // a size of nothing
	case typ == session.TypeToolOverridesSet && strings.HasSuffix(at, " = null"):
		return true // a list that is null counts as absent
	}
	// An optional object or list of a body that is null counts as absent.
	for _, field := range []string{"config", "deadlines_ms", "active_tools", "tool_refs", "step_hook", "text", "usage", "error", "host_session", "output"} {
		if strings.HasPrefix(at, "/data/") && strings.HasSuffix(at, "/"+field+" = null") {
			return true
		}
	}
	return false
}

// looser reports the places where the fold refuses what a schema can't tell.
func looser(at string) bool {
	return strings.HasSuffix(at, "/when = other") || // it is in a language of its own
		strings.Contains(at, "/args_schema") || // and so is this
		at == "/data - profiles" || // default_profile names one
		strings.HasPrefix(at, "/data/tools/0") && strings.Contains(at, "description") || // a rule names the descriptor by its hash
		strings.HasSuffix(at, "/resource_key = other") // it has a form
}

// spoil calls try with every variant of a value that differs in one place, and
// says where and how.
func spoil(value any, at string, try func(at string, spoilt any)) {
	with := func(how string, v any) { try(at+how, v) }
	switch v := value.(type) {
	case map[string]any:
		more := maps.Clone(v)
		more["zzz"] = 1
		with(" + zzz", more)
		with(" = text", "x")
		with(" = list", []any{})
		for _, key := range slices.Sorted(maps.Keys(v)) {
			fewer := maps.Clone(v)
			delete(fewer, key)
			with(" - "+key, fewer)
			spoil(v[key], at+"/"+key, func(where string, inner any) {
				changed := maps.Clone(v)
				changed[key] = inner
				try(where, changed)
			})
		}
		with(" = null", nil)
	case []any:
		with(" = text", "x")
		with(" = object", map[string]any{})
		with(" + number", append(slices.Clone(v), 7))
		with(" = 1100 times", slices.Repeat(v[:1], 1100))
		for i := range v {
			spoil(v[i], fmt.Sprintf("%s/%d", at, i), func(where string, inner any) {
				changed := slices.Clone(v)
				changed[i] = inner
				try(where, changed)
			})
		}
		with(" = null", nil)
	case string:
		with(" = number", 7)
		with(" = object", map[string]any{})
		with(" = long", strings.Repeat("x", 300_000))
		with(" = other", "x y")
	case float64:
		with(" = text", "7")
		with(" = fraction", 0.5)
		with(" = -1", -1)
		with(" = huge", 1<<52)
	case bool:
		with(" = number", 1)
	}
}
