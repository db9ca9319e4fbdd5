package recorded_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/llm/recorded"
	"github.com/refold/refold/planner"
)

// Under the install record of a recording, every recorded call may run.
func TestInstallOffersWhatWasCalled(t *testing.T) {
	t.Parallel()
	for _, file := range files(t) {
		r := load(t, file)
		tools, err := recorded.LoadTools(recorded.ToolsFile(file))
		must(t, err)
		record, notes, err := r.Install(tools, []string{"get_*", "list_*", "search_*"})
		must(t, err)
		for _, note := range notes {
			t.Logf("%s: %s", filepath.Base(file), note)
		}
		in, err := session.ParseInstall(record)
		must(t, err)
		offered := planner.Select(in.Registry, planner.Request{Profile: in.Record.Config.Profile}, planner.Facts{})
		if got := len(offered.Offers); got < len(tools) {
			t.Errorf("%s: %d of %d tools are offered", filepath.Base(file), got, len(tools))
		}
		for _, c := range r.Conversations() {
			for _, run := range c.Runs {
				for _, turn := range run.Turns {
					for _, call := range turn.Calls {
						_, bad := planner.Check(in.Registry, &offered, planner.ObservedCall{ToolName: call.Name, Arguments: call.Arguments})
						if !bad.OK() {
							t.Errorf("%s: %s%s: %s %s", c.ID, call.Name, call.Arguments, bad.Code, bad.Detail)
						}
					}
				}
			}
		}
	}
}

func TestInstall(t *testing.T) {
	t.Parallel()
	tools, err := recorded.ParseTools([]byte(`[
		{"type":"function","function":{"name":"get","description":"Gets.","parameters":{"type":"object","properties":{"n":{"type":"integer","minimum":1}},"required":["n"]}}},
		{"name":"bare"}]`))
	must(t, err)
	record, notes, err := read(t, small).Install(tools, []string{"g?t", "b*"})
	must(t, err)
	if want := []string{"put is called and not defined: added, with any object as arguments"}; !slices.Equal(notes, want) {
		t.Errorf("notes %q, want %q", notes, want)
	}
	in, err := session.ParseInstall(record)
	must(t, err)
	if c := in.Record.Config; c.Provider != "recorded" || c.Model != "recorded" || c.Profile != "recorded" || c.TurnsMax != session.TurnsDefault {
		t.Errorf("config %+v", c)
	}
	var got []string
	for _, s := range in.Record.Tools {
		line := s.ToolID + " " + s.ToolName + " " + s.Executor.Kind + " " + s.Executor.Target
		if s.ParallelSafe {
			line += " parallel"
		}
		if s.RetrySafe {
			line += " retry"
		}
		got = append(got, line)
	}
	want := []string{
		"recorded.get get effect recorded parallel retry", "recorded.bare bare effect recorded parallel retry",
		"recorded.put put effect recorded parallel",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A recorded tool accepted the recorded arguments, whatever its schema says.
func TestInstallTrustsRecordedArguments(t *testing.T) {
	t.Parallel()
	tools, err := recorded.ParseTools([]byte(`[{"name":"get","parameters":{"type":"object","properties":{"n":{"type":"string"}}}},{"name":"put"}]`))
	must(t, err)
	record, notes, err := read(t, small).Install(tools, nil)
	must(t, err)
	if len(notes) != 1 || !strings.HasPrefix(notes[0], "get was called otherwise than its schema says (") {
		t.Errorf("notes %q", notes)
	}
	in, err := session.ParseInstall(record)
	must(t, err)
	offered := planner.Select(in.Registry, planner.Request{Profile: recorded.Profile}, planner.Facts{})
	if _, bad := planner.Check(in.Registry, &offered, planner.ObservedCall{ToolName: "get", Arguments: `{"n": 1}`}); !bad.OK() {
		t.Errorf("the recorded call is refused: %+v", bad)
	}
}

func TestTurnLimitExceedsTheLongestRun(t *testing.T) {
	t.Parallel()
	var turns strings.Builder
	for range 140 {
		turns.WriteString(`,{"role":"assistant","tool_calls":[{"id":"x","function":{"name":"get","arguments":""}}]},{"role":"tool","tool_call_id":"x","content":"r"}`)
	}
	record, _, err := read(t, `{"id":"a","messages":[{"role":"user","content":"u"}`+turns.String()+`]}`).Install(nil, nil)
	must(t, err)
	in, err := session.ParseInstall(record)
	must(t, err)
	if got := in.Record.Config.TurnsMax; got != 141 {
		t.Errorf("turns_max is %d, want 141: 140 turns, and the one that finds the end", got)
	}
}

func TestInstallRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{}`:                           "not a list of tool definitions",
		`[{"type":"web_search"}]`:      "[0]: no function with a name",
		`[{"name":"a","parameters":7}`: "not a list of tool definitions",
	} {
		if _, err := recorded.ParseTools([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("ParseTools(%s): %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		`[{"name":"a b"}]`:               "tools[0].tool_id",
		`[{"name":"a"},{"name":"a"}]`:    "tools[1]",
		`[{"name":"a","parameters":[]}]`: "args_schema",
		`[{"name":"a","parameters":{"$ref":"https://example.com/a.json"}}]`: "args_schema",
	} {
		tools, err := recorded.ParseTools([]byte(text))
		if err != nil {
			t.Errorf("ParseTools(%s): %v", text, err)
			continue
		}
		if _, _, err := read(t, small).Install(tools, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Install(%s): %v, want what names %s", text, err, want)
		}
	}
	if _, _, err := read(t, small).Install(nil, []string{"get_["}); err == nil || !strings.HasPrefix(err.Error(), `retry-safe pattern "get_["`) {
		t.Errorf("a bad pattern: %v", err)
	}
	if got, want := recorded.ToolsFile("dir.d/x.jsonl"), "dir.d/x-tools.json"; got != want {
		t.Errorf("ToolsFile: got %s, want %s", got, want)
	}
}
