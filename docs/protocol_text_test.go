package docs_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/subjects"
)

const protocolDoc = "docs/protocol.md"

// block is a fenced block of a document.
type block struct {
	tag  string // what follows the language
	text string
	line int
}

// fenced returns the blocks of a language in a document.
func fenced(t *testing.T, path, language string) (all []block) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var open *block
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		info, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && open != nil:
			if open.line > 0 {
				all = append(all, *open)
			}
			open = nil
		case fence:
			lang, tag, _ := strings.Cut(info, " ")
			open = &block{tag: tag}
			if lang == language {
				open.line = number
			}
		case open != nil:
			open.text += line
		}
	}
	if len(all) == 0 {
		t.Fatalf("%s: no block of %s", path, language)
	}
	return all
}

// sections returns the text under each heading of a document, up to the next
// heading of any level.
func sections(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all, heading := map[string]string{}, ""
	for line := range strings.Lines(string(text)) {
		if name := strings.TrimLeft(line, "#"); name != line && strings.HasPrefix(name, " ") {
			heading = strings.TrimSpace(name)
			if _, twice := all[heading]; twice {
				t.Errorf("%s: two headings %q", path, heading)
			}
			all[heading] = ""
			continue
		}
		all[heading] += line
	}
	return all
}

// TestBridgesExamples: messages that docs/bridges.md shows are what the schemas
// say.
func TestBridgesExamples(t *testing.T) {
	t.Parallel()
	s := readSchemas(t)
	named := 0
	for _, b := range fenced(t, "docs/bridges.md", "json") {
		name := b.tag
		if name == "" {
			continue
		}
		named++
		if _, part := s.docs[partsDir+"/"+name]; part {
			name = partsDir + "/" + name
		}
		if err := s.check(name, []byte(b.text)); err != nil {
			t.Errorf("docs/bridges.md:%d: %v", b.line, err)
		}
	}
	if named < 5 {
		t.Errorf("%d examples name their schema", named)
	}
}

// TestExamples: every example is a message, and the fold takes it. Every
// message has one.
func TestExamples(t *testing.T) {
	t.Parallel()
	s := readSchemas(t)
	shown := map[string]bool{}
	for _, b := range fenced(t, protocolDoc, "json") {
		name, door, _ := strings.Cut(b.tag, " ")
		shown[name] = true
		if _, part := s.docs[partsDir+"/"+name]; part {
			name = partsDir + "/" + name
		}
		at := fmt.Sprintf("%s:%d", protocolDoc, b.line)
		if err := s.check(name, []byte(b.text)); err != nil {
			t.Errorf("%s: %v", at, err)
			continue
		}
		payload, typ := []byte(b.text), name
		switch {
		case name == "Envelope":
			env, ok := envelopeOf(payload)
			if !ok {
				t.Errorf("%s: no envelope", at)
			}
			typ = env.Type
		case name == "InstallRecord":
			if _, err := session.ParseInstall(payload); err != nil {
				t.Errorf("%s: %v", at, err)
			}
			continue
		case slices.Contains(session.EventTypes(), name):
			if door == "" {
				door = string(s.doors(name)[0])
			}
			payload = jsonOf(t, map[string]any{"type": name, "data": json.RawMessage(b.text)})
		default:
			continue
		}
		if taken, notices := reach(t, typ).fold(session.Door(door), payload); !taken {
			t.Errorf("%s: not taken: %s", at, jsonOf(t, notices))
		}
	}
	for _, name := range s.names() {
		if path.Dir(name) != partsDir && !shown[name] {
			t.Errorf("%s: no example of %s", protocolDoc, name)
		}
	}
}

// namesInTable returns the names in backticks of a section's first column.
func namesInTable(text string) (all []string) {
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(text, -1) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			all = append(all, name[1])
		}
	}
	return all
}

