package codec_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/refold/refold/codec"
)

// event is the struct of the tests of errors.
type event struct {
	At   int64      `msgpack:"at,omitempty"`
	Data codec.Raw  `msgpack:"data,omitempty"`
	List []call     `msgpack:"list,omitempty"`
	Type string     `msgpack:"type"`
	Used codec.Hash `msgpack:"used,omitempty"`
	V    uint8      `msgpack:"v,omitempty"`
}

type call struct {
	Name  string         `msgpack:"name"`
	Args  map[string]int `msgpack:"args,omitempty"`
	Ref   *codec.Ref     `msgpack:"ref,omitempty"`
	Kind  color          `msgpack:"kind,omitempty"`
	Since version        `msgpack:"since,omitempty"`
}

// TestUnmarshalRefuses: a value that does not fit the struct is refused with a kind and
// a text. The text is fixed here, byte for byte, because it may be stored.
func TestUnmarshalRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		json string
		kind error
		text string
	}{
		{`{"type":"x","typo":1}`, codec.ErrUnknownField, `codec: the unknown field "typo" (did you mean "type"?) at byte 8`},
		{`{"bogus":1}`, codec.ErrUnknownField, `codec: the unknown field "bogus" at byte 1`},
		{`{"at":1,"bogus":1,"type":""}`, codec.ErrUnknownField, `codec: the unknown field "bogus" at byte 5`},
		{`{"type":"x","` + strings.Repeat("é", 40) + `":1}`, codec.ErrUnknownField,
			`codec: the unknown field "` + strings.Repeat(`\u00e9`, 16) + `\u2026" at byte 8`},
		{`{}`, codec.ErrMissingField, `codec: the field "type" is missing from the map at byte 0`},
		{`{"v":1}`, codec.ErrMissingField, `codec: the field "type" is missing from the map at byte 0`},
		{`{"list":[{"name":"a"},{}],"type":"x"}`, codec.ErrMissingField,
			`codec: the field "name" is missing from the map at byte 15, in list[1]`},
		{`{"at":0,"type":"x"}`, codec.ErrNotCanonical,
			`codec: the zero value of an optional field, which is left out, at byte 4, in at`},
		{`{"at":"soon","type":"x"}`, codec.ErrMismatch, `codec: this is text where an integer should be, at byte 4, in at`},
		{`{"at":1.5,"type":"x"}`, codec.ErrMismatch, `codec: this is a float where an integer should be, at byte 4, in at`},
		{`{"at":9223372036854775808,"type":"x"}`, codec.ErrMismatch, `codec: a number that does not fit at byte 4, in at`},
		{`{"type":"x","v":256}`, codec.ErrMismatch, `codec: a number that does not fit at byte 10, in v`},
		{`{"type":"x","v":-1}`, codec.ErrMismatch, `codec: a number that does not fit at byte 10, in v`},
		{`{"type":null}`, codec.ErrMismatch, `codec: this is nil where text should be, at byte 6, in type`},
		{`{"type":["x"]}`, codec.ErrMismatch, `codec: this is an array where text should be, at byte 6, in type`},
		{`{"list":null,"type":"x"}`, codec.ErrMismatch, `codec: this is nil where an array should be, at byte 6, in list`},
		{`{"list":{},"type":"x"}`, codec.ErrMismatch, `codec: this is a map where an array should be, at byte 6, in list`},
		{`{"list":[[]],"type":"x"}`, codec.ErrMismatch, `codec: this is an array where a map should be, at byte 7, in list[0]`},
		{`{"list":[{"args":{"a":1,"b":true},"name":""}],"type":"x"}`, codec.ErrMismatch,
			`codec: this is a boolean where an integer should be, at byte 19, in list[0].args.b`},
		{`{"list":[{"name":"","ref":"sha256-12"}],"type":"x"}`, codec.ErrMismatch,
			`codec: text that is not of the form it should have here at byte 18, in list[0].ref`},
		{`{"list":[{"kind":"red","name":""}],"type":"x"}`, codec.ErrMismatch,
			`codec: text that is not of the form it should have here at byte 13, in list[0].kind`},
		{`{"list":[{"kind":"#AbC","name":""}],"type":"x"}`, codec.ErrNotCanonical,
			`codec: text that is not in the one form of its value at byte 13, in list[0].kind`},
		{`{"list":[{"name":"","since":[1]}],"type":"x"}`, codec.ErrMismatch,
			`codec: an array of another length than this one has at byte 20, in list[0].since`},
		{`{"type":"x","used":"00"}`, codec.ErrMismatch, `codec: this is text where binary should be, at byte 13, in used`},
		{`[]`, codec.ErrMismatch, `codec: this is an array where a map should be, at byte 0`},
		{`null`, codec.ErrMismatch, `codec: this is nil where a map should be, at byte 0`},
	} {
		data, err := codec.FromJSON([]byte(test.json))
		if err != nil {
			t.Fatalf("%s: %v", test.json, err)
		}
		for range 2 {
			got := event{At: 7, Type: "was here"}
			err = codec.Unmarshal(data, &got)
			if err == nil || err.Error() != test.text || !errors.Is(err, test.kind) {
				t.Errorf("%s: got error\n\t%v, want\n\t%s, which is %v", test.json, err, test.text, test.kind)
			}
			if !reflect.DeepEqual(got, event{}) {
				t.Errorf("%s: a failed Unmarshal leaves %+v, want zero", test.json, got)
			}
		}
	}
}

