package docs_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
	"github.com/refold/refold/subjects"
)

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
				if resume, ok := body.(session.RunResumeRequested); ok && door == session.DoorIn {
					resume.Budget = nil // TestLargerBudget
					body = resume
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

// TestLargerBudget: what may not come through every door of its event. A
// client may resume a run, and not raise its budget.
func TestLargerBudget(t *testing.T) {
	t.Parallel()
	payload := jsonOf(t, map[string]any{"type": session.TypeRunResumeRequested, "data": map[string]any{"budget": map[string]any{"tokens": 5}}})
	for door, want := range map[session.Door]bool{session.DoorIn: false, session.DoorCtl: true} {
		taken, notices := reach(t, session.TypeRunResumeRequested).fold(door, payload)
		if taken != want {
			t.Errorf("through %s: taken %v, want %v", door, taken, want)
		}
		if want {
			continue
		}
		if rejected, _ := notices[len(notices)-1].Data.(session.EventRejected); rejected.Code != session.RejectNotPermitted {
			t.Errorf("through %s: got %q, want %q", door, rejected.Code, session.RejectNotPermitted)
		}
	}
}

// oneOf are the types of which not all fields can be set at once.
var oneOf = []reflect.Type{
	reflect.TypeFor[session.Content](), reflect.TypeFor[journal.ClaimBody](), reflect.TypeFor[planner.Rule](), reflect.TypeFor[session.ObservedCall](),
}

// eitherOr are the fields in place of which another one may be set.
var eitherOr = map[string]string{"ActiveTools": "ToolRefs", "ToolRefs": "ActiveTools", "Dry": "Apply", "Only": "Grant", "Manifest": "Digests"}

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
			if other := eitherOr[field.Name]; other != "" && v.FieldByName(other).IsValid() && !v.FieldByName(other).IsZero() || field.Name == "ToolRef" || v.Type() == reflect.TypeFor[planner.ToolSpec]() && field.Name == "Needs" { // needs are for packs
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
	grant := packGrant()
	grant.Manifest = supportManifest().Bytes()
	withRef := fullTool(t)
	withRef.ToolRef = &ref
	lists := &session.ViewLists{Enable: []string{"edit_file"}, Disable: []string{"shell"}, Force: []string{"stat"}}
	total := session.UsageTotal{CacheWriteTokens: 5, CachedTokens: 1, InputTokens: 2, OutputTokens: 3, ReasoningTokens: 4}
	over := &session.OverBudget{Budget: "tokens", Limit: 100, Used: 180}
	trouble := session.Trouble{Target: "llm/openai", Code: "network", Detail: "d", Since: 1, Next: 5, Effects: []string{"r1t1"}}
	viewRun := session.ViewRun{
		Number: 1, Seq: 2, Submission: "a", Provider: "openai", Model: "m1", Turns: 1, TurnsMax: 100, Usage: total, Roles: []string{"editor"}, Overrides: lists,
		Cost: 546, Steers: []uint64{7}, Deadline: 5, Budget: fullBudget(), Spent: true, RetryAt: 5, Attempt: 2, Repairs: 1, FinishReason: "refusal",
		Context: []byte(`{"phase":"find"}`), Used: []string{"host.exec"}, Workspace: "none",
	}
	viewSpace := session.ViewSpace{
		Space: "support", Hash: hash.String(), Version: "1.4.2", Mode: session.ModeNextRun, PromptPack: "default", ToolCatalog: "default", Lacks: []string{"bin:jq"},
		Tools: []string{"crm.find"},
	}
	packed := map[string]any{
		"Generation": session.Generation{
			At: 1, CacheTTL: session.CacheTTLLong, Class: session.ClassLLM, Defined: []codec.Hash{hash}, Effect: "r1t1", Items: session.ListItems(session.Item{Role: session.RoleAssistant, Seq: 2}, session.Item{Code: "cancelled", Detail: "d", Edit: 2, Role: session.RoleTool, Seq: 3}),
			Model: "m1", OutputTokensMax: 16, Params: raw(t, `{"seed":1}`), Provider: "openai", ResponseFormat: fullFormat(t), RunMS: 300_000, Session: "s1", StartBy: 2, System: "Be brief.",
			Prompt: []session.PromptPart{{Input: 1, MediaType: "image/png", Names: []string{"a.png"}, Ref: hash, Role: session.PromptImage}}, PromptMark: &hash,
			ToolChoice: "auto", Tools: []codec.Hash{hash}, Toolset: hash, V: 1, Vars: codec.Pairs{{Key: "run", Value: raw(t, `"r1"`)}},
		},
		"Step": session.Step{
			At: 1, Calls: []session.StepCall{{
				Arguments: "{", ArgumentsCut: true, CallsSeq: 4, Code: "tool_disabled", Edit: 5, Effect: "r1t2c0", Seq: 6,
				Status: session.CallIgnored, Step: 1, ToolID: "host.exec", ToolName: "shell",
			}},
			Class: session.ClassStep, Context: raw(t, `{"phase":2}`), Effect: "r1t3s", Facts: codec.Pairs{{Key: "region", Value: raw(t, `"eu"`)}},
			Hook: "h", InputSeq: 3, Items: session.ListItems(session.Item{Role: session.RoleAssistant, Seq: 6}, session.Item{Role: session.RoleTool, Seq: 7, Code: "tool_disabled", Detail: "d", Edit: 5}), ItemsCut: true, Tools: []session.StepTool{{ToolID: "host.exec", ToolName: "shell"}}, Model: "m1", Provider: "openai", Roles: []string{"editor"}, RunMS: 15_000, Session: "s1", StartBy: 2, Step: 2, Usage: total,
			Used: []string{"host.exec"}, V: 1,
		},
		"ToolCall": session.ToolCall{
			Arguments: "{}", At: 1, Batch: "r1t1", Call: 1, Class: session.ClassTool, Context: raw(t, `{"phase":2}`), Effect: "r1t1c1",
			HostSession: &session.HostSession{ID: "h1", Root: "/w", Route: "b1", Status: "ready"}, IdempotencyKey: "s1.r1t1c1", PlanHash: hash,
			ProviderCallID: "call_1", RetrySafe: true, RunMS: 300_000, Session: "s1", StartBy: 2, ToolID: "host.fs.stat", ToolName: "stat", V: 1,
			Grants: []session.UsedGrant{{Attach: []string{session.AttachModel}, Kind: space.Pack, Sources: []string{session.SourceModule}, Space: "crm", Target: "files", Trust: *fullTrust()}},
			Spaces: []session.UsedSpace{{At: 1, Hash: hash, Kind: space.Workspace, Source: "module", Space: "support", Version: "1.4.2"}},
		},
		"Space": session.Space{
			Trust: fullTrust(),
			At:    1, Call: "r1t1c0", Class: session.ClassSpace, Dry: true, Tools: 7, Effect: "y1", Kind: space.Workspace, Known: []codec.Hash{hash}, Only: []string{session.OnlyTools},
			RunMS: 60_000, Session: "s1", Space: "support", StartBy: 2, V: 1, Version: "1.4",
		},
		"Manifest": fullManifest(t),
		"Wake":     session.Wake{At: 1, Class: session.ClassWake, Due: 2, Effect: "w1", Session: "s1", StartBy: 2, V: 1},
		"InstallRecord": session.InstallRecord{
			Capabilities: []string{"crm.write"}, Config: &config, DefaultProfile: "mine", Policy: session.Policy{
				Approval: []planner.ApprovalRule{{Decision: planner.Deny, Tools: []string{"lookup"}, When: `args.who == "me"`}},
				Coverage: "fail", Ingress: []string{"model"}, IngressTools: session.IngressReplace, Skills: session.SkillsIgnore,
			},
			Spaces:            []session.Grant{grant},
			ProfileByProvider: codec.Pairs{{Key: "claude", Value: raw(t, `"mine"`)}}, Profiles: fullProfiles(t), Rules: 1, V: 1, Tools: []planner.ToolSpec{withRef},
		},
		"ToolDescriptor": planner.Descriptor{ArgsSchema: schema, Description: "Looks up.", ToolName: "lookup"},
		"Snapshot":       session.Snapshot{Hash: hash, Install: hash, Leaf: hash, Rules: 1, Seq: 1, State: raw(t, `{"seq":1}`), V: 1},
	}
	plain := map[string]any{
		"SessionOpened": session.SessionOpened{Install: hash, Rules: 1},
		"RunQueued":     session.RunPlaced{Run: 1, Seq: 2, Provider: "openai", Model: "m", Submission: "a", Ignored: []string{"nosuch"}},
		"RunStarted":    session.RunPlaced{Run: 1, Seq: 2, Provider: "openai", Model: "m", Submission: "a", Ignored: []string{"nosuch"}},
		"RunFinished": session.RunFinished{
			Run: 1, Lifecycle: session.Failed, Code: "turns_max", Detail: "d", Output: &session.Content{Text: "so far"},
			OutputSeq: 9, FinishReason: "length", Usage: total, Cost: 546, OverBudget: over, Untaken: []uint64{7},
		},
		"ApprovalRequested": session.ApprovalRequested{
			Call: "r1t1c0", ToolID: "host.exec", ToolName: "shell", Arguments: "{}", ArgumentsSeq: 3, ArgsHash: hash.String(), Deadline: 5,
			Grant: &session.ApprovalGrant{Space: "crm", Target: "files", Version: "1", Targets: []string{"crm-v1"}, Digests: []string{hash.String()}, Keys: []string{fullKey()}}, Pack: fullPack(),
		},
		"WorkspaceStaged": session.WorkspaceStaged{
			Workspace: "support", Kind: space.Workspace, Hash: hash.String(), Effect: "y1", Outcome: session.OutcomeStaged, Version: "1.4.2",
			Revision: "4f1c2d7", Warnings: []space.Problem{{Code: space.NoIndex, Detail: "d", File: "f", Line: 1, Path: "p"}}, Lacks: []string{"bin:jq"},
		},
		"WorkspaceApplied": session.WorkspaceApplied{
			Workspace: "support", Kind: space.Workspace, Hash: hash.String(), Mode: session.ModeNextRun, Version: "1.4.2", PromptPack: "short",
			ToolCatalog: "two", Registry: hash.String(), ToolsAdded: []string{"crm.find"}, ToolsRemoved: []string{"crm.pay"},
			Warnings: []space.Problem{{Code: space.UnknownTool, Detail: "d", File: "f", Line: 1, Path: "p"}},
		},
		"WorkspaceFailed": session.WorkspaceFailed{
			Workspace: "support", Kind: space.Workspace, Hash: hash.String(), Effect: "y1", Code: "workspace_invalid", Detail: "d",
			Problems: []space.Problem{{Code: space.NoIndex, Detail: "d", File: "f", Line: 1, Path: "p"}},
		},
		"WorkspaceGone":      session.WorkspaceGone{Workspace: "support", Kind: space.Workspace, Hash: hash.String(), ToolsRemoved: []string{"crm.find"}},
		"WorkspaceDisplaced": session.WorkspaceDisplaced{Workspace: "support", Kind: space.Workspace, Hash: hash.String(), By: "sales", ByHash: hash.String()},
		"TurnSettled": session.TurnSettled{
			Effect: "r1t1", Calls: 2, Text: "so", TextBytes: 9000, FinishReason: "stop", Code: "overloaded", Detail: "d", Invalid: "d", RetryAt: 5, Usage: total,
		},
		"CallSettled": session.CallSettled{
			Effect: "r1t1c0", ToolName: "look", Status: session.CallFailed, Code: "timeout", Detail: "d", DurationMS: 7, Output: "so", OutputBytes: 9000,
		},
		"BudgetExceeded":     session.BudgetExceeded{Run: 1, Budget: "tokens", Limit: 100, Used: 180, Estimate: 40},
		"EventRejected":      session.EventRejected{Seq: 2, Type: "RunRequested", Code: session.RejectQueueFull, Detail: "d"},
		"ToolRejected":       session.ToolRejected{Effect: "r1t1c0", ToolName: "stat", Code: "tool_unknown", Detail: "d"},
		"CallsPlanned":       session.CallsPlanned{Batch: "r1t1", PlanHash: hash.String(), Groups: [][]int{{0}, {1}}, Group: 1, Calls: []string{"r1t1c1"}},
		"SessionQuarantined": session.SessionQuarantined{Reason: "the fold panicked"},
		"Claim":              journal.ClaimBody{By: "01K5E2XJ5T6RNE2Y9V2S1P7M3Q", Hash: codec.Sum(nil).String()},
		"Quarantine":         engine.Stop{Seq: 1, Reason: "r", Kills: 2, Retried: true, Released: true},
		"View": session.View{
			Session: "s1", Status: "open", Lifecycle: session.Running, WaitsFor: "tools", Quarantined: &session.ViewQuarantine{Seq: 5, Reason: "r"}, Unserved: []string{"llm/openai"}, Troubles: []session.Trouble{trouble}, Seq: 4, Events: 3, Hash: hash.String(), Chain: hash.String(),
			Clock: 1, Rules: 1, Install: hash.String(), ViewSpaces: session.ViewSpaces{
				Workspace: &viewSpace, Packs: []session.ViewSpace{viewSpace}, Staged: []session.ViewSpace{viewSpace}, Pending: []session.ViewSpace{viewSpace},
				Syncs: []session.ViewSync{{Effect: "y1", Space: "support", Deadline: 5}}, Skills: []session.ViewSkill{{Skill: "refunds", Space: "support", Active: true, Why: "w"}},
			}, Registry: hash.String(), Overrides: lists, Profile: "openai", HostSession: &session.ViewHost{ID: "h1", Status: "ready", Root: "/w", Route: "b1"},
			Facts: []session.ViewFact{{Name: "region", Value: "eu"}}, Run: &viewRun, Queue: []session.ViewRun{viewRun},
			Last: &session.ViewEnded{Number: 1, Lifecycle: session.Failed, Code: "turns_max", Detail: "d", FinishReason: "length", OverBudget: over},
			Batch: &session.ViewBatch{Batch: "r1t1", Seq: 3, PlanHash: hash.String(), Groups: [][]int{{0}}, Group: 1, Excess: 1, Calls: []session.ViewCall{{
				Effect: "r1t1c0", ToolID: "host.exec", ToolName: "shell", Status: session.CallFailed, Code: "deadline_exceeded", Detail: "d",
				HostLoop: "desk", Arguments: "{}", Deadline: 5, IdempotencyKey: "s1.r1t1c0", RetrySafe: true,
				ArgsHash: hash.String(), Pack: fullPack(),
			}}},
			Turn: &session.ViewTurn{Effect: "r1t1", Registry: hash.String(), Toolset: hash.String(), Base: "profile", Profile: "openai", ProfileWhy: "selected for the session", Workspace: &viewSpace,
				Prompt: &session.ViewPrompt{Mark: hash.String(), Parts: []session.ViewPromptPart{{Role: "image", Space: "support", Path: "a.png", Hash: hash.String(), Size: 1, Skills: []string{"refunds"}}}}, Step: &session.ViewStep{
					Step: 1, From: session.StepFromProfile, Profile: "openai", Rule: ptr(2), Open: true, Code: "bad_settlement", Detail: "d",
					Failed: []session.ViewRuleFailed{{Rule: 1, Code: planner.WhenFailed}},
				}},
			Tools: []session.ViewTool{{ToolID: "host.exec", ToolName: "shell", Offered: true, Why: "offered", Place: 1}},
			Open:  []session.ViewEffect{{Effect: "r1t2", Class: session.ClassLLM, Target: "openai", Deadline: 5}}, Items: 1,
			Transcript: []session.ViewItem{{Role: session.RoleTool, Seq: 3, Call: 1, Code: "cancelled", Edit: 2}}, Usage: total, Cost: 546,
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
