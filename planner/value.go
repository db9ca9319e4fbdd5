package planner

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"

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

// walker makes a value of canonical bytes.
type walker struct {
	dec  *msgpack.Decoder
	left int // values that may still come
	max  int // values that were allowed
}

// readValue makes a value of canonical bytes, whose nesting the codec has
// bounded. It says what is wrong if they hold more than nodesMax values, or
// binary, which JSON does not have.
func readValue(raw codec.Raw, nodesMax int) (v value, problem string) {
	w := walker{dec: msgpack.NewDecoder(bytes.NewReader(raw)), left: nodesMax - 1, max: nodesMax}
	return w.value()
}

// room takes n from the values that may still come.
func (w *walker) room(n int) (problem string) {
	if n < 0 || n > w.left {
		return "holds more than " + strconv.Itoa(w.max) + " values"
	}
	w.left -= n
	return ""
}

const problemEncoding = "is not in the canonical encoding"

// value reads the next value.
func (w *walker) value() (value, string) {
	code, err := w.dec.PeekCode()
	if err != nil {
		return value{}, problemEncoding
	}
	v := value{}
	switch {
	case code == msgpcode.Nil:
		err = w.dec.DecodeNil()
	case code == msgpcode.False || code == msgpcode.True:
		v.kind = kindBool
		v.truth, err = w.dec.DecodeBool()
	case msgpcode.IsString(code):
		v.kind = kindString
		v.text, err = w.dec.DecodeString()
	case msgpcode.IsFixedArray(code) || code == msgpcode.Array16 || code == msgpcode.Array32:
		return w.array()
	case msgpcode.IsFixedMap(code) || code == msgpcode.Map16 || code == msgpcode.Map32:
		return w.object()
	case msgpcode.IsBin(code) || msgpcode.IsExt(code):
		return value{}, "holds binary, which JSON does not have"
	default:
		return w.number(code)
	}
	if err != nil {
		return value{}, problemEncoding
	}
	return v, ""
}

// number reads a number. Floats are taken as the shortest decimal that reads
// back as the same float, which is what whoever wrote them meant.
func (w *walker) number(code byte) (value, string) {
	var text string
	switch code {
	case msgpcode.Float, msgpcode.Double:
		f, err := w.dec.DecodeFloat64()
		if err != nil {
			return value{}, problemEncoding
		}
		text = strconv.FormatFloat(f, 'e', -1, 64)
	case msgpcode.Uint64:
		n, err := w.dec.DecodeUint64()
		if err != nil {
			return value{}, problemEncoding
		}
		text = strconv.FormatUint(n, 10)
	default:
		n, err := w.dec.DecodeInt64()
		if err != nil {
			return value{}, problemEncoding
		}
		text = strconv.FormatInt(n, 10)
	}
	return value{kind: kindNumber, number: parseDecimal(text)}, ""
}

// array reads an array.
func (w *walker) array() (value, string) {
	n, err := w.dec.DecodeArrayLen()
	if err != nil {
		return value{}, problemEncoding
	}
	if problem := w.room(n); problem != "" {
		return value{}, problem
	}
	v := value{kind: kindArray, items: make([]value, n)}
	for i := range n {
		var problem string
		if v.items[i], problem = w.value(); problem != "" {
			return value{}, problem
		}
	}
	return v, ""
}

// object reads an object. The codec has put its names in byte order.
func (w *walker) object() (value, string) {
	n, err := w.dec.DecodeMapLen()
	if err != nil {
		return value{}, problemEncoding
	}
	if problem := w.room(n); problem != "" {
		return value{}, problem
	}
	v := value{kind: kindObject, items: make([]value, n), names: make([]string, n)}
	for i := range n {
		if v.names[i], err = w.dec.DecodeString(); err != nil {
			return value{}, problemEncoding
		}
		var problem string
		if v.items[i], problem = w.value(); problem != "" {
			return value{}, problem
		}
	}
	return v, ""
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
