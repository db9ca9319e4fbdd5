package codec_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/refold/refold/codec"
)

// Bytes from an attacker or a bit flip.

// checkLaws fails if data is decoded into some type in a way that breaks a
// law: other bytes for an accepted value, another verdict on the form, or an
// error that is not the same twice.
func checkLaws(t *testing.T, data []byte, types []reflect.Type) {
	t.Helper()
	form := codec.Check(data)
	for _, typ := range types {
		to := reflect.New(typ)
		err := codec.Unmarshal(data, to.Interface())
		if form != nil && (err == nil || err.Error() != form.Error()) {
			t.Errorf("%s, %x: got error %v, want that of Check: %v", typ, data, err, form)
		}
		if err != nil {
			if again := codec.Unmarshal(data, to.Interface()); again == nil || again.Error() != err.Error() {
				t.Errorf("%s, %x: got error %v, then %v", typ, data, err, again)
			}
			checkLax(t, typ, data, form == nil)
			continue
		}
		if again, err := codec.Marshal(to.Interface()); err != nil || !bytes.Equal(again, data) {
			t.Errorf("%s: %x was taken, but gives %x, %v", typ, data, again, err)
		}
	}
}

// checkLax fails if Decode accepts data that is not canonical, or a value that
// cannot be encoded and decoded again.
func checkLax(t *testing.T, typ reflect.Type, data []byte, canonical bool) {
	t.Helper()
	to := reflect.New(typ)
	if codec.Decode(data, to.Interface()) != nil {
		return
	}
	if !canonical {
		t.Errorf("%s: Decode takes %x, which is not canonical", typ, data)
	}
	again, err := codec.Marshal(to.Interface())
	if err == nil {
		err = codec.Unmarshal(again, reflect.New(typ).Interface())
	}
	if err != nil {
		t.Errorf("%s: Decode takes %x, but then: %v", typ, data, err)
	}
}

// targets are the types into which hostile bytes are decoded.
var targets = []reflect.Type{
	reflect.TypeFor[any](), reflect.TypeFor[codec.Raw](), reflect.TypeFor[codec.Pairs](),
	reflect.TypeFor[scalars](), reflect.TypeFor[optionals](), reflect.TypeFor[mixed](), reflect.TypeFor[event](), reflect.TypeFor[tree](),
	reflect.TypeFor[[]inner](), reflect.TypeFor[map[string]int](), reflect.TypeFor[[]float32](), reflect.TypeFor[*point](),
}

// seeds are valid values of most of the targets.
func seeds(t testing.TB) [][]byte {
	t.Helper()
	var all [][]byte
	for _, v := range []any{
		nil, 7, "text", []any{1, -1, 0.5, true, nil, "é", []byte{1}, map[string]any{"a": 1, "b": []any{}}},
		scalars{Bin: []byte{1}, F32: 0.5, F64: 1e300, I64: -1 << 40, I8: -33, R: codec.RefOf(nil), Raw: codec.Raw{0xa1, 'r'}, S: "é", U16: 300, U64: 1 << 63},
		optionals{Any: 1, B: true, Col: color{1, 2, 3}, F: 1.5, H: codec.Sum(nil), InP: ptr(in(1)), L: []inner{in(0), in(3)}, LS: []string{},
			M: map[string]int{"a": 0, "b": 300}, Pairs: codec.Pairs{{Key: "k", Value: codec.Raw{1}}}, Raw: codec.Raw{0x91, 0xc0}, S: "s", SP: ptr(""),
			Self: &optionals{U: 200}, V: version{1, 2}},
		mixed{Zeta: 1, inline: inline{Middle: 2, Yonder: "y"}, Alpha: []inner{in(1)}, Point: point{3, 1.5}, Free: map[string]any{"k": 1},
			Named: map[label]string{"n": "v"}, Deep: Deep{Beta: codec.Pairs{{Key: "p"}}}},
		event{At: 1, Type: "x", List: []call{{Name: "n", Ref: ptr(codec.RefOf(nil)), Args: map[string]int{"a": 1}}}, V: 1},
		tree{Name: "a", Leaf: &leaf{Size: 1}},
	} {
		data, err := codec.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, data)
	}
	return all
}

