package codec

import (
	"encoding/binary"
	"math"
)

// kind is the type of a value on the wire.
type kind uint8

const (
	kindNil kind = iota
	kindFalse
	kindTrue
	kindUint  // an integer that is not negative; head.bits is its value
	kindInt   // a negative integer; head.bits is its two's complement
	kindFloat // head.bits is the float64
	kindText
	kindBin
	kindArray
	kindMap
)

var kindNames = [...]string{
	kindNil: "nil", kindFalse: "a boolean", kindTrue: "a boolean", kindUint: "an integer", kindInt: "an integer", kindFloat: "a float",
	kindText: "text", kindBin: "binary", kindArray: "an array", kindMap: "a map",
}

// String names the kind as errors do.
func (k kind) String() string { return kindNames[k] }

// The first bytes of values. Small integers and short maps, arrays and texts have a
// range of them.
const (
	codeMapShort   = 0x80 // to 0x8f
	codeArrayShort = 0x90 // to 0x9f
	codeTextShort  = 0xa0 // to 0xbf
	codeNil        = 0xc0
	codeReserved   = 0xc1
	codeFalse      = 0xc2
	codeTrue       = 0xc3
	codeBin8       = 0xc4
	codeBin16      = 0xc5
	codeBin32      = 0xc6
	codeFloat32    = 0xca
	codeFloat64    = 0xcb
	codeUint8      = 0xcc
	codeUint16     = 0xcd
	codeUint32     = 0xce
	codeUint64     = 0xcf
	codeInt8       = 0xd0
	codeInt16      = 0xd1
	codeInt32      = 0xd2
	codeInt64      = 0xd3
	codeText8      = 0xd9
	codeText16     = 0xda
	codeText32     = 0xdb
	codeArray16    = 0xdc
	codeArray32    = 0xdd
	codeMap16      = 0xde
	codeMap32      = 0xdf
	codeIntShort   = 0xe0 // to 0xff
)

// integralMax is 2^53: integral floats up to it, and not beyond, equal their integer
// in every language.
const integralMax = 1 << 53

// head is a decoded header: the value of a scalar, or the length of the rest.
type head struct {
	bits uint64 // of a number
	n    int    // bytes of a text or binary, elements of an array, pairs of a map
	next int    // where the header ends
	kind kind
}

func (h head) float() float64 { return math.Float64frombits(h.bits) }

// readHead reads the header at pos. It refuses a length that the rest of b can't hold:
// n bytes, or n elements of at least one byte. With strict it refuses every form except
// the canonical one.
func readHead(b []byte, pos int, strict bool) (head, error) {
	if pos >= len(b) {
		return head{}, fault(ErrTruncated, pos, "the bytes end where a value should begin")
	}
	switch c := b[pos]; {
	case c < codeMapShort:
		return head{kind: kindUint, bits: uint64(c), next: pos + 1}, nil
	case c >= codeIntShort:
		return head{kind: kindInt, bits: uint64(int64(int8(c))), next: pos + 1}, nil
	case c < codeArrayShort:
		return fits(b, pos, head{kind: kindMap, n: int(c - codeMapShort), next: pos + 1})
	case c < codeTextShort:
		return fits(b, pos, head{kind: kindArray, n: int(c - codeArrayShort), next: pos + 1})
	case c < codeNil:
		return fits(b, pos, head{kind: kindText, n: int(c - codeTextShort), next: pos + 1})
	case c == codeNil:
		return head{kind: kindNil, next: pos + 1}, nil
	case c == codeFalse:
		return head{kind: kindFalse, next: pos + 1}, nil
	case c == codeTrue:
		return head{kind: kindTrue, next: pos + 1}, nil
	default:
		return readLongHead(b, pos, strict)
	}
}

// long describes the headers with a number: its width, and the least number that needs
// this width.
type long struct {
	kind  kind
	width uint8
	least uint64
	known bool
}

