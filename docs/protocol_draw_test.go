package docs_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// anything are values of every type, and numbers that few readers expect.
func anything() []any {
	all := []any{nil, true, false, "", "x", "x y", []any{}, []any{json.Number("7")}, map[string]any{}, map[string]any{"zzz": json.Number("1")}}
	for _, number := range []string{
		"0", "1", "7", "-1", "0.5", "-0.5", "4294967296", "9007199254740992", "9007199254740993", "9223372036854775807", "9223372036854775808",
		"-9223372036854775808", "-9223372036854775809", "18446744073709551615", "18446744073709551616", "1e300",
	} {
		all = append(all, json.Number(number))
	}
	return all
}

// variants returns values in place of that of a spot: right ones, wrong ones,
// those just inside and just outside of every bound.
func (g *grammar) variants(p spot) (out []any) {
	out = append(anything(), g.samples(p.all, 3)...)
	for _, l := range p.all {
		for _, keyword := range []string{"minimum", "maximum", "maxLength", "maxItems", "maxProperties", "const"} {
			number, ok := l.node[keyword].(json.Number)
			n, err := number.Int64()
			if !ok || err != nil {
				continue
			}
			switch list, _ := p.value.([]any); keyword {
			case "maxLength":
				out = append(out, texts(int(n))...)
				for _, text := range g.samples(p.all, 3) { // as long as may be and one longer, of a form that may be
					if text, ok := text.(string); ok && len(text) > 0 && len(text) <= int(n) {
						long := text + strings.Repeat("x", int(n)-len(text))
						out = append(out, long, long+"x")
					}
				}
			case "maxProperties":
				for _, inner := range g.samples(g.inside(p.all, "*"), 3) {
					many := map[string]any{}
					for i := range int(n) + 1 {
						many[fmt.Sprintf("x%d", i)] = inner
					}
					out = append(out, many)
				}
			case "maxItems":
				out = append(out, lists(list, int(n))...)
			default:
				out = append(out, numberOf(n-1), numberOf(n), numberOf(n+1))
			}
		}
	}
	switch v := p.value.(type) {
	case string:
		out = append(out, "zzz", v+"!", v+"0", v+" ", strings.ToUpper(v), "é", v+"é", ".", "..", "-1", "r0t1", "r1t01")
	case []any:
		if len(v) > 0 {
			out = append(out, append(slices.Clone(v), v[0]), append(slices.Clone(v), json.Number("7")), append(slices.Clone(v), nil), v[1:])
		}
	case map[string]any:
		for _, one := range g.edits(p, v) {
			out = append(out, one)
		}
		for _, one := range g.conditional(p, v, false) {
			for _, two := range append(g.conditional(p, one, false), one) {
				out = append(out, two)
			}
		}
		for _, least := range g.samples(p.all, 3) {
			least, _ := least.(map[string]any) // of a place that has another type, it is none
			for _, one := range g.conditional(p, least, true) {
				out = append(out, one)
			}
		}
	}
	return out
}

func numberOf(n int64) json.Number { return json.Number(fmt.Sprint(n)) }

// texts are as long as may be and one longer, by characters and by bytes.
func texts(most int) []any {
	return []any{
		strings.Repeat("x", most), strings.Repeat("x", most+1), strings.Repeat("é", most/2), strings.Repeat("é", most/2+1), strings.Repeat("é", most),
		strings.Repeat("é", most+1),
	}
}

// lists are as long as may be and one longer.
func lists(v []any, most int) []any {
	if len(v) == 0 {
		v = []any{"x"}
	}
	var out []any
	for _, n := range []int{most, most + 1} {
		list, again := slices.Clone(v), slices.Clone(v)
		for len(list) < n {
			list, again = append(list, v[0]), append(again, fmt.Sprintf("x%d", len(again))) // alike, and each another
		}
		out = append(out, list, again)
	}
	return out
}

// edits are objects with one field more, or less.
func (g *grammar) edits(p spot, v map[string]any) (out []map[string]any) {
	for key := range v {
		out = append(out, without(v, key))
	}
	for name := range declared(p.all) {
		if _, is := v[name]; is {
			continue
		}
		for _, inner := range g.samples(g.inside(p.all, name), 3) {
			out = append(out, with(v, name, inner))
		}
		if inner := g.inside(p.all, name); len(inner) == 1 && inner[0].node["type"] == nil {
			out = append(out, with(v, name, []any{map[string]any{"a": json.Number("1")}})) // any value
		}
	}
	out = append(out, with(v, "zzz", json.Number("1")), with(v, "", "x"), with(v, "Type", "x"))
	for _, l := range p.all {
		names, ok := l.child("propertyNames")
		most, isNumber := names.node["maxLength"].(json.Number)
		if n, err := most.Int64(); ok && isNumber && err == nil {
			for _, name := range texts(int(n)) {
				out = append(out, map[string]any{name.(string): "x"})
			}
		}
	}
	slices.SortFunc(out, func(a, b map[string]any) int {
		return slices.Compare(slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b)))
	})
	return out
}

