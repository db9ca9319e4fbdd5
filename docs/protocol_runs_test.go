package docs_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/scenario"
	"github.com/refold/refold/codec"
)

// TestRunsTable: in each state of a run, each request does what the table of
// docs/semantics.md says.
func TestRunsTable(t *testing.T) {
	t.Parallel()
	stands := map[string][]string{
		"no run":               {},
		"running":              {`run "go"`},
		"waiting_input":        {`configure {"provider":"p","model":"m","completion":"explicit"}`, `run "go"`, `settle r1t1 text "what?"`},
		"paused":               {`run "go"`, `pause`},
		"paused, nothing open": {`configure {"provider":"p","model":"m","completion":"explicit"}`, `run "go"`, `settle r1t1 text "what?"`, `pause`},
		"interrupting":         {`run "go"`, `interrupt`},
	}
	section := sections(t, "docs/semantics.md")["Runs"]
	head := regexp.MustCompile(`(?m)^\| \| (SteerRequested .*) \|$`).FindStringSubmatch(section)
	if head == nil {
		t.Fatal("no table begins with SteerRequested")
	}
	requests := strings.Split(head[1], " | ")
	for _, row := range regexp.MustCompile("(?m)^\\| ([a-z_, ]+) \\| (`.*) \\|$").FindAllStringSubmatch(section, -1) {
		steps, ok := stands[row[1]]
		if !ok {
			t.Errorf("%s: this test can't reach it", row[1])
		}
		delete(stands, row[1])
		cells := strings.Split(row[2], " | ")
		if len(cells) != len(requests) {
			t.Fatalf("%s: %d cells, %d requests", row[1], len(cells), len(requests))
		}
		for i, request := range requests {
			f := newFolding(t, nil)
			for _, step := range append([]string{`configure {"provider":"p","model":"m"}`}, steps...) {
				f.step(step)
			}
			data := map[string]any{}
			if request == session.TypeSteerRequested {
				data["input"] = map[string]any{"text": "more"}
			}
			_, notices := f.fold(session.DoorIn, jsonOf(t, map[string]any{"type": request, "data": data}))
			got := string(f.state.View().Lifecycle)
			for _, n := range notices {
				if rejected, ok := n.Data.(session.EventRejected); ok {
					got = string(rejected.Code)
				}
			}
			if want := strings.Split(cells[i], "`")[1]; got != want {
				t.Errorf("%s, %s: got %s, the table says %s", row[1], request, got, want)
			}
		}
	}
	for left := range stands {
		t.Errorf("the table has no row %s", left)
	}
}

// step folds one step of a scenario, and the test fails if it is not taken.
func (f *folding) step(input string) []session.Notice {
	f.t.Helper()
	action, err := scenario.Read(input, f.install.Registry, f.state.View())
	if err != nil {
		f.t.Fatal(err)
	}
	taken, notices := f.fold(action.Door, action.Payload)
	if !taken {
		f.t.Fatalf("%s: not taken: %s", input, jsonOf(f.t, notices))
	}
	return notices
}

