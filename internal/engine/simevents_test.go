package engine

// What the simulation publishes: events that fit what a session waits for, or
// don't, drawn by seed.

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// simTypes are the events that must have had an effect in the simulation.
var simTypes = []string{
	session.TypeRunRequested, session.TypeToolRegistrySet, session.TypeToolOverridesSet, session.TypeToolCallsObserved,
	session.TypeGenerationSettled, session.TypeToolCallSettled, session.TypeToolBatchSettled, session.TypeStepPrepared, session.TypeWakeSettled,
	session.TypeRunCancelRequested, session.TypeRunInterrupt, session.TypeRunPauseRequested, session.TypeRunResumeRequested, session.TypeSteerRequested,
	session.TypeApprovalDecided, session.TypeWorkspaceSyncRequested, session.TypeWorkspaceApplyRequested, session.TypeWorkspaceDetached,
	session.TypeWorkspaceSnapshotReady, session.TypeWorkspaceSyncUnchanged, session.TypeWorkspaceSyncFailed,
}

// simTool is a tool of a registry in the simulation; its executor's target
// is x.
func simTool(name, kind string, more map[string]any) map[string]any {
	tool := map[string]any{
		"tool_id": "x." + name, "tool_name": name, "args_schema": map[string]any{"type": "object"},
		"executor": map[string]any{"kind": kind, "target": "x"}, "parallel_safe": true,
	}
	for key, value := range more {
		tool[key] = value
	}
	return tool
}

// simRegistries are the registries that sessions set: every one has the tools
// that overrides and rules name.
func simRegistries() []map[string]any {
	common := []any{
		simTool("search", "effect", map[string]any{"alternates": []any{map[string]any{"tool_name": "find", "args_schema": map[string]any{"type": "object"}}}}),
		simTool("ask", "host_loop", nil),
		simTool("danger", "effect", map[string]any{"approval": "always"}),
	}
	steps := []any{map[string]any{"when": `step == 0`, "active_tools": []any{"search", "ask"}}, map[string]any{"when": `used("search")`, "tool_choice": "none"}}
	return []map[string]any{
		{"tools": common},
		{"tools": append([]any{simTool("note", "host_loop", map[string]any{"parallel_safe": false, "description": "other words"})}, common...)},
		{"tools": common, "profiles": []any{map[string]any{"profile": "p", "tools": []any{"ask", "search"}, "steps": steps}}, "default_profile": "p"},
	}
}

// simConfigs are what is added to a run's config.
func simConfigs() []map[string]any {
	rules := []any{
		map[string]any{"when": `used("x.search") && !("ask" in last)`, "active_tools": []any{"ask"}, "context": map[string]any{"phase": "ask"}},
		map[string]any{"when": `step > 4`, "active_tools": []any{}},
	}
	// The hook's deadline is far away: who takes over late asks nothing past it.
	hook := map[string]any{"hook": "h", "deadline_ms": session.DeadlineMaxMS}
	return []map[string]any{{}, {"steps": rules}, {"step_hook": hook}, {"step_hook": hook, "steps": rules}}
}

// event draws an event, and says its type.
func (s *sim) event(state *session.State) (door session.Door, typ string, payload []byte) {
	var data any
	open := state.Open()
	if s.draw(8) != 0 { // time moves now and then
		open = slices.DeleteFunc(open, func(e session.Effect) bool { return e.Class == session.ClassWake })
	}
	_, own := state.NextRegistry().Lookup("x.search")
	switch {
	case s.draw(9) == 0:
		door, typ, data = s.workspace(state)
	case !own && s.draw(4) == 0:
		door, typ, data = s.configure()
	case state.Run == nil || s.draw(12) == 0:
		door, typ, data = s.request(state)
	case s.draw(8) == 0:
		door, typ, data = s.configure()
	default:
		if door, typ, data = s.control(state); data == nil {
			door, typ, data = s.hostLoop(state)
		}
	}
	switch {
	case data != nil:
	case len(open) == 0:
		door, typ, data = s.request(state)
	default:
		door, typ, data = s.settlement(open[s.draw(len(open))])
	}
	payload, err := json.Marshal(map[string]any{"type": typ, "data": data})
	if err != nil {
		panic(err)
	}
	return door, typ, payload
}