// TestMutations: valid bytes with one byte changed, removed at the end or added are
// either refused or the canonical form of another value.
func TestMutations(t *testing.T) {
	t.Parallel()
	for i, data := range seeds(t) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			checkLaws(t, data, targets)
			var takers []reflect.Type
			for _, typ := range targets {
				if codec.Unmarshal(data, reflect.New(typ).Interface()) == nil {
					takers = append(takers, typ)
				}
			}
			for at := range data {
				checkLaws(t, data[:at], takers)
				changed := bytes.Clone(data)
				changes := slices.Clone(starts)
				for bit := range 8 {
					changes = append(changes, data[at]^1<<bit)
				}
				for _, c := range changes {
					changed[at] = c
					checkLaws(t, changed, takers)
				}
			}
			for _, more := range []byte{0x00, 0x80, 0xc0, 0xff} {
				checkLaws(t, append(bytes.Clone(data), more), takers)
			}
		})
	}
}

// TestAllShortInputs: all inputs of up to two bytes, and of three where the third is
// one at which types begin, are either refused or the canonical form of a value.
func TestAllShortInputs(t *testing.T) {
	t.Parallel()
	var any any
	cut := func(data ...byte) bool { // reports whether more bytes may help
		err := codec.Unmarshal(data, &any)
		if err != nil {
			return errors.Is(err, codec.ErrTruncated)
		}
		if again, err := codec.Marshal(any); err != nil || !bytes.Equal(again, data) {
			t.Errorf("%x was taken, but gives %x, %v", data, again, err)
		}
		return false
	}
	if !cut() {
		t.Error("no bytes: want truncated")
	}
	for a := range 256 {
		if !cut(byte(a)) {
			continue
		}
		for b := range 256 {
			if !cut(byte(a), byte(b)) {
				continue
			}
			for _, c := range starts {
				cut(byte(a), byte(b), c)
			}
		}
	}
}

// starts are the bytes at which types begin and end.
var starts = []byte{
	0x00, 0x1f, 0x20, 0x7f, 0x80, 0x81, 0x90, 0x91, 0xa0, 0xa1, 0xbf, 0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc7, 0xca, 0xcb,
	0xcc, 0xcf, 0xd0, 0xd3, 0xd4, 0xd9, 0xdb, 0xdc, 0xdd, 0xde, 0xdf, 0xe0, 0xff,
}

// TestHugeLengths: no reader allocates memory for a header that claims more than the
// input has. It is not parallel, since it measures allocations.
func TestHugeLengths(t *testing.T) { //nolint:paralleltest // measures the whole process
	type wide struct {
		Room [64]uint64 `msgpack:"room,omitempty"`
	}
	inputs := [][]byte{
		unhex(t, "dbffffffff"), unhex(t, "c6ffffffff"), unhex(t, "ddffffffff"), unhex(t, "dfffffffff"),
		unhex(t, "91ddffffffff"), unhex(t, "81a16bdfffffffff"), unhex(t, "91dbffffffff"), unhex(t, "ddffffffff c0*100"), unhex(t, "dd00010000 90*65535"),
	}
	const each = 16 << 10
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	calls := 0
	for _, data := range inputs {
		for _, to := range []any{new(any), new(codec.Raw), new([]any), new([]wide), new(map[string]wide), new([]byte), new(string), new(codec.Pairs)} {
			if err := codec.Unmarshal(data, to); err == nil {
				t.Errorf("%x was taken as %T", data[:5], to)
			}
			calls++
		}
		for _, err := range []error{codec.Check(data), second(codec.Canonicalize(wrap(data[:min(len(data), 64)]))), second(codec.ToJSON(data[:min(len(data), 64)]))} {
			if err == nil {
				t.Errorf("%x was taken", data[:5])
			}
			calls++
		}
	}
	runtime.ReadMemStats(&after)
	// The last input is 64 KiB that fail late; its lists may grow so far.
	if got, limit := after.TotalAlloc-before.TotalAlloc, uint64(calls*each+4<<20); got > limit {
		t.Errorf("%d refusals took %d bytes, want at most %d", calls, got, limit)
	}
}

