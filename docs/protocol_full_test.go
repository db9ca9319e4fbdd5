package docs_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// full returns every event's body with all its fields set, each of which the
// fold takes when reach has led it there: what is below, or its example. f is the session that reach led.
func full(t *testing.T, typ string, f *folding) any {
	t.Helper()
	content := &session.Content{Parts: []session.Content{
		{Text: "Look at this:"}, {Blob: ptr(codec.RefOf([]byte("x"))), MediaType: "text/plain", Name: "a.txt", Size: 1},
	}}
	usage := &session.Usage{CacheWriteTokens: 5, CachedTokens: 1, InputTokens: 2, OutputTokens: 3, ReasoningTokens: 4}
	fault := &session.Fault{Code: "overloaded", Detail: "try later", Retryable: true}
	opaque := raw(t, `[{"id":"rs_1"}]`)
	switch typ {
	case session.TypeRunRequested:
		config := fullConfig(t)
		return session.RunRequested{Agent: f.state.Definition().String(), Config: &config, Input: *content, Roles: []string{"editor"}, Submission: "a1", WhenBusy: "reject"}
	case session.TypeApprovalDecided:
		return session.ApprovalDecided{
			ArgsHash: codec.Sum([]byte("{}")).String(), Arguments: `{"sum":3}`, Call: "r1t1c0", Decision: session.DecisionApprove, Manifest: codec.Sum(nil).String(), Reason: "so it is",
		}
	case session.TypeSessionConfigured:
		return session.SessionConfigured{RunConfig: fullConfig(t), QueueMax: 3}
	case session.TypeScheduleSet:
		config := fullConfig(t)
		return session.ScheduleSet{
			At: f.time, CatchUp: session.CatchUpNone, Config: &config, Cron: "0 9 * * 1-5", Input: *content, Name: "weekday-report", Next: f.time + 1,
			Rev: f.seq, Roles: []string{"editor"}, WhenBusy: session.ScheduleBusyQueue, Zone: "Europe/Berlin",
		}
	case session.TypeToolRegistrySet:
		return session.ToolRegistrySet{
			DefaultProfile: "mine", ProfileByProvider: codec.Pairs{{Key: "claude", Value: raw(t, `"mine"`)}}, Profiles: fullProfiles(t), Tools: []planner.ToolSpec{fullTool(t), fullQuestion(t), fullTeam(t)},
		}
	case session.TypeChildRequested:
		return session.ChildRequested{
			Call: "r1t1c0", Config: fullConfig(t), Depth: 1, Facts: codec.Pairs{{Key: "role", Value: raw(t, `"admin"`)}}, Input: *content, Keep: true,
			Origin: session.Origin{Run: 1, Session: "p1"}, Parent: "p1", Registry: f.install.Registry.Bytes(), Roles: []string{"editor"}, Root: "p1",
		}
	case session.TypeChildSettled:
		return session.ChildSettled{Cost: 7, Effect: "r1t1c0", Error: fault, Kept: true, Output: content, Status: "failed", Usage: usage}
	case session.TypeToolCallsObserved:
		return session.ToolCallsObserved{
			Calls: []session.ObservedCall{
				{Arguments: "{}", ProviderCallID: "call_1", ToolName: "open_session"},
				{ArgumentsBlob: ptr(codec.RefOf([]byte("x"))), ProviderCallID: "call_2", Size: 300_000, ToolName: "open_session"},
			},
			Effect: "r1t1", FinishReason: "length", Model: "m1-2026", Opaque: opaque, Text: content, Usage: usage,
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
	}
	if body := fullControl(typ, content); body != nil {
		return body
	}
	if body := fullSpace(typ); body != nil {
		return body
	}
	for _, b := range fenced(t, protocolDoc, "json") {
		if name, _, _ := strings.Cut(b.tag, " "); name == typ {
			body := session.EventBody(typ)
			if err := codec.Decode(raw(t, b.text), body); err != nil {
				t.Fatal(err)
			}
			return reflect.ValueOf(body).Elem().Interface()
		}
	}
	t.Fatalf("%s: no value with all fields set: add them to its example in %s", typ, protocolDoc)
	return nil
}

// fullControl is full for what is asked of a run that there is.
func fullControl(typ string, content *session.Content) any {
	switch typ {
	case session.TypeSteerRequested:
		return session.SteerRequested{Input: *content, Run: 1}
	case session.TypeRunEdited:
		return session.RunEdited{Input: *content, Run: 2}
	case session.TypeRunResumeRequested:
		return session.RunResumeRequested{Budget: fullBudget(), Reason: "back", Run: 1}
	}
	return nil
}

func fullBudget() *session.Budget {
	return &session.Budget{Cost: 1_000_000, OnBreach: session.BreachFail, SessionCost: 2_000_000, SessionTokens: 200_000, Tokens: 100_000}
}

func fullFormat(t *testing.T) codec.Raw {
	t.Helper()
	return raw(t, `{"name":"person","repairs":2,"schema":{"type":"object"},"strict":true,"type":"json_schema"}`)
}

func fullConfig(t *testing.T) session.RunConfig {
	t.Helper()
	config := session.RunConfig{
		ActiveTools: &[]string{"read_file", "host.exec"}, Budget: fullBudget(), Completion: session.CompletionExplicit,
		DeadlinesMS: &session.DeadlinesMS{Approval: 3_600_000, Call: 60_000, Child: 3_600_000, Reply: 3_600_000, Run: 7_200_000, Turn: 120_000},
		Disable:     []string{"shell"}, Enable: []string{"edit_file"}, Force: []string{"host.fs.stat"}, Model: "m1",
		Params: raw(t, `{"temperature":0.5}`), Profile: "gemini", PromptPack: "default", PromptRefs: &[]codec.Ref{codec.RefOf([]byte("x"))}, Provider: "openai",
		Prices:   &session.Prices{CacheRead: 125_000, CacheWrite: 1_562_500, Input: 1_250_000, Models: []session.ModelPrice{{CacheRead: 1, CacheWrite: 2, Input: 3, Model: "large", Output: 4}}, Output: 10_000_000},
		CacheTTL: session.CacheTTLLong, ToolsMode: session.ToolsMasked,
		ResponseFormat: fullFormat(t),
		Retry:          &session.Retry{Attempts: 3, BackoffMS: 500, BackoffMaxMS: 60_000, Codes: []string{"overloaded"}},
		Skills:         []string{"refunds"},
		StepHook:       &session.StepHook{DeadlineMS: 5000, Fallback: session.FallbackRules, Hook: "h"},
		Steps:          fullSteps(t, planner.Builtin().Tools, "open_session"), System: "Be brief.", ToolCatalog: "default", ToolChoice: "required", TurnsMax: 7, Workspace: supportManifest().Hash().String(),
	}
	// A field that is not here has a value that its schema names or allows.
	v, schemas := reflect.ValueOf(&config).Elem(), readSchemas(t)
	for field := range fieldsOf(v.Type()) {
		if of := v.FieldByIndex(field.Index); of.IsZero() && field.Name != "ToolRefs" {
			name, _, _ := strings.Cut(field.Tag.Get("msgpack"), ",")
			value := doorsValue(t, schemas, doorsValues(t), name)[0]
			if err := codec.Decode(raw(t, value), of.Addr().Interface()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	return config
}

// fullSteps returns two step rules: the tools of a step are named in one of
// two ways.
func fullSteps(t *testing.T, tools []planner.ToolSpec, tool string) []planner.StepRule {
	t.Helper()
	registry, err := planner.NewRegistry(tools, nil, "", nil)
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
		Approval: `args.who != "me"`, ArgsSchema: schema, Availability: []planner.Rule{{Kind: planner.RuleFact, Name: "region", Equals: "eu"}},
		DeadlineMS: 1000, Description: "Looks up.", Executor: planner.Executor{Kind: planner.ExecutorEffect, Target: "crm"}, ParallelSafe: true,
		Requires: []string{"crm.write"}, ResourceKey: "crm:{who}", ResourceKind: planner.ResourcePath, RetrySafe: true, ToolID: "crm.lookup", ToolName: "lookup",
	}
}

// fullQuestion is fullTool for a tool that nobody carries out.
func fullQuestion(t *testing.T) planner.ToolSpec {
	t.Helper()
	tool := fullTool(t)
	tool.ToolID, tool.ToolName, tool.Alternates[0].ToolName = "desk.confirm", "confirm", "sure"
	tool.ResourceKey = "desk:{who}"
	tool.Executor = planner.Executor{By: planner.ByClients, Kind: planner.ExecutorReply, ResultSchema: raw(t, `{"type":"object"}`)}
	return tool
}

// fullTeam is fullTool for a tool that another session carries out.
func fullTeam(t *testing.T) planner.ToolSpec {
	t.Helper()
	tool := fullTool(t)
	tool.ToolID, tool.ToolName, tool.Alternates[0].ToolName = "crew.lookup", "crew", "band"
	tool.ResourceKey = "team:{who}"
	tool.Executor = planner.Executor{Agent: raw(t, `{"system":"Be brief."}`), Inherit: []string{planner.InheritFacts}, Keep: true, Kind: planner.ExecutorSession}
	return tool
}

func fullProfiles(t *testing.T) []planner.Profile {
	t.Helper()
	return []planner.Profile{{Profile: "mine", Steps: fullSteps(t, []planner.ToolSpec{fullTool(t)}, "crm.lookup"), Tools: []string{"crm.lookup"}}}
}

// fullInstall is an install record with all its fields.
func fullInstall(t *testing.T) session.InstallRecord {
	t.Helper()
	config, tools := fullConfig(t), []planner.ToolSpec{fullTool(t), fullQuestion(t), fullTeam(t)}
	own := []string{"crm.lookup"}
	config.ActiveTools, config.Disable, config.Enable, config.Force, config.Profile = &own, own, own, own, "mine"
	config.Steps = fullSteps(t, tools, own[0])
	grant := fullGrant()
	manifest := supportManifest()
	manifest.Catalogs[0].Tools = []codec.Raw{space.Entry{Tool: own[0]}.Raw()}
	grant.Manifest, config.Workspace = manifest.Bytes(), manifest.Hash().String()
	pack := packGrant()
	pack.Space = "crm"
	return session.InstallRecord{
		Spaces:       []spaces.Grant{grant, pack},
		Capabilities: []string{"crm.write"}, Config: &config, DefaultProfile: "mine", Policy: session.Policy{
			Approval: []planner.ApprovalRule{{Decision: planner.Deny, Tools: []string{"lookup"}, When: `args.who == "me"`}},
			Coverage: session.CoverageFail, Ingress: []string{"model"},
		}, ProfileByProvider: codec.Pairs{{Key: "openai", Value: raw(t, `"mine"`)}}, Profiles: fullProfiles(t), Rules: 1, Tools: tools, V: 1,
	}
}

// fullResult returns the result of the first call.
func fullResult(f *folding, content *session.Content, fault *session.Fault) session.ToolCallSettled {
	return session.ToolCallSettled{
		DurationMS: 12, Effect: "r1t1c0", Error: fault, HostSession: &session.HostSession{ID: "h1", Root: "/w", Route: "b1", Status: "error"},
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