// request asks for a run. Rules name tools that a session has only once it has
// set a registry.
func (s *sim) request(state *session.State) (session.Door, string, any) {
	if s.draw(6) == 0 {
		return session.DoorIn, "Nothing", map[string]any{}
	}
	config := map[string]any{"provider": "openai", "model": "m", "deadlines_ms": map[string]any{"approval": simApproval.Milliseconds()}}
	all := simConfigs()
	if _, ok := state.NextRegistry().Lookup("x.search"); !ok {
		all = slices.DeleteFunc(all, func(more map[string]any) bool { return more["steps"] != nil })
	}
	for key, value := range all[s.draw(len(all))] {
		config[key] = value
	}
	return session.DoorCtl, session.TypeRunRequested, map[string]any{"input": map[string]any{"text": "hi"}, "config": config}
}

// configure changes what is offered.
func (s *sim) configure() (session.Door, string, any) {
	if s.draw(2) == 0 {
		all := simRegistries()
		return session.DoorCtl, session.TypeToolRegistrySet, all[s.draw(len(all))]
	}
	o := map[string]any{"scope": []string{"session", "run"}[s.draw(2)]}
	lists := []any{[]any{}, []any{"x.search"}, []any{"x.ask"}}
	for _, list := range []string{"enable", "disable", "force"} {
		if s.draw(2) == 0 {
			o[list] = lists[s.draw(len(lists))]
		}
	}
	return session.DoorCtl, session.TypeToolOverridesSet, o
}

// hostLoop settles calls that a host loop is to carry out: one of them, or the
// whole batch. Nil data: there is none, or it is another's turn.
func (s *sim) hostLoop(state *session.State) (session.Door, string, any) {
	batch := state.View().Batch
	if state.Run == nil || batch == nil || s.draw(3) == 0 {
		return "", "", nil
	}
	result := func(effect string) map[string]any {
		return map[string]any{"effect": effect, "status": "succeeded", "output": map[string]any{"text": "o"}}
	}
	var begun []string
	var results []any
	for _, c := range batch.Calls {
		if c.HostLoop != "" && c.Deadline > 0 {
			begun = append(begun, c.Effect)
		}
		if c.HostLoop != "" || c.Status == session.CallWaiting {
			results = append(results, result(c.Effect))
		}
	}
	switch {
	case len(begun) == 0:
		return "", "", nil
	case s.draw(2) == 0:
		return session.DoorTool, session.TypeToolCallSettled, result(begun[s.draw(len(begun))])
	}
	return session.DoorTool, session.TypeToolBatchSettled, map[string]any{"batch": batch.Batch, "plan_hash": batch.PlanHash, "results": results}
}

// settlement settles an open effect.
func (s *sim) settlement(e session.Effect) (session.Door, string, any) {
	text := map[string]any{"text": "a"}
	switch e.Class {
	case session.ClassLLM:
		if s.draw(4) == 0 {
			return session.DoorLLM, session.TypeGenerationSettled, map[string]any{"effect": e.Name, "status": "ok", "text": text}
		}
		var calls []any
		for range 1 + s.draw(3) {
			name := []string{"search", "find", "ask", "note", "open_session", "danger", "none"}[s.draw(7)]
			calls = append(calls, map[string]any{"tool_name": name, "arguments": "{}"})
		}
		return session.DoorLLM, session.TypeToolCallsObserved, map[string]any{"effect": e.Name, "calls": calls}
	case session.ClassTool:
		return session.DoorTool, session.TypeToolCallSettled, map[string]any{"effect": e.Name, "status": "succeeded", "output": text}
	case session.ClassStep:
		said := []map[string]any{
			{"status": "ok"},
			{"status": "ok", "active_tools": []any{"search", "ask"}, "context": map[string]any{"by": "h"}},
			{"status": "ok", "active_tools": []any{"no such tool"}},
			{"status": "failed", "error": map[string]any{"code": "tired"}},
		}[s.draw(4)]
		said["effect"] = e.Name
		return session.DoorStep, session.TypeStepPrepared, said
	case session.ClassSpace:
		return s.synced(e)
	default:
		return session.DoorWake, session.TypeWakeSettled, map[string]any{"effect": e.Name}
	}
}