// conditional are objects that differ from v by one more edit of a field that a
// condition of theirs speaks of; also by a wrong one, if wrong.
func (g *grammar) conditional(p spot, v map[string]any, wrong bool) (out []map[string]any) {
	fields := map[string]bool{}
	for _, l := range p.all {
		for _, keys := range [][]string{
			{"if", "properties"}, {"then", "properties"}, {"else", "properties"}, {"dependentRequired"},
		} {
			named, _ := l.child(keys...)
			for name, needs := range named.node {
				fields[name] = true
				for _, need := range asList(needs) {
					fields[need.(string)] = true
				}
			}
		}
		for _, key := range []string{"not", "then", "else", "anyOf"} {
			named, _ := l.child(key)
			alternatives := append(asList(l.node["anyOf"]), named.node)
			for _, one := range alternatives {
				object, _ := one.(map[string]any)
				for _, name := range asList(object["required"]) {
					fields[name.(string)] = true
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if _, is := v[name]; is {
			out = append(out, without(v, name))
		}
		inner := g.samples(g.inside(p.all, name), 3)
		inner = slices.Clone(inner[:min(len(inner), 2)])
		if wrong {
			inner = append(inner, "zzz", json.Number("7"))
		}
		for _, value := range inner {
			out = append(out, with(v, name, value))
		}
	}
	return out
}

// textsOf returns the texts in a message, and some that names are made of.
func textsOf(value any) []string {
	all := []string{"x", "{}", "auto", "a b", strings.Repeat("0", 64), "sha256-" + strings.Repeat("0", 64)}
	var collect func(any)
	collect = func(value any) {
		switch v := value.(type) {
		case string:
			all = append(all, v)
		case []any:
			for i := range v {
				collect(v[i])
			}
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				collect(v[key])
			}
		}
	}
	collect(value)
	slices.Reverse(all) // the message's own first
	return slices.Compact(all)
}

// isASCII reports whether every text of a message has as many characters as
// bytes.
func isASCII(message any) bool {
	switch v := message.(type) {
	case string:
		return utf8.RuneCountInString(v) == len(v)
	case []any:
		return !slices.ContainsFunc(v, func(inner any) bool { return !isASCII(inner) })
	case map[string]any:
		for key, inner := range v {
			if !isASCII(key) || !isASCII(inner) {
				return false
			}
		}
	}
	return true
}

// byBytes returns a message in which every text has as many characters as bytes.
func byBytes(value any) any {
	switch v := value.(type) {
	case string:
		if isASCII(v) {
			return v
		}
		return strings.Repeat("x", len(v))
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = byBytes(v[i])
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for key, inner := range v {
			object[byBytes(key).(string)] = byBytes(inner)
		}
		return object
	}
	return value
}

// jsonText prints a message.
func jsonText(message any) string {
	text, err := json.Marshal(message)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// plain returns a message without what readers take besides: optional fields
// with their zero value, or null where Go has a pointer.
func (a *agreement) plain(value any, all []located, typ reflect.Type, at string) any {
	object, ok := value.(map[string]any)
	list, isList := value.([]any)
	if typ != nil && typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if isList && typ != nil && typ.Kind() == reflect.Slice {
		list = slices.Clone(list)
		for i := range list {
			list[i] = a.plain(list[i], a.inside(all, "*"), typ.Elem(), at+"/*")
		}
		return list
	}
	if at == "" && a.start != nil {
		typ = reflect.TypeFor[session.Envelope]()
	}
	if !ok || typ == nil || typ.Kind() != reflect.Struct {
		return value
	}
	object = maps.Clone(object)
	for field := range fieldsOf(typ) {
		name, options, _ := strings.Cut(field.Tag.Get("msgpack"), ",")
		inner, is := object[name]
		if !is {
			continue
		}
		if strings.Contains(options, "omitempty") && saysNothing(inner, field.Type) {
			delete(object, name)
			continue
		}
		next := field.Type
		switch {
		case at == "" && name == "data" && a.start != nil:
			next = a.goType
		case field.Type == reflect.TypeFor[codec.Raw]() && nested[name] != nil:
			next = nested[name]
		}
		object[name] = a.plain(inner, a.inside(all, name), next, at+"/"+name)
	}
	return object
}

// nested are the types of fields that hold an object of another message.
var nested = map[string]reflect.Type{
	"agent": reflect.TypeFor[session.RunConfig](), "registry": reflect.TypeFor[session.ToolRegistrySet](),
	"response_format": reflect.TypeFor[session.ResponseFormat](),
}

// saysNothing reports whether a value is what an optional field of this type
// has when it is absent.
func saysNothing(value any, typ reflect.Type) bool {
	switch v := value.(type) {
	case nil:
		return typ.Kind() == reflect.Pointer
	case string:
		return v == "" && typ.Kind() == reflect.String
	case json.Number:
		return v == "0" && typ.Kind() >= reflect.Int && typ.Kind() <= reflect.Uint64
	case bool:
		return !v && typ.Kind() == reflect.Bool
	}
	return false
}

// packedOf returns a message in canonical msgpack. Binaries stay what they are.
func packedOf(value any) ([]byte, error) {
	var plain func(any) any
	plain = func(value any) any {
		switch v := value.(type) {
		case json.Number:
			packed, err := codec.FromJSON([]byte(v))
			if err != nil {
				return nil
			}
			return packed
		case []any:
			list := make([]any, len(v))
			for i := range v {
				list[i] = plain(v[i])
			}
			return list
		case map[string]any:
			object := make(map[string]any, len(v))
			for key, inner := range v {
				object[key] = plain(inner)
			}
			return object
		}
		return value
	}
	return codec.Marshal(plain(value))
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
