package planner_test

// The evaluation of schemas, compared with the library on random schemas and
// values. The library is the oracle, so its own cases are not needed.

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// drawValue draws a JSON value from so small a world that schemas meet it.
func drawValue(t *rapid.T, depth int) any {
	kinds := 6
	if depth > 0 {
		kinds = 8
	}
	switch rapid.IntRange(0, kinds).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2, 3:
		return rapid.SampledFrom([]json.Number{"0", "1", "2", "-1", "1.5", "0.1", "0.3", "1e2", "100", "9007199254740993", "1e300"}).Draw(t, "number")
	case 4, 5, 6:
		return rapid.SampledFrom([]string{"", "a", "b", "ab", "é", "x-1"}).Draw(t, "string")
	case 7:
		return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) any { return drawValue(t, depth-1) }), 0, 3).Draw(t, "array")
	}
	return drawObject(t, depth-1)
}

func drawObject(t *rapid.T, depth int) map[string]any {
	out := map[string]any{}
	for _, name := range []string{"a", "b", "x-1"} {
		if rapid.IntRange(0, 2).Draw(t, "has "+name) > 0 {
			out[name] = drawValue(t, depth)
		}
	}
	return out
}

// drawSchema draws a schema. References go to three definitions; depth is how
// far it may still nest.
func drawSchema(t *rapid.T, depth int) any {
	if rapid.IntRange(0, 9).Draw(t, "bool schema") == 0 {
		return rapid.Bool().Draw(t, "schema")
	}
	out := map[string]any{}
	for range rapid.IntRange(0, 3).Draw(t, "keywords") {
		if depth > 0 && rapid.Bool().Draw(t, "nest") {
			drawApplicator(t, out, depth-1)
		} else {
			drawAssertion(t, out)
		}
	}
	return out
}

func drawAssertion(t *rapid.T, out map[string]any) {
	count := rapid.IntRange(0, 3)
	number := rapid.SampledFrom([]json.Number{"0", "1", "1.5", "-1", "100", "0.1", "9007199254740993"})
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "x-1"}), 0, 2, rapid.ID[string])
	switch keyword := rapid.SampledFrom([]string{
		"type", "types", "const", "enum", "multipleOf", "maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum",
		"maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "maxProperties", "minProperties",
		"required", "dependentRequired", "maxContains", "minContains", "format",
	}).Draw(t, "keyword"); keyword {
	case "type":
		out["type"] = rapid.SampledFrom([]string{"array", "boolean", "integer", "null", "number", "object", "string"}).Draw(t, "type")
	case "types":
		out["type"] = rapid.SampledFrom([][]string{{"array", "object"}, {"integer", "string"}, {"null", "number"}}).Draw(t, "types")
	case "const":
		out["const"] = drawValue(t, 1)
	case "enum":
		out["enum"] = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) any { return drawValue(t, 1) }), 1, 3).Draw(t, "enum")
	case "multipleOf":
		out[keyword] = rapid.SampledFrom([]json.Number{"1", "2", "0.1", "1.5"}).Draw(t, keyword)
	case "maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum":
		out[keyword] = number.Draw(t, keyword)
	case "pattern":
		out["pattern"] = rapid.SampledFrom([]string{"a", "^x-", "b$", "^.$"}).Draw(t, "pattern")
	case "uniqueItems":
		out["uniqueItems"] = rapid.Bool().Draw(t, keyword)
	case "required":
		out["required"] = names.Draw(t, "required")
	case "dependentRequired":
		out["dependentRequired"] = map[string]any{"a": names.Draw(t, "dependent")}
	case "format":
		out["format"] = "email"
	default:
		out[keyword] = count.Draw(t, keyword)
	}
}