// TestProtocolListsCodes: the tables of codes that are written by hand, since a code
// means another thing in each, have the constants of the code.
func TestProtocolListsCodes(t *testing.T) {
	t.Parallel()
	told := sections(t, protocolDoc)
	named := func(file, prefix string) []string {
		return constants(t, file, func(name, typ string) bool { return strings.HasPrefix(name, prefix) && typ == "" })
	}
	calls := constants(t, "planner/check.go", func(_, typ string) bool { return typ == "Code" })
	own := slices.Concat(named("actors/session/rejection.go", "Code"), named("actors/spaces/settle.go", "Code"))
	results, ends := namesInTable(told["Results"]), append(namesInTable(told["Ends of runs"]), namesInTable(told["Ends of syncs"])...)
	for _, c := range []struct {
		section   string
		got, want []string
	}{
		{"Results and Ends of runs", slices.Concat(results, ends), slices.Concat(calls, own)},
		{"Codes of bridges", namesInTable(told["Codes of bridges"]), slices.Concat(
			named("internal/worker/outcome.go", "code"), named("internal/worker/deaths.go", "code"), named("internal/prompt/request.go", "code"), named("internal/worker/lost.go", "code"), named("bridge/pack.go", "code"),
			named("bridge/function/function.go", "code"), []string{session.CodeDeadlineExceeded, session.CodeOutcomeUnknown})},
	} {
		if !sameSet(c.got, c.want) {
			slices.Sort(c.got)
			slices.Sort(c.want)
			t.Errorf("%s: %s: got %v\nwant %v", protocolDoc, c.section, c.got, c.want)
		}
	}
	if len(results) < 6 || !slices.Equal(results[:6], []string{"tool_unknown", "tool_disabled", "tool_unavailable", "tool_unbound", "tool_denied", "invalid_arguments"}) {
		t.Errorf("%s: Results begin with %v: the codes of ToolRejected come first, in the order of the checks", protocolDoc, results)
	}
}

// TestProtocolListsSubjects: every subject, stream and key that package
// subjects makes is in the document.
func TestProtocolListsSubjects(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(protocolDoc)
	if err != nil {
		t.Fatal(err)
	}
	names, err := subjects.New("")
	if err != nil {
		t.Fatal(err)
	}
	var made []string
	add := func(subject string, err error) {
		if err != nil {
			t.Fatal(err)
		}
		for _, token := range []string{"session", "effect", "target", "instance", "wake"} {
			subject = strings.ReplaceAll(subject, strings.ToUpper(token), "<"+token+">")
		}
		made = append(made, subject)
	}
	for _, door := range subjects.Doors() {
		add(names.Log(door, "SESSION"))
	}
	add(names.Install(), nil)
	effect, err := names.Effect(subjects.EffectName{Class: session.ClassTool, Target: "TARGET", Session: "SESSION", Effect: "EFFECT"})
	add(strings.Replace(effect, ".tool.", ".<class>.", 1), err)
	of := subjects.EffectName{Class: session.ClassTool, Target: "TARGET", Session: "SESSION", Effect: "EFFECT"}
	for n, number := range []string{"", ".<n>"} {
		claim, err := names.Claim(subjects.ClaimName{EffectName: of, N: n + 1})
		add(strings.Replace(strings.Replace(claim, ".tool.", ".<class>.", 1), ".2", number, 1), err)
	}
	for _, of := range []func(string) (string, error){names.Out, names.Live, names.Progress, names.Cancel, names.View} {
		add(of("SESSION"))
	}
	alive, err := names.Alive(subjects.KindBridge, "INSTANCE")
	add(strings.Replace(alive, ".bridge.", ".<kind>.", 1), err)
	timer, err := names.Timer("SESSION", "WAKE", 7)
	add(strings.TrimSuffix(timer, "7")+"<due>", err)
	add(names.Due("SESSION", "WAKE"))
	snapshot, err := subjects.SnapshotKey("SESSION")
	add(snapshot, err)
	quarantine, err := subjects.QuarantineKey("SESSION")
	add(quarantine, err)
	add(strings.Replace(subjects.GuardKey(7), "7", "<lane>", 1), nil)
	for _, subject := range made {
		if !strings.Contains(string(text), "`"+subject+"`") {
			t.Errorf("%s does not tell of `%s`", protocolDoc, subject)
		}
	}
	for _, name := range []string{
		names.LogStream(), names.EffectsStream(), names.NoticesStream(), names.TimersStream(), names.SnapshotsBucket(), names.BlobsBucket(),
		subjects.HeaderContentType, subjects.ContentTypeMsgpack, subjects.HeaderMsgID, subjects.HeaderExpectLastSubject, subjects.HeaderTraceParent,
		subjects.HeaderServiceError, subjects.HeaderServiceErrorCode,
	} {
		if !strings.Contains(string(text), name) {
			t.Errorf("%s does not tell of %s", protocolDoc, name)
		}
	}
}

