package session_test

// The closed sets: every rejection, code, event and notice is reached by a
// scenario file, so that the specification says what each is for.

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/planner"
)

// constants returns the text constants of a file whose names begin with
// prefix, read from the source so that none can be left out.
func constants(t *testing.T, file, prefix string) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, prefix) || len(spec.Values) != 1 {
			return true
		}
		value := spec.Values[0]
		if conversion, ok := value.(*ast.CallExpr); ok {
			value = conversion.Args[0]
		}
		switch value := value.(type) {
		case *ast.BasicLit:
			text, err := strconv.Unquote(value.Value)
			if err == nil {
				found[spec.Names[0].Name] = text
			}
		case *ast.SelectorExpr: // a constant of package spaces
			for _, file := range []string{"../spaces/spaces.go", "../spaces/settle.go"} {
				if text, ok := constants(t, file, value.Sel.Name)[value.Sel.Name]; ok {
					found[spec.Names[0].Name] = text
				}
			}
		}
		return true
	})
	return found
}

// wants returns all that the scenario files say must come, as words.
func wants(t *testing.T) [][]string {
	t.Helper()
	paths, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenario files: %v", err)
	}
	var lines [][]string
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "#") || strings.HasPrefix(line, "#1") {
				lines = append(lines, strings.Fields(strings.ReplaceAll(line, ":", " ")))
			}
		}
	}
	return lines
}

func TestEveryValueOfTheSetsIsDocumented(t *testing.T) {
	t.Parallel()
	lines := wants(t)
	told := func(begin []string, word string) bool {
		return slices.ContainsFunc(lines, func(line []string) bool {
			return len(line) > len(begin) && slices.Equal(line[:len(begin)], begin) && slices.Contains(line, word)
		})
	}
	// What no short line of text can bring about, and where it is tested.
	elsewhere := map[string]string{
		"NoticeLimitNear":          "nearlimit_test.go: it takes a transcript of 9,000 items",
		"CodeTranscriptFull":       "full_test.go: it takes a transcript of 10,000 items",
		"CodeLimitExceeded":        "batch_test.go: it takes a batch of 65 calls",
		"CodeDeclined":             "scenario 184: a bridge's codes are in the event, too",
		"NoticeSessionQuarantined": "no fold says it",
		"NoticeSessionReleased":    "no fold says it",
	}
	rejections := constants(t, "rejection.go", "Reject")
	if len(rejections) < 30 {
		t.Errorf("%d rejections were found in rejection.go", len(rejections))
	}
	for name, text := range rejections {
		if !told([]string{">", "EventRejected"}, text) {
			t.Errorf("no scenario in testdata/scenarios has a rejection %s (%s): add one", text, name)
		}
	}
	codes := constants(t, "rejection.go", "Code")
	maps.Copy(codes, constants(t, "../spaces/settle.go", "Code"))
	for name, text := range codes {
		found := told([]string{"tool"}, text) || told([]string{">", "RunFinished"}, text) || told([]string{">", "WorkspaceFailed"}, text)
		if _, listed := elsewhere[name]; found == listed {
			t.Errorf("%s (%s): told of in a scenario: %v, listed as tested elsewhere: %v", text, name, found, listed)
		}
	}
	for _, code := range []planner.Code{
		planner.ToolUnknown, planner.ToolDisabled, planner.ToolUnavailable, planner.ToolDenied, planner.InvalidArguments,
	} { // tool_unbound: no registry that can be pinned has such a tool
		if !told([]string{">", "ToolRejected"}, string(code)) {
			t.Errorf("no scenario has a call rejected as %s", code)
		}
	}
	for name, text := range constants(t, "batch.go", "Refused") {
		if !session.IsRefusedCode(text) || !told([]string{">", "ToolRejected"}, text) {
			t.Errorf("no scenario has a call refused by who was asked as %s (%s), or the set lacks it", text, name)
		}
	}
	for _, text := range constants(t, "../spaces/notice.go", "Notice") {
		if !told([]string{">"}, text) {
			t.Errorf("no scenario has a notice %s", text)
		}
	}
	notices := constants(t, "notice.go", "Notice")
	maps.Copy(notices, constants(t, "reply.go", "Notice"))
	for name, text := range notices {
		if _, listed := elsewhere[name]; told([]string{">"}, text) == listed {
			t.Errorf("no scenario has a notice %s, or it is listed as tested elsewhere", text)
		}
	}
}

// EventTypes has every type and no other, each with a door.
func TestEventTypes(t *testing.T) {
	t.Parallel()
	types := session.EventTypes()
	for _, file := range []string{"event.go", "spaceevent.go", "reply.go"} {
		for name, text := range constants(t, file, "Type") {
			if !slices.Contains(types, text) {
				t.Errorf("EventTypes lacks %s", name)
			}
		}
	}
	for _, typ := range types {
		var doors []session.Door
		for _, door := range append(allDoors(), session.DoorInstall) {
			w := newTold(t)
			if _, err := w.tell(door, typ, nil); !errors.Is(err, session.RejectWrongDoor) {
				doors = append(doors, door)
			}
		}
		want := map[string][]session.Door{
			session.TypeToolCallsObserved: {session.DoorLLM}, session.TypeGenerationSettled: {session.DoorLLM}, session.TypeToolCallSettled: {session.DoorTool}, session.TypeWakeSettled: {session.DoorWake}, session.TypeScheduleFired: {session.DoorWake}, session.TypeSessionTombstone: {session.DoorWake},
			session.TypeWorkspaceSnapshotReady: {session.DoorSpace}, session.TypeWorkspaceSyncUnchanged: {session.DoorSpace}, session.TypeWorkspaceSyncFailed: {session.DoorSpace},
			session.TypeToolBatchSettled: {session.DoorTool}, session.TypeStepPrepared: {session.DoorStep}, session.TypeApprovalDecided: {session.DoorApprove}, session.TypeReplyGiven: {session.DoorIn, session.DoorApprove},
			session.TypeChildRequested: {session.DoorChild}, session.TypeChildStopped: {session.DoorChild}, session.TypeChildSettled: {session.DoorChild},
		}[typ]
		switch typ {
		case session.TypeRunRequested, session.TypeSteerRequested, session.TypeRunCancelRequested, session.TypeRunInterrupt,
			session.TypeRunPauseRequested, session.TypeRunResumeRequested, session.TypeRunEdited, session.TypeRunCompleted, session.TypeRunFailed, session.TypeCompactRequested:
			want = []session.Door{session.DoorIn, session.DoorCtl}
		}
		if want == nil {
			want = []session.Door{session.DoorCtl}
		}
		if !slices.Equal(doors, want) {
			t.Errorf("%s is said through %v, want %v", typ, doors, want)
		}
	}
}
