package planner_test

// The floor of an install record.
// actors/session/testdata/scenarios/74_install_floor.txt specifies what it
// refuses and adds; here are cases with many tools.

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/planner"
)

// target returns a tool of that id at one target.
func target(id string, requires ...string) planner.ToolSpec {
	return planner.ToolSpec{
		ToolID: id, ToolName: strings.ReplaceAll(id, ".", "_"), ArgsSchema: []byte{0x80},
		Executor: planner.Executor{Kind: planner.ExecutorEffect, Target: "t"}, Requires: requires,
	}
}

func registry(t *testing.T, tools ...planner.ToolSpec) *planner.Registry {
	t.Helper()
	reg, err := planner.NewRegistry(tools, nil, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

// TestFloorTakesItsOwnRecord: the record's registry, set again, passes, and
// nothing is added to it.
func TestFloorTakesItsOwnRecord(t *testing.T) {
	t.Parallel()
	tools := slices.Concat(planner.Builtin().Tools, []planner.ToolSpec{target("a.free"), target("a.bound", "a")})
	record, again := registry(t, tools...), registry(t, tools...)
	floor := planner.NewFloor(record)
	if bad := floor.Check(again, tools); bad != nil {
		t.Errorf("the record's own registry is refused: %v", bad)
	}
	for _, reg := range []*planner.Registry{record, again} {
		ts := planner.Select(reg, planner.Request{}, planner.Facts{Floor: floor})
		free, _ := reg.Lookup("a.free")
		if why := planner.Why(reg, floor, &ts, free); why != "offered" {
			t.Errorf("a.free requires nothing in the record: %s", why)
		}
	}
}

// TestFloorAddsManyCapabilities: a tool that a session adds at a target needs
// everything that the record requires there, however much that is. The verdict has
// one byte for the missing capability; later ones are denied without a name.
func TestFloorAddsManyCapabilities(t *testing.T) {
	t.Parallel()
	var tools []planner.ToolSpec
	var names []string
	for i := range 20 {
		var requires []string
		for j := range planner.RequiresMax {
			requires = append(requires, fmt.Sprintf("c%03d", i*planner.RequiresMax+j))
		}
		tools, names = append(tools, target(fmt.Sprintf("a.t%d", i), requires...)), append(names, requires...)
	}
	floor := planner.NewFloor(registry(t, tools...))
	added := target("b.new", "c000")
	reg := registry(t, added)
	if bad := floor.Check(reg, []planner.ToolSpec{added}); bad != nil {
		t.Fatal(bad)
	}
	for missing, name := range names {
		granted := append(append([]string{}, names[:missing]...), names[missing+1:]...)
		facts := planner.Facts{Capabilities: granted, Floor: floor}
		want := fmt.Sprintf("capability %q is not granted", name)
		// The tool's own is counted first, and once more among those that are added.
		if missing+1 >= 255 {
			want = "the tool is not permitted"
		}
		why := planner.Recheck(reg, reg, 0, planner.Request{}, facts)
		ts := planner.Select(reg, planner.Request{}, facts)
		checker := planner.Checker{Floor: floor}
		_, checked := checker.Check(reg, &ts, planner.ObservedCall{ToolName: "b_new"})
		if why.Code != planner.ToolDenied || why.Detail != want || checked != why {
			t.Fatalf("without %s: checked %+v, checked again %+v, want %s", name, checked, why, want)
		}
		if len(ts.Offers) > 0 || missing+1 < 255 && planner.Why(reg, floor, &ts, 0) != "step 4: "+want {
			t.Fatalf("without %s: %d offered, %s", name, len(ts.Offers), planner.Why(reg, floor, &ts, 0))
		}
	}
	if why := planner.Recheck(reg, reg, 0, planner.Request{}, planner.Facts{Capabilities: names, Floor: floor}); !why.OK() {
		t.Errorf("with all of them: %+v", why)
	}
}