// TestReservedFields: needs are for the tools of packs. A registry of a session's
// own that has them is rejected, and an install record is refused.
func TestReservedFields(t *testing.T) {
	t.Parallel()
	record := func(fields string) error {
		_, err := session.ParseInstall([]byte(`{"v":1,"rules":1,` + fields + `}`))
		return err
	}
	tools := `"tools":[{"tool_id":"x.y","tool_name":"y","args_schema":{"type":"object"},"executor":{"kind":"effect","target":"x"}%s}]`
	for _, c := range []struct {
		field string
		code  session.Rejection
	}{
		{field: ""},
		{field: `,"needs":["bin:x"]`, code: session.RejectInvalidRegistry},
	} {
		fields := fmt.Sprintf(tools, c.field)
		payload := jsonOf(t, map[string]any{"type": "ToolRegistrySet", "data": json.RawMessage("{" + fields + "}")})
		_, notices := reach(t, "ToolRegistrySet").fold(session.DoorCtl, payload)
		var got session.Rejection
		if len(notices) > 0 {
			rejected, _ := notices[len(notices)-1].Data.(session.EventRejected)
			got = rejected.Code
		}
		if got != c.code {
			t.Errorf("a registry with %q: got %q, want %q", c.field, got, c.code)
		}
		if err := record(fields); (err != nil) != (c.code != "") {
			t.Errorf("a record with %q: got %v, want a refusal: %v", c.field, err, c.code != "")
		}
	}
}

// TestLinks: what the documents point to is there.
func TestLinks(t *testing.T) {
	t.Parallel()
	docs, err := filepath.Glob("docs/*.md")
	if err != nil || len(docs) == 0 {
		t.Fatal("no documents", err)
	}
	docs = append(docs, "README.md", "SECURITY.md")
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	for _, doc := range docs {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range link.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(doc), to[1])); err != nil {
				t.Errorf("%s: %v", doc, err)
			}
		}
	}
}

// TestPartition: the partition that the document names is the one of s1, and
// its hash of an event is the code's.
func TestPartition(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(protocolDoc)
	if err != nil {
		t.Fatal(err)
	}
	names, err := subjects.New("")
	if err != nil {
		t.Fatal(err)
	}
	filter, err := names.Session("s1")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "the events of `s1` are `"+filter+"`") {
		t.Errorf("%s does not say that the events of s1 are %s", protocolDoc, filter)
	}
	leaf := append([]byte{0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 9}, "in\x00{}"...)
	if got := session.LeafOf(session.Event{Session: "s1", Door: session.DoorIn, Seq: 7, Time: 9, Payload: []byte("{}")}); got != codec.Digest(leaf) {
		t.Errorf("leaf: got %s, want %s", got, codec.Digest(leaf))
	}
}

