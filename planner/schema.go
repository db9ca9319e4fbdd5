package planner

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/refold/refold/codec"
)

// Only this file uses the JSON Schema library, and only to check that a schema
// is well formed. evaluate.go checks arguments, because the library's error
// trees come in the order of Go's maps, its time is not bounded, and a number
// beyond big.Rat makes it panic.

// dialect is the only value of $schema.
const dialect = "https://json-schema.org/draft/2020-12/schema"

// SchemaProblem says what is wrong with an args_schema, or "".
func SchemaProblem(raw codec.Raw) string {
	_, problem := compileSchema(raw, new(registryRoom))
	return problem
}

// compileSchema checks and compiles an args_schema, or says what is wrong with
// it. Its size is counted into room before it is compiled.
func compileSchema(raw codec.Raw, room *registryRoom) (compiled *schema, problem string) {
	if len(raw) == 0 {
		return nil, `is missing: a tool without arguments has {"type":"object"}`
	}
	if !codec.IsMap(raw) {
		return nil, "is a JSON object"
	}
	text, err := codec.ToJSON(raw)
	if err != nil {
		return nil, "is not in the canonical encoding"
	}
	if codec.HasBinary(raw) {
		return nil, "holds binary, which JSON does not have"
	}
	if len(text) > SchemaBytesMax {
		return nil, strconv.Itoa(len(text)) + " bytes as JSON, at most " + strconv.Itoa(SchemaBytesMax)
	}
	doc, problem := readValue(raw, SchemaNodesMax)
	if problem != "" {
		return nil, problem
	}
	if room.nodes += doc.values(); room.nodes > RegistryNodesMax {
		return nil, "with it the schemas of the registry hold " + strconv.Itoa(room.nodes) + " values, at most " + strconv.Itoa(RegistryNodesMax)
	}
	l := newLowering(&doc, room.patterns)
	if problem := l.lower(); problem != "" {
		return nil, problem
	}
	if problem := wellFormed(&doc, l.referred); problem != "" {
		return nil, problem
	}
	room.patterns += l.patterns.schema
	compiled = l.schema()
	compiled.weight = schemaWeight + len(l.order)*nodeWeight + len(text) + l.patterns.schema
	return compiled, ""
}

// metaschema is the schema of schemas. It is compiled once, when the program
// starts; documents are only validated against it, so neither their patterns
// nor their references cost anything here.
var metaschema = newMetaschema()

func newMetaschema() *jsonschema.Schema {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	whole := false
	c.UseRegexpEngine(func(text string) (jsonschema.Regexp, error) {
		if whole {
			return nil, nil // a pattern of a document: lower has compiled it
		}
		return regexp.Compile(text)
	})
	compiled, err := c.Compile(dialect)
	if err != nil {
		panic(fmt.Sprintf("planner: the schema of schemas: %v", err))
	}
	whole = true
	return compiled
}

// wellFormed asks the library whether doc is a schema of our dialect, and so
// are the places in it that only a reference makes schemas.
func wellFormed(doc *value, referred []*value) (problem string) {
	defer func() {
		// If some document makes the library panic, a registry is refused and no
		// session stops.
		if recover() != nil {
			problem = problemNoSchema
		}
	}()
	plain := doc.plain()
	if object, ok := plain.(map[string]any); ok {
		// The name that a document gives itself does not affect what it allows.
		delete(object, "$id")
		delete(object, "$schema")
	}
	var whole *jsonschema.ValidationError
	if err := metaschema.Validate(plain); errors.As(err, &whole) {
		return problemNoSchema + ": see " + quoted(leastLocation(whole))
	}
	for _, v := range referred {
		if metaschema.Validate(v.plain()) != nil {
			return problemNoSchema
		}
	}
	return ""
}

const problemNoSchema = "is not a JSON Schema of draft 2020-12"

// leastLocation returns the least location in the library's errors, as a JSON
// pointer.
func leastLocation(e *jsonschema.ValidationError) string {
	var least, at []byte
	found := false
	pending := []*jsonschema.ValidationError{e}
	for len(pending) > 0 {
		next := pending[len(pending)-1]
		pending = append(pending[:len(pending)-1], next.Causes...)
		if len(next.Causes) > 0 {
			continue
		}
		at = at[:0]
		for _, token := range next.InstanceLocation {
			at = append(append(at, '/'), escapeToken(token)...)
		}
		if !found || bytes.Compare(at, least) < 0 {
			least, at, found = at, least, true
		}
	}
	return string(least)
}

// plain returns the value in the form that the library takes.
func (v *value) plain() any {
	switch v.kind {
	case kindNull:
		return nil
	case kindBool:
		return v.truth
	case kindNumber:
		if v.number.sign() == 0 {
			return json.Number("0")
		}
		return json.Number(v.number.appendKey(nil)) // digits and exponent
	case kindString:
		return v.text
	case kindArray:
		out := make([]any, len(v.items))
		for i := range v.items {
			out[i] = v.items[i].plain()
		}
		return out
	}
	out := make(map[string]any, len(v.items))
	for i := range v.items {
		out[v.names[i]] = v.items[i].plain()
	}
	return out
}