// TestLongSliceGrowsDuringDecoding: a long list of empty structs within the limit is
// decoded, and its slice grows during the read.
func TestLongSliceGrowsDuringDecoding(t *testing.T) {
	t.Parallel()
	const n = 1 << 16
	data := append([]byte{0xdd, 0, 1, 0, 0}, bytes.Repeat([]byte{0x80}, n)...)
	var got []optionals
	if err := codec.Unmarshal(data, &got); err != nil || len(got) != n {
		t.Errorf("got %d structs, %v; want %d", len(got), err, n)
	}
}

// TestNoAllocations: checking canonical bytes allocates nothing.
func TestNoAllocations(t *testing.T) { //nolint:paralleltest // measures the whole process
	var maps [][]byte
	for _, data := range seeds(t) {
		if codec.IsMap(data) {
			maps = append(maps, data)
		}
	}
	if n := testing.AllocsPerRun(100, func() {
		for _, data := range maps {
			if codec.Check(data) != nil {
				t.Fail()
			}
			if got, err := codec.Canonicalize(data); err != nil || &got[0] != &data[0] {
				t.Fail()
			}
		}
	}); n != 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}

// TestCanonicalizeEntrance: Canonicalize distinguishes JSON, msgpack and other bytes.
func TestCanonicalizeEntrance(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ in, want, fault string }{
		{"{}", "\x80", ""},
		{" \t\r\n{\"a\" : 1}\n", "\x81\xa1a\x01", ""},
		{"\x80", "\x80", ""},
		{"\xde\x00\x00", "\x80", ""},
		{"\xdf\x00\x00\x00\x00", "\x80", ""},
		{"", "", "codec: no bytes where a JSON object or a msgpack map should begin at byte 0"},
		{" ", "", "codec: neither a JSON object nor a msgpack map begins at byte 0"},
		{" \x80", "", "codec: neither a JSON object nor a msgpack map begins at byte 0"},
		{"[]", "", "codec: neither a JSON object nor a msgpack map begins at byte 0"},
		{"\"{}\"", "", "codec: neither a JSON object nor a msgpack map begins at byte 0"},
		{"\x90", "", "codec: neither a JSON object nor a msgpack map begins at byte 0"},
		{"\xc0", "", "codec: neither a JSON object nor a msgpack map begins at byte 0"},
		{"hello", "", "codec: neither a JSON object nor a msgpack map begins at byte 0"},
		{"\xff\xfe{\x00", "", "codec: neither a JSON object nor a msgpack map begins at byte 0"},
		{"{", "", "codec: the JSON text ends where a key should be at byte 1"},
		{"{]", "", "codec: this is not JSON: a key should be at byte 1"},
		{"\x81", "", "codec: the bytes end inside a map at byte 0"},
		{"\x82\xa1a\x01", "", "codec: the bytes end inside a map at byte 0"},
		{"\x81\xa1a\xc1", "", "codec: the reserved byte c1 at byte 3"},
	} {
		got, err := codec.Canonicalize([]byte(test.in))
		if text := fmt.Sprint(err); string(got) != test.want || err == nil && test.fault != "" || err != nil && text != test.fault {
			t.Errorf("%q: got %x, %v; want %x, %s", test.in, got, err, test.want, test.fault)
		}
		if got, want := codec.IsMap(got), test.fault == ""; got != want {
			t.Errorf("%q: IsMap gives %v, want %v", test.in, got, want)
		}
	}
}