func drawApplicator(t *rapid.T, out map[string]any, depth int) {
	sub := func() any { return drawSchema(t, depth) }
	list := func() any {
		return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) any { return drawSchema(t, depth) }), 1, 3).Draw(t, "list")
	}
	inside := func() any {
		// Only below a member or an item may a schema refer to what holds it.
		if rapid.IntRange(0, 2).Draw(t, "refer") == 0 {
			return map[string]any{"$ref": "#/$defs/" + rapid.SampledFrom([]string{"d0", "d1", "d2"}).Draw(t, "ref")}
		}
		return sub()
	}
	switch keyword := rapid.SampledFrom([]string{
		"allOf", "anyOf", "oneOf", "not", "if", "properties", "patternProperties", "additionalProperties", "propertyNames",
		"dependentSchemas", "items", "prefixItems", "contains", "unevaluatedProperties", "unevaluatedItems",
	}).Draw(t, "applicator"); keyword {
	case "allOf", "anyOf", "oneOf", "prefixItems":
		out[keyword] = list()
	case "if":
		out["if"], out["then"] = sub(), sub()
		if rapid.Bool().Draw(t, "else") {
			out["else"] = sub()
		}
	case "properties":
		out[keyword] = map[string]any{"a": inside(), "x-1": inside()}
	case "patternProperties":
		out[keyword] = map[string]any{"^x-": inside(), "a": inside()}
	case "dependentSchemas":
		out[keyword] = map[string]any{"a": sub()}
	case "items", "contains", "additionalProperties", "unevaluatedItems", "unevaluatedProperties":
		out[keyword] = inside()
	default:
		out[keyword] = sub()
	}
}

func marshal(t rapid.TB, v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("encode %v: %v", v, err)
	}
	return string(text)
}

// checker returns a registry with one tool, tool, that has this schema, and a
// toolset that offers it.
func checker(t rapid.TB, schema string) (*planner.Registry, planner.Toolset, error) {
	packed, err := codec.FromJSON([]byte(schema))
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	reg, err := planner.NewRegistry([]planner.ToolSpec{{
		ToolID: "x.tool", ToolName: "tool", ArgsSchema: packed,
		Executor: planner.Executor{Kind: planner.ExecutorEffect, Target: "host"},
	}}, nil, "", nil)
	if err != nil {
		return nil, planner.Toolset{}, err
	}
	return reg, planner.Select(reg, planner.Request{}, planner.Facts{}), nil
}

// library compiles the schema with the library alone.
func library(t rapid.TB, schema string) *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("test:///schema", doc); err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	compiled, err := c.Compile("test:///schema")
	if err != nil {
		t.Fatalf("%s: the library refuses what the registry takes: %v", schema, err)
	}
	return compiled
}

// TestEvaluationAgreesWithTheLibrary: for random schemas and objects, a call's
// arguments pass if and only if the library validates them.
func TestEvaluationAgreesWithTheLibrary(t *testing.T) {
	t.Parallel()
	agree(t, func(t *rapid.T) map[string]any {
		root, ok := drawSchema(t, 3).(map[string]any)
		if !ok {
			root = map[string]any{}
		}
		return root
	})
}

// TestUnevaluatedAgreesWithTheLibrary does the same for unevaluated*, with
// keywords that apply to the same value.
func TestUnevaluatedAgreesWithTheLibrary(t *testing.T) {
	t.Parallel()
	agree(t, func(t *rapid.T) map[string]any {
		items := drawInPlace(t, 2)
		items["unevaluatedItems"] = rapid.SampledFrom([]any{false, map[string]any{"type": "string"}}).Draw(t, "items")
		root := drawInPlace(t, 2)
		root["unevaluatedProperties"] = rapid.SampledFrom([]any{false, map[string]any{"type": "number"}, items}).Draw(t, "properties")
		return root
	})
}

// drawInPlace draws a schema that evaluates some members and items, often by
// way of other schemas for the same value.
func drawInPlace(t *rapid.T, depth int) map[string]any {
	out := map[string]any{}
	test := func() any {
		return rapid.SampledFrom([]any{true, true, map[string]any{"type": "string"}, map[string]any{"type": "number"}}).Draw(t, "test")
	}
	for _, name := range []string{"a", "b", "x-1"} {
		if rapid.IntRange(0, 2).Draw(t, "property "+name) == 0 {
			properties, _ := out["properties"].(map[string]any)
			if properties == nil {
				properties = map[string]any{}
			}
			properties[name] = test()
			out["properties"] = properties
		}
	}
	switch rapid.IntRange(0, 5).Draw(t, "items") {
	case 0:
		out["prefixItems"] = []any{test()}
	case 1:
		out["contains"] = map[string]any{"type": "string"}
	case 2:
		out["items"] = test()
	case 3:
		out["required"] = []string{"a"}
	}
	if depth == 0 {
		return out
	}
	sub := func() any { return drawInPlace(t, depth-1) }
	switch rapid.IntRange(0, 6).Draw(t, "in place") {
	case 0:
		out["allOf"] = []any{sub(), sub()}
	case 1:
		out["anyOf"] = []any{sub(), sub()}
	case 2:
		out["oneOf"] = []any{sub(), sub()}
	case 3:
		out["if"], out["then"], out["else"] = sub(), sub(), sub()
	case 4:
		out["if"] = sub()
	case 5:
		out["dependentSchemas"] = map[string]any{"a": sub()}
	case 6:
		out["not"] = map[string]any{"not": sub()}
	}
	return out
}