// TestBuiltinTable: the table of the built-in registry is the registry.
func TestBuiltinTable(t *testing.T) {
	t.Parallel()
	install, err := session.ParseInstall(session.BuiltinInstall())
	if err != nil {
		t.Fatal(err)
	}
	yes := map[bool]string{true: "yes", false: "no"}
	var want []string
	for _, tool := range install.Registry.Tools() {
		if tool.Executor.Kind != planner.ExecutorEffect { // a table of its own
			continue
		}
		key := "–"
		if tool.ResourceKey != "" {
			key = "`" + tool.ResourceKey + "`"
		}
		when := map[string]string{planner.RuleHostSessionReady: "ready", planner.RuleHostSessionNotReady: "host session not ready"}
		available := when[tool.Availability[0].Kind]
		if len(tool.Availability) != 1 || available == "" || tool.Executor.Target != "host" || len(tool.Requires) > 0 {
			t.Errorf("%s has what the table has no column for", tool.ToolID)
		}
		want = append(want, fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s |",
			tool.ToolID, tool.ToolName, yes[tool.ParallelSafe], key, tool.Access, yes[tool.RetrySafe], available))
	}
	got := regexp.MustCompile(`(?m)^\| host\..*$`).FindAllString(sections(t, "docs/semantics.md")["The built-in registry"], -1)
	if !sameSet(got, want) || len(got) != len(want) {
		t.Errorf("docs/semantics.md has\n%s\nthe registry is\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for profile, without := range map[string]string{"openai": "host.fs.edit_file", "anthropic": "host.fs.apply_patch", "gemini": "host.fs.apply_patch"} {
		i := slices.IndexFunc(install.Registry.Profiles(), func(p planner.Profile) bool { return p.Profile == profile })
		if i < 0 {
			t.Errorf("there is no profile %s", profile)
			continue
		}
		listed := append([]string{without}, install.Registry.Profiles()[i].Tools...)
		var all []string
		for _, tool := range install.Registry.Tools() {
			if tool.Executor.Kind != planner.ExecutorEffect {
				continue
			}
			all = append(all, tool.ToolID)
		}
		if !sameSet(listed, all) || len(listed) != len(all) {
			t.Errorf("profile %s: want all tools but %s", profile, without)
		}
	}
}

// TestGroupsTable: the planner orders the calls of the table as it says.
func TestGroupsTable(t *testing.T) {
	t.Parallel()
	rows := regexp.MustCompile(`(?m)^\| ([PN]0[^|]*) \| ([^|]*) \|$`).FindAllStringSubmatch(sections(t, "docs/semantics.md")["A batch of calls"], -1)
	if len(rows) < 9 {
		t.Fatalf("%d rows", len(rows))
	}
	call := regexp.MustCompile(`^([PN])\d(?:\(([^?)]*)(\??)\))?$`)
	for _, row := range rows {
		var calls []planner.PlanCall
		for _, word := range strings.Fields(row[1]) {
			m := call.FindStringSubmatch(word)
			if m == nil {
				t.Fatalf("%s: what is %q?", row[1], word)
			}
			c := planner.PlanCall{ParallelSafe: m[1] == "P", Access: planner.AccessWrite}
			c.Key.Bare, c.Key.Part, _ = strings.Cut(m[2], ":")
			if m[3] == "?" {
				c.Access = planner.AccessRead
			}
			calls = append(calls, c)
		}
		var groups []string
		for _, group := range planner.Schedule(calls).Groups {
			groups = append(groups, strings.Trim(fmt.Sprint(group), "[]"))
		}
		if got := strings.Join(groups, " · "); got != row[2] {
			t.Errorf("%s: got %s, the table says %s", row[1], got, row[2])
		}
	}
}

// TestOperationsQuotes: the lines of logs that docs/operations.md tells of are
// logged.
func TestOperationsQuotes(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := strings.Join(strings.Fields(string(text)), " ")
	for quote, file := range map[string]string{
		"event_skipped":           "internal/journal/events.go",
		"failed, trying again":    "internal/engine/driver.go",
		"foreign_message_skipped": "internal/worker/worker.go",
		"install record ignored":  "internal/journal/installs.go",
		"nats_permission_denied":  "internal/natsio/connect.go",
		"newer_effect_given_back": "internal/worker/worker.go",
		"session quarantined":     "internal/engine/quarantine.go",
	} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(doc, "`"+quote+"`") || !strings.Contains(string(source), `"`+quote+`"`) {
			t.Errorf("%q: want it in docs/operations.md and in %s", quote, file)
		}
	}
}
