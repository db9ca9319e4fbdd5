package planner

import (
	"slices"
	"strconv"

	"github.com/refold/refold/codec"
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

// value is a JSON value without a map, so that everything computed from it is
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

// values returns how many values v is, those inside included.
func (v *value) values() int {
	n := 1
	for i := range v.items {
		n += v.items[i].values()
	}
	return n
}

// reader reads values from canonical bytes: names are in byte order and unique,
// and nesting is bounded.
type reader struct {
	rest   []byte
	left   int    // values that may still be read
	digits []byte // buffer for the digits of a number
}

// readValue reads a value from canonical bytes without binary. problem says
// what is wrong if they hold more than nodesMax values.
func readValue(canonical codec.Raw, nodesMax int) (v value, problem string) {
	r := reader{rest: canonical, left: nodesMax}
	v, ok := r.value()
	if !ok {
		return value{}, "holds more than " + strconv.Itoa(nodesMax) + " values"
	}
	return v, ""
}

// value reads the next value. It returns false if there are too many values or
// the bytes end.
func (r *reader) value() (value, bool) {
	if r.left--; r.left < 0 {
		return value{}, false
	}
	token, ok := r.next()
	if !ok {
		return value{}, false
	}
	switch token.Kind {
	case codec.Bool:
		return value{kind: kindBool, truth: token.True}, true
	case codec.Text:
		return value{kind: kindString, text: string(token.Bytes)}, true
	case codec.Number:
		r.digits = token.AppendNumber(r.digits[:0])
		return value{kind: kindNumber, number: parseDecimal(string(r.digits))}, true
	case codec.Array, codec.Map:
		return r.inside(token)
	}
	return value{kind: kindNull}, true
}

func (r *reader) next() (codec.Token, bool) {
	token, rest, err := codec.Next(r.rest)
	r.rest = rest
	return token, err == nil
}

func (r *reader) inside(outer codec.Token) (value, bool) {
	v := value{kind: kindArray}
	if outer.Len > 0 { // the header was checked: at least as many bytes follow
		v.items = make([]value, 0, outer.Len)
	}
	if outer.Kind == codec.Map {
		v.kind = kindObject
		if outer.Len > 0 {
			v.names = make([]string, 0, outer.Len)
		}
	}
	for range outer.Len {
		if v.kind == kindObject {
			name, ok := r.next()
			if !ok {
				return value{}, false
			}
			v.names = append(v.names, string(name.Bytes))
		}
		item, ok := r.value()
		if !ok {
			return value{}, false
		}
		v.items = append(v.items, item)
	}
	return v, true
}

// appendKey appends text that is the same for equal JSON values only: 1 equals
// 1.0, and the order of an object's members does not count.
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

// appendText appends JSON text for people and models, in ASCII. It stops after
// about most bytes: longer text would not fit a detail.
func (v *value) appendText(out []byte, most int) []byte {
	switch v.kind {
	case kindNull:
		return append(out, "null"...)
	case kindBool:
		return strconv.AppendBool(out, v.truth)
	case kindNumber:
		return v.number.appendText(out)
	case kindString:
		return strconv.AppendQuoteToASCII(out, clip(v.text, max(most, len(clipMark))))
	}
	brackets := "[]"
	if v.kind == kindObject {
		brackets = "{}"
	}
	out = append(out, brackets[0])
	for i := range v.items {
		if i > 0 {
			out = append(out, ',')
		}
		if len(out) > most {
			return append(out, clipMark...)
		}
		if v.kind == kindObject {
			out = append(strconv.AppendQuoteToASCII(out, v.names[i]), ':')
		}
		out = v.items[i].appendText(out, most)
	}
	return append(out, brackets[1])
}

// quoted shortens a name and quotes it in ASCII: which other characters are
// printable changes with the releases of Go.
func quoted(name string) string { return strconv.QuoteToASCII(clip(name, NameBytesMax)) }
