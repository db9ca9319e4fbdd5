package planner

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
)

// kind is the type of a JSON value.
type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindArray
	kindObject
)

// value is a JSON value without a map in it: whatever is computed from it is
// computed in one order.
type value struct {
	kind   kind
	truth  bool     // kindBool
	text   string   // kindString
	number decimal  // kindNumber
	items  []value  // kindArray: the items; kindObject: the members' values
	names  []string // kindObject: the members' names, in byte order
}

// member returns an object's member. Other kinds have none.
func (v *value) member(name string) (*value, bool) {
	if v.kind != kindObject {
		return nil, false
	}
	i, ok := slices.BinarySearch(v.names, name)
	if !ok {
		return nil, false
	}
	return &v.items[i], true
}

// reader makes a value of JSON text that codec.ToJSON wrote: names are in byte
// order and unique, and nesting is bounded.
type reader struct {
	tokens *json.Decoder
	left   int // values that may still come
}

// readValue makes a value of text that codec.ToJSON wrote. It says what is
// wrong if that holds more than nodesMax values.
func readValue(text []byte, nodesMax int) (v value, problem string) {
	r := reader{tokens: json.NewDecoder(bytes.NewReader(text)), left: nodesMax}
	r.tokens.UseNumber()
	v, ok := r.value()
	if !ok {
		return value{}, "holds more than " + strconv.Itoa(nodesMax) + " values"
	}
	return v, ""
}

// value reads the next value. It returns false when there are too many, or
// when nothing more can be read.
func (r *reader) value() (value, bool) {
	if r.left--; r.left < 0 {
		return value{}, false
	}
	token, err := r.tokens.Token()
	if err != nil {
		return value{}, false
	}
	switch token := token.(type) {
	case bool:
		return value{kind: kindBool, truth: token}, true
	case string:
		return value{kind: kindString, text: token}, true
	case json.Number:
		return value{kind: kindNumber, number: parseDecimal(token.String())}, true
	case json.Delim:
		return r.inside(token)
	}
	return value{kind: kindNull}, true
}

// inside reads an array or object after what opens it.
func (r *reader) inside(open json.Delim) (value, bool) {
	v := value{kind: kindArray}
	if open == '{' {
		v.kind = kindObject
	}
	for r.tokens.More() {
		if v.kind == kindObject {
			token, err := r.tokens.Token()
			name, ok := token.(string)
			if err != nil || !ok {
				return value{}, false
			}
			v.names = append(v.names, name)
		}
		item, ok := r.value()
		if !ok {
			return value{}, false
		}
		v.items = append(v.items, item)
	}
	_, err := r.tokens.Token() // what closes it
	return v, err == nil
}

// appendKey appends text that is the same for equal JSON values only: 1 and
// 1.0 are equal, and the order of an object's members does not count.
func (v *value) appendKey(out []byte) []byte {
	switch v.kind {
	case kindNull:
		return append(out, 'n')
	case kindBool:
		if v.truth {
			return append(out, 't')
		}
		return append(out, 'f')
	case kindNumber:
		return v.number.appendKey(out)
	case kindString:
		return strconv.AppendQuote(out, v.text)
	case kindArray:
		out = append(out, '[')
		for i := range v.items {
			out = append(v.items[i].appendKey(out), ',')
		}
		return append(out, ']')
	}
	out = append(out, '{')
	for i := range v.items {
		out = append(strconv.AppendQuote(out, v.names[i]), ':')
		out = append(v.items[i].appendKey(out), ',')
	}
	return append(out, '}')
}

// key returns what appendKey appends.
func (v *value) key() string { return string(v.appendKey(nil)) }

// quoted shortens and quotes a name. Only ASCII stands as it is: which other
// characters can be printed changes with the releases of Go.
func quoted(name string) string { return strconv.QuoteToASCII(clip(name, NameBytesMax)) }
