package docs_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// located is an object of a schema with the place where it stands.
type located struct {
	file, at string
	node     map[string]any
}

// url is what the library calls the place.
func (l located) url() string { return schemaBase + l.file + ".json#" + l.at }

// child returns what stands under a key of l, if that is an object.
func (l located) child(keys ...string) (located, bool) {
	var at any = l.node
	for _, key := range keys {
		switch v := at.(type) {
		case map[string]any:
			at = v[key]
		case []any:
			i, _ := strconv.Atoi(key)
			at = v[i]
		}
	}
	node, ok := at.(map[string]any)
	return located{l.file, l.at + "/" + strings.Join(keys, "/"), node}, ok
}

// grammar is what schemas say of one message, with what was found of it.
type grammar struct {
	*schemas
	typ     string               // of the event; the schema's name, of what is none
	strings []string             // that samples are chosen from
	inner   map[string][]located // by place and field
	sampled map[string][]any     // by place
}

// applied returns all that may apply where l does: what it refers to, and its
// branches. Of the branches by the type of an event, only those of its own.
func (g *grammar) applied(l located) (all []located) {
	if l.node == nil {
		return nil
	}
	if of, ok := l.child("if", "properties", "type"); ok && l.file == "Envelope" && of.node["const"] != g.typ {
		return nil
	}
	all = []located{l}
	if ref, ok := l.node["$ref"].(string); ok {
		file, node := g.refersTo(l.file, ref)
		_, pointer, _ := strings.Cut(ref, "#")
		all = append(all, g.applied(located{file, pointer, node})...)
	}
	for _, branch := range []string{"then", "else"} {
		if next, ok := l.child(branch); ok {
			all = append(all, g.applied(next)...)
		}
	}
	for _, list := range []string{"allOf", "anyOf"} {
		members, _ := l.node[list].([]any)
		for i := range members {
			next, _ := l.child(list, strconv.Itoa(i))
			all = append(all, g.applied(next)...)
		}
	}
	return all
}

// inside returns what applies to a field of what all apply to; "*" is an item
// of a list, or a field that has no name of its own.
func (g *grammar) inside(all []located, field string) (inner []located) {
	key := field
	for _, l := range all {
		key += " " + l.url()
	}
	if inner, known := g.inner[key]; known {
		return inner
	}
	for _, l := range all {
		keys := []string{"properties", field}
		if properties, _ := l.node["properties"].(map[string]any); properties[field] == nil {
			keys = []string{"additionalProperties"}
		}
		if field == "*" && l.node["items"] != nil {
			keys = []string{"items"}
		}
		if next, ok := l.child(keys...); ok {
			inner = append(inner, g.applied(next)...)
		}
	}
	g.inner[key] = inner
	return inner
}

// occurrence names a keyword in a schema that can be violated, at a place of
// the message.
func occurrence(at, url, keyword string) string { return at + " <- " + url + " " + keyword }

// asserted are the keywords that say what may be. Another one that schemas
// begin to use fails TestSchemasRejectViolations until it is named here.
var asserted = []string{
	"type", "enum", "const", "minimum", "maximum", "minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems", "maxProperties",
	"not",
}

// other keywords lead to places that are looked at, say nothing, or are
// conditions.
var other = []string{
	"$schema", "$id", "$ref", "$defs", "title", "description", "x-doors", "properties", "items", "propertyNames", "additionalProperties",
	"required", "dependentRequired", "if", "then", "else", "allOf", "anyOf",
}

// occurrences collects all that can be violated from here on. In what holds
// itself it looks one level deep.
func (g *grammar) occurrences(at string, all []located, within []string, into map[string]bool) error {
	children := map[string]bool{}
	for _, l := range all {
		url := l.url()
		for key, value := range l.node {
			switch {
			case slices.Contains(asserted, key):
				into[occurrence(at, url, key)] = true
			case !slices.Contains(other, key):
				return fmt.Errorf("%s: this test does not know the keyword %s", url, key)
			}
			if field, ok := value.(map[string]any); ok && key == "properties" {
				for name, inner := range field {
					children[name] = true
					if inner == false {
						into[occurrence(at+"/"+name, url+"/properties/"+name, "false")] = true
					}
				}
			}
		}
		for _, name := range asList(l.node["required"]) {
			into[occurrence(at, url, "required "+fmt.Sprint(name))] = true
		}
		if depends, ok := l.node["dependentRequired"].(map[string]any); ok {
			for name := range depends {
				into[occurrence(at, url, "dependentRequired "+name)] = true
			}
		}
		if l.node["additionalProperties"] == false {
			into[occurrence(at, url, "additionalProperties")] = true
		} else if l.node["additionalProperties"] != nil {
			children["*"] = true
		}
		if l.node["items"] != nil {
			children["*"] = true
		}
		if names, ok := l.child("propertyNames"); ok {
			for key := range names.node {
				into[occurrence(at, names.url(), key)] = true
			}
		}
	}
	mark := all[0].url()
	for _, l := range all {
		if _, refers := l.node["$ref"]; !refers { // whatever refers there, it is the same
			mark = l.url()
			break
		}
	}
	for name := range children {
		inner := g.inside(all, name)
		if len(inner) == 0 || count(within, mark) > 0 && name == "*" {
			continue
		}
		if err := g.occurrences(at+"/"+name, inner, append(slices.Clone(within), mark), into); err != nil {
			return err
		}
	}
	return nil
}

func count(all []string, one string) (n int) {
	for _, each := range all {
		if each == one {
			n++
		}
	}
	return n
}

func asList(v any) []any { list, _ := v.([]any); return list }

