package session_test

// Random registries, overrides, step rules and batches for random histories.

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// noRef is the name of content that nobody has.
var noRef = codec.Ref{Hash: codec.Sum([]byte("nothing"))}.String()

// drawTools draws a few tools of every kind, for bridges and host loops. Their
// ids are the same in every draw, so that lists of names often hold.
func drawTools(t *rapid.T) (tools []any, names []string) {
	tools = make([]any, rapid.IntRange(1, 6).Draw(t, "tools"))
	for i := range tools {
		name := fmt.Sprintf("t%d", i)
		schema := map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"type": "string"}}}
		tool := map[string]any{
			"tool_id": "x." + name, "tool_name": name, "args_schema": schema,
			"executor":      drawExecutor(t),
			"parallel_safe": rapid.IntRange(0, 3).Draw(t, "parallel_safe") > 0,
			"access":        rapid.SampledFrom([]string{"read", "write"}).Draw(t, "access"),
			"retry_safe":    rapid.Bool().Draw(t, "retry_safe"),
			"resource_key":  rapid.SampledFrom([]string{"", "k", "k:{a}", "j:{a}"}).Draw(t, "key"),
			"deadline_ms":   rapid.SampledFrom([]int{0, 1, 1000, session.DeadlineMaxMS / 2}).Draw(t, "deadline_ms"),
		}
		if tool["resource_key"] == "j:{a}" {
			tool["resource_kind"] = "path"
		}
		if rapid.IntRange(0, 2).Draw(t, "with rule") == 0 {
			tool["availability"] = []any{rapid.SampledFrom([]any{
				map[string]any{"kind": "always"}, map[string]any{"kind": "host_session_ready"}, map[string]any{"kind": "host_session_not_ready"},
				map[string]any{"kind": "fact", "name": "a", "equals": "x"}, map[string]any{"kind": "fact", "name": "b", "equals": "x"},
			}).Draw(t, "rule")}
		}
		if rapid.IntRange(0, 4).Draw(t, "with capability") == 0 {
			tool["requires"] = []any{rapid.SampledFrom([]string{"granted", "not granted"}).Draw(t, "capability")}
		}
		if rapid.IntRange(0, 2).Draw(t, "with approval") == 0 {
			tool["approval"] = rapid.SampledFrom([]string{"never", "always", "always", "args.a == '1'", "step > 0", "context.n == 1", "role('admin')"}).Draw(t, "approval")
		}
		if rapid.IntRange(0, 3).Draw(t, "with alternate") == 0 {
			tool["alternates"] = []any{map[string]any{"tool_name": name + "alt", "args_schema": schema, "description": "the same"}}
			names = append(names, name+"alt")
		}
		tools[i], names = tool, append(names, name)
	}
	return tools, names
}

// drawExecutor draws an executor of any kind.
func drawExecutor(t *rapid.T) map[string]any {
	kind := rapid.SampledFrom([]string{"effect", "effect", "effect", "host_loop", "reply", "sleep"}).Draw(t, "kind")
	executor := map[string]any{"kind": kind}
	switch kind {
	case "reply":
		executor["by"] = rapid.SampledFrom([]string{"approvers", "clients"}).Draw(t, "by")
		if rapid.Bool().Draw(t, "with result_schema") {
			executor["result_schema"] = map[string]any{"type": "integer"}
		}
	case "effect", "host_loop":
		executor["target"] = rapid.SampledFrom([]string{"x", "y"}).Draw(t, "target")
	}
	return executor
}

// toolOf returns the tool that an alternate's name is of.
func toolOf(name string) string { return strings.TrimSuffix(name, "alt") }

// drawProfiles draws the profiles openai and gemini, with step rules or without.
func drawProfiles(t *rapid.T, names []string, faults bool) []any {
	var profiles []any
	for _, name := range []string{"openai", "gemini"} {
		p := map[string]any{"profile": name, "tools": rapid.SliceOfDistinct(rapid.SampledFrom(names), toolOf).Draw(t, name)}
		if rapid.IntRange(0, 2).Draw(t, "with steps") == 0 {
			p["steps"] = drawRules(t, names, nil, faults)
		}
		profiles = append(profiles, p)
	}
	return profiles
}

