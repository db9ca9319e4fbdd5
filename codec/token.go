package codec

import (
	"bytes"
	"math"
	"strconv"
)

// Kind is a JSON type, or binary.
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

// tokenKinds are the Kinds of the kinds on the wire.
var tokenKinds = [...]Kind{
	kindNil: Null, kindFalse: Bool, kindTrue: Bool, kindUint: Number, kindInt: Number, kindFloat: Number,
	kindText: Text, kindBin: Binary, kindArray: Array, kindMap: Map,
}

// Token is a canonical value without the parts of an array or a map. Those follow as
// further tokens: Len values of an array, or Len keys (texts) of a map, each with its
// value after it.
type Token struct {
	Kind  Kind
	True  bool   // Bool
	Len   int    // Array, Map
	Bytes []byte // Text, Binary; shares memory with the bytes read

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

// Next reads the token at the beginning of canonical bytes and returns the rest. It is
// for bytes from Marshal or checked by Check: in other bytes it misses some faults.
func Next(b []byte) (t Token, rest []byte, err error) {
	h, err := readHead(b, 0, true)
	if err != nil {
		return Token{}, nil, err
	}
	t, rest = Token{Kind: tokenKinds[h.kind], True: h.kind == kindTrue, head: h}, b[h.next:]
	switch h.kind {
	case kindText, kindBin:
		t.Bytes, rest = rest[:h.n], rest[h.n:]
	case kindArray, kindMap:
		t.Len = h.n
	}
	return t, rest, nil
}

// HasBinary reports whether a canonical value is or has a binary, which JSON lacks. A
// search for the codes of binaries rules most values out.
func HasBinary(v Raw) bool {
	if bytes.IndexByte(v, codeBin8) < 0 && bytes.IndexByte(v, codeBin16) < 0 && bytes.IndexByte(v, codeBin32) < 0 {
		return false
	}
	for pos := 0; pos < len(v); {
		h, err := readHead(v, pos, true)
		if err != nil || h.kind == kindBin {
			return err == nil
		}
		pos = h.next
		if h.kind == kindText {
			pos += h.n
		}
	}
	return false
}

// Int64 returns the value of a Number that an int64 holds.
func (t *Token) Int64() (int64, bool) {
	switch t.head.kind {
	case kindUint:
		return int64(t.head.bits), t.head.bits <= math.MaxInt64
	case kindInt:
		return int64(t.head.bits), true
	}
	return 0, false
}

// Entry is one entry of a map. It shares memory with the bytes that it was read from.
type Entry struct {
	Key   []byte
	Value []byte // canonical
}

// Entries appends the entries of the canonical map data to room, and checks all of
// data as Check does. It copies nothing.
func Entries(room []Entry, data []byte) ([]Entry, error) {
	if len(data) > BytesMax {
		return nil, tooLarge(len(data), BytesMax)
	}
	h, err := readHead(data, 0, true)
	if err != nil {
		return nil, err
	}
	if h.kind != kindMap {
		return nil, fault(ErrNotObject, 0, "no map begins")
	}
	at := h.next
	var before []byte
	for i := range h.n {
		key, value, err := readKey(data, at, true)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			if err := ordered(before, key, at); err != nil {
				return nil, err
			}
		}
		before = key
		if at, err = scan(data, value, 1); err != nil {
			return nil, err
		}
		room = append(room, Entry{Key: key, Value: data[value:at]})
	}
	if at < len(data) {
		return nil, trailing(at)
	}
	return room, nil
}
