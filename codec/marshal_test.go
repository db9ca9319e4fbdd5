package codec_test

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/refold/refold/codec"
)

// TestMarshal: the encodings of Go values, shown as JSON.
func TestMarshal(t *testing.T) {
	t.Parallel()
	hash := codec.Sum([]byte("x"))
	type empties struct {
		L []string       `msgpack:"l"`
		M map[string]int `msgpack:"m"`
		P *int           `msgpack:"p"`
		Q codec.Pairs    `msgpack:"q"`
		R codec.Raw      `msgpack:"r"`
		X any            `msgpack:"x"`
	}
	for _, test := range []struct {
		name string
		v    any
		json string
	}{
		{"nil", nil, `null`},
		{"nil pointer", (*inner)(nil), `null`},
		{"pointer", &inner{B: "b"}, `{"b":"b","list":[]}`},
		{"absent", optionals{}, `{}`},
		{"absent by IsZero", optionals{V: version{0, 3}}, `{}`},
		{"by IsZero not absent", optionals{V: version{1}}, `{"v":[1,0]}`},
		{"empty lists are there", optionals{L: []inner{}, LS: []string{}, M: map[string]int{}, Pairs: codec.Pairs{}, Bin: []byte{}},
			`{"bin":"","l":[],"ls":[],"m":{},"pairs":{}}`},
		{"pointers to zero values are there", optionals{HP: &codec.Hash{}, InP: &inner{}, SP: ptr(""), Self: &optionals{}},
			`{"hp":"` + strings.Repeat("0", 64) + `","inp":{"b":"","list":[]},"self":{},"sp":""}`},
		{"a struct in which something is set", optionals{In: inner{List: []string{}}}, `{"in":{"b":"","list":[]}}`},
		{"an interface that holds a zero", optionals{Any: 0}, `{"any":0}`},
		{"an interface that holds a nil pointer", optionals{Any: (*int)(nil)}, `{}`},
		{"an empty Raw", optionals{Raw: codec.Raw{}}, `{}`},
		{"negative zero", optionals{F: math.Copysign(0, -1)}, `{}`},
		{"Raw", optionals{Raw: codec.Raw{0x91, 0xc0}, H: hash, R: codec.Ref{Hash: hash}},
			`{"h":"` + hash.String() + `","r":"sha256-` + hash.String() + `","raw":[null]}`},
		{"always written", empties{}, `{"l":[],"m":{},"p":null,"q":{},"r":null,"x":null}`},
		{"not in order, inlined, as array", mixed{
			Zeta: 1, inline: inline{Middle: 2}, Point: point{3, 1.5}, Skip: 4, hidden: 5,
			Free: map[string]any{"b": []any{nil, true, 2.0, "s"}, "a": map[string]any{}}, Named: map[label]string{"z": "", "y": "1"},
			Deep: Deep{Beta: codec.Pairs{{Key: "k", Value: codec.Raw{0x07}}, {Key: "n"}}},
		}, `{"Alpha":[],"beta":{"k":7,"n":null},"free":{"a":{},"b":[null,true,2,"s"]},"middle":2,"named":{"y":"1","z":""},` +
			`"point":[3,1.5],"points":[[0,0],[0,0]],"zeta":1}`},
		{"text by method", []color{{1, 2, 15}}, `["#12f"]`},
		{"floats", []float32{1, 0.5, -2}, `[1,0.5,-2]`},
		{"interfaces", []any{int8(-3), uint16(300), float32(0.25), "s", []string{"t"}, inner{}, &inner{}},
			`[-3,300,0.25,"s",["t"],{"b":"","list":[]},{"b":"","list":[]}]`},
	} {
		data, err := codec.Marshal(test.v)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if err := codec.Check(data); err != nil {
			t.Errorf("%s: %x is not canonical: %v", test.name, data, err)
		}
		if got, err := codec.ToJSON(data); err != nil || string(got) != test.json {
			t.Errorf("%s: got %s, %v; want\n\t%s", test.name, got, err, test.json)
		}
		wantTaken(t, test.name, test.v, data)
	}
}

// wantTaken fails unless Unmarshal decodes data into a variable of v's type, which
// encodes to data again.
func wantTaken(t *testing.T, name string, v any, data []byte) {
	t.Helper()
	if v == nil {
		return
	}
	typ := reflect.TypeOf(v)
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	to := reflect.New(typ)
	if reflect.ValueOf(v).Kind() == reflect.Pointer && reflect.ValueOf(v).IsNil() {
		to = reflect.New(reflect.TypeOf(v))
	}
	if err := codec.Unmarshal(data, to.Interface()); err != nil {
		t.Errorf("%s: Unmarshal of what Marshal gave: %v", name, err)
		return
	}
	again, err := codec.Marshal(to.Elem().Interface())
	if err != nil || !bytes.Equal(again, data) {
		t.Errorf("%s: marshaled again: got %x, %v; want %x", name, again, err, data)
	}
}