var longs = [256]long{
	codeBin8:    {kindBin, 1, 0, true},
	codeBin16:   {kindBin, 2, 1 << 8, true},
	codeBin32:   {kindBin, 4, 1 << 16, true},
	codeFloat32: {kindFloat, 4, 0, true},
	codeFloat64: {kindFloat, 8, 0, true},
	codeUint8:   {kindUint, 1, 1 << 7, true},
	codeUint16:  {kindUint, 2, 1 << 8, true},
	codeUint32:  {kindUint, 4, 1 << 16, true},
	codeUint64:  {kindUint, 8, 1 << 32, true},
	codeInt8:    {kindInt, 1, 32, true}, // of the complement: -33 has 32
	codeInt16:   {kindInt, 2, 1 << 7, true},
	codeInt32:   {kindInt, 4, 1 << 15, true},
	codeInt64:   {kindInt, 8, 1 << 31, true},
	codeText8:   {kindText, 1, 32, true},
	codeText16:  {kindText, 2, 1 << 8, true},
	codeText32:  {kindText, 4, 1 << 16, true},
	codeArray16: {kindArray, 2, 16, true},
	codeArray32: {kindArray, 4, 1 << 16, true},
	codeMap16:   {kindMap, 2, 16, true},
	codeMap32:   {kindMap, 4, 1 << 16, true},
}

func readLongHead(b []byte, pos int, strict bool) (head, error) {
	l := &longs[b[pos]]
	if !l.known {
		if b[pos] == codeReserved {
			return head{}, fault(ErrUnsupported, pos, "the reserved byte c1")
		}
		return head{}, fault(ErrUnsupported, pos, "an extension type")
	}
	next := pos + 1 + int(l.width)
	if next > len(b) {
		return head{}, fault(ErrTruncated, pos, "the bytes end inside the header of "+l.kind.String())
	}
	var u uint64
	var signed int64
	switch l.width {
	case 1:
		u, signed = uint64(b[pos+1]), int64(int8(b[pos+1]))
	case 2:
		u = uint64(binary.BigEndian.Uint16(b[pos+1:]))
		signed = int64(int16(u))
	case 4:
		u = uint64(binary.BigEndian.Uint32(b[pos+1:]))
		signed = int64(int32(u))
	case 8:
		u = binary.BigEndian.Uint64(b[pos+1:])
		signed = int64(u)
	}
	switch l.kind {
	case kindUint:
		if strict && u < l.least {
			return head{}, notShortest(pos, l.kind)
		}
		return head{kind: kindUint, bits: u, next: next}, nil
	case kindInt:
		if strict && (signed >= 0 || uint64(^signed) < l.least) {
			return head{}, notShortest(pos, l.kind)
		}
		if signed >= 0 {
			return head{kind: kindUint, bits: uint64(signed), next: next}, nil
		}
		return head{kind: kindInt, bits: uint64(signed), next: next}, nil
	case kindFloat:
		return floatHead(u, pos, next, strict)
	default:
		if strict && u < l.least {
			return head{}, notShortest(pos, l.kind)
		}
		return fits(b, pos, head{kind: l.kind, n: int(u), next: next})
	}
}

// floatHead reads the float whose bits are u. A float that is integral within 2^53
// becomes an integer; strict refuses it.
func floatHead(u uint64, pos, next int, strict bool) (head, error) {
	f := math.Float64frombits(u)
	if next-pos == 5 {
		if strict {
			return head{}, fault(ErrNotCanonical, pos, "a float of 32 bits; floats have 64")
		}
		f = float64(math.Float32frombits(uint32(u)))
	}
	if f-f != 0 {
		return head{}, fault(ErrNumber, pos, "a float that is no finite number")
	}
	if f == math.Trunc(f) && math.Abs(f) <= integralMax {
		if strict {
			return head{}, fault(ErrNotCanonical, pos, "an integral number spelled as a float")
		}
		if f < 0 {
			return head{kind: kindInt, bits: uint64(int64(f)), next: next}, nil
		}
		return head{kind: kindUint, bits: uint64(f), next: next}, nil
	}
	return head{kind: kindFloat, bits: math.Float64bits(f), next: next}, nil
}

// fits returns an error if the rest of b can't hold what h announces. So no header
// makes a caller allocate more than the size of the input.
func fits(b []byte, pos int, h head) (head, error) {
	rest := len(b) - h.next
	if h.n > rest || h.kind == kindMap && h.n > rest/2 {
		return head{}, fault(ErrTruncated, pos, "the bytes end inside "+h.kind.String())
	}
	return h, nil
}

func notShortest(pos int, k kind) error {
	if k == kindUint || k == kindInt {
		return fault(ErrNotCanonical, pos, "an integer that is not in its shortest form")
	}
	return fault(ErrNotCanonical, pos, "the length of "+k.String()+" is not in its shortest form")
}
