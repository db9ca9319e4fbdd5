package docs_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// messageTypes are the Go structs of the messages, and the tags that spell
// their fields. Of the messages that are missing here (Notice, Heartbeat,
// Cancel, SnapshotBlob) the code has no exported struct; TestNoticeFields and
// TestWire look at what is sent.
var messageTypes = map[string]struct {
	tag string
	typ reflect.Type
}{
	"Envelope":                {"msgpack", reflect.TypeFor[session.Envelope]()},
	"RunRequested":            {"msgpack", reflect.TypeFor[session.RunRequested]()},
	"SteerRequested":          {"msgpack", reflect.TypeFor[session.SteerRequested]()},
	"RunCancelRequested":      {"msgpack", reflect.TypeFor[session.RunControl]()},
	"RunInterruptRequested":   {"msgpack", reflect.TypeFor[session.RunControl]()},
	"RunPauseRequested":       {"msgpack", reflect.TypeFor[session.RunControl]()},
	"RunResumeRequested":      {"msgpack", reflect.TypeFor[session.RunResumeRequested]()},
	"RunEdited":               {"msgpack", reflect.TypeFor[session.RunEdited]()},
	"RunCompleted":            {"msgpack", reflect.TypeFor[session.RunEnded]()},
	"RunFailed":               {"msgpack", reflect.TypeFor[session.RunEnded]()},
	"SessionClosed":           {"msgpack", reflect.TypeFor[session.SessionClosed]()},
	"ApprovalDecided":         {"msgpack", reflect.TypeFor[session.ApprovalDecided]()},
	"SessionConfigured":       {"msgpack", reflect.TypeFor[flatConfig]()},
	"ToolRegistrySet":         {"msgpack", reflect.TypeFor[session.ToolRegistrySet]()},
	"ToolProfileSelected":     {"msgpack", reflect.TypeFor[session.ToolProfileSelected]()},
	"ToolOverridesSet":        {"msgpack", reflect.TypeFor[session.ToolOverridesSet]()},
	"HostSessionUpdated":      {"msgpack", reflect.TypeFor[session.HostSessionUpdated]()},
	"FactsSet":                {"msgpack", reflect.TypeFor[session.FactsSet]()},
	"ToolCallsObserved":       {"msgpack", reflect.TypeFor[session.ToolCallsObserved]()},
	"GenerationSettled":       {"msgpack", reflect.TypeFor[session.GenerationSettled]()},
	"ToolCallSettled":         {"msgpack", reflect.TypeFor[session.ToolCallSettled]()},
	"ToolBatchSettled":        {"msgpack", reflect.TypeFor[session.ToolBatchSettled]()},
	"WorkspaceSyncRequested":  {"msgpack", reflect.TypeFor[session.WorkspaceSyncRequested]()},
	"WorkspaceApplyRequested": {"msgpack", reflect.TypeFor[session.WorkspaceApplyRequested]()},
	"WorkspaceDetached":       {"msgpack", reflect.TypeFor[session.WorkspaceDetached]()},
	"WorkspaceSnapshotReady":  {"msgpack", reflect.TypeFor[session.WorkspaceSnapshotReady]()},
	"WorkspaceSyncUnchanged":  {"msgpack", reflect.TypeFor[session.WorkspaceSyncUnchanged]()},
	"WorkspaceSyncFailed":     {"msgpack", reflect.TypeFor[session.WorkspaceSyncFailed]()},
	"StepPrepared":            {"msgpack", reflect.TypeFor[session.StepPrepared]()},
	"WakeSettled":             {"msgpack", reflect.TypeFor[session.WakeSettled]()},
	"Generation":              {"msgpack", reflect.TypeFor[session.Generation]()},
	"ToolCall":                {"msgpack", reflect.TypeFor[session.ToolCall]()},
	"Step":                    {"msgpack", reflect.TypeFor[session.Step]()},
	"Wake":                    {"msgpack", reflect.TypeFor[session.Wake]()},
	"Space":                   {"msgpack", reflect.TypeFor[session.Space]()},
	"Manifest":                {"msgpack", reflect.TypeFor[space.Manifest]()},
	"InstallRecord":           {"msgpack", reflect.TypeFor[session.InstallRecord]()},
	"ToolDescriptor":          {"msgpack", reflect.TypeFor[planner.Descriptor]()},
	"Snapshot":                {"msgpack", reflect.TypeFor[session.Snapshot]()},
	"SessionOpened":           {"json", reflect.TypeFor[session.SessionOpened]()},
	"RunQueued":               {"json", reflect.TypeFor[session.RunPlaced]()},
	"RunStarted":              {"json", reflect.TypeFor[session.RunPlaced]()},
	"RunFinished":             {"json", reflect.TypeFor[session.RunFinished]()},
	"EventRejected":           {"json", reflect.TypeFor[session.EventRejected]()},
	"ToolRejected":            {"json", reflect.TypeFor[session.ToolRejected]()},
	"CallsPlanned":            {"json", reflect.TypeFor[session.CallsPlanned]()},
	"ApprovalRequested":       {"json", reflect.TypeFor[session.ApprovalRequested]()},
	"BudgetExceeded":          {"json", reflect.TypeFor[session.BudgetExceeded]()},
	"WorkspaceStaged":         {"json", reflect.TypeFor[session.WorkspaceStaged]()},
	"WorkspaceApplied":        {"json", reflect.TypeFor[session.WorkspaceApplied]()},
	"WorkspaceFailed":         {"json", reflect.TypeFor[session.WorkspaceFailed]()},
	"WorkspaceGone":           {"json", reflect.TypeFor[session.WorkspaceGone]()},
	"WorkspaceDisplaced":      {"json", reflect.TypeFor[session.WorkspaceDisplaced]()},
	"TurnSettled":             {"json", reflect.TypeFor[session.TurnSettled]()},
	"CallSettled":             {"json", reflect.TypeFor[session.CallSettled]()},
	"SessionQuarantined":      {"json", reflect.TypeFor[session.SessionQuarantined]()},
	"Claim":                   {"json", reflect.TypeFor[journal.ClaimBody]()},
	"LiveDelta":               {"json", reflect.TypeFor[client.Delta]()},
	"Quarantine":              {"json", reflect.TypeFor[engine.Stop]()},
	"View":                    {"json", reflect.TypeFor[session.View]()},
}

