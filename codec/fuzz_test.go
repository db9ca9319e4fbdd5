package codec_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/refold/refold/codec"
)

// Each target checks a law of doc.go on arbitrary bytes. Inputs that once broke one are
// under testdata/fuzz and run with the tests.

func FuzzUnmarshal(f *testing.F) {
	for _, data := range seeds(f) {
		f.Add(data)
	}
	for _, v := range append(vectors(f, "respelled.txt", " => "), vectors(f, "refused.txt", "!")...) {
		f.Add(unhex(f, v.left))
	}
	f.Fuzz(func(t *testing.T, data []byte) { checkLaws(t, data, targets) })
}

func FuzzCanonicalize(f *testing.F) {
	for _, data := range seeds(f) {
		f.Add(data)
	}
	for _, text := range []string{`{"a":1}`, ` {"b":[1.5,"\u00e9\ud83d\ude00"],"a":{}}`, "\xde\x00\x02\xd9\x01b\xca?\x80\x00\x00\xa1a\xd1\xff\xff"} {
		f.Add([]byte(text))
	}
	for _, v := range append(vectors(f, "respelled.txt", " => "), vectors(f, "refused.txt", "!")...) {
		f.Add(wrap(unhex(f, v.left)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := codec.Canonicalize(data)
		if err != nil {
			var e *codec.Error
			if !errors.As(err, &e) || e.Kind == nil || e.Offset < 0 || e.Offset > len(data) {
				t.Errorf("%x: got error %#v, want an *Error inside the input", data, err)
			}
			if codec.IsMap(data) && codec.Check(data) == nil {
				t.Errorf("%x: got error %v, but it is canonical", data, err)
			}
			return
		}
		if err := codec.Check(got); err != nil || !codec.IsMap(got) {
			t.Fatalf("%x: got %x, want a canonical map: %v", data, got, err)
		}
		again, err := codec.Canonicalize(got)
		if err != nil || &again[0] != &got[0] {
			t.Errorf("%x: canonicalized again: got %x, %v; want the same slice", got, again, err)
		}
		if same := &got[0] == &data[0]; same != (codec.Check(data) == nil) {
			t.Errorf("%x: returned as it is: %v, but Check says %v", data, same, codec.Check(data))
		}
		if _, err := codec.ToJSON(got); err != nil {
			t.Errorf("%x: ToJSON: %v", got, err)
		}
	})
}

// FuzzJSON compares with encoding/json: both accept the same texts, with the same
// values.
func FuzzJSON(f *testing.F) {
	for _, text := range []string{
		`null`, `[1,-0,1e3,2.5e-7,18446744073709551615,1e400]`, `{"b":1,"a":{"":[]},"\u0000":"\ud83d\ude00\ud800"}`, ` "\"\\\/\b\f\n\r\t" `,
		`[9007199254740993,9007199254740994.0,-9223372036854775809]`, `{"a":1,"a":2}`, "\"\xff\"", `[truth]`,
	} {
		f.Add([]byte(text))
	}
	for _, v := range append(vectors(f, "values.txt", " => "), vectors(f, "json_refused.txt", " !")...) {
		f.Add([]byte(v.left))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := codec.FromJSON(text)
		if err != nil {
			form := errors.Is(err, codec.ErrJSON) || errors.Is(err, codec.ErrTruncated) || errors.Is(err, codec.ErrTrailing)
			if form && json.Valid(text) {
				t.Errorf("%q: got error %v, but it is JSON", text, err)
			}
			return
		}
		if !json.Valid(text) {
			t.Fatalf("%q: was taken, but is not JSON", text)
		}
		if err := codec.Check(got); err != nil {
			t.Fatalf("%q: gives %x: %v", text, got, err)
		}
		back, err := codec.ToJSON(got)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := codec.FromJSON(back); err != nil || !bytes.Equal(again, got) {
			t.Errorf("%q: %s gives %x, %v; want %x", text, back, again, err, got)
		}
		var want, have any
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if err := json.Unmarshal(back, &have); err != nil || !reflect.DeepEqual(have, want) {
			t.Errorf("%q: came back as %s, %v", text, back, err)
		}
	})
}
