// The protocol's documents, as tests.
//
// What: docs/schemas has a schema for every message and none besides; a schema
// has the fields, the codes and the limits of the code, no more and no fewer;
// docs/protocol.md describes every field, and its examples are messages.
//
// How: protocol_struct_test.go and protocol_limits_test.go hold schemas against
// Go's structs and constants, protocol_fold_test.go, protocol_fields_test.go and
// protocol_malformed_test.go against the fold: what every scenario file says and
// asks for, messages with all their fields, and thousands of malformed ones, which
// both must refuse. protocol_wire_test.go runs a session-actor and a bridge and
// looks at every message that passes. protocol_text_test.go reads the text;
// protocol_runs_test.go, protocol_when_test.go and protocol_approval_test.go
// hold the tables and examples of docs/semantics.md against the fold.
package docs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

const (
	schemasDir = "docs/schemas"
	partsDir   = "parts" // of what several messages have
	filesDir   = "files" // of files of spaces, which are no messages: internal/spaces holds them
	schemaBase = "refold:///docs/schemas/"
	dialect    = "https://json-schema.org/draft/2020-12/schema"
)

// schemas is docs/schemas: documents by name, as in "RunRequested" or
// "parts/Content", and ready for use.
type schemas struct {
	docs     map[string]map[string]any
	compiled map[string]*jsonschema.Schema
}