// drawInstall draws an install record: tools, profiles of them, capabilities.
func drawInstall(t *rapid.T) (*session.Install, toolDraws) {
	draws := toolDraws{
		names:     []string{"nosuch"},
		arguments: []string{`{}`, ``, `{"a":"1"}`, `{"a":"2"}`, `{"a":"1/../2"}`, `{"a":1}`, `{`},
	}
	tools, names := drawTools(t)
	draws.names = append(draws.names, names...)
	some := func(what string) []string {
		return rapid.SliceOfDistinct(rapid.SampledFrom(names), toolOf).Draw(t, what)
	}
	record := map[string]any{
		"v": 1, "rules": 1, "tools": tools, "capabilities": []string{"granted"}, "profiles": drawProfiles(t, names, false),
		"config":              map[string]any{"provider": "p", "model": "m", "enable": some("enable"), "disable": some("disable")},
		"profile_by_provider": map[string]any{rapid.SampledFrom([]string{"P", "p", "other"}).Draw(t, "provider"): "openai"},
		"policy": map[string]any{
			"ingress":  rapid.SampledFrom([][]string{{}, {"roles", "steps", "provider", "model"}}).Draw(t, "ingress"),
			"approval": drawPolicy(t, names),
		},
	}
	text, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	install, err := session.ParseInstall(text)
	if err != nil {
		t.Fatalf("a drawn install record: %v", err)
	}
	return install, draws
}

// drawRegistrySet draws a registry: another one, that of the install record, or
// one with a fault.
func (l *laws) drawRegistrySet() (session.Door, []byte) {
	t := l.t
	tools, names := drawTools(t)
	if rapid.IntRange(0, 4).Draw(t, "as strict") > 0 {
		l.tighten(tools)
	}
	set := map[string]any{"tools": tools, "profiles": drawProfiles(t, names, true)}
	switch rapid.IntRange(0, 5).Draw(t, "registry") {
	case 0:
		set["default_profile"] = rapid.SampledFrom([]string{"gemini", "nosuch"}).Draw(t, "default")
	case 3:
		set["profile_by_provider"] = map[string]any{"p": rapid.SampledFrom([]string{"gemini", "nosuch"}).Draw(t, "the provider's")}
	case 1:
		set["tools"] = append(slices.Clone(tools), tools[0])
	case 2:
		reg := l.install.Registry
		data, err := codec.Marshal(session.ToolRegistrySet{Tools: reg.Tools(), Profiles: reg.Profiles(), ProfileByProvider: reg.ProfileByProvider(), DefaultProfile: reg.DefaultProfile()})
		if err != nil {
			t.Fatal(err)
		}
		payload, err := codec.Marshal(session.Envelope{Type: session.TypeToolRegistrySet, Data: data})
		if err != nil {
			t.Fatal(err)
		}
		return session.DoorCtl, payload
	}
	return say(session.DoorCtl, session.TypeToolRegistrySet, set)
}

// tighten makes of drawn tools what the install record takes in place of its
// own: as strict, or as much stricter as they were drawn.
func (l *laws) tighten(tools []any) {
	for _, drawn := range tools {
		tool := drawn.(map[string]any)
		at, known := l.install.Registry.Lookup(tool["tool_id"].(string))
		if !known {
			continue
		}
		spec := l.install.Registry.Tool(at)
		requires, _ := tool["requires"].([]any)
		for _, name := range spec.Requires {
			if !slices.Contains(requires, any(name)) {
				requires = append(requires, name)
			}
		}
		if tool["requires"] = requires; spec.Approval != planner.ApprovalNever && tool["approval"] != planner.ApprovalAlways {
			tool["approval"] = spec.Approval
		}
		tool["executor"] = map[string]any{"kind": spec.Executor.Kind, "target": spec.Executor.Target}
		tool["parallel_safe"] = tool["parallel_safe"].(bool) && spec.ParallelSafe
		tool["retry_safe"] = tool["retry_safe"].(bool) && spec.RetrySafe
		tool["access"], tool["resource_key"] = spec.Access, spec.ResourceKey
	}
}

func (l *laws) drawOverrides() (session.Door, []byte) {
	t := l.t
	data := map[string]any{"scope": rapid.SampledFrom([]string{"session", "run", "session", "run", "turn"}).Draw(t, "scope")}
	for _, list := range []string{"enable", "disable", "force"} {
		if rapid.Bool().Draw(t, "with "+list) {
			data[list] = rapid.SliceOfN(rapid.SampledFrom(l.tools.names), 0, 2).Draw(t, list)
		}
	}
	return say(session.DoorCtl, session.TypeToolOverridesSet, data)
}

