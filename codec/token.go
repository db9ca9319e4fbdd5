package codec

import (
	"bytes"
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

// tokenKinds are the Kinds of the kinds on the wire.
var tokenKinds = [...]Kind{
	kindNil: Null, kindFalse: Bool, kindTrue: Bool, kindUint: Number, kindInt: Number, kindFloat: Number,
	kindText: Text, kindBin: Binary, kindArray: Array, kindMap: Map,
}

// Token is the beginning of a canonical value: all of it, but for the values
// that an array or a map holds. Those follow it: Len of an array, Len keys
// (texts) of a map, each with its value behind it.
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

// Next reads the token that canonical bytes begin with and returns what is
// behind it. It is for bytes that were checked by Check or written by our own
// encoder: in other bytes it finds only the faults that stop it.
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

// HasBinary reports whether a canonical value is or holds a binary, which JSON
// does not have. Most values are ruled out by their bytes.
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

// Entry is one entry of a map, in the memory of the bytes that it was read from.
type Entry struct {
	Key   []byte
	Value []byte // canonical
}

// Entries appends to room the entries of the canonical map that data is, and
// checks all of data on the way, as Check does. It copies nothing.
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
