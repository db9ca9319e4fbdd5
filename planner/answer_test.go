package planner_test

import (
	"strings"
	"testing"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

func answerSchema(t testing.TB, text string) (planner.AnswerSchema, string) {
	t.Helper()
	raw, err := codec.FromJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return planner.CompileAnswerSchema(raw)
}

// What is wrong with an answer is told as with arguments: the least path, and there
// the least keyword.
func TestAnswerSchema(t *testing.T) {
	t.Parallel()
	const order = `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"items":{"type":"array","items":{"$ref":"#/definitions/item"}}},` +
		`"required":["items"],"additionalProperties":false,"definitions":{"item":{"type":"object","properties":{"n":{"type":"integer","minimum":1}},"required":["n"]}}}`
	for _, c := range []struct{ name, schema, answer, want string }{
		{"it fits", order, `{"items":[{"n":1},{"n":12345678901234567890}]}`, ""},
		{"white space round it", order, "\n {\"items\":[]}\r\n", ""},
		{"no JSON", order, `Here it is: {"items":[]}`, "cannot be read: this is not JSON: a value should be at byte 0"},
		{"a code fence", order, "```json\n{\"items\":[]}\n```", "cannot be read: this is not JSON: a value should be at byte 0"},
		{"text after it", order, `{"items":[]} Done.`, "cannot be read: bytes after the end of the value, beginning at byte 13"},
		{"cut", order, `{"items":[{"n":`, "cannot be read: the JSON text ends where a value should be at byte 15"},
		{"empty", order, "", "cannot be read: the JSON text ends where a value should be at byte 0"},
		{"a key twice", order, `{"items":[],"items":[]}`, `cannot be read: the key "items" stands twice in one map at byte 12`},
		{"of another type", order, `[]`, "is of type object"},
		{"several faults", order, `{"items":[{"n":0},{"n":"1"},{}],"more":1}`, `there is no "more" here`},
		{"deep", order, `{"items":[{"n":1},{"n":0}]}`, "/items/1/n: is at least 1"},
		{"a text", `{"enum":["yes","no"]}`, `"yes"`, ""},
		{"another text", `{"enum":["yes","no"]}`, `yes`, "cannot be read: this is not JSON: a value should be at byte 0"},
		{"anything", `{}`, `null`, ""},
	} {
		schema, problem := answerSchema(t, c.schema)
		if problem != "" {
			t.Fatalf("%s: the schema %s", c.name, problem)
		}
		if got := schema.Check([]byte(c.answer)); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// A check takes a limited number of steps, and its answer a limited size, whatever
// the schema and the answer are.
func TestAnswerChecksAreBounded(t *testing.T) {
	t.Parallel()
	schema, problem := answerSchema(t, `{"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"}]},"b":{"items":{"anyOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}]},"maxItems":1}},"$ref":"#/$defs/a"}`)
	if problem != "" {
		t.Fatal(problem)
	}
	answer := strings.Repeat("[", 60) + "1,2" + strings.Repeat("]", 60)
	if got, want := schema.Check([]byte(answer)), "too much work to check against the schema: send less, or less deeply nested"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := schema.Check(make([]byte, planner.ArgumentsBytesMax+1)), "too large to be checked"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func BenchmarkCompileAnswerSchema(b *testing.B) {
	const schema = `{"type":"object","properties":{"name":{"type":"string","maxLength":80},"tags":{"type":"array","items":{"enum":["a","b","c"]}},` +
		`"address":{"type":"object","properties":{"street":{"type":"string"},"zip":{"type":"string","pattern":"^[0-9]{5}$"}},"required":["street","zip"]}},"required":["name"]}`
	raw, err := codec.FromJSON([]byte(schema))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, problem := planner.CompileAnswerSchema(raw); problem != "" {
			b.Fatal(problem)
		}
	}
}
