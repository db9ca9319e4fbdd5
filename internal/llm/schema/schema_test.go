package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm/schema"
	"github.com/refold/refold/proof/strict"
	"github.com/refold/refold/proof/strict/draw"
)

// rules are the rules that each dialect's API has for a request with one tool.
var rules = map[string]func(tool string) error{
	"anthropic": func(s string) error {
		return strict.AnthropicTools([]byte(`{"tools":[{"name":"f","input_schema":` + s + `}]}`))
	},
	"openai": func(s string) error {
		return strict.OpenAITools([]byte(`{"tools":[{"name":"f","parameters":` + s + `}]}`))
	},
	"openai-chat": func(s string) error {
		return strict.ChatTools([]byte(`{"tools":[{"function":{"name":"f","parameters":` + s + `}}]}`))
	},
	"gemini": func(s string) error {
		return strict.GeminiTools([]byte(`{"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":` + s + `}]}]}`))
	},
}

// TestNormalSchemasAreAccepted: whatever the schema, the result is one that the
// API accepts, and normalizing it again changes nothing.
func TestNormalSchemasAreAccepted(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := draw.Document(t)
		for _, d := range schema.All() {
			normal, _, err := d.Normalize(text)
			if err != nil {
				continue
			}
			if err := rules[d.Name](string(normal)); err != nil {
				t.Fatalf("%s: %v\nfrom %s\nmade %s", d.Name, err, text, normal)
			}
			again, _, err := d.Normalize(normal)
			if err != nil || string(again) != string(normal) {
				t.Fatalf("%s: again: %v\nfrom %s\nmade %s\nthen %s", d.Name, err, text, normal, again)
			}
		}
	})
}

// TestValidArgumentsStayValid: what the model may send according to the original
// is valid for what it is shown, too. Schemas here have a type, and no
// alternatives next to properties: those become one object with the properties of
// all, and an absent type is the one that the keywords are for. Google's enums
// lack the empty text.
func TestValidArgumentsStayValid(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		drawn, ok := draw.Schema(t, 2, rapid.SampledFrom([][]string{{"anyOf", "oneOf"}, {"allOf", "properties"}}).Draw(t, "without")).(map[string]any)
		if !ok {
			drawn = map[string]any{"type": "string"}
		}
		dropRefs(drawn)
		root := map[string]any{"type": "object", "properties": map[string]any{"$p": drawn}}
		text, err := json.Marshal(root)
		if err != nil {
			t.Fatal(err)
		}
		original, err := compile(text)
		if err != nil {
			return // no schema of the draft
		}
		for _, value := range []any{"x", "abc", "", json.Number("1"), json.Number("7"), json.Number("1.5"), true, nil, []any{}, []any{"x"}, map[string]any{}, map[string]any{"a": "x"}, map[string]any{"$a": json.Number("1"), "b": "x"}} {
			if original.Validate(map[string]any{"$p": value}) != nil {
				continue
			}
			for _, d := range schema.All() {
				if d == schema.Gemini && value == "" {
					continue
				}
				req, _ := d.Adapt(executor.Request{Tools: []executor.Tool{{Name: "f", Schema: text}}, Messages: []executor.Message{{Calls: []executor.MessageCall{{Name: "f", Arguments: encode(map[string]any{"$p": value})}}}}}, false)
				normal, _, err := d.Normalize(text)
				if err != nil {
					t.Fatal(err)
				}
				shown, err := compile(normal)
				if err != nil {
					t.Fatalf("%s: %v\n%s", d.Name, err, normal)
				}
				arguments, err := jsonschema.UnmarshalJSON(strings.NewReader(req.Messages[0].Calls[0].Arguments))
				if err != nil {
					t.Fatal(err)
				}
				if err := shown.Validate(arguments); err != nil {
					t.Fatalf("%s: %v\nfrom %s\nmade %s", d.Name, err, text, normal)
				}
			}
		}
	})
}

func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// dropRefs removes references, which need the whole schema.
func dropRefs(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "$ref")
		for _, sub := range v {
			dropRefs(sub)
		}
	case []any:
		for _, sub := range v {
			dropRefs(sub)
		}
	}
}

func compile(text []byte) (*jsonschema.Schema, error) {
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mem:s", v); err != nil {
		return nil, err
	}
	return c.Compile("mem:s")
}

// TestAcceptedSchemasAreKept: a schema as most servers write it has one form for
// all APIs, its own.
func TestAcceptedSchemasAreKept(t *testing.T) {
	t.Parallel()
	const text = `{"additionalProperties":false,"properties":{"at":{"description":"A <place>.","enum":["a","b"],"type":"string"},"n":{"maximum":9007199254740993,"type":"integer"},"of":{"items":{"properties":{"x":{"type":"number"}},"required":["x"],"type":"object"},"minItems":1,"type":"array"}},"required":["at"],"type":"object"}`
	for _, d := range schema.All() {
		if got, keys, err := d.Normalize(json.RawMessage(text)); string(got) != text || keys != nil || err != nil {
			t.Errorf("%s: got %s, %v, %v", d.Name, got, keys, err)
		}
	}
}