// flatConfig is session.SessionConfig as it is on the wire: queue_max stands
// among the fields of the RunConfig.
type flatConfig struct {
	session.RunConfig
	QueueMax int `msgpack:"queue_max,omitempty"`
}

var sentWithoutStruct = []string{"Notice", "Progress", "Heartbeat", "Cancel", "SnapshotBlob"}

// TestFields: a struct and its schema have the same fields, of the same types,
// required the same way, all the way down.
func TestFields(t *testing.T) {
	t.Parallel()
	s := readSchemas(t)
	for _, name := range s.names() {
		m, ok := messageTypes[name]
		if !ok {
			if !strings.Contains(name, "/") && !slices.Contains(sentWithoutStruct, name) {
				t.Errorf("%s: this test doesn't know its struct", name)
			}
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := comparison{schemas: s, tag: m.tag, file: name, node: s.docs[name]}
			for _, complaint := range c.compare(m.typ, "") {
				t.Error(complaint)
			}
		})
	}
}

// comparison holds one place of a schema against a Go type.
type comparison struct {
	schemas *schemas
	tag     string
	file    string
	node    map[string]any
	inside  []reflect.Type // structs that this place is part of: a Content has parts
}

func (c comparison) at(node any) comparison {
	c.node, _ = node.(map[string]any)
	for {
		to, ok := c.node["$ref"].(string)
		if !ok {
			return c
		}
		c.file, c.node = c.schemas.refersTo(c.file, to)
	}
}

var (
	typeHash  = reflect.TypeFor[codec.Hash]()
	typeRef   = reflect.TypeFor[codec.Ref]()
	typeRaw   = reflect.TypeFor[codec.Raw]()
	typePairs = reflect.TypeFor[codec.Pairs]()
	typeJSON  = reflect.TypeFor[json.RawMessage]()
	typeBytes = reflect.TypeFor[[]byte]()
)

// compare returns the differences between a type and this place.
func (c comparison) compare(typ reflect.Type, path string) []string {
	c = c.at(c.node)
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	want := ""
	switch {
	case typ == typeRaw || typ == typeJSON:
		return nil // any value, or one that the fold looks into
	case typ == typeHash || typ == typeRef || typ == typeBytes || typ.Kind() == reflect.String:
		want = "string"
	case typ == typePairs:
		want = "object"
	case typ.Kind() == reflect.Bool:
		want = "boolean"
	case typ.Kind() == reflect.Slice:
		want = "array"
	case typ.Kind() == reflect.Struct:
		want = "object"
	case typ.Kind() >= reflect.Int && typ.Kind() <= reflect.Uint64:
		want = "integer"
	}
	if got := jsonType(c.node); got != want {
		return []string{fmt.Sprintf("%s: the schema has type %q, Go has %s", path, got, typ)}
	}
	switch {
	case typ == typeHash && c.node["pattern"] != "^[0-9a-f]{64}$", typ == typeRef && c.node["pattern"] != "^sha256-[0-9a-f]{64}$":
		return []string{fmt.Sprintf("%s: the schema has pattern %v, Go has %s", path, c.node["pattern"], typ)}
	case typ.Kind() == reflect.Slice && typ != typePairs && typ != typeBytes:
		return c.at(c.node["items"]).compare(typ.Elem(), path+"[]")
	case typ.Kind() == reflect.Struct && typ != typeRef && !slices.Contains(c.inside, typ):
		c.inside = append(slices.Clone(c.inside), typ)
		return c.compareFields(typ, path)
	case strings.HasPrefix(typ.Kind().String(), "uint") && c.node["minimum"] == nil:
		return []string{path + ": Go has no negative numbers here, the schema has"}
	}
	return nil
}

