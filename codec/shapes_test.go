package codec_test

import (
	"errors"
	"strings"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/refold/refold/codec"
)

// The Go types that the tests encode. Together they have every kind of field.

// scalars has every scalar, always written.
type scalars struct {
	B   bool       `msgpack:"b"`
	Bin []byte     `msgpack:"bin"`
	F32 float32    `msgpack:"f32"`
	F64 float64    `msgpack:"f64"`
	H   codec.Hash `msgpack:"h"`
	I   int        `msgpack:"i"`
	I16 int16      `msgpack:"i16"`
	I32 int32      `msgpack:"i32"`
	I64 int64      `msgpack:"i64"`
	I8  int8       `msgpack:"i8"`
	R   codec.Ref  `msgpack:"r"`
	Raw codec.Raw  `msgpack:"raw"`
	S   string     `msgpack:"s"`
	U   uint       `msgpack:"u"`
	U16 uint16     `msgpack:"u16"`
	U32 uint32     `msgpack:"u32"`
	U64 uint64     `msgpack:"u64"`
	U8  uint8      `msgpack:"u8"`
}

// optionals has every kind of optional field.
type optionals struct {
	Any   any               `msgpack:"any,omitempty"`
	Arr   [2]int            `msgpack:"arr,omitempty"`
	B     bool              `msgpack:"b,omitempty"`
	Bin   []byte            `msgpack:"bin,omitempty"`
	Col   color             `msgpack:"col,omitempty"`
	F     float64           `msgpack:"f,omitempty"`
	H     codec.Hash        `msgpack:"h,omitempty"`
	HP    *codec.Hash       `msgpack:"hp,omitempty"`
	I     int64             `msgpack:"i,omitempty"`
	In    inner             `msgpack:"in,omitempty"`
	InP   *inner            `msgpack:"inp,omitempty"`
	L     []inner           `msgpack:"l,omitempty"`
	LS    []string          `msgpack:"ls,omitempty"`
	M     map[string]int    `msgpack:"m,omitempty"`
	MP    map[string]*inner `msgpack:"mp,omitempty"`
	Pairs codec.Pairs       `msgpack:"pairs,omitempty"`
	R     codec.Ref         `msgpack:"r,omitempty"`
	RP    *codec.Ref        `msgpack:"rp,omitempty"`
	Raw   codec.Raw         `msgpack:"raw,omitempty"`
	S     string            `msgpack:"s,omitempty"`
	Self  *optionals        `msgpack:"self,omitempty"`
	SP    *string           `msgpack:"sp,omitempty"`
	U     uint8             `msgpack:"u,omitempty"`
	V     version           `msgpack:"v,omitempty"`
}

// inner is a struct with both kinds of field, and without an IsZero method.
type inner struct {
	A    int      `msgpack:"a,omitempty"`
	B    string   `msgpack:"b"`
	List []string `msgpack:"list"`
}

// mixed has fields out of order, embedded structs, a struct as an array, and
// fields that are not encoded.
type mixed struct {
	Zeta   int `msgpack:"zeta"`
	inline     // exported fields of a type that is not
	Alpha  []inner
	Point  point            `msgpack:"point"`
	Points [2]point         `msgpack:"points"`
	Free   map[string]any   `msgpack:"free"`
	Named  map[label]string `msgpack:"named"`
	Skip   int              `msgpack:"-"`
	hidden int
	Deep   `msgpack:",inline"`
}

type label string

type inline struct {
	Middle uint16 `msgpack:"middle"`
	Yonder string `msgpack:"yonder,omitempty"`
}

// Deep is inlined by its option.
type Deep struct {
	Beta codec.Pairs `msgpack:"beta"`
}

// point is an array.
type point [2]float64

// color is text by its own methods.
type color struct{ r, g, b byte }

var errColor = errors.New("a color is # and three hex digits")

const hexDigits = "0123456789abcdef"

func (c color) MarshalText() ([]byte, error) {
	return []byte{'#', hexDigits[c.r], hexDigits[c.g], hexDigits[c.b]}, nil
}

// UnmarshalText accepts upper case too, so it reads more than one form.
func (c *color) UnmarshalText(text []byte) error {
	if len(text) != 4 || text[0] != '#' {
		return errColor
	}
	for i, part := range []*byte{&c.r, &c.g, &c.b} {
		at := strings.IndexByte(hexDigits, text[i+1]|0x20)
		if at < 0 {
			return errColor
		}
		*part = byte(at)
	}
	return nil
}

// version is an array of two, absent if it is zero.
type version [2]int

func (v version) IsZero() bool { return v[0] == 0 }

// word implements an encoder interface of the library, which codec refuses.
type word string

func (w word) EncodeMsgpack(enc *msgpack.Encoder) error { return enc.EncodeString(string(w)) }

// ptr returns a pointer to v.
func ptr[T any](v T) *T { return &v }