// TestEveryFieldIsSetOnce: on the way through the scenario files and the stories
// every field of every notice, effect and view is set at least once. So none
// of them is described that is never said.
func TestEveryFieldIsSetOnce(t *testing.T) {
	t.Parallel()
	s := readSchemas(t)
	said := map[string]bool{}
	collect := func(f *folding, notices []session.Notice) {
		for _, n := range notices {
			collectFields(said, n.Type, jsonOf(t, n.Data))
		}
		collectFields(said, "View", jsonOf(t, f.state.View()))
		for _, e := range f.state.Open() {
			packed, err := codec.ToJSON(e.Payload)
			if err != nil {
				t.Fatal(err)
			}
			collectFields(said, s.effects[e.Class], packed)
		}
	}
	paths, err := filepath.Glob("actors/session/testdata/scenarios/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenario files: %v", err)
	}
	nothing := func(string, string, error) {}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		foldFile(t, s, path, string(text), nothing, collect)
	}
	foldFile(t, s, "story", story, nothing, collect)
	foldFile(t, s, "controlStory", controlStory, nothing, collect)
	f := newFolding(t, nil)
	collect(f, f.step(`run "go" roles=["editor"] config={"provider":"p","model":"m","step_hook":{"hook":"h"}} via=ctl`))
	f.step(`settle r1t1s ok {}`)
	collect(f, f.step("settle r1t1 calls"+strings.Repeat(" open_session{}", session.CallsMax+1)))
	f.step("cancel")
	f.step(`run "much" config={"provider":"p","model":"m","step_hook":{"hook":"h"}} via=ctl`)
	for turn := 1; turn <= session.StepItemsMax/session.CallsMax; turn++ { // more than a hook is shown
		f.step(fmt.Sprintf("settle r2t%ds ok {}", turn))
		collect(f, f.step(fmt.Sprintf("settle r2t%d calls%s", turn, strings.Repeat(" nosuch{}", session.CallsMax))))
	}
	f.step("cancel")
	f.step(`run "too much" config={"provider":"p","model":"m"} via=ctl`)
	for turn := 1; len(f.state.View().Warnings) == 0; turn++ { // until a limit is near
		collect(f, f.step(fmt.Sprintf("settle r3t%d calls%s", turn, strings.Repeat(" nosuch{}", 8*session.CallsMax))))
	}
	for _, name := range slices.Concat(s.noticeTypes(), slices.Collect(maps.Values(s.effects)), []string{"View"}) {
		if name == session.NoticeSessionQuarantined || name == session.NoticeSessionReleased {
			continue // no fold says it
		}
		for _, field := range s.fields(name, s.docs[name], name) {
			if field == "View.unserved" || strings.HasPrefix(field, "View.troubles") || strings.HasPrefix(field, "View.quarantined") {
				continue // no fold says it: who answers knows the bridges, and what is stopped
			}
			if slices.Contains(ofOthers, field) {
				continue
			}
			// No arguments that the fold takes, and no pack of the scenarios, are too large for a
			// notice in this release; those
			// in the queue are runs as the active one is.
			if !said[field] && field != "ApprovalRequested.arguments_seq" && field != "ReplyRequested.arguments_seq" && !strings.HasSuffix(field, "pack.cut") && !strings.HasPrefix(field, "View.queue.") {
				t.Errorf("%s: is never said", field)
			}
		}
	}
}

// ofOthers are fields of parts that the messages which have them leave out: only
// what is pending has a mode and choices, only readers know files and lines, and a hook
// is shown all items whole.
var ofOthers = []string{
	"Step.items.extra.shown",
	"View.staged.mode", "View.staged.prompt_pack", "View.staged.tool_catalog", "View.turn.workspace.mode", "View.workspace.mode", "View.workspace.tools",
	"View.packs.mode", "View.packs.prompt_pack", "View.packs.tool_catalog", "View.pending.tools", "View.staged.tools", "View.turn.workspace.tools",
	"WorkspaceApplied.warnings.file", "WorkspaceApplied.warnings.line", "WorkspaceStaged.warnings.file", "WorkspaceStaged.warnings.line",
}

// collectFields adds the paths of all fields in a message.
func collectFields(said map[string]bool, at string, message []byte) {
	var value any
	if json.Unmarshal(message, &value) != nil {
		return
	}
	var add func(at string, value any)
	add = func(at string, value any) {
		said[at] = true
		switch v := value.(type) {
		case map[string]any:
			for key, inner := range v {
				add(at+"."+key, inner)
			}
		case []any:
			for _, inner := range v {
				add(at, inner)
			}
		}
	}
	add(at, value)
}

// fields returns the paths of all fields that a schema names. Those of content
// are left out: TestFullEvents has them.
func (s *schemas) fields(file string, node map[string]any, at string) (all []string) {
	if to, ok := node["$ref"].(string); ok {
		if file, node = s.refersTo(file, to); file == partsDir+"/Content" {
			return nil
		}
		return s.fields(file, node, at)
	}
	if items, ok := node["items"].(map[string]any); ok {
		return s.fields(file, items, at)
	}
	properties, _ := node["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		inner, _ := properties[name].(map[string]any)
		all = append(all, at+"."+name)
		all = append(all, s.fields(file, inner, at+"."+name)...)
	}
	return all
}
