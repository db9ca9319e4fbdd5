package codec

import (
	"math"
	"strconv"
)

// Kind is the type of a value, as JSON has it, and binary.
type Kind uint8

const (
	Null Kind = iota
	Bool
	Number
	Text
	Binary
	Array
	Map
)

// Token is the beginning of a canonical value: all of it, but for the values
// that an array or a map holds. Those follow it: Len of an array, Len keys
// (texts) of a map, each with its value behind it.
type Token struct {
	Kind  Kind
	True  bool   // Bool
	Len   int    // Array, Map
	Bytes []byte // Text, Binary; the memory is that of the bytes read

	head head
}

// AppendNumber appends the digits that ToJSON writes for a Number.
func (t *Token) AppendNumber(out []byte) []byte {
	switch t.head.kind {
	case kindUint:
		return strconv.AppendUint(out, t.head.bits, 10)
	case kindInt:
		return strconv.AppendInt(out, int64(t.head.bits), 10)
	}
	return appendJSONFloat(out, math.Float64frombits(t.head.bits))
}

// Next reads the token that canonical bytes begin with and returns what is
// behind it. It is for bytes that Check, or whoever wrote them, has vouched
// for: of what is wrong with others it finds only what stops it.
func Next(b []byte) (t Token, rest []byte, err error) {
	h, err := readHead(b, 0, true)
	if err != nil {
		return Token{}, nil, err
	}
	t, rest = Token{head: h}, b[h.next:]
	switch h.kind {
	case kindNil:
		t.Kind = Null
	case kindFalse, kindTrue:
		t.Kind, t.True = Bool, h.kind == kindTrue
	case kindUint, kindInt, kindFloat:
		t.Kind = Number
	case kindText, kindBin:
		t.Kind, t.Bytes, rest = Text, rest[:h.n], rest[h.n:]
		if h.kind == kindBin {
			t.Kind = Binary
		}
	case kindArray:
		t.Kind, t.Len = Array, h.n
	case kindMap:
		t.Kind, t.Len = Map, h.n
	}
	return t, rest, nil
}