// TestNormalForms shows what becomes of some schemas.
func TestNormalForms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what       string
		d          *schema.Dialect
		from, want string
	}{
		{"alternatives at the top become one object", schema.Anthropic,
			`{"type":"object","description":"Find.","properties":{"n":{"type":"integer"}},"anyOf":[{"properties":{"id":{"type":"integer"}},"required":["id"]},{"properties":{"id":{"type":"string"},"name":{"type":"string"}},"required":["name"]}]}`,
			`{"description":"Find. Properties that belong together: id; or name.","properties":{"id":{"anyOf":[{"type":"integer"},{"type":"string"}]},"n":{"type":"integer"},"name":{"type":"string"}},"type":"object"}`},
		{"constants tell alternatives apart", schema.OpenAI,
			`{"oneOf":[{"type":"object","properties":{"op":{"const":"a"}},"required":["op"]},{"type":"object","properties":{"op":{"const":"b"}},"required":["op"]}]}`,
			`{"properties":{"op":{"enum":["a","b"]}},"required":["op"],"type":"object"}`},
		{"dropped constraints are told", schema.Gemini,
			`{"properties":{"u":{"type":"string","format":"uri","pattern":"^h","description":"Where."},"n":{"type":"integer","enum":[1,2],"exclusiveMinimum":0}}}`,
			`{"properties":{"n":{"description":"(enum: [1,2], exclusiveMinimum: 0)","type":"integer"},"u":{"description":"Where. (format: uri, pattern: ^h)","type":"string"}},"type":"object"}`},
		{"optional values have two types", schema.Chat,
			`{"properties":{"t":{"type":["integer","null"],"minimum":1,"description":"d"}}}`,
			`{"properties":{"t":{"anyOf":[{"minimum":1,"type":"integer"},{"type":"null"}],"description":"d"}},"type":"object"}`},
		{"anyOf stands alone", schema.Gemini,
			`{"properties":{"t":{"anyOf":[{"type":"string"},{"type":"null"}],"description":"d","default":null}}}`,
			`{"properties":{"t":{"anyOf":[{"description":"d","type":"string"},{"type":"null"}]}},"type":"object"}`},
		{"a reference to itself keeps its type", schema.Anthropic,
			`{"properties":{"n":{"$ref":"#/$defs/N"}},"$defs":{"N":{"type":"object","properties":{"next":{"$ref":"#/$defs/N"}}}}}`,
			`{"properties":{"n":{"properties":{"next":{"type":"object"}},"type":"object"}},"type":"object"}`},
		{"keys are renamed everywhere", schema.Anthropic,
			`{"properties":{"a[]":{"type":"string"},"a__":{"type":"string"},"o":{"properties":{"a[]":{}},"required":["a[]"]}},"required":["a[]"]}`,
			`{"properties":{"a__":{"type":"string"},"a___2":{"type":"string"},"o":{"properties":{"a___2":{}},"required":["a___2"]}},"required":["a___2"],"type":"object"}`},
	} {
		if got, _, err := c.d.Normalize(json.RawMessage(c.from)); string(got) != c.want || err != nil {
			t.Errorf("%s: got %s, %v\nwant %s", c.what, got, err, c.want)
		}
	}
}

// TestArgumentsWithoutKeysAreKept: any text may be the arguments of an earlier call,
// and a key may be the empty text.
func TestArgumentsWithoutKeysAreKept(t *testing.T) {
	t.Parallel()
	tool := executor.Tool{Name: "f", Schema: json.RawMessage(`{"properties":{"":{"type":"string"}}}`)}
	for _, text := range []string{"", " ", "\n\t", "x", "{", "[", `{"b":1}`, "null"} {
		for _, d := range schema.All() {
			call := executor.MessageCall{Name: "f", Arguments: text}
			req, _ := d.Adapt(executor.Request{Tools: []executor.Tool{tool}, Messages: []executor.Message{{Calls: []executor.MessageCall{call}}}}, false)
			if got := req.Messages[0].Calls[0].Arguments; got != text {
				t.Errorf("%s: %q became %q", d.Name, text, got)
			}
		}
	}
}