// in returns an inner with an empty list, as Unmarshal returns it.
func in(a int) inner { return inner{A: a, List: []string{}} }

// TestMarshalWide: structs and maps with more entries than a short header
// holds.
func TestMarshalWide(t *testing.T) {
	t.Parallel()
	full := optionals{
		Any: "a", Arr: [2]int{0, 1}, B: true, Bin: []byte{1}, Col: color{1, 0, 0}, F: 0.5, H: codec.Sum(nil), HP: &codec.Hash{}, I: -1,
		In: in(1), InP: ptr(in(0)), L: []inner{in(0), in(2)}, LS: []string{""}, M: map[string]int{"": 0},
		MP: map[string]*inner{"n": nil, "v": ptr(in(3))}, Pairs: codec.Pairs{{Key: "", Value: codec.Raw{0xc0}}}, R: codec.RefOf(nil), RP: &codec.Ref{},
		Raw: codec.Raw{0xc0}, S: "s", Self: &optionals{S: "inside"}, SP: ptr("sp"), U: 255, V: version{1, 2},
	}
	data, err := codec.Marshal(full)
	if err != nil {
		t.Fatal(err)
	}
	if want := []byte{0xde, 0, byte(reflect.TypeFor[optionals]().NumField())}; !bytes.HasPrefix(data, want) {
		t.Errorf("got %x, want it to begin with %x", data, want)
	}
	var got optionals
	if err := codec.Unmarshal(data, &got); err != nil || !reflect.DeepEqual(got, full) {
		t.Errorf("got %+v, %v; want %+v", got, err, full)
	}
	full.Self, full.Any, full.B = nil, nil, false
	for _, drop := range []func(){func() { full.S = "" }, func() { full.U = 0 }, func() { full.I = 0 }, func() { full.SP = nil },
		func() { full.RP = nil }, func() { full.LS = nil }, func() { full.HP = nil }} {
		drop()
		data, err := codec.Marshal(full)
		if err != nil || codec.Check(data) != nil {
			t.Errorf("got %x, %v; want canonical bytes", data, err)
		}
		wantTaken(t, "with less", full, data)
	}
}

// TestMarshalRefuses: values without a canonical form are refused, with an error that
// has their position.
func TestMarshalRefuses(t *testing.T) {
	t.Parallel()
	type loop struct{ Next *loop }
	round := &loop{}
	round.Next = round
	for _, test := range []struct {
		name string
		v    any
		kind error
		text string
	}{
		{"text", inner{B: "\xff"}, codec.ErrUTF8, "codec: text that is not valid UTF-8 at byte 3, in b"},
		{"key", map[string]int{"\xff": 1}, codec.ErrUTF8, "codec: text that is not valid UTF-8 at byte 1"},
		{"NaN", optionals{F: math.NaN()}, codec.ErrNumber, "codec: a float that is no finite number at byte 3, in f"},
		{"infinity", []float32{0, float32(math.Inf(-1))}, codec.ErrNumber, "codec: a float that is no finite number at byte 2, in [1]"},
		{"Raw spelled long", optionals{Raw: codec.Raw{0xcc, 0}}, codec.ErrNotCanonical,
			"codec: an integer that is not in its shortest form at byte 5, in raw"},
		{"Raw of two values", optionals{Raw: codec.Raw{0, 0}}, codec.ErrTrailing, "codec: bytes after the end of the value, beginning at byte 6, in raw"},
		{"Raw cut off", optionals{Raw: codec.Raw{0x91}}, codec.ErrTruncated, "codec: the bytes end inside an array at byte 5, in raw"},
		{"Pairs out of order", codec.Pairs{{Key: "b"}, {Key: "a"}}, codec.ErrNotCanonical, `codec: the key "a" stands after "b" at byte 4`},
		{"Pairs twice", codec.Pairs{{Key: "b"}, {Key: "b"}}, codec.ErrDuplicateKey, `codec: the key "b" stands twice in one map at byte 4`},
		{"a type that writes itself", []word{"a"}, codec.ErrGoType,
			"codec: the Go type codec_test.word has no encoding: it writes itself by an interface of the msgpack library at byte 0"},
		{"pointers in a circle", round, codec.ErrDepth, ""},
		{"pointer to nil", optionals{Self: nil, MP: map[string]*inner{}, Any: ptr(codec.Raw{})}, codec.ErrGoType, ""},
		{"options for the whole struct", struct {
			_msgpack struct{} `msgpack:",as_array"`
		}{}, codec.ErrGoType, ""},
		{"channel", struct{ C chan int }{}, codec.ErrGoType, "codec: the Go type chan int has no encoding: there is no encoding for its kind at byte 0, in C"},
		{"function", func() {}, codec.ErrGoType, ""},
		{"complex", optionals{Any: 1i}, codec.ErrGoType, ""},
		{"int keys", map[int]int{}, codec.ErrGoType, ""},
		{"pointer to pointer", struct{ P **int }{}, codec.ErrGoType, ""},
		{"pointer to interface", struct{ P *any }{}, codec.ErrGoType, ""},
		{"interface with methods", struct{ E error }{}, codec.ErrGoType, ""},
		{"two fields of one name", struct {
			A int `msgpack:"x"`
			B int `msgpack:"x"`
		}{}, codec.ErrGoType, ""},
		{"interned", struct {
			A string `msgpack:"a,intern"`
		}{}, codec.ErrGoType, ""},
		{"alias", struct {
			A string `msgpack:"a,alias:b"`
		}{}, codec.ErrGoType, ""},
		{"name that is not UTF-8", struct {
			A string `msgpack:"\xff"`
		}{}, codec.ErrGoType, ""},
		{"embedded pointer", struct{ *Deep }{}, codec.ErrGoType, ""},
	} {
		for range 2 {
			data, err := codec.Marshal(test.v)
			if !errors.Is(err, test.kind) || test.text != "" && err.Error() != test.text {
				t.Errorf("%s: got error\n\t%v, want\n\t%s, which is %v", test.name, err, test.text, test.kind)
			}
			if data != nil {
				t.Errorf("%s: a failed Marshal gives %x", test.name, data)
			}
		}
	}
}