// agree compares verdicts on random objects for the schemas that draw draws.
func agree(t *testing.T, draw func(t *rapid.T) map[string]any) {
	t.Helper()
	outcomes := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		root := draw(t)
		defs := map[string]any{}
		for i := range 3 {
			defs[fmt.Sprintf("d%d", i)] = drawSchema(t, 2)
		}
		root["$defs"] = defs
		schema := marshal(t, root)
		reg, ts, err := checker(t, schema)
		if err != nil {
			t.Fatalf("%s: %v", schema, err)
		}
		compiled := library(t, schema)
		for range 8 {
			arguments := marshal(t, drawObject(t, 3))
			instance, err := jsonschema.UnmarshalJSON(strings.NewReader(arguments))
			if err != nil {
				t.Fatal(err)
			}
			_, why := planner.Check(reg, &ts, planner.ObservedCall{ToolName: "tool", Arguments: arguments})
			want := compiled.Validate(instance)
			if why.OK() != (want == nil) {
				t.Fatalf("schema %s\narguments %s\ngot %q, the library says %v", schema, arguments, why.Detail, want)
			}
			outcomes[why.OK()]++
		}
	})
	if outcomes[true] == 0 || outcomes[false] == 0 {
		t.Errorf("outcomes are %v: both should be common", outcomes)
	}
}

// TestDetailsAreTheSameEachTime: the detail of a failure is deterministic,
// though the library that checks schemas iterates over maps.
func TestDetailsAreTheSameEachTime(t *testing.T) {
	t.Parallel()
	const schema = `{"properties":{"a":{"type":"string"},"b":{"minimum":3},"c":{"items":{"type":"null"}}},
		"required":["d","e"],"additionalProperties":false,"patternProperties":{"^x":{"const":1},"^xy":{"const":2}}}`
	const arguments = `{"a":1,"b":1,"c":[1,2,3],"xyz":3,"q":1,"r":2}`
	want := ""
	var reg *planner.Registry
	var ts planner.Toolset
	for i := range 1000 {
		if i%100 == 0 { // a registry of its own now and then
			var err error
			if reg, ts, err = checker(t, schema); err != nil {
				t.Fatal(err)
			}
		}
		_, why := planner.Check(reg, &ts, planner.ObservedCall{ToolName: "tool", Arguments: arguments})
		if want == "" {
			want = why.Detail
		}
		if why.Detail != want || want == "" {
			t.Fatalf("check %d: got %q, want %q", i, why.Detail, want)
		}
	}
}

// TestFaultsOfSchemasAreTheSameEachTime: so are a registry's errors.
func TestFaultsOfSchemasAreTheSameEachTime(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{
		`{"properties":{"a":{"type":1},"b":{"minLength":-1},"c":{"enum":3},"d":{"required":"x"}}}`,
		`{"x":{"a":{"type":1}},"y":{"b":{"type":2}},"properties":{"p":{"$ref":"#/x/a"},"q":{"$ref":"#/y/b"}}}`,
		`{"properties":{"a":{"pattern":"("},"b":{"pattern":")"},"c":{"$ref":"x"}}}`,
		`{"properties":{"p":{"$ref":"#/a"},"q":{"$ref":"#/b"}}}`,
	} {
		want := ""
		for range 100 {
			_, _, err := checker(t, schema)
			if err == nil {
				t.Fatalf("%s: no fault", schema)
			}
			if want == "" {
				want = err.Error()
			}
			if got := err.Error(); got != want {
				t.Fatalf("%s: got %q, want %q", schema, got, want)
			}
		}
	}
}
