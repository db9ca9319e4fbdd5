package function_test

// Install records of Go functions.

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/function"
	"github.com/refold/refold/planner"
)

// Tools are added to a record: a tool with the same id is replaced, others are
// added to every profile.
func TestInstallRecordAddsTools(t *testing.T) {
	t.Parallel()
	one := answers("", nil, function.Description("new"), function.ReadOnly(), function.RetrySafe(), function.ParallelSafe(), function.ResourceKey("x:{a}"), function.ResourceKind("path"), function.Requires("net"), function.Deadline(time.Second), function.Approval("always"))
	two := function.New("y.other", func(context.Context, struct{}) (string, error) { return "", nil }, function.Target("z"), function.ToolName("other"))
	base := `{"profiles":[{"profile":"p","tools":["x.answer"]}],"capabilities":["net"],"tools":[{"tool_id":"x.answer","tool_name":"old",` +
		`"args_schema":{"type":"object"},"executor":{"kind":"effect","target":"old"}}]}`
	text, err := function.InstallRecord([]byte(base), one, two)
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
		"[":                      "base: is not an install record as JSON",
		`{"tools":{}}`:           "base: tools: ",
		`{"profiles":[{}]}`:      "base: profiles[0].tools: ",
		`{"capability":["net"]}`: "install record: ",
	} {
		_, err := function.InstallRecord([]byte(base), two)
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%q: got %v, want %q", base, err, want)
		}
	}
	var set struct {
		Tools []struct {
			ToolID string `json:"tool_id"`
		}
	}
	if specs, err := function.Specs(one, two); err != nil || json.Unmarshal(specs, &set) != nil || len(set.Tools) != 2 || set.Tools[1].ToolID != "y.other" {
		t.Errorf("specs: got %s, %v", specs, err)
	}
}
