package planner_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// fuzzSchema uses every keyword that looks into a value.
const fuzzSchema = `{
	"type": "object",
	"properties": {
		"s": {"type": "string", "minLength": 1, "maxLength": 8, "pattern": "^[a-zé]*$"},
		"n": {"type": ["integer", "null"], "minimum": -5, "exclusiveMaximum": 1e3, "multipleOf": 0.5},
		"l": {"prefixItems": [{"const": 1}], "items": {"$ref": "#"}, "contains": {"const": 1}, "maxContains": 2, "uniqueItems": true},
		"t": {"anyOf": [{"$ref": "#"}, {"enum": [1, "1", null, [], {}]}]}
	},
	"patternProperties": {"^x-": {"oneOf": [{"type": "number"}, {"minimum": 3}]}},
	"dependentRequired": {"s": ["n"]},
	"propertyNames": {"maxLength": 9},
	"unevaluatedProperties": {"not": {"type": "array"}}
}`

// FuzzArguments: for any arguments, a check ends without a panic, is repeatable,
// keeps its detail short, and refuses everything that is not a JSON object.
func FuzzArguments(f *testing.F) {
	for _, text := range []string{
		"", "{}", " ", "[]", "null", `{"s":"a","n":1}`, `{"s":"","n":1e400}`, `{"l":[1,{"l":[]}]}`, `{"t":{"t":{"t":1}}}`,
		`{"x-a":1,"x-b":"1"}`, `{"a":1,"a":2}`, `{"a":"\ud800"}`, "{\"\xff\":1}", strings.Repeat(`{"t":`, 70), strings.Repeat("[", 5000),
		`{"n":-0.0,"l":[1,1.0]}`, `{"n":0.1e1}`, `{"verylongname":[]}`,
	} {
		f.Add(text)
	}
	reg, ts, err := checker(f, fuzzSchema)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		call := planner.ObservedCall{ToolName: "tool", Arguments: text}
		plan, why := planner.Check(reg, &ts, call)
		if planAgain, whyAgain := planner.Check(reg, &ts, call); plan != planAgain || why != whyAgain {
			t.Fatalf("checked twice: %v, then %v", why, whyAgain)
		}
		if plan.Rejected == why.OK() || len(why.Detail) > planner.DetailBytesMax || !utf8.ValidString(why.Detail) {
			t.Fatalf("rejected %t, detail %q", plan.Rejected, why.Detail)
		}
		var object map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &object) != nil && text != "" && why.OK() {
			t.Fatalf("%q is not an object and was taken", text)
		}
	})
}

// FuzzSchema: any args_schema is accepted or refused without a panic,
// repeatably, and an accepted one can check calls.
func FuzzSchema(f *testing.F) {
	for _, text := range []string{
		fuzzSchema, `{}`, `{"$ref":"#"}`, `{"$ref":"file:///x"}`, `{"$defs":{"a":{"$ref":"#/$defs/a"}}}`, `{"type":"x"}`,
		`{"contentSchema":{"$id":"http://x/y","$schema":"http://json-schema.org/draft-04/schema#"}}`,
		`{"dependencies":{"a":{"$id":"x"},"b":["c"]}}`, `{"$dynamicRef":"#a","$dynamicAnchor":"a"}`, `{"items":[{}]}`,
		`{"properties":{"a":{"$ref":"#/properties/b"},"b":{"items":{"$ref":"#/properties/a"}}}}`, `{"$recursiveRef":"#"}`,
		`{"$id":"#a"}`, `{"$id":7}`, `{"$anchor":"a","$ref":"#%61"}`, `{"pattern":"("}`, `{"minLength":1e300}`, `{"enum":[]}`,
	} {
		f.Add(text, `{"a":{"b":[1,"x"]}}`)
	}
	f.Fuzz(func(t *testing.T, schema, arguments string) {
		packed, err := codec.FromJSON([]byte(schema))
		if err != nil {
			return
		}
		build := func() (*planner.Registry, error) {
			return planner.NewRegistry([]planner.ToolSpec{{
				ToolID: "x.tool", ToolName: "tool", ArgsSchema: packed,
				Executor: planner.Executor{Kind: planner.ExecutorEffect, Target: "host"},
			}}, nil, "", nil)
		}
		reg, err := build()
		again, errAgain := build()
		if err != nil {
			if errAgain == nil || err.Error() != errAgain.Error() {
				t.Fatalf("built twice: %v, then %v", err, errAgain)
			}
			return
		}
		if errAgain != nil || reg.Hash() != again.Hash() {
			t.Fatalf("built twice: %s, then %v", reg.Hash(), errAgain)
		}
		ts := planner.Select(reg, planner.Request{}, planner.Facts{})
		call := planner.ObservedCall{ToolName: "tool", Arguments: arguments}
		_, why := planner.Check(reg, &ts, call)
		if _, whyAgain := planner.Check(again, &ts, call); why != whyAgain {
			t.Fatalf("checked twice: %v, then %v", why, whyAgain)
		}
	})
}