// TestUnmarshalReportsFaultsOfTheFormFirst: bytes that are not canonical get that
// error, even if an earlier part does not fit the struct.
func TestUnmarshalReportsFaultsOfTheFormFirst(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		hex  string
		kind error
	}{
		{"82a16200a16100", codec.ErrNotCanonical},         // unknown fields out of order
		{"82a56f6f70733301a16100", codec.ErrNotCanonical}, // the same
		{"82a474797065a178a474797065a178", codec.ErrDuplicateKey},
		{"81a474797065a1ff", codec.ErrUTF8},
		{"82a26174a131a474797065d90178", codec.ErrNotCanonical}, // at is text; type is spelled long
		{"81a26174", codec.ErrTruncated},
		{"81a474797065a17800", codec.ErrTrailing},
		{"82a464617461c1a474797065a178", codec.ErrUnsupported},          // inside a Raw
		{"82a46461746181a16bcc01a474797065a178", codec.ErrNotCanonical}, // the same
	} {
		var got event
		if err := codec.Unmarshal(unhex(t, test.hex), &got); !errors.Is(err, test.kind) {
			t.Errorf("%s: got error %v, want %v", test.hex, err, test.kind)
		}
	}
}

// TestUnmarshalClearsItsTarget: no former content of the variable remains.
func TestUnmarshalClearsItsTarget(t *testing.T) {
	t.Parallel()
	got := event{At: 7, Data: codec.Raw{0x01}, List: []call{{Name: "old"}}, V: 3}
	if err := codec.Unmarshal(unhex(t, "81a474797065a178"), &got); err != nil {
		t.Fatal(err)
	}
	if want := (event{Type: "x"}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestUnmarshalSharesNoMemory: a later change of the input does not change the
// result.
func TestUnmarshalSharesNoMemory(t *testing.T) {
	t.Parallel()
	in := scalars{Bin: []byte("bin"), S: "text", Raw: codec.Raw{0xa1, 'r'}}
	data, err := codec.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var got scalars
	if err := codec.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	for i := range data {
		data[i] = 0xff
	}
	if !reflect.DeepEqual(got, in) {
		t.Errorf("got %+v, want %+v", got, in)
	}
}

// TestDecodeAcceptsZeroValues: bytes of other publishers may have optional zero
// values; everything else is as strict as Unmarshal.
func TestDecodeAcceptsZeroValues(t *testing.T) {
	t.Parallel()
	decode := func(text string) (event, error) {
		data, err := codec.Canonicalize([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var got event
		err = codec.Decode(data, &got)
		return got, err
	}
	got, err := decode(`{"at":0,"type":"x","v":0,"list":[{"name":"","ref":null,"kind":"#000"}]}`)
	if want := (event{Type: "x", List: []call{{}}}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("zero values: got %+v, %v; want %+v", got, err, want)
	}
	for text, kind := range map[string]error{
		`{"type":"x","typo":1}`:       codec.ErrUnknownField,
		`{"at":1}`:                    codec.ErrMissingField,
		`{"at":null,"type":"x"}`:      codec.ErrMismatch,
		`{"at":1,"type":"x","v":1e3}`: codec.ErrMismatch,
	} {
		if _, err := decode(text); !errors.Is(err, kind) {
			t.Errorf("%s: got error %v, want %v", text, err, kind)
		}
	}
}

func TestUnmarshalLimit(t *testing.T) {
	t.Parallel()
	data := unhex(t, "81a474797065a178")
	var got event
	if err := codec.UnmarshalLimit(data, &got, len(data)); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	err := codec.UnmarshalLimit(data, &got, len(data)-1)
	if want := "codec: 8 bytes where at most 7 are allowed, cut off at byte 7"; !errors.Is(err, codec.ErrSize) || err.Error() != want {
		t.Errorf("over the limit: got %v, want %s", err, want)
	}
	large := make([]byte, codec.BytesMax+1)
	for name, err := range map[string]error{
		"Unmarshal":      codec.Unmarshal(large, &got),
		"UnmarshalLimit": codec.UnmarshalLimit(large, &got, 2*codec.BytesMax),
		"Decode":         codec.Decode(large, &got),
		"Check":          codec.Check(large),
		"Canonicalize":   second(codec.Canonicalize(large)),
		"FromJSON":       second(codec.FromJSON(bytes.Repeat([]byte(" "), codec.BytesMax+1))),
		"FromJSON, out":  second(codec.FromJSON([]byte("[" + strings.Repeat("1.5,", codec.BytesMax/9) + "1]"))),
		"ToJSON":         second(codec.ToJSON(large)),
		"Marshal":        second(codec.Marshal(large)),
	} {
		if !errors.Is(err, codec.ErrSize) {
			t.Errorf("%s: got error %v, want %v", name, err, codec.ErrSize)
		}
	}
}

// first returns the value of a call, and nil if it failed.
func first(data []byte, _ error) []byte { return data }

// second returns the error of a call.
func second[T any](_ T, err error) error { return err }

// TestUnmarshalRefusesNonPointers: Unmarshal needs a pointer that is not nil.
func TestUnmarshalRefusesNonPointers(t *testing.T) {
	t.Parallel()
	for _, target := range []any{nil, event{}, (*event)(nil), 7} {
		if err := codec.Unmarshal([]byte{0x80}, target); !errors.Is(err, codec.ErrGoType) {
			t.Errorf("%T: got error %v, want %v", target, err, codec.ErrGoType)
		}
	}
}
