package bridge

// What sessions are told of Go functions, and that a late result changes nothing.

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/planner"
)

// Tools join the record that there is: one of its own id is replaced, others
// join every profile.
func TestInstallRecord(t *testing.T) {
	t.Parallel()
	one := answers("", nil, Description("new"), ReadOnly(), RetrySafe(), ParallelSafe(), ResourceKey("x:{a}"), ResourceKind("path"), Requires("net"), Deadline(time.Second), Approval("always"))
	two := Func("y.other", func(context.Context, struct{}) (string, error) { return "", nil }, Target("z"), ToolName("other"))
	base := `{"profiles":[{"profile":"p","tools":["x.answer"]}],"capabilities":["net"],"tools":[{"tool_id":"x.answer","tool_name":"old",` +
		`"args_schema":{"type":"object"},"executor":{"kind":"effect","target":"old"}}]}`
	text, err := InstallRecord([]byte(base), one, two)
	if err != nil {
		t.Fatal(err)
	}
	install, err := session.ParseInstall(text)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := install.Registry.Profiles()[0].Tools, []string{"x.answer", "y.other"}; !slices.Equal(got, want) {
		t.Errorf("profile: got %q, want %q", got, want)
	}
	spec := install.Record.Tools[0]
	if spec.Description != "new" || spec.Access != planner.AccessRead || !spec.RetrySafe || !spec.ParallelSafe || spec.ResourceKey != "x:{a}" ||
		spec.ResourceKind != planner.ResourcePath ||
		spec.DeadlineMS != 1000 || spec.Approval != "always" || !slices.Equal(spec.Requires, []string{"net"}) || spec.Executor.Target != "x" {
		t.Errorf("the replaced tool: got %+v", spec)
	}
	if spec := install.Record.Tools[1]; spec.Executor.Target != "z" || spec.ToolName != "other" || spec.RetrySafe {
		t.Errorf("the added tool: got %+v", spec)
	}
	for base, want := range map[string]string{
		"":                       "",
		"{}":                     "",
		"[":                      "base: is no install record as JSON",
		`{"tools":{}}`:           "base: tools: ",
		`{"profiles":[{}]}`:      "base: profiles[0].tools: ",
		`{"capability":["net"]}`: "install record: ",
	} {
		_, err := InstallRecord([]byte(base), two)
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%q: got %v, want %q", base, err, want)
		}
	}
	var set struct {
		Tools []struct {
			ToolID string `json:"tool_id"`
		}
	}
	if specs, err := Specs(one, two); err != nil || json.Unmarshal(specs, &set) != nil || len(set.Tools) != 2 || set.Tools[1].ToolID != "y.other" {
		t.Errorf("specs: got %s, %v", specs, err)
	}
}

// An executor that hangs is given up; what it returns an hour later is heard by
// nobody, and settles nothing a second time.
func TestLateResultIsNotHeard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, q := newWorld(), newQueue()
		returned := false
		b := startBridge(t, w, "me", q, served{class: session.ClassTool, target: "host", executor: executorFunc(func(context.Context, executor.Call) (executor.Result, error) {
			<-time.After(time.Hour)
			returned = true
			return executor.Result{Output: "late"}, nil
		})})
		q.ask(t, session.ClassTool, "host", "s1", "r1t1c0", toolCall("r1t1c0", false))
		pass(2 * time.Hour)
		b.stop()
		want := []string{"r1t1c0 outcome_unknown outcome_unknown"}
		if got := w.settlements(t); !slices.Equal(got, want) || !returned {
			t.Errorf("settled %q, want %q; returned %v", got, want, returned)
		}
	})
}
