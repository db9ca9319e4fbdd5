package codec_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
	"pgregory.net/rapid"

	"github.com/refold/refold/codec"
)

// The laws of doc.go on random values. The oracle for the canonical form is
// node, a value with its own writer, which is independent of the package.

// node is a value: nil, bool, uint64, a negative int64, float64, string,
// []byte, []node, or []entry.
type node any

type entry struct {
	key   string
	value node
}

// anyNode draws a value at most depth deep. Without bin there are no binaries.
func anyNode(depth int, bin bool) *rapid.Generator[node] {
	kinds := []*rapid.Generator[node]{
		rapid.Just(node(nil)),
		rapid.Map(rapid.Bool(), func(v bool) node { return v }),
		rapid.Map(anyInt(), func(v int64) node {
			if v < 0 {
				return v
			}
			return uint64(v)
		}),
		rapid.Map(rapid.Uint64(), func(v uint64) node { return v }),
		rapid.Map(anyFloat(), func(v float64) node { return v }),
		rapid.Map(anyText(), func(v string) node { return v }),
	}
	if bin {
		kinds = append(kinds, rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 300), func(v []byte) node { return v }))
	}
	if depth > 0 {
		inner := rapid.Deferred(func() *rapid.Generator[node] { return anyNode(depth-1, bin) })
		kinds = append(kinds,
			rapid.Map(rapid.SliceOfN(inner, 0, 20), func(v []node) node { return v }),
			rapid.Map(rapid.MapOfN(anyText(), inner, 0, 20), func(m map[string]node) node {
				entries := []entry{}
				for key, value := range m {
					entries = append(entries, entry{key, value})
				}
				slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
				return entries
			}))
	}
	return rapid.OneOf(kinds...)
}

// anyInt draws integers near the borders of every width.
func anyInt() *rapid.Generator[int64] {
	return rapid.Custom(func(t *rapid.T) int64 {
		return int64(uint64(1)<<rapid.IntRange(0, 63).Draw(t, "bit"))*rapid.Int64Range(-1, 1).Draw(t, "sign") +
			rapid.Int64Range(-2, 2).Draw(t, "near")
	})
}

// anyFloat draws finite floats, including integral ones.
func anyFloat() *rapid.Generator[float64] {
	return rapid.OneOf(rapid.Float64(), rapid.Map(anyInt(), func(i int64) float64 { return float64(i) }), rapid.Just(math.Copysign(0, -1)))
}

