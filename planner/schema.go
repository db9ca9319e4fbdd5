package planner

import (
	"encoding/json"
	"errors"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/refold/refold/codec"
)

// This file alone knows the JSON Schema library. The library says whether a
// schema is well formed; what a call's arguments fail is found by evaluate.go,
// because the library's error trees come in the order of Go's maps, its time
// is not bounded, and a number beyond big.Rat makes it panic.

// schemaURL names the document inside the library.
const schemaURL = "refold:///args_schema"

// dialect is the only value of $schema.
const dialect = "https://json-schema.org/draft/2020-12/schema"

// compileSchema checks an args_schema and makes it ready for use, or says what
// is wrong with it.
func compileSchema(raw codec.Raw) (compiled *schema, problem string) {
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
	l := newLowering(&doc)
	if problem := l.lower(); problem != "" {
		return nil, problem
	}
	if problem := wellFormed(&doc); problem != "" {
		return nil, problem
	}
	return l.schema()
}

// noLoader refuses to open anything.
type noLoader struct{}

var errOutside = errors.New("outside the document")

// Load refuses.
func (noLoader) Load(string) (any, error) { return nil, errOutside }

// wellFormed asks the library whether doc is a schema of our dialect. Refs are
// known to stay inside by now; the loader makes sure of it.
func wellFormed(doc *value) (problem string) {
	defer func() {
		// Should the library have a case that it doesn't survive, a registry is
		// refused and no session stops.
		if recover() != nil {
			problem = problemNoSchema
		}
	}()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	plain, _ := doc.plain().(map[string]any)
	// What a document calls itself plays no part in what it allows.
	delete(plain, "$id")
	delete(plain, "$schema")
	if err := c.AddResource(schemaURL, plain); err != nil {
		return problemNoSchema
	}
	_, err := c.Compile(schemaURL)
	if err == nil {
		return ""
	}
	var bad *jsonschema.SchemaValidationError
	var whole *jsonschema.ValidationError
	// Of several faults outside the places for schemas, the library finds a
	// different one each time.
	if errors.As(err, &bad) && bad.URL == schemaURL+"#" && errors.As(bad.Err, &whole) {
		return problemNoSchema + ": see " + quoted(leastLocation(whole))
	}
	return problemNoSchema
}

const problemNoSchema = "is not a JSON Schema of draft 2020-12"

// leastLocation returns the least of the places that the library complains
// about, as a JSON pointer.
func leastLocation(e *jsonschema.ValidationError) string {
	least := ""
	found := false
	pending := []*jsonschema.ValidationError{e}
	for len(pending) > 0 {
		next := pending[len(pending)-1]
		pending = append(pending[:len(pending)-1], next.Causes...)
		if len(next.Causes) > 0 {
			continue
		}
		at := ""
		for _, token := range next.InstanceLocation {
			at += "/" + escapeToken(token)
		}
		if !found || at < least {
			least, found = at, true
		}
	}
	return least
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
