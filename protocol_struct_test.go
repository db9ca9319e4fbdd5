package refold_test

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
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/host"
	"github.com/refold/refold/planner"
)

// messageTypes are the Go structs of the messages, and the tags that spell
// their fields. Of the messages that are missing here (Notice, Heartbeat,
// Cancel, SnapshotBlob) the code has no exported struct; TestNoticeFields and
// TestWire look at what is sent.
var messageTypes = map[string]struct {
	tag string
	typ reflect.Type
}{
	"Envelope":            {"msgpack", reflect.TypeFor[session.Envelope]()},
	"RunRequested":        {"msgpack", reflect.TypeFor[session.RunRequested]()},
	"SessionConfigured":   {"msgpack", reflect.TypeFor[flatConfig]()},
	"ToolRegistrySet":     {"msgpack", reflect.TypeFor[session.ToolRegistrySet]()},
	"ToolProfileSelected": {"msgpack", reflect.TypeFor[session.ToolProfileSelected]()},
	"ToolOverridesSet":    {"msgpack", reflect.TypeFor[session.ToolOverridesSet]()},
	"HostSessionUpdated":  {"msgpack", reflect.TypeFor[session.HostSessionUpdated]()},
	"FactsSet":            {"msgpack", reflect.TypeFor[session.FactsSet]()},
	"ToolCallsObserved":   {"msgpack", reflect.TypeFor[session.ToolCallsObserved]()},
	"GenerationSettled":   {"msgpack", reflect.TypeFor[session.GenerationSettled]()},
	"ToolCallSettled":     {"msgpack", reflect.TypeFor[session.ToolCallSettled]()},
	"ToolBatchSettled":    {"msgpack", reflect.TypeFor[session.ToolBatchSettled]()},
	"StepPrepared":        {"msgpack", reflect.TypeFor[session.StepPrepared]()},
	"WakeSettled":         {"msgpack", reflect.TypeFor[session.WakeSettled]()},
	"Generation":          {"msgpack", reflect.TypeFor[session.Generation]()},
	"ToolCall":            {"msgpack", reflect.TypeFor[session.ToolCall]()},
	"Step":                {"msgpack", reflect.TypeFor[session.Step]()},
	"Wake":                {"msgpack", reflect.TypeFor[session.Wake]()},
	"InstallRecord":       {"msgpack", reflect.TypeFor[session.InstallRecord]()},
	"ToolDescriptor":      {"msgpack", reflect.TypeFor[planner.Descriptor]()},
	"Snapshot":            {"msgpack", reflect.TypeFor[session.Snapshot]()},
	"SessionOpened":       {"json", reflect.TypeFor[session.SessionOpened]()},
	"RunQueued":           {"json", reflect.TypeFor[session.RunPlaced]()},
	"RunStarted":          {"json", reflect.TypeFor[session.RunPlaced]()},
	"RunFinished":         {"json", reflect.TypeFor[session.RunFinished]()},
	"EventRejected":       {"json", reflect.TypeFor[session.EventRejected]()},
	"ToolRejected":        {"json", reflect.TypeFor[session.ToolRejected]()},
	"CallsPlanned":        {"json", reflect.TypeFor[session.CallsPlanned]()},
	"SessionQuarantined":  {"json", reflect.TypeFor[session.SessionQuarantined]()},
	"Claim":               {"json", reflect.TypeFor[bus.ClaimBody]()},
	"LiveDelta":           {"json", reflect.TypeFor[client.Delta]()},
	"Quarantine":          {"json", reflect.TypeFor[host.Stop]()},
	"View":                {"json", reflect.TypeFor[session.View]()},
}

// flatConfig is session.SessionConfig as it is on the wire: queue_max stands
// among the fields of the RunConfig.
type flatConfig struct {
	session.RunConfig
	QueueMax int `msgpack:"queue_max,omitempty"`
}

var sentWithoutStruct = []string{"Notice", "Heartbeat", "Cancel", "SnapshotBlob"}

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
)

