package codec

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"unicode/utf8"
)

// The append functions write one value, or a header, in canonical form.

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, codeTrue)
	}
	return append(b, codeFalse)
}

func appendUint(b []byte, u uint64) []byte {
	switch {
	case u < 1<<7:
		return append(b, byte(u))
	case u < 1<<8:
		return append(b, codeUint8, byte(u))
	case u < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, codeUint16), uint16(u))
	case u < 1<<32:
		return binary.BigEndian.AppendUint32(append(b, codeUint32), uint32(u))
	}
	return binary.BigEndian.AppendUint64(append(b, codeUint64), u)
}

func appendInt(b []byte, i int64) []byte {
	switch {
	case i >= 0:
		return appendUint(b, uint64(i))
	case i >= -32:
		return append(b, byte(i))
	case i >= math.MinInt8:
		return append(b, codeInt8, byte(i))
	case i >= math.MinInt16:
		return binary.BigEndian.AppendUint16(append(b, codeInt16), uint16(i))
	case i >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(b, codeInt32), uint32(i))
	}
	return binary.BigEndian.AppendUint64(append(b, codeInt64), uint64(i))
}

// appendFloat writes f, as an integer if it is one within 2^53; so -0 is 0.
func appendFloat(b []byte, f float64) ([]byte, error) {
	if f-f != 0 {
		return b, fault(ErrNumber, len(b), "a float that is no finite number")
	}
	if f == math.Trunc(f) && math.Abs(f) <= integralMax {
		return appendInt(b, int64(f)), nil
	}
	return binary.BigEndian.AppendUint64(append(b, codeFloat64), math.Float64bits(f)), nil
}

// appendText writes s, which must be valid UTF-8.
func appendText[T string | []byte](b []byte, s T) []byte {
	return append(appendTextHead(b, len(s)), s...)
}

// appendCheckedText writes s if it is valid UTF-8.
func appendCheckedText(b []byte, s string) ([]byte, error) {
	if !utf8.ValidString(s) {
		return b, invalidText(len(b))
	}
	return appendText(b, s), nil
}

func appendTextHead(b []byte, n int) []byte {
	switch {
	case n < 32:
		return append(b, codeTextShort|byte(n))
	case n < 1<<8:
		return append(b, codeText8, byte(n))
	}
	return appendLongHead(b, n, codeText16)
}

func appendBin(b, s []byte) []byte {
	if n := len(s); n < 1<<8 {
		b = append(b, codeBin8, byte(n))
	} else {
		b = appendLongHead(b, n, codeBin16)
	}
	return append(b, s...)
}

// appendLongHead writes a header of 16 or 32 bits. The code for 32 bits follows the
// one for 16.
func appendLongHead(b []byte, n int, code16 byte) []byte {
	if n < 1<<16 {
		return binary.BigEndian.AppendUint16(append(b, code16), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(b, code16+1), uint32(n))
}

func appendArrayHead(b []byte, n int) []byte {
	return appendContainerHead(b, n, codeArrayShort, codeArray16)
}

func appendMapHead(b []byte, n int) []byte {
	return appendContainerHead(b, n, codeMapShort, codeMap16)
}

// appendContainerHead writes the header of a container of n.
func appendContainerHead(b []byte, n int, short, code16 byte) []byte {
	if n < 16 {
		return append(b, short|byte(n))
	}
	return appendLongHead(b, n, code16)
}

// closeContainer writes the header of a container of n entries at start, where one byte
// was reserved for it.
func closeContainer(b []byte, start, n int, short, code16 byte) []byte {
	if n < 16 {
		b[start] = short | byte(n)
		return b
	}
	var room [5]byte
	header := appendContainerHead(room[:0], n, short, code16)
	more := len(header) - 1
	b = append(b, room[:more]...)
	copy(b[start+1+more:], b[start+1:len(b)-more])
	copy(b[start:], header)
	return b
}

// pair is one entry of a map being written: where the entry, its key's text and its
// value begin in the output, and where the key is in the input, for errors.
type pair struct {
	at, keyAt, value, end int
	source                int
}

// key returns the key of p, without its header.
func (p pair) key(b []byte) []byte { return b[p.keyAt:p.value] }

// sortPairs sorts adjacent pairs at the end of b by their keys. It refuses duplicate
// keys.
func sortPairs(b []byte, pairs []pair) error {
	inOrder := true
	for i := 1; i < len(pairs) && inOrder; i++ {
		inOrder = bytes.Compare(pairs[i-1].key(b), pairs[i].key(b)) < 0
	}
	if inOrder {
		return nil
	}
	start, end := pairs[0].at, pairs[len(pairs)-1].end
	slices.SortStableFunc(pairs, func(p, q pair) int { return bytes.Compare(p.key(b), q.key(b)) })
	for i := 1; i < len(pairs); i++ {
		if key := pairs[i].key(b); bytes.Equal(pairs[i-1].key(b), key) {
			return duplicateKey(key, pairs[i].source)
		}
	}
	was := bytes.Clone(b[start:end])
	to := b[start:start]
	for _, p := range pairs {
		to = append(to, was[p.at-start:p.end-start]...)
	}
	return nil
}