func anyText() *rapid.Generator[string] {
	return rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z_]{0,3}`), rapid.StringOfN(rapid.Rune(), 20, 300, -1))
}

// canonical writes n by the rules of doc.go, as simply as possible.
func canonical(out []byte, n node) []byte {
	switch v := n.(type) {
	case nil:
		return append(out, 0xc0)
	case bool:
		if v {
			return append(out, 0xc3)
		}
		return append(out, 0xc2)
	case uint64:
		switch {
		case v < 128:
			return append(out, byte(v))
		case v < 256:
			return append(out, 0xcc, byte(v))
		case v < 65536:
			return binary.BigEndian.AppendUint16(append(out, 0xcd), uint16(v))
		case v < 1<<32:
			return binary.BigEndian.AppendUint32(append(out, 0xce), uint32(v))
		}
		return binary.BigEndian.AppendUint64(append(out, 0xcf), v)
	case int64:
		switch {
		case v >= -32:
			return append(out, byte(v))
		case v >= -128:
			return append(out, 0xd0, byte(v))
		case v >= -32768:
			return binary.BigEndian.AppendUint16(append(out, 0xd1), uint16(v))
		case v >= -1<<31:
			return binary.BigEndian.AppendUint32(append(out, 0xd2), uint32(v))
		}
		return binary.BigEndian.AppendUint64(append(out, 0xd3), uint64(v))
	case float64:
		if math.Floor(v) != v || v > 1<<53 || v < -1<<53 {
			return binary.BigEndian.AppendUint64(append(out, 0xcb), math.Float64bits(v))
		}
		if v < 0 {
			return canonical(out, int64(v))
		}
		return canonical(out, uint64(v))
	case string:
		return append(length(out, len(v), 32, 0xa0, 0xd9, 0), v...)
	case []byte:
		return append(length(out, len(v), 0, 0, 0xc4, 0), v...)
	case []node:
		out = length(out, len(v), 16, 0x90, 0xdc-1, 0)
		for _, part := range v {
			out = canonical(out, part)
		}
		return out
	}
	entries := n.([]entry)
	out = length(out, len(entries), 16, 0x80, 0xde-1, 0)
	for _, e := range entries {
		out = canonical(canonical(out, e.key), e.value)
	}
	return out
}

// length writes a length: below short in the code itself, else in one, two or four
// bytes after code8 and its successors. extra steps make it longer than necessary.
// Containers have no code8: theirs is one less than their first code.
func length(out []byte, n, short int, shortCode, code8 byte, extra int) []byte {
	width := 0 // short, 8, 16, 32 bits
	container := code8 == 0xdb || code8 == 0xdd
	switch {
	case n < short:
	case n < 256 && !container:
		width = 1
	case n < 65536:
		width = 2
	default:
		width = 3
	}
	width += extra
	if container && width == 1 {
		width = 2
	}
	switch min(width, 3) {
	case 0:
		return append(out, shortCode|byte(n))
	case 1:
		return append(out, code8, byte(n))
	case 2:
		return binary.BigEndian.AppendUint16(append(out, code8+1), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(out, code8+2), uint32(n))
}

// misspelled writes n in any spelling that another encoder may use.
func misspelled(t *rapid.T, out []byte, n node) []byte {
	extra := rapid.IntRange(0, 2).Draw(t, "extra")
	switch v := n.(type) {
	case uint64:
		return misspelledInt(out, v, v>>63 == 0, false, extra)
	case int64:
		return misspelledInt(out, uint64(v), true, true, extra)
	case float64:
		if f := float32(v); float64(f) == v && extra > 0 {
			return binary.BigEndian.AppendUint32(append(out, 0xca), math.Float32bits(f))
		}
		return binary.BigEndian.AppendUint64(append(out, 0xcb), math.Float64bits(v))
	case string:
		return append(length(out, len(v), 32, 0xa0, 0xd9, extra), v...)
	case []byte:
		return append(length(out, len(v), 0, 0, 0xc4, extra), v...)
	case []node:
		out = length(out, len(v), 16, 0x90, 0xdc-1, extra)
		for _, part := range v {
			out = misspelled(t, out, part)
		}
		return out
	case []entry:
		out = length(out, len(v), 16, 0x80, 0xde-1, extra)
		for _, e := range rapid.Permutation(v).Draw(t, "order") {
			out = misspelled(t, misspelled(t, out, e.key), e.value)
		}
		return out
	}
	return canonical(out, n)
}

// misspelledInt writes the integer v with more bytes than it needs, and in a
// signed form if extra is odd and that can hold it.
func misspelledInt(out []byte, v uint64, signable, negative bool, extra int) []byte {
	signed := negative || signable && extra%2 == 1
	bits := 64
	for _, less := range []int{32, 16, 8} {
		u := v
		if signed {
			if int64(v) != int64(v)<<(64-less)>>(64-less) {
				break
			}
		} else if u>>less != 0 {
			break
		}
		bits = less
	}
	if extra > 0 && bits < 64 {
		bits *= 2
	}
	code := byte(0xcc)
	if signed {
		code = 0xd0
	}
	switch bits {
	case 8:
		return append(out, code, byte(v))
	case 16:
		return binary.BigEndian.AppendUint16(append(out, code+1), uint16(v))
	case 32:
		return binary.BigEndian.AppendUint32(append(out, code+2), uint32(v))
	}
	return binary.BigEndian.AppendUint64(append(out, code+3), v)
}

// TestPropertySpellings: Canonicalize turns every spelling into the same bytes, which
// are canonical and which it returns unchanged; and the library reads them.
func TestPropertySpellings(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := anyNode(3, true).Draw(t, "value")
		want := canonical(nil, n)
		if err := codec.Check(want); err != nil {
			t.Fatalf("Check(%x): %v", want, err)
		}
		other := misspelled(t, nil, n)
		got, err := codec.Canonicalize(wrap(other))
		if err != nil || !bytes.Equal(got, wrap(want)) {
			t.Fatalf("Canonicalize(%x): got %x, %v; want %x", wrap(other), got, err, wrap(want))
		}
		if again, err := codec.Canonicalize(got); err != nil || &again[0] != &got[0] || len(again) != len(got) {
			t.Fatalf("Canonicalize of canonical bytes: got %x, %v; want the same slice", again, err)
		}
		if !bytes.Equal(other, want) {
			if err := codec.Check(other); err == nil {
				t.Fatalf("Check takes %x, want only %x", other, want)
			}
		}
		var v, w any
		if err := codec.Unmarshal(want, &v); err != nil {
			t.Fatal(err)
		}
		if again, err := codec.Marshal(v); err != nil || !bytes.Equal(again, want) {
			t.Fatalf("Marshal(%v): got %x, %v; want %x", v, again, err, want)
		}
		if err := msgpack.Unmarshal(want, &w); err != nil {
			t.Fatalf("the library does not read %x: %v", want, err)
		}
		if again, err := codec.Marshal(w); err != nil || !bytes.Equal(again, want) {
			t.Fatalf("the library reads %x as %v, which gives %x, %v", want, w, again, err)
		}
	})
}

// TestPropertyJSON: a value without binaries survives a round trip through JSON.
func TestPropertyJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := canonical(nil, anyNode(3, false).Draw(t, "value"))
		for _, show := range []func([]byte) ([]byte, error){codec.ToJSON, codec.ToJSONIndent} {
			text, err := show(want)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := codec.FromJSON(text); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%s: got %x, %v; want %x", text, got, err, want)
			}
		}
	})
}

func anyInner(t *rapid.T, label string) inner {
	return inner{
		A:    rapid.IntRange(-1, 1).Draw(t, label+"a"),
		B:    anyText().Draw(t, label+"b"),
		List: rapid.SliceOfN(anyText(), 0, 2).Draw(t, label+"list"),
	}
}

// maybe draws from g, or nothing.
func maybe[T any](t *rapid.T, label string, g *rapid.Generator[T]) (v T) {
	if rapid.Bool().Draw(t, label+"?") {
		v = g.Draw(t, label)
	}
	return v
}

func anyRaw() *rapid.Generator[codec.Raw] {
	return rapid.Map(anyNode(1, true), func(n node) codec.Raw { return canonical(nil, n) })
}

func anyHash(t *rapid.T, label string) (h codec.Hash) {
	h[31] = rapid.ByteRange(0, 1).Draw(t, label)
	return h
}

// anyOptionals draws a struct in which each field is zero half of the time.
func anyOptionals(t *rapid.T, label string, depth int) optionals {
	small := rapid.IntRange(-1, 1)
	ins := rapid.Custom(func(t *rapid.T) inner { return anyInner(t, "in") })
	v := optionals{
		Arr: [2]int{small.Draw(t, "arr0"), small.Draw(t, "arr1")},
		B:   rapid.Bool().Draw(t, label+"b"),
		Bin: maybe(t, "bin", rapid.SliceOfN(rapid.Byte(), 0, 3)),
		Col: color{r: byte(rapid.IntRange(0, 1).Draw(t, "col"))},
		F:   maybe(t, "f", anyFloat()),
		H:   anyHash(t, "h"),
		I:   maybe(t, "i", anyInt()),
		In:  maybe(t, "in", ins),
		InP: maybe(t, "inp", rapid.Ptr(ins, true)),
		L:   maybe(t, "l", rapid.SliceOfN(ins, 0, 3)),
		LS:  maybe(t, "ls", rapid.SliceOfN(anyText(), 0, 20)),
		M:   maybe(t, "m", rapid.MapOfN(anyText(), rapid.Int(), 0, 20)),
		MP:  maybe(t, "mp", rapid.MapOfN(anyText(), rapid.Ptr(ins, true), 0, 3)),
		R:   codec.Ref{Hash: anyHash(t, "r")},
		Raw: maybe(t, "raw", anyRaw()),
		S:   maybe(t, "s", anyText()),
		SP:  maybe(t, "sp", rapid.Ptr(anyText(), true)),
		U:   rapid.ByteRange(0, 1).Draw(t, "u"),
		V:   version{small.Draw(t, "major"), small.Draw(t, "minor")},
	}
	if rapid.Bool().Draw(t, "any?") {
		v.Any = rapid.SampledFrom([]any{0, "", []string{}, (*int)(nil), inner{}, true, codec.Raw{0xc0}}).Draw(t, "any")
	}
	if rapid.Bool().Draw(t, "hp?") {
		v.HP, v.RP = ptr(anyHash(t, "hp")), ptr(codec.Ref{Hash: anyHash(t, "rp")})
	}
	if rapid.Bool().Draw(t, "pairs?") {
		v.Pairs = codec.Pairs{}
		keys := rapid.SliceOfNDistinct(anyText(), 0, 3, rapid.ID[string]).Draw(t, "keys")
		slices.Sort(keys)
		for _, key := range keys {
			v.Pairs = append(v.Pairs, codec.Pair{Key: key, Value: maybe(t, "value", anyRaw())})
		}
	}
	if depth > 0 && rapid.Bool().Draw(t, "self?") {
		v.Self = ptr(anyOptionals(t, "self", depth-1))
	}
	return v
}

// TestPropertyStructs: the result of Marshal is canonical, Unmarshal accepts it, and
// the decoded value encodes to the same bytes.
func TestPropertyStructs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := anyOptionals(t, "", 2)
		data, err := codec.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := codec.Check(data); err != nil {
			t.Fatalf("%x: %v", data, err)
		}
		var got optionals
		if err := codec.Unmarshal(data, &got); err != nil {
			t.Fatalf("%x: %v", data, err)
		}
		if again, err := codec.Marshal(got); err != nil || !bytes.Equal(again, data) {
			t.Fatalf("got %x, %v; want %x", again, err, data)
		}
		var lax optionals
		if err := codec.Decode(data, &lax); err != nil || !reflect.DeepEqual(lax, got) {
			t.Fatalf("Decode gives %+v, %v; want %+v", lax, err, got)
		}
	})
}

// TestPropertyLibrary: the library's encoder writes the same bytes for a struct whose
// fields are declared in order and always written.
func TestPropertyLibrary(t *testing.T) {
	t.Parallel()
	msgpack.Register(codec.Hash{}, func(enc *msgpack.Encoder, v reflect.Value) error { return enc.EncodeBytes(v.Bytes()) }, nil)
	msgpack.Register(codec.Ref{}, func(enc *msgpack.Encoder, v reflect.Value) error {
		return enc.EncodeString(v.Interface().(codec.Ref).String())
	}, nil)
	rapid.Check(t, func(t *rapid.T) {
		v := scalars{
			B: rapid.Bool().Draw(t, "b"), Bin: rapid.SliceOfN(rapid.Byte(), 1, 300).Draw(t, "bin"),
			F32: rapid.Float32Range(-1000, 1000).Draw(t, "f32"), F64: rapid.Float64Range(-1e15, 1e15).Draw(t, "f64"),
			H: anyHash(t, "h"), R: codec.Ref{Hash: anyHash(t, "r")}, Raw: anyRaw().Draw(t, "raw"), S: anyText().Draw(t, "s"),
			I: int(anyInt().Draw(t, "i")), I64: anyInt().Draw(t, "i64"), I32: rapid.Int32().Draw(t, "i32"), I16: rapid.Int16().Draw(t, "i16"),
			I8: rapid.Int8().Draw(t, "i8"), U: rapid.Uint().Draw(t, "u"), U64: rapid.Uint64().Draw(t, "u64"),
			U32: rapid.Uint32().Draw(t, "u32"), U16: rapid.Uint16().Draw(t, "u16"), U8: rapid.Uint8().Draw(t, "u8"),
		}
		got, err := codec.Marshal(&v)
		if err != nil {
			t.Fatal(err)
		}
		var want bytes.Buffer
		enc := msgpack.NewEncoder(&want)
		enc.UseCompactInts(true)
		enc.UseCompactFloats(true)
		if err := enc.Encode(&v); err != nil {
			t.Fatal(err)
		}
		// The library widens no float 32.
		if i := strings.Index(want.String(), "\xa3f32\xca"); i >= 0 {
			wide := binary.BigEndian.AppendUint64([]byte{0xcb}, math.Float64bits(float64(v.F32)))
			want = *bytes.NewBuffer(slices.Concat(want.Bytes()[:i+4], wide, want.Bytes()[i+9:]))
		}
		if !bytes.Equal(got, want.Bytes()) {
			t.Fatalf("got\n%x, the library\n%x", got, want.Bytes())
		}
		var back scalars
		if err := codec.Unmarshal(got, &back); err != nil || !reflect.DeepEqual(back, v) {
			t.Fatalf("got %+v, %v; want %+v", back, err, v)
		}
	})
}