// compare returns the differences between a type and this place.
func (c comparison) compare(typ reflect.Type, path string) []string {
	c = c.at(c.node)
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	want := ""
	switch {
	case typ == typeRaw:
		return nil // any value, or one that the fold looks into
	case typ == typeHash || typ == typeRef || typ.Kind() == reflect.String:
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
	case typ.Kind() == reflect.Slice && typ != typePairs:
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
	required, _ := c.node["required"].([]any)
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

// limits says for every limit in a schema which one of the code it is. Go
// counts bytes; a schema's maxLength counts characters, so it lets through what
// the fold refuses where text is not ASCII.
var limits = map[string]int64{
	"CallsPlanned#/properties/calls/maxItems":                                         session.CallsMax,
	"Envelope#/properties/by/maxLength":                                               session.ByBytesMax,
	"Envelope#/properties/id/maxLength":                                               session.IDBytesMax,
	"EventRejected#/properties/detail/maxLength":                                      session.DetailBytesMax,
	"EventRejected#/properties/type/maxLength":                                        session.IDBytesMax,
	"FactsSet#/properties/facts/additionalProperties/maxLength":                       session.FactValueBytesMax,
	"FactsSet#/properties/facts/propertyNames/maxLength":                              session.FactNameBytesMax,
	"Generation#/properties/items/maxItems":                                           session.ItemsMax,
	"Generation#/properties/model/maxLength":                                          session.NameBytesMax,
	"Generation#/properties/system/maxLength":                                         session.SystemBytesMax,
	"Generation#/properties/tools/maxItems":                                           planner.ToolsMax,
	"GenerationSettled#/properties/finish_reason/maxLength":                           session.NameBytesMax,
	"GenerationSettled#/properties/model/maxLength":                                   session.NameBytesMax,
	"InstallRecord#/properties/profiles/maxItems":                                     planner.ProfilesMax,
	"InstallRecord#/properties/tools/maxItems":                                        planner.ToolsMax,
	"LiveDelta#/properties/text/maxLength":                                            32 << 10, // see TestWire
	"RunFinished#/properties/code/maxLength":                                          session.CodeBytesMax,
	"RunFinished#/properties/detail/maxLength":                                        session.DetailBytesMax,
	"RunQueued#/properties/submission/maxLength":                                      session.IDBytesMax,
	"RunRequested#/properties/submission/maxLength":                                   session.IDBytesMax,
	"RunRequested#/properties/roles/items/maxLength":                                  session.RoleBytesMax,
	"RunRequested#/properties/roles/maxItems":                                         session.RolesMax,
	"RunStarted#/properties/submission/maxLength":                                     session.IDBytesMax,
	"SessionConfigured#/properties/queue_max/maximum":                                 session.QueueMax,
	"Step#/properties/calls/items/properties/code/maxLength":                          session.CodeBytesMax,
	"Step#/properties/calls/items/properties/tool_name/maxLength":                     session.NameBytesMax,
	"Step#/properties/calls/maxItems":                                                 session.StepCallsMax,
	"Step#/properties/model/maxLength":                                                session.NameBytesMax,
	"Step#/properties/roles/items/maxLength":                                          session.RoleBytesMax,
	"Step#/properties/roles/maxItems":                                                 session.RolesMax,
	"ToolBatchSettled#/properties/results/maxItems":                                   session.CallsMax,
	"ToolCall#/properties/arguments/maxLength":                                        planner.ArgumentsBytesMax,
	"ToolCall#/properties/call/maximum":                                               session.CallsMax - 1,
	"ToolCall#/properties/provider_call_id/maxLength":                                 session.ByBytesMax,
	"ToolCallsObserved#/properties/calls/items/properties/provider_call_id/maxLength": session.ByBytesMax,
	"ToolCallsObserved#/properties/calls/maxItems":                                    session.CallsSeenMax,
	"ToolCallsObserved#/properties/model/maxLength":                                   session.NameBytesMax,
	"ToolDescriptor#/properties/description/maxLength":                                planner.DescriptionBytesMax,
	"ToolRejected#/properties/detail/maxLength":                                       session.DetailBytesMax,
	"ToolRejected#/properties/tool_name/maxLength":                                    session.NameBytesMax,
	"View#/$defs/batch/properties/calls/items/properties/detail/maxLength":            session.DetailBytesMax,
	"View#/$defs/lists/properties/disable/maxItems":                                   session.NamesMax,
	"View#/$defs/lists/properties/enable/maxItems":                                    session.NamesMax,
	"View#/$defs/lists/properties/force/maxItems":                                     session.NamesMax,
	"View#/$defs/run/properties/roles/maxItems":                                       session.RolesMax,
	"View#/$defs/turn/properties/step/properties/detail/maxLength":                    session.DetailBytesMax,
	"View#/$defs/turn/properties/step/properties/failed/maxItems":                     planner.StepRulesMax,
	"View#/$defs/batch/properties/calls/maxItems":                                     session.CallsMax,
	"View#/properties/facts/maxItems":                                                 session.FactsMax,
	"View#/properties/last/properties/detail/maxLength":                               session.DetailBytesMax,
	"View#/properties/queue/maxItems":                                                 session.QueueMax,
	"View#/properties/tools/maxItems":                                                 planner.ToolsMax,
	"View#/properties/transcript/maxItems":                                            100, // see TestScenariosFitSchemas
	"parts/Content#/properties/media_type/maxLength":                                  session.NameBytesMax,
	"parts/Content#/properties/parts/maxItems":                                        session.PartsMax,
	"parts/Content#/properties/text/maxLength":                                        session.TextBytesMax,
	"parts/Fault#/properties/code/maxLength":                                          session.CodeBytesMax,
	"parts/HostSession#/properties/id/maxLength":                                      session.HostIDBytesMax,
	"parts/HostSession#/properties/route/maxLength":                                   session.HostIDBytesMax,
	"parts/Item#/properties/code/maxLength":                                           session.CodeBytesMax,
	"parts/Item#/properties/detail/maxLength":                                         session.DetailBytesMax,
	"parts/Names#/$defs/tool/maxLength":                                               planner.ToolIDBytesMax,
	"parts/Names#/$defs/tool_id/maxLength":                                            planner.ToolIDBytesMax,
	"parts/RunConfig#/properties/active_tools/maxItems":                               session.NamesMax,
	"parts/RunConfig#/properties/deadlines_ms/properties/call/maximum":                session.DeadlineMaxMS,
	"parts/RunConfig#/properties/deadlines_ms/properties/call/minimum":                session.DeadlineMinMS,
	"parts/RunConfig#/properties/deadlines_ms/properties/turn/maximum":                session.DeadlineMaxMS,
	"parts/RunConfig#/properties/deadlines_ms/properties/turn/minimum":                session.DeadlineMinMS,
	"parts/RunConfig#/properties/disable/maxItems":                                    session.NamesMax,
	"parts/RunConfig#/properties/enable/maxItems":                                     session.NamesMax,
	"parts/RunConfig#/properties/force/maxItems":                                      session.NamesMax,
	"parts/RunConfig#/properties/model/maxLength":                                     session.NameBytesMax,
	"parts/RunConfig#/properties/step_hook/properties/deadline_ms/maximum":            session.DeadlineMaxMS,
	"parts/RunConfig#/properties/step_hook/properties/deadline_ms/minimum":            session.DeadlineMinMS,
	"parts/RunConfig#/properties/steps/maxItems":                                      planner.StepRulesMax,
	"parts/RunConfig#/properties/tool_refs/maxItems":                                  session.NamesMax,
	"parts/RunConfig#/properties/system/maxLength":                                    session.SystemBytesMax,
	"parts/RunConfig#/properties/turns_max/maximum":                                   session.TurnsMax,
	"parts/Profile#/properties/steps/maxItems":                                        planner.StepRulesMax,
	"parts/StepRule#/properties/active_tools/maxItems":                                planner.StepToolsMax,
	"parts/StepRule#/properties/model/maxLength":                                      planner.StepModelBytesMax,
	"parts/StepRule#/properties/system/maxLength":                                     planner.StepSystemBytesMax,
	"parts/StepRule#/properties/tool_refs/maxItems":                                   planner.StepToolsMax,
	"parts/StepRule#/properties/when/maxLength":                                       planner.WhenBytesMax,
	"ToolRegistrySet#/properties/profiles/maxItems":                                   planner.ProfilesMax,
	"ToolRegistrySet#/properties/tools/maxItems":                                      planner.ToolsMax,
	"parts/ToolSpec#/properties/alternates/maxItems":                                  planner.AlternatesMax,
	"parts/ToolSpec#/properties/availability/items/properties/equals/maxLength":       planner.FactValueBytesMax,
	"parts/ToolSpec#/properties/availability/items/properties/name/maxLength":         planner.FactNameBytesMax,
	"parts/ToolSpec#/properties/availability/maxItems":                                planner.RulesMax,
	"parts/ToolSpec#/properties/deadline_ms/maximum":                                  session.DeadlineMaxMS / 2,
	"parts/ToolSpec#/properties/description/maxLength":                                planner.DescriptionBytesMax,
	"parts/ToolSpec#/properties/requires/items/maxLength":                             planner.CapabilityBytesMax,
	"parts/ToolSpec#/properties/requires/maxItems":                                    planner.RequiresMax,
	"parts/ToolSpec#/properties/resource_key/maxLength":                               planner.TemplateBytesMax,
	"parts/Usage#/properties/cached_tokens/maximum":                                   session.TokensMax,
	"parts/Usage#/properties/input_tokens/maximum":                                    session.TokensMax,
	"parts/Usage#/properties/output_tokens/maximum":                                   session.TokensMax,
	"parts/Usage#/properties/reasoning_tokens/maximum":                                session.TokensMax,
	"InstallRecord#/properties/rules/const":                                           session.RulesVersion,
}

// TestLimits: every limit of a schema is one of the code's. Least values of 0
// and 1 need no name.
func TestLimits(t *testing.T) {
	t.Parallel()
	s := readSchemas(t)
	left := map[string]bool{}
	for at := range limits {
		left[at] = true
	}
	for _, name := range s.names() {
		walk(s.docs[name], func(at string, node map[string]any) {
			for _, keyword := range []string{"maxLength", "maxItems", "maximum", "minimum", "minLength", "minItems", "const"} {
				number, ok := node[keyword].(json.Number)
				got, err := number.Int64()
				place := name + "#" + at + "/" + keyword
				want, known := limits[place]
				delete(left, place)
				switch {
				case !ok || err != nil, !known && got <= 2 && !strings.HasPrefix(keyword, "max"):
				case !known:
					t.Errorf("%s is %d, and this test doesn't know why", place, got)
				case got != want:
					t.Errorf("%s: got %d, want %d", place, got, want)
				}
			}
		})
	}
	for at := range left {
		t.Errorf("%s: no schema has this limit", at)
	}
}