// TestNoObject: arguments are an object for every API.
func TestNoObject(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"type":"string"}`, `{"type":["array","null"]}`, `{"anyOf":[{"type":"string"},false]}`, `{"allOf":[{"type":"array"}]}`, `true`, `null`} {
		for _, d := range schema.All() {
			if got, _, err := d.Normalize(json.RawMessage(text)); err == nil {
				t.Errorf("%s: %s gives %s", d.Name, text, got)
			}
		}
	}
}

// TestAttackSchemaThatMultiplies: references to references are written out up to
// a limit.
func TestAttackSchemaThatMultiplies(t *testing.T) {
	t.Parallel()
	defs := map[string]any{"d40": map[string]any{"type": "string"}}
	for i := range 40 {
		next := map[string]any{"$ref": fmt.Sprintf("#/$defs/d%d", i+1)}
		defs[fmt.Sprintf("d%d", i)] = map[string]any{"type": "object", "properties": map[string]any{"a": next, "b": next}}
	}
	text := encode(map[string]any{"$ref": "#/$defs/d0", "$defs": defs})
	for _, d := range schema.All() {
		normal, _, err := d.Normalize(json.RawMessage(text))
		if err == nil {
			err = rules[d.Name](string(normal))
		}
		if err != nil || len(normal) > 1<<20 {
			t.Errorf("%s: %d bytes, %v", d.Name, len(normal), err)
		}
	}
}

// TestAnswerForms shows what becomes of the schema of an answer.
func TestAnswerForms(t *testing.T) {
	t.Parallel()
	const (
		plain       = `{"type":"object","properties":{"n":{"type":"integer","minimum":1}},"required":["n"]}`
		closed      = `{"additionalProperties":false,"properties":{"n":{"description":"(minimum: 1)","type":"integer"}},"required":["n"],"type":"object"}`
		optional    = `{"properties":{"a.b":{"type":"string"}},"type":"object"}`
		anyKeys     = `{"additionalProperties":{"type":"string"},"properties":{},"type":"object"}`
		texts       = `{"additionalProperties":false,"properties":{"t":{"items":{"type":"string"},"type":"array"}},"required":["t"],"type":"object"}`
		tuple       = `{"properties":{"t":{"prefixItems":[{"type":"string"},{"type":"null"}],"items":false}}}`
		list        = `{"type":"array","items":{"type":"string"}}`
		closedTuple = `{"additionalProperties":false,"properties":{"t":{"items":{"anyOf":[{"type":"string"},{"type":"null"}]},"type":"array"}},"type":"object"}`
		itself      = `{"properties":{"next":{"$ref":"#"}},"required":["next"]}`
	)
	for _, c := range []struct {
		d            *schema.Dialect
		strict       bool
		from, want   string // want: "" if the system text has it
		strictly, is bool   // sent with strict; the API holds the model to it, or was not asked to
	}{
		{schema.Anthropic, false, plain, closed, false, true},
		{schema.Anthropic, true, plain, closed, true, true},
		{schema.Anthropic, false, optional, `{"additionalProperties":false,"properties":{"a.b":{"type":"string"}},"type":"object"}`, false, true},
		{schema.Anthropic, false, anyKeys, "", false, false},
		{schema.Anthropic, false, itself, "", false, false},
		{schema.OpenAI, true, plain, closed, true, true},
		{schema.OpenAI, false, plain, `{"properties":{"n":{"minimum":1,"type":"integer"}},"required":["n"],"type":"object"}`, false, true},
		{schema.OpenAI, true, texts, texts, true, true},
		{schema.Anthropic, false, texts, texts, false, true},
		{schema.Anthropic, false, tuple, closedTuple, false, true},
		{schema.OpenAI, true, optional, optional, false, false},
		{schema.OpenAI, true, anyKeys, anyKeys, false, false},
		{schema.Chat, true, plain, closed, true, true},
		{schema.Chat, false, optional, optional, false, true},
		{schema.Gemini, true, optional, optional, false, true},
		{schema.Gemini, true, list, "", false, false},
		{schema.OpenAI, false, list, "", false, false},
	} {
		got := c.d.Answer(&executor.Format{Name: "sum", Schema: json.RawMessage(c.from), Strict: c.strict})
		if (got.Why == "") != c.is || (got.Format == nil) != (c.want == "") {
			t.Errorf("%s, strict %v: %s gives %+v", c.d.Name, c.strict, c.from, got)
			continue
		}
		if got.Format == nil {
			if !strings.HasSuffix(got.Text, c.from) {
				t.Errorf("%s: told %s", c.d.Name, got.Text)
			}
		} else if string(got.Format.Schema) != c.want || got.Format.Strict != c.strictly || got.Format.Name != "sum" {
			t.Errorf("%s, strict %v: %s gives %s, strict %v\nwant %s", c.d.Name, c.strict, c.from, got.Format.Schema, got.Format.Strict, c.want)
		}
	}
}