// drawStepsOf adds to a config what step rules and hooks are made of.
func (l *laws) drawStepsOf(config map[string]any) {
	t := l.t
	switch rapid.IntRange(0, 8).Draw(t, "steps") {
	case 0, 1:
		config["steps"] = drawRules(t, l.tools.names, l.refs(), true)
	case 2, 3:
		hook := map[string]any{"hook": rapid.SampledFrom([]string{"h", "h", "h", "a.b"}).Draw(t, "hook")}
		hook["deadline_ms"] = rapid.SampledFrom([]int{0, 100, 1000}).Draw(t, "hook deadline")
		hook["fallback"] = rapid.SampledFrom([]string{"", "rules", "fail"}).Draw(t, "fallback")
		config["step_hook"] = hook
		if rapid.Bool().Draw(t, "and rules") {
			config["steps"] = drawRules(t, l.tools.names, l.refs(), true)
		}
	case 4:
		config["tool_refs"] = rapid.SliceOfN(rapid.SampledFrom(l.refs()), 0, 3).Draw(t, "tool_refs")
	case 5:
		config["tool_choice"] = rapid.SampledFrom(append([]string{"auto", "none", "required"}, l.tools.names...)).Draw(t, "tool_choice")
		config["system"], config["params"] = "own", map[string]any{"own": 1}
	}
}

// refs returns the names of the descriptors that there are, and one that is not.
func (l *laws) refs() []string {
	refs := []string{noRef}
	for _, b := range l.state.NextRegistry().Blobs() {
		refs = append(refs, b.Ref.String())
	}
	return refs
}

// drawRules draws step rules, with faults seldom with one.
func drawRules(t *rapid.T, names, refs []string, faults bool) []any {
	first, other := names[len(names)/2], names[len(names)-1]
	whens := []string{
		"", "true", "step == 0", "step > 0", "step % 2 == 1", "used('" + first + "')", "!used('" + other + "')", "'" + first + "' in last",
		"size(last) > 1", "fact('a') == 'x'", "role('admin')", "context.n == 1", "!has(context.n)", "usage.input_tokens > 7",
		"calls.exists(c, c.status == 'failed')", "calls.exists_one(c, c.name == '" + first + "' && c.status == 'succeeded')", "calls.all(c, c.tool.contains('x'))",
		"last.all(a, last.all(b, last.all(c, last.all(d, a == b && c == d))))",
	}
	if faults && rapid.IntRange(0, 9).Draw(t, "with a fault") == 0 {
		whens = append(whens, "step +", "used('nosuch')")
	}
	rules := make([]any, rapid.IntRange(0, 3).Draw(t, "rules"))
	for i := range rules {
		rules[i] = drawChoice(t, map[string]any{"when": rapid.SampledFrom(whens).Draw(t, "when")}, names, refs)
	}
	return rules
}

// drawChoice adds to data what a rule or a hook says.
func drawChoice(t *rapid.T, data map[string]any, names, refs []string) map[string]any {
	switch rapid.IntRange(0, 5).Draw(t, "tools") {
	case 0, 1:
		data["active_tools"] = rapid.SliceOfN(rapid.SampledFrom(names), 0, 3).Draw(t, "active_tools")
	case 2:
		if refs != nil {
			data["tool_refs"] = rapid.SliceOfN(rapid.SampledFrom(refs), 0, 2).Draw(t, "tool_refs")
		}
	}
	switch rapid.IntRange(0, 5).Draw(t, "choice") {
	case 0:
		data["tool_choice"] = rapid.SampledFrom(append([]string{"auto", "none", "required"}, names...)).Draw(t, "tool_choice")
	case 1:
		data["context"] = map[string]any{"n": rapid.IntRange(0, 2).Draw(t, "n")}
	case 2:
		data["model"], data["system"] = "step's", "step's"
	case 3:
		data["params"], data["context"] = map[string]any{"step": true}, map[string]any{}
	}
	return data
}

