package scenario_test

// What the input of a step stands for. Most of it is tested by the scenario
// files; here is what they can't say: the exact event, and what is refused.

import (
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/scenario"
)

func TestReadEvents(t *testing.T) {
	t.Parallel()
	view := session.View{Batch: &session.ViewBatch{Batch: "r1t2", PlanHash: "abc"}}
	for _, c := range []struct {
		input, settles string
		door           session.Door
		want           string
	}{
		{`run "go" roles=["admin","a b"]`, "", session.DoorIn,
			`{"type":"RunRequested","data":{"input":{"text":"go"},"roles":["admin","a b"]}}`},
		{`overrides run disable=["shell"] force=[]`, "", session.DoorCtl,
			`{"type":"ToolOverridesSet","data":{"disable":["shell"],"force":[],"scope":"run"}}`},
		{"registry {\n\"tools\":[]}", "", session.DoorCtl,
			`{"type":"ToolRegistrySet","data":{"tools":[]}}`},
		{`settle r1t2s ok {"tool_choice":"none"}`, "r1t2s", session.DoorStep,
			`{"type":"StepPrepared","data":{"effect":"r1t2s","status":"ok","tool_choice":"none"}}`},
		{`settle r1t2s failed code "detail"`, "r1t2s", session.DoorStep,
			`{"type":"StepPrepared","data":{"effect":"r1t2s","error":{"code":"code","detail":"detail"},"status":"failed"}}`},
		{`settle r1t2c0 ok plan_hash=plan`, "r1t2c0", session.DoorTool,
			`{"type":"ToolCallSettled","data":{"effect":"r1t2c0","plan_hash":"abc","status":"succeeded"}}`},
		{`settle r1t2 batch c0 ok "a" host=ready c1 failed code "detail" c2 cancelled r1t9c3 unknown`, "r1t2", session.DoorTool,
			`{"type":"ToolBatchSettled","data":{"batch":"r1t2","plan_hash":"abc","results":[` +
				`{"effect":"r1t2c0","host_session":{"id":"h1","status":"ready"},"output":{"text":"a"},"status":"succeeded"},` +
				`{"effect":"r1t2c1","error":{"code":"code","detail":"detail"},"status":"failed"},` +
				`{"effect":"r1t2c2","status":"cancelled"},{"effect":"r1t9c3","status":"outcome_unknown"}]}}`},
		{`settle r1t2 batch plan_hash=0f`, "r1t2", session.DoorTool,
			`{"type":"ToolBatchSettled","data":{"batch":"r1t2","plan_hash":"0f","results":[]}}`},
		{`settle r1t3 calls stat{blob 7}#id look{"a":1}`, "r1t3", session.DoorLLM,
			`{"type":"ToolCallsObserved","data":{"calls":[{"arguments_blob":"sha256-e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",` +
				`"provider_call_id":"id","size":7,"tool_name":"stat"},{"arguments":"{\"a\":1}","tool_name":"look"}],"effect":"r1t3"}}`},
		{`event tool {"type":"ToolBatchSettled","data":{"batch":"r1t2"}}`, "r1t2", session.DoorTool,
			`{"type":"ToolBatchSettled","data":{"batch":"r1t2"}}`},
	} {
		got, err := scenario.Read(c.input, nil, view)
		if err != nil {
			t.Errorf("%s: %v", c.input, err)
			continue
		}
		if got.Kind != scenario.KindEvent || got.Door != c.door || got.Settles != c.settles || string(got.Payload) != c.want {
			t.Errorf("%s:\ngot  %s through %s, settles %q: %s\nwant %s, settles %q: %s",
				c.input, got.Kind, got.Door, got.Settles, got.Payload, c.door, c.settles, c.want)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		`overrides disable=["shell"]`:   "session|run is missing",
		`overrides`:                     "session|run is missing",
		`registry {`:                    "",
		`registry lean`:                 "",
		`settle r1t2s ok {`:             "settle r1t1s ok",
		`settle r1t2s maybe`:            "settle r1t1s ok",
		`settle r1t2s failed`:           "settle r1t1s ok",
		`settle r1t2 batch c0`:          "a call's result is ok",
		`settle r1t2 batch c0 ok x`:     "a call's result is ok",
		`settle r1t2 batch c0 ok seq=1`: `unknown "seq"`,
		`settle r1t2c0 ok "a" "b"`:      `unknown "b"`,
		`settle r1t2c0`:                 "a call's result is ok",
		`shw tools`:                     `unknown step "shw"`,
	} {
		if got, err := scenario.Read(input, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %+v, %v, want an error with %q", input, got, err, want)
		}
	}
	for _, what := range []string{"", "effect", "call", "shelf"} {
		if got, err := scenario.Show(what, session.View{}, nil, nil); err == nil {
			t.Errorf("show %s: got %q, want an error", what, got)
		}
	}
}

// A step can be parsed without a view.
func TestPlanWithoutAView(t *testing.T) {
	t.Parallel()
	got, err := scenario.Read(`settle r1t2 batch c0 ok`, nil)
	if err != nil || !strings.Contains(string(got.Payload), `"plan_hash":""`) {
		t.Errorf("got %s, %v, want an empty plan hash", got.Payload, err)
	}
}