// TestMarshalDepth: DepthMax containers are encoded, one more is refused.
func TestMarshalDepth(t *testing.T) {
	t.Parallel()
	var v any = 1
	for range codec.DepthMax {
		v = []any{v}
	}
	data, err := codec.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	wantTaken(t, "deep", v, data)
	if _, err := codec.Marshal([]any{v}); !errors.Is(err, codec.ErrDepth) {
		t.Errorf("got error %v, want %v", err, codec.ErrDepth)
	}
	raw := codec.Raw(data)
	if got, err := codec.Marshal(raw); err != nil || !bytes.Equal(got, data) {
		t.Errorf("a deep Raw: got %x, %v", got, err)
	}
	if _, err := codec.Marshal(map[string]codec.Raw{"k": raw}); !errors.Is(err, codec.ErrDepth) {
		t.Errorf("a deep Raw in a map: got error %v, want %v", err, codec.ErrDepth)
	}
	var pairs codec.Pairs
	if err := codec.Unmarshal(wrap(data), &pairs); !errors.Is(err, codec.ErrDepth) {
		t.Errorf("Pairs: got error %v, want %v", err, codec.ErrDepth)
	}
}

// tree and leaf contain each other, one by pointer, one inlined.
type tree struct {
	Leaf *leaf  `msgpack:"leaf,omitempty"`
	Name string `msgpack:"name"`
}

type leaf struct {
	tree
	Size int `msgpack:"size"`
}

// TestMarshalRecursive: types that contain themselves.
func TestMarshalRecursive(t *testing.T) {
	t.Parallel()
	v := tree{Leaf: &leaf{tree: tree{Name: "b", Leaf: &leaf{Size: 2}}, Size: 1}, Name: "a"}
	data, err := codec.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	wantTaken(t, "tree", v, data)
	wantTaken(t, "leaf", *v.Leaf, first(codec.Marshal(v.Leaf)))
	const want = `{"leaf":{"leaf":{"name":"","size":2},"name":"b","size":1},"name":"a"}`
	if got, err := codec.ToJSON(data); err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

// TestConcurrent: goroutines that encode a new type at the same time all get its
// encoding.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	type fresh struct {
		B string `msgpack:"b"`
		A *inner `msgpack:"a,omitempty"`
	}
	v := fresh{B: "b", A: &inner{A: 1}}
	const want = `{"a":{"a":1,"b":"","list":[]},"b":"b"}`
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 100 {
				data, err := codec.Marshal(v)
				if err != nil {
					t.Error(err)
					return
				}
				var got fresh
				if err := codec.Unmarshal(data, &got); err != nil {
					t.Error(err)
					return
				}
				if text, err := codec.ToJSON(data); err != nil || string(text) != want {
					t.Errorf("got %s, %v; want %s", text, err, want)
					return
				}
			}
		})
	}
	all.Wait()
}