// violations returns what a message violates: each is one occurrence or, of
// alternatives that all fail, several.
func violations(err error) (all [][]string) {
	var bad *jsonschema.ValidationError
	if !errors.As(err, &bad) {
		return nil
	}
	at := ""
	for _, token := range bad.InstanceLocation {
		if _, err := strconv.Atoi(token); err == nil {
			token = "*"
		}
		at += "/" + token
	}
	one := func(keyword string) [][]string { return [][]string{{occurrence(at, bad.SchemaURL, keyword)}} }
	switch k := bad.ErrorKind.(type) {
	case *kind.Not:
		return one("not")
	case *kind.FalseSchema:
		return one("false")
	case *kind.Required:
		for _, name := range k.Missing {
			all = append(all, one("required "+name)...)
		}
		return all
	case *kind.DependentRequired:
		return one("dependentRequired " + k.Prop)
	case *kind.PropertyNames:
		for _, cause := range bad.Causes {
			for _, v := range violations(cause) {
				all = append(all, []string{at + v[0]})
			}
		}
		return all
	}
	if len(bad.Causes) == 0 {
		return one(strings.Join(bad.ErrorKind.KeywordPath(), " "))
	}
	for _, cause := range bad.Causes {
		for _, v := range violations(cause) {
			if i := slices.IndexFunc(all, func(w []string) bool { return isSame(v[0], w[0]) }); i >= 0 {
				all[i] = append(all[i], v...)
			} else {
				all = append(all, v)
			}
		}
	}
	if _, alternatives := bad.ErrorKind.(*kind.AnyOf); alternatives {
		all = [][]string{slices.Concat(all...)}
	}
	return all
}

// isSame reports whether two occurrences are the same keyword about the same
// place, said twice.
func isSame(a, b string) bool {
	atA, restA, _ := strings.Cut(a, " <- ")
	atB, restB, _ := strings.Cut(b, " <- ")
	_, keywordA, _ := strings.Cut(restA, " ")
	_, keywordB, _ := strings.Cut(restB, " ")
	return atA == atB && keywordA == keywordB
}

// spot is a place of a message with what stands there and what applies to it.
type spot struct {
	at    string // as in occurrences
	value any
	all   []located
	set   func(any) any // returns a copy of the message with another value here
}

// spots returns all places of a message that schemas speak of, itself first.
func (g *grammar) spots(at string, value any, all []located, set func(any) any) []spot {
	found := []spot{{at, value, all, set}}
	add := func(name string, inner any, put func(any) any) {
		if next := g.inside(all, name); len(next) > 0 {
			if properties := declared(all); properties[name] == nil {
				name = "*"
			}
			found = append(found, g.spots(at+"/"+name, inner, next, put)...)
		}
	}
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			add(key, v[key], func(inner any) any { return set(with(v, key, inner)) })
		}
	case []any:
		for i := range v {
			add("*", v[i], func(inner any) any {
				list := slices.Clone(v)
				list[i] = inner
				return set(list)
			})
		}
	}
	return found
}

// with returns a copy of an object with another value of a field.
func with(object map[string]any, key string, value any) map[string]any {
	object = maps.Clone(object)
	if object == nil {
		object = map[string]any{}
	}
	object[key] = value
	return object
}

func without(object map[string]any, key string) map[string]any {
	object = maps.Clone(object)
	delete(object, key)
	return object
}

// declared returns the fields that an object may have, by name.
func declared(all []located) map[string]any {
	fields := map[string]any{}
	for _, l := range all {
		properties, _ := l.node["properties"].(map[string]any)
		for name, schema := range properties {
			if schema != false {
				fields[name] = schema
			}
		}
	}
	return fields
}

// typesOf returns the types that are asked for where all apply.
func typesOf(all []located) map[string]bool {
	types := map[string]bool{}
	for _, l := range all {
		for _, name := range append(asList(l.node["type"]), l.node["type"]) {
			types[fmt.Sprint(name)] = true
		}
	}
	return types
}

// samples returns some values that may be right where all apply.
func (g *grammar) samples(all []located, depth int) (out []any) {
	key := fmt.Sprint(depth)
	for _, l := range all {
		key += " " + l.url()
	}
	if out, known := g.sampled[key]; known {
		return out
	}
	types := typesOf(all)
	for _, l := range all {
		if value, ok := l.node["const"]; ok {
			out = append(out, value)
		}
		out = append(out, asList(l.node["enum"])...)
	}
	switch {
	case types["boolean"]:
		out = []any{true, false}
	case len(out) > 0 || depth == 0:
	case types["integer"]:
		out = []any{json.Number("1"), json.Number("200")}
	case types["array"]:
		for _, item := range g.samples(g.inside(all, "*"), depth-1) {
			out = append(out, []any{item})
		}
	case types["object"]:
		least := map[string]any{}
		for _, l := range all {
			for _, name := range asList(l.node["required"]) {
				inner := g.samples(g.inside(all, name.(string)), depth-1)
				if len(inner) > 0 && declared(all)[name.(string)] != nil {
					least[name.(string)] = inner[0]
				}
			}
		}
		out = []any{least}
		for _, name := range slices.Sorted(maps.Keys(declared(all))) {
			if inner := g.samples(g.inside(all, name), depth-1); len(inner) > 0 {
				out = append(out, map[string]any{name: inner[0]})
			}
		}
	case types["string"]:
		for _, text := range g.strings {
			if len(out) < 6 && !slices.ContainsFunc(all, func(l located) bool {
				pattern, ok := l.node["pattern"].(string)
				return ok && !regexp.MustCompile(pattern).MatchString(text)
			}) {
				out = append(out, text)
			}
		}
	}
	g.sampled[key] = out
	return out
}