// drawPrepared draws a hook's answer: good, failed, or not to be understood.
func (l *laws) drawPrepared(effect string) (session.Door, []byte) {
	t := l.t
	data := map[string]any{"effect": effect, "status": rapid.SampledFrom([]string{"ok", "ok", "ok", "failed", "odd"}).Draw(t, "status")}
	if rapid.IntRange(0, 2).Draw(t, "empty") > 0 {
		data = drawChoice(t, data, l.tools.names, l.refs())
	}
	if data["status"] == "failed" && rapid.IntRange(0, 3).Draw(t, "with error") > 0 {
		data["error"] = map[string]any{"code": "down", "detail": "for repair"}
	}
	return say(session.DoorStep, session.TypeStepPrepared, data)
}

// hostLoopCalls returns the names of the calls that a host loop is to carry
// out now.
func (l *laws) hostLoopCalls() []string {
	var names []string
	batch := l.state.View().Batch
	if batch == nil {
		return nil
	}
	for _, c := range batch.Calls {
		if c.HostLoop != "" && c.Status == session.CallOpen {
			names = append(names, c.Effect)
		}
	}
	return names
}

// replies returns the calls that wait for a reply.
func (l *laws) replies() (calls []session.ViewCall) {
	if batch := l.state.View().Batch; batch != nil {
		for _, c := range batch.Calls {
			if c.Kind == "reply" && c.Status == session.CallOpen {
				calls = append(calls, c)
			}
		}
	}
	return calls
}

// drawReply draws an answer to a call that waits for one: mostly a good one.
func drawReply(t *rapid.T, c session.ViewCall) (session.Door, []byte) {
	data := map[string]any{"call": c.Effect, "args_hash": c.ArgsHash}
	switch rapid.IntRange(0, 7).Draw(t, "reply") {
	case 0:
		data["declined"] = "no"
	case 1:
		data["args_hash"] = noRef[len("sha256-"):]
		data["output"] = map[string]any{"text": "7"}
	default:
		data["output"] = map[string]any{"text": rapid.SampledFrom([]string{"7", "7", "7", "seven", ""}).Draw(t, "output")}
	}
	return say(rapid.SampledFrom([]session.Door{session.DoorApprove, session.DoorApprove, session.DoorIn, session.DoorCtl}).Draw(t, "door"), session.TypeReplyGiven, data)
}

// drawBatchSettled draws what a host loop says of a whole batch: mostly well,
// sometimes in part, twice, or of what is not there.
func (l *laws) drawBatchSettled(name string) (session.Door, []byte) {
	t, s := l.t, l.state
	var results []any
	calls := 0
	if s.Turn != nil && s.Turn.Batch != nil {
		calls = len(s.Turn.Batch.Calls)
	} else if s.Done != nil && rapid.Bool().Draw(t, "the last batch") {
		name, calls = fmt.Sprintf("r%dt%d", s.Done.Run, s.Done.Turn), len(s.Done.Results)
	}
	all := rapid.Bool().Draw(t, "those with results too")
	for i := range calls {
		if b := s.Turn.Batch; b == nil || all || b.Calls[i].Status == session.CallWaiting || b.Calls[i].Status == session.CallOpen ||
			b.Calls[i].Status == session.CallAwaiting {
			r := map[string]any{"effect": fmt.Sprintf("%sc%d", name, i), "status": "succeeded"}
			switch rapid.IntRange(0, 5).Draw(t, "result") {
			case 0:
				r["status"] = rapid.SampledFrom([]string{"failed", "failed", "cancelled", "outcome_unknown", "odd"}).Draw(t, "status")
				r["error"] = drawFault(t)
			case 1:
				r["host_session"] = map[string]any{"id": "h2", "status": rapid.SampledFrom([]string{"ready", "closed", "none"}).Draw(t, "host")}
			case 2:
				r["output"] = map[string]any{"text": "out"}
			}
			results = append(results, r)
		}
	}
	hash := s.LastPlan.String()
	switch rapid.IntRange(0, 9).Draw(t, "amiss") {
	case 0:
		hash = noRef[len("sha256-"):]
	case 1:
		if len(results) > 0 {
			results = results[1:]
		}
	case 2:
		if len(results) > 0 {
			results = append(results, maps.Clone(results[0].(map[string]any)))
		}
	case 3:
		results = append(results, map[string]any{"effect": name + "c63", "status": "failed"})
	}
	return say(session.DoorTool, session.TypeToolBatchSettled, map[string]any{"batch": name, "plan_hash": hash, "results": append([]any{}, results...)})
}
