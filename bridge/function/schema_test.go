package function

// The schema that New derives from a type: the planner compiles it, and it
// accepts what encoding/json decodes.

import (
	"context"
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/codec"
)

type schemaBase struct {
	Trace string `json:"trace,omitempty"`
	Limit int    `json:"limit" minimum:"1" maximum:"50"`
}

type schemaNode struct {
	Name     string        `json:"name"`
	Children []*schemaNode `json:"children,omitempty"`
}

type schemaWhole struct {
	schemaBase
	City    string            `json:"city" description:"Name of the city." minLength:"1" pattern:"^[A-Z]"`
	Unit    string            `json:"unit,omitempty" enum:"celsius, fahrenheit"`
	Tags    []string          `json:"tags,omitzero" enum:"a,b" maxItems:"3"`
	Pair    [2]float64        `json:"pair"`
	When    *time.Time        `json:"when"`
	Level   int8              `json:"level"`
	Port    uint16            `json:"port"`
	Count   uint              `json:"count"`
	Step    int               `json:"step" enum:"1,2,5"`
	Any     any               `json:"any"`
	Raw     json.RawMessage   `json:"raw,omitempty"`
	Exact   json.Number       `json:"exact,omitempty"`
	Bytes   []byte            `json:"bytes,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	Tree    schemaNode        `json:"tree"`
	Big     schemaOwn         `json:"big"`
	Plain   bool
	Skipped string `json:"-"`
	private string //nolint:unused // encoding/json leaves it out
}

// schemaOwn has its own UnmarshalJSON and ArgsSchema.
type schemaOwn struct{ big.Int }

func (schemaOwn) ArgsSchema() json.RawMessage {
	return json.RawMessage(`{"type":"string","pattern":"^[0-9]+$"}`)
}

func (o *schemaOwn) UnmarshalJSON(text []byte) error {
	return json.Unmarshal([]byte(strings.Trim(string(text), `"`)), &o.Int)
}

const schemaWant = `{"$defs":{"schemaNode":{"additionalProperties":false,"properties":{"children":{"items":{"$ref":"#/$defs/schemaNode"},"type":"array"},` +
	`"name":{"type":"string"}},"required":["name"],"type":"object"}},"additionalProperties":false,"properties":{"Plain":{"type":"boolean"},"any":{},` +
	`"big":{"pattern":"^[0-9]+$","type":"string"},"bytes":{"contentEncoding":"base64","type":"string"},"city":{"description":"Name of the city.",` +
	`"minLength":1,"pattern":"^[A-Z]","type":"string"},"count":{"minimum":0,"type":"integer"},"exact":{"type":"number"},` +
	`"labels":{"additionalProperties":{"type":"string"},"type":"object"},"level":{"maximum":127,"minimum":-128,"type":"integer"},` +
	`"limit":{"maximum":50,"minimum":1,"type":"integer"},"pair":{"items":{"type":"number"},"maxItems":2,"minItems":2,"type":"array"},` +
	`"port":{"maximum":65535,"minimum":0,"type":"integer"},"raw":{},"step":{"enum":[1,2,5],"type":"integer"},` +
	`"tags":{"items":{"enum":["a","b"],"type":"string"},"maxItems":3,"type":"array"},"trace":{"type":"string"},"tree":{"$ref":"#/$defs/schemaNode"},` +
	`"unit":{"enum":["celsius","fahrenheit"],"type":"string"},"when":{"format":"date-time","type":"string"}},` +
	`"required":["limit","city","pair","level","port","count","step","any","tree","big","Plain"],"type":"object"}`

func schemaText(t *testing.T, f *Function) string {
	t.Helper()
	if err := f.Err(); err != nil {
		t.Fatal(err)
	}
	text, err := codec.ToJSON(f.spec.ArgsSchema)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func takes[In any](options ...Option) *Function {
	return New("x.take", func(context.Context, In) (struct{}, error) { return struct{}{}, nil }, options...)
}

func TestSchemaFollowsFromTheType(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tool *Function
		want string
	}{
		"all of it":         {takes[schemaWhole](), schemaWant},
		"nothing":           {takes[struct{}](), `{"additionalProperties":false,"properties":{},"type":"object"}`},
		"a pointer":         {takes[*struct{ A int }](), `{"additionalProperties":false,"properties":{"A":{"type":"integer"}},"required":["A"],"type":"object"}`},
		"a map":             {takes[map[string]int](), `{"additionalProperties":{"type":"integer"},"type":"object"}`},
		"one that is given": {takes[json.RawMessage](ArgsSchema(json.RawMessage(`{"type":"object"}`))), `{"type":"object"}`},
		"a tree": {takes[schemaNode](), `{"additionalProperties":false,"properties":{"children":{"items":{"$ref":"#"},"type":"array"},` +
			`"name":{"type":"string"}},"required":["name"],"type":"object"}`},
	} {
		if got := schemaText(t, c.tool); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

// Each line: an unsupported type, and the error.
func TestUnsupportedTypeIsRefused(t *testing.T) {
	t.Parallel()
	type self struct{ *schemaNode }
	for want, f := range map[string]*Function{
		"a string is not a JSON object: use a struct, or the option ArgsSchema":            takes[string](),
		"a []int is not a JSON object":                                                     takes[[]int](),
		"chan int can't be encoded as JSON":                                                takes[struct{ A chan int }](),
		"a time.Duration is a number of nanoseconds in JSON":                               takes[struct{ A time.Duration }](),
		"map[int]string: the keys of a map must be strings":                                takes[struct{ A map[int]string }](),
		"big.Int has its own UnmarshalJSON: give it a method ArgsSchema() json.RawMessage": takes[struct{ A big.Int }](),
		"the option string of its json tag is not supported": takes[struct {
			A int `json:",string"`
		}](),
		`tag minimum: "one" is not a number`: takes[struct {
			A int `minimum:"one"`
		}](),
		"tag minimum: does not go with a value of the type string": takes[struct {
			A string `minimum:"1"`
		}](),
		"tag pattern: does not go with a value of the type integer": takes[struct {
			A int `pattern:"x"`
		}](),
		"tag maxItems: does not go with a value of the type object": takes[struct {
			A struct{} `maxItems:"1"`
		}](),
		"tag enum: does not go with a value of any type": takes[struct {
			A any `enum:"1"`
		}](),
		`two fields are called "limit"`: takes[struct {
			schemaBase
			Limit int `json:"limit"`
		}](),
		"encoding/json can't fill a pointer to an unexported struct": takes[self](),
		`pattern "(?=x)" does not compile as RE2`: takes[struct {
			A string `pattern:"(?=x)"`
		}](),
		"its schema: is not JSON": takes[struct{}](ArgsSchema(json.RawMessage(`{`))),
		`$ref "other.json" leaves the document: a schema is self-contained`: takes[struct{}](ArgsSchema(json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"other.json"}}}`))),
	} {
		if err := f.Err(); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "tool x.take: ") {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}