// readSchemas reads and compiles all of docs/schemas.
func readSchemas(t *testing.T) *schemas {
	t.Helper()
	s := &schemas{docs: map[string]map[string]any{}, compiled: map[string]*jsonschema.Schema{}}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(closedLoader{})
	root := os.DirFS(schemasDir)
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if name == filesDir {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		object, ok := doc.(map[string]any)
		if !ok || path.Ext(name) != ".json" {
			return fmt.Errorf("%s: is no schema", name)
		}
		s.docs[strings.TrimSuffix(name, ".json")] = object
		return c.AddResource(schemaBase+name, doc)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range s.names() {
		if s.compiled[name], err = c.Compile(schemaBase + name + ".json"); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return s
}

// closedLoader opens nothing: schemas refer to one another only.
type closedLoader struct{}

func (closedLoader) Load(url string) (any, error) {
	return nil, errors.New(url + " is not in " + schemasDir)
}

func (s *schemas) names() []string { return slices.Sorted(maps.Keys(s.docs)) }

// check says what is wrong with a message, given as JSON; nil if nothing is.
func (s *schemas) check(name string, message []byte) error {
	schema := s.compiled[name]
	if schema == nil {
		return fmt.Errorf("there is no schema %s", name)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(message))
	if err != nil {
		return err
	}
	if err := schema.Validate(v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// packed is check for a message in msgpack.
func (s *schemas) packed(name string, message []byte) error {
	text, err := codec.ToJSON(message)
	if err != nil {
		return err
	}
	return s.check(name, text)
}

// noticeTypes returns the names of all notices: the constants of two files.
func noticeTypes(t *testing.T) []string {
	t.Helper()
	isNotice := func(name, _ string) bool { return strings.HasPrefix(name, "Notice") }
	return append(constants(t, "actors/session/notice.go", isNotice), constants(t, "actors/session/spacenotice.go", isNotice)...)
}

// effectSchemas are the effects that a session asks for, by class.
var effectSchemas = map[session.Class]string{
	session.ClassLLM: "Generation", session.ClassTool: "ToolCall", session.ClassWake: "Wake", session.ClassStep: "Step", session.ClassSpace: "Space",
}

// otherSchemas are the messages that are neither events, effects nor notices.
var otherSchemas = []string{
	"Cancel", "Claim", "Envelope", "Heartbeat", "InstallRecord", "LiveDelta", "Manifest", "Notice", "Progress", "Quarantine", "Snapshot",
	"SnapshotBlob", "ToolDescriptor", "View", session.ProgressTurnSettled, session.ProgressCallSettled,
}

// TestEveryMessageHasASchema: and no schema is without a message, or, being a
// part, without a schema that refers to it.
func TestEveryMessageHasASchema(t *testing.T) {
	t.Parallel()
	s := readSchemas(t)
	want := slices.Concat(session.EventTypes(), noticeTypes(t), otherSchemas)
	for _, class := range constants(t, "actors/session/evolve.go", func(_, typ string) bool { return typ == "Class" }) {
		name := effectSchemas[session.Class(class)]
		if name == "" {
			t.Errorf("effects of class %s have no schema", class)
		}
		want = append(want, name)
	}
	slices.Sort(want)
	var got, parts []string
	for _, name := range s.names() {
		if dir := path.Dir(name); dir == partsDir {
			parts = append(parts, name)
		} else {
			got = append(got, name)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("schemas: got %v\nwant %v", got, want)
	}
	used := map[string]bool{}
	for name, doc := range s.docs {
		walk(doc, func(_ string, node map[string]any) {
			if to, ok := node["$ref"].(string); ok {
				file, _ := s.refersTo(name, to)
				used[file] = used[file] || file != name
			}
		})
	}
	for _, part := range parts {
		if !used[part] {
			t.Errorf("%s: no schema refers to it", part)
		}
	}
}

// refersTo resolves a $ref that stands in the schema called from.
func (s *schemas) refersTo(from, ref string) (name string, node map[string]any) {
	file, pointer, _ := strings.Cut(ref, "#")
	name = from
	if file != "" {
		name = strings.TrimSuffix(path.Join(path.Dir(from), file), ".json")
	}
	var at any = s.docs[name]
	for _, token := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		if token == "" {
			continue
		}
		object, _ := at.(map[string]any)
		at = object[token]
	}
	node, _ = at.(map[string]any)
	return name, node
}

// TestSchemasAreStrict: every object names its fields and takes no other, and
// every field is described.
func TestSchemasAreStrict(t *testing.T) {
	t.Parallel()
	s := readSchemas(t)
	for _, name := range s.names() {
		doc := s.docs[name]
		if doc["$schema"] != dialect || doc["$id"] != path.Base(name)+".json" || doc["title"] != path.Base(name) {
			t.Errorf("%s: $schema %v, $id %v, title %v: want the dialect of 2020-12, and its own name", name, doc["$schema"], doc["$id"], doc["title"])
		}
		if text, _ := doc["description"].(string); text == "" {
			t.Errorf("%s: has no description", name)
		}
		walk(doc, func(at string, node map[string]any) {
			fields, ok := node["properties"].(map[string]any)
			if !ok || node["type"] != "object" {
				return // a condition, or something else
			}
			if node["additionalProperties"] != false {
				t.Errorf("%s#%s: takes fields that it doesn't name", name, at)
			}
			for field, schema := range fields {
				object, _ := schema.(map[string]any)
				_, refers := object["$ref"]
				if text, _ := object["description"].(string); text == "" && !refers {
					t.Errorf("%s#%s/properties/%s: has no description", name, at, field)
				}
			}
		})
	}
}

// walk calls visit for every object in a document, with its JSON pointer.
func walk(doc any, visit func(at string, node map[string]any)) { walkAt("", doc, visit) }

func walkAt(at string, value any, visit func(string, map[string]any)) {
	switch v := value.(type) {
	case map[string]any:
		visit(at, v)
		for _, key := range slices.Sorted(maps.Keys(v)) {
			walkAt(at+"/"+key, v[key], visit)
		}
	case []any:
		for i := range v {
			walkAt(at+"/"+strconv.Itoa(i), v[i], visit)
		}
	}
}

// constants returns the texts of a file's constants that pick picks, sorted.
// Its types are those written in the declaration.
func constants(t *testing.T, file string, pick func(name, typ string) bool) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, decl := range parsed.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.CONST {
			continue
		}
		for _, spec := range gen.Specs {
			value := spec.(*ast.ValueSpec)
			typ, _ := value.Type.(*ast.Ident)
			typName := ""
			if typ != nil {
				typName = typ.Name
			}
			for i, name := range value.Names[:min(len(value.Names), len(value.Values))] { // iota has no value of its own
				lit, ok := value.Values[i].(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING || !pick(name.Name, typName) {
					continue
				}
				text, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, text)
			}
		}
	}
	if len(all) == 0 {
		t.Fatalf("%s: no such constants", file)
	}
	slices.Sort(all)
	return all
}

// TestEnums: where a schema lists values, they are those of the code.
func TestEnums(t *testing.T) {
	t.Parallel()
	s := readSchemas(t)
	typed := func(file, typ string) []string {
		return constants(t, file, func(_, got string) bool { return got == typ })
	}
	var ingress []string
	for field := range reflect.TypeFor[session.RunConfig]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("msgpack"), ",")
		ingress = append(ingress, name)
	}
	ingress = append(ingress, "roles") // of the RunRequested itself
	statuses := typed("actors/session/state.go", "CallStatus")
	settled := slices.DeleteFunc(slices.Clone(statuses), func(s string) bool {
		return s == "waiting" || s == "awaiting_approval" || s == "open" || s == "ignored"
	})
	lifecycles := typed("actors/session/state.go", "Lifecycle")
	going := []string{"queued", "running", "waiting_input", "paused", "interrupting"}
	ended := slices.DeleteFunc(slices.Clone(lifecycles), func(s string) bool { return slices.Contains(going, s) })
	seen := slices.DeleteFunc(append(slices.Clone(lifecycles), ""), func(s string) bool { return s == "queued" })
	over := slices.DeleteFunc(slices.Clone(statuses), func(s string) bool {
		return s == "waiting" || s == "awaiting_approval" || s == "open"
	})
	bases := typed("planner/select.go", "Source")
	bases[slices.Index(bases, "")] = "profile" // as the view says it
	roles, classes := typed("actors/session/effect.go", "Role"), typed("actors/session/evolve.go", "Class")
	want := map[string][]string{
		"Envelope#/properties/type":                                                session.EventTypes(),
		"Notice#/properties/type":                                                  noticeTypes(t),
		"EventRejected#/properties/code":                                           typed("actors/session/rejection.go", "Rejection"),
		"ToolRejected#/properties/code":                                            append(typed("planner/check.go", "Code"), append(refusedByOthers(t), session.CodeLimitExceeded)...),
		"ToolCallSettled#/properties/status":                                       settled,
		"RunFinished#/properties/lifecycle":                                        ended,
		"View#/properties/lifecycle":                                               seen,
		"View#/properties/last/properties/lifecycle":                               ended,
		"View#/$defs/batch/properties/calls/items/properties/status":               statuses,
		"View#/properties/open/items/properties/class":                             classes,
		"View#/properties/transcript/items/properties/role":                        roles,
		"InstallRecord#/properties/policy/properties/ingress/items":                ingress,
		"parts/ToolSpec#/properties/access":                                        {string(planner.AccessRead), string(planner.AccessWrite)},
		"parts/ToolSpec#/properties/resource_kind":                                 {string(planner.ResourceText), string(planner.ResourcePath)},
		"parts/ApprovalRule#/properties/decision":                                  typed("planner/approval.go", "Decision"),
		"ApprovalDecided#/properties/decision":                                     {session.DecisionApprove, session.DecisionDeny},
		"parts/Budget#/properties/on_breach":                                       {session.BreachPause, session.BreachFail},
		"parts/RunConfig#/properties/completion":                                   {session.CompletionText, session.CompletionExplicit},
		"parts/RunConfig#/properties/cache_ttl":                                    {session.CacheTTLShort, session.CacheTTLLong, session.CacheTTLOff},
		"parts/RunConfig#/properties/tools_mode":                                   {session.ToolsExact, session.ToolsMasked},
		"parts/RunConfig#/properties/response_format/properties/type":              {session.FormatText, session.FormatJSON, session.FormatSchema},
		"parts/ToolSpec#/properties/availability/items/properties/kind":            {planner.RuleAlways, planner.RuleHostSessionReady, planner.RuleHostSessionNotReady, planner.RuleFact},
		"parts/ToolSpec#/properties/executor/properties/kind":                      {planner.ExecutorEffect, planner.ExecutorHostLoop},
		"ToolOverridesSet#/properties/scope":                                       {session.ScopeRun, session.ScopeSession},
		"parts/RunConfig#/properties/step_hook/properties/fallback":                {session.FallbackFail, session.FallbackRules},
		"InstallRecord#/properties/policy/properties/ingress_tools":                {session.IngressNarrow, session.IngressReplace},
		"InstallRecord#/properties/policy/properties/coverage":                     {session.CoverageFail, session.CoverageWarn},
		"InstallRecord#/properties/policy/properties/skills":                       {session.SkillsNarrow, session.SkillsIgnore},
		"Step#/properties/calls/items/properties/status":                           over,
		"View#/$defs/turn/properties/base":                                         bases,
		"View#/$defs/turn/properties/step/properties/from":                         typed("actors/session/turn.go", "StepSource"),
		"View#/$defs/turn/properties/step/properties/failed/items/properties/code": {planner.WhenFailed, planner.WhenTooCostly},
		"CallSettled#/properties/status":                                           over,
		"Progress#/properties/type":                                                {session.ProgressCallSettled, session.ProgressTurnSettled},
		// What the code has as literals; the fold is asked in TestMalformedMessages.
		"RunRequested#/properties/when_busy":   {session.BusyQueue, session.BusySteer, session.BusyInterrupt, session.BusyReject},
		"GenerationSettled#/properties/status": {"ok", "failed"},
		"parts/HostSession#/properties/status": {"ready", "closed", "expired", "error", "none"},
		"View#/properties/waits_for":           {"approval", "host_loop", "input", "model", "nobody", "resume", "retry", "space", "step", "tools"},
		"View#/properties/status":              {"open", "closed"},
		"BudgetExceeded#/properties/budget":    {"tokens", "cost", "session_tokens", "session_cost"},
		"parts/OverBudget#/properties/budget":  {"tokens", "cost", "session_tokens", "session_cost"},
		"StepPrepared#/properties/status":      {"ok", "failed"},
	}
	maps.Copy(want, spaceEnums(t))
	got := map[string][]string{}
	for _, name := range s.names() {
		walk(s.docs[name], func(at string, node map[string]any) {
			list, ok := node["enum"].([]any)
			if !ok {
				return
			}
			for _, value := range list {
				got[name+"#"+at] = append(got[name+"#"+at], fmt.Sprint(value))
			}
		})
	}
	for at, values := range want {
		if !sameSet(got[at], values) {
			t.Errorf("%s: got %v, want %v", at, got[at], values)
		}
		delete(got, at)
	}
	for at := range got {
		t.Errorf("%s: lists values that this test doesn't know: tell it where they come from", at)
	}
}

// jsonOf encodes a value as JSON.
func jsonOf(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
