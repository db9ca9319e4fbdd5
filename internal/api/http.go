package api

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// HTTP returns the lines of an OpenAPI document, but for operations with the tag apart.
// Of a schema that clients send it has what the server takes, of one that they are sent
// what is there.
func HTTP(document []byte, apart string) ([]string, error) {
	var doc struct {
		Paths      map[string]map[string]operation
		Components struct{ Schemas map[string]object }
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, err
	}
	h := httpLines{components: doc.Components.Schemas, uses: map[string]use{}}
	for path, operations := range doc.Paths {
		for method, o := range operations {
			if !slices.Contains(o.Tags, apart) {
				h.operation(strings.ToUpper(method)+" "+path, o)
			}
		}
	}
	h.refer("Problem", use{given: true})
	for name, u := range h.uses {
		h.walk(name, h.components[name], u)
	}
	return sorted(h.lines), nil
}

type operation struct {
	ID          string `json:"operationId"`
	Tags        []string
	Parameters  []parameter
	Security    []any // nil: a token, as the document says for all operations
	RequestBody struct {
		Required bool
		Content  map[string]content
	}
	Responses map[string]struct{ Content map[string]content }
}

type parameter struct {
	In, Name string
	Required bool
	Schema   object
}

type content struct{ Schema object }

// httpLines collects lines, and which way each schema goes.
type httpLines struct {
	schemas
	components map[string]object
	uses       map[string]use
}

func (h *httpLines) operation(at string, o operation) {
	h.say("%s is %s", at, o.ID)
	requires := []any{}
	if o.Security != nil && len(o.Security) == 0 {
		h.say("%s needs no token", at)
	}
	if o.RequestBody.Required {
		requires = append(requires, "body")
	}
	for _, p := range o.Parameters {
		if p.Required {
			requires = append(requires, p.Name)
		}
		h.body(at+" "+p.In+" "+p.Name, p.Schema, use{taken: true})
	}
	h.say("%s requires %s", at, compact(requires))
	for kind, c := range o.RequestBody.Content {
		h.body(at+" takes "+kind, c.Schema, use{taken: true})
	}
	for status, r := range o.Responses {
		for kind, c := range r.Content {
			h.body(at+" answers "+status+" "+kind, c.Schema, use{given: true})
		}
	}
}

// body adds the lines of a schema in an operation, and marks what it refers to.
func (h *httpLines) body(at string, schema object, u use) {
	h.walk(at, schema, u)
	h.references(schema, u)
}

// references marks the components to which a schema refers.
func (h *httpLines) references(v any, u use) {
	switch v := v.(type) {
	case object:
		if ref, ok := v["$ref"].(string); ok {
			name, _, _ := strings.Cut(reference.Replace(ref), "#")
			h.refer(name, u)
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			h.references(v[key], u)
		}
	case []any:
		for _, one := range v {
			h.references(one, u)
		}
	}
}

func (h *httpLines) refer(name string, u use) {
	was := h.uses[name]
	now := use{was.taken || u.taken, was.given || u.given}
	if now != was {
		h.uses[name] = now
		h.references(h.components[name], u)
	}
}