// workspace syncs a workspace, applies what is staged, or detaches it.
func (s *sim) workspace(state *session.State) (session.Door, string, any) {
	name := []string{"a", "b"}[s.draw(2)]
	mode := []string{"next_run", "next_step_boundary", "immediate_if_idle"}[s.draw(3)]
	switch staged := state.Spaces != nil && len(state.Spaces.Staged) > 0; {
	case staged && s.draw(2) == 0:
		return session.DoorCtl, session.TypeWorkspaceApplyRequested, map[string]any{"mode": mode}
	case state.Spaces != nil && s.draw(5) == 0:
		return session.DoorCtl, session.TypeWorkspaceDetached, map[string]any{"workspace": name}
	}
	sync := map[string]any{"workspace": name}
	switch s.draw(5) {
	case 0:
		sync["dry"] = true
	case 1:
		sync["apply"] = mode
	}
	if sync["dry"] == nil && (state.Spaces == nil || s.draw(4) == 0) {
		// Without a grant the session knows of no space. The run time is as long as
		// may be: whoever takes over late asks nothing past it.
		sync["grant"] = map[string]any{"space": name, "run_ms": session.SyncRunMaxMS}
	}
	return session.DoorCtl, session.TypeWorkspaceSyncRequested, sync
}

// synced settles a sync, as readers do: what they read, nothing new, a failure,
// or what no session may take.
func (s *sim) synced(e session.Effect) (session.Door, string, any) {
	var asked session.Space
	if err := codec.Unmarshal(e.Payload, &asked); err != nil {
		panic(err)
	}
	if len(asked.Known) > 0 && s.draw(3) > 0 {
		hash := asked.Known[s.draw(len(asked.Known))].String()
		return session.DoorSpace, session.TypeWorkspaceSyncUnchanged, map[string]any{"effect": e.Name, "hash": hash}
	}
	manifest := map[string]any{"v": 1, "kind": "workspace", "space": asked.Space}
	switch n := s.draw(8); n {
	case 0:
		return session.DoorSpace, session.TypeWorkspaceSyncFailed, map[string]any{"effect": e.Name, "error": map[string]any{"code": "space_unreadable"}}
	case 1:
		manifest["space"] = "another"
	case 2:
		manifest["prompts"] = []any{map[string]any{"prompt_pack": "none", "parts": []any{map[string]any{"file": 7}}}}
	case 3:
		manifest["catalogs"] = []any{map[string]any{"tool_catalog": "default", "tools": []any{"search", "ask", "shell", "gone"}}}
	default:
		path := fmt.Sprintf("%d.md", n)
		manifest["files"] = []any{map[string]any{"path": path, "ref": codec.RefOf([]byte(path)).String(), "size": 4, "media_type": "text/markdown"}}
		manifest["prompts"] = []any{map[string]any{"prompt_pack": "default", "parts": []any{map[string]any{"file": 0}}}}
		manifest["context"] = []any{map[string]any{"group": "docs", "files": []any{0}}}
		manifest["skills"] = []any{map[string]any{"skill": "one", "description": "d", "body": 0, "allowed_tools": []any{"search"}}}
	}
	return session.DoorSpace, session.TypeWorkspaceSnapshotReady, map[string]any{"effect": e.Name, "manifest": manifest}
}