// jsonType is the type that a schema asks for.
func jsonType(node map[string]any) string {
	if typ, ok := node["type"].(string); ok {
		return typ
	}
	switch node["const"].(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case json.Number:
		return "integer"
	}
	return ""
}

// compareFields compares the fields of a struct with the properties here.
func (c comparison) compareFields(typ reflect.Type, path string) (complaints []string) {
	properties, _ := c.node["properties"].(map[string]any)
	required := asList(c.node["required"])
	if forms := asList(c.node["anyOf"]); len(forms) > 0 { // the first one is the struct's
		first, _ := forms[0].(map[string]any)
		required = append(slices.Clone(required), asList(first["required"])...)
	}
	known := map[string]bool{}
	for field := range fieldsOf(typ) {
		name, options, _ := strings.Cut(field.Tag.Get(c.tag), ",")
		if name == "-" {
			continue
		}
		known[name] = true
		schema, ok := properties[name]
		if !ok {
			complaints = append(complaints, fmt.Sprintf("%s: Go has the field %q, the schema has not", path, name))
			continue
		}
		if optional := strings.Contains(options, "omitempty"); optional == slices.Contains(required, any(name)) {
			complaints = append(complaints, fmt.Sprintf("%s.%s: optional in Go: %v, required in the schema: %v", path, name, optional, !optional))
		}
		complaints = append(complaints, c.at(schema).compare(field.Type, path+"."+name)...)
	}
	for name := range properties {
		if !known[name] {
			complaints = append(complaints, fmt.Sprintf("%s: the schema has the field %q, Go has not", path, name))
		}
	}
	return complaints
}

// fieldsOf yields the fields of a struct, embedded ones included.
func fieldsOf(typ reflect.Type) func(yield func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for _, field := range reflect.VisibleFields(typ) {
			if !field.Anonymous && field.IsExported() && !yield(field) {
				return
			}
		}
	}
}

// TestFieldsDiffer: the comparison sees what it is for.
func TestFieldsDiffer(t *testing.T) {
	t.Parallel()
	s := readSchemas(t)
	type fewer struct {
		Profile string `msgpack:"profile"`
	}
	type more struct {
		Effect string `msgpack:"effect"`
		Extra  int    `msgpack:"extra,omitempty"`
	}
	type other struct {
		Effect int `msgpack:"effect"`
	}
	type optional struct {
		Effect string `msgpack:"effect,omitempty"`
	}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[fewer](), reflect.TypeFor[more](), reflect.TypeFor[other](), reflect.TypeFor[optional](),
	} {
		c := comparison{schemas: s, tag: "msgpack", file: "WakeSettled", node: s.docs["WakeSettled"]}
		if got := c.compare(typ, ""); len(got) == 0 {
			t.Errorf("%s: no complaint", typ)
		}
	}
}

// TestNoticeFields: a notice as it is sent has the fields of its schema.
func TestNoticeFields(t *testing.T) {
	t.Parallel()
	s := readSchemas(t)
	for _, n := range []session.Notice{
		{N: 1, Type: session.NoticeSessionOpened, Seq: 2, At: 3, Session: "s1", Data: session.SessionOpened{Rules: 1}},
		{Type: session.NoticeSessionQuarantined, Seq: 2, At: 3, Session: "s1", Data: session.SessionQuarantined{Reason: "r"}},
	} {
		text := n.JSON()
		if err := s.check("Notice", text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		var sent map[string]any
		if err := json.Unmarshal(text, &sent); err != nil {
			t.Fatal(err)
		}
		properties, _ := s.docs["Notice"]["properties"].(map[string]any)
		want := len(properties)
		if n.N == 0 {
			want-- // n itself
		}
		if len(sent) != want {
			t.Errorf("%s has %d fields, its schema %d", text, len(sent), want)
		}
	}
}
