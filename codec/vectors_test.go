package codec_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/refold/refold/codec"
)

// The files under testdata/vectors specify the form by example. Each explains its
// format at the top. These tests use only exported functions, as another
// implementation would.

// vector is one line of a file.
type vector struct {
	line        int
	left, right string
}

// vectors reads a file whose lines are split at the last separator.
func vectors(t testing.TB, name, separator string) []vector {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "vectors", name))
	if err != nil {
		t.Fatal(err)
	}
	var all []vector
	for i, line := range strings.Split(string(text), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		at := strings.LastIndex(line, separator)
		if at < 0 {
			t.Fatalf("%s:%d: no %q in the line", name, i+1, separator)
		}
		all = append(all, vector{line: i + 1, left: line[:at], right: line[at+len(separator):]})
	}
	if len(all) < 5 {
		t.Fatalf("%s: %d vectors, want more: is the file whole?", name, len(all))
	}
	return all
}

// unhex reads hex with white space and repetitions: 61*3 is 616161.
func unhex(t testing.TB, text string) []byte {
	t.Helper()
	out := []byte{}
	for _, token := range strings.Fields(text) {
		digits, times, repeated := strings.Cut(token, "*")
		n := 1
		if repeated {
			var err error
			if n, err = strconv.Atoi(times); err != nil {
				t.Fatalf("%q: %v", token, err)
			}
		}
		b, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatalf("%q: %v", token, err)
		}
		out = append(out, bytes.Repeat(b, n)...)
	}
	return out
}

// codes are the files' names for kinds of fault.
var codes = map[string]error{
	"truncated":     codec.ErrTruncated,
	"trailing":      codec.ErrTrailing,
	"not_canonical": codec.ErrNotCanonical,
	"duplicate_key": codec.ErrDuplicateKey,
	"key_type":      codec.ErrKeyType,
	"unsupported":   codec.ErrUnsupported,
	"utf8":          codec.ErrUTF8,
	"number":        codec.ErrNumber,
	"depth":         codec.ErrDepth,
	"json":          codec.ErrJSON,
}

// wantCode fails unless err is an *Error of the named kind, at an offset
// inside the input or at its end.
func wantCode(t *testing.T, where string, err error, code string, size int) {
	t.Helper()
	want, known := codes[code]
	if !known {
		t.Fatalf("%s: no code is called %q", where, code)
	}
	if !errors.Is(err, want) {
		t.Errorf("%s: got error %v, want %v", where, err, want)
		return
	}
	var e *codec.Error
	if !errors.As(err, &e) || e.Offset < 0 || e.Offset > size {
		t.Errorf("%s: got offset %d, want 0 to %d", where, e.Offset, size)
	}
}

func TestVectorsValues(t *testing.T) {
	t.Parallel()
	for _, v := range vectors(t, "values.txt", " => ") {
		where := "values.txt:" + strconv.Itoa(v.line)
		want := unhex(t, v.right)
		got, err := codec.FromJSON([]byte(v.left))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: FromJSON gives %x, %v; want %x", where, got, err, want)
			continue
		}
		if err := codec.Check(want); err != nil {
			t.Errorf("%s: Check: %v", where, err)
		}
		text, err := codec.ToJSON(want)
		if err != nil {
			t.Errorf("%s: ToJSON: %v", where, err)
			continue
		}
		if again, err := codec.FromJSON(text); err != nil || !bytes.Equal(again, want) {
			t.Errorf("%s: %s gives %x, %v; want %x", where, text, again, err, want)
		}
		var any any
		if err := codec.Unmarshal(want, &any); err != nil {
			t.Errorf("%s: Unmarshal: %v", where, err)
		} else if again, err := codec.Marshal(any); err != nil || !bytes.Equal(again, want) {
			t.Errorf("%s: Marshal(%v) gives %x, %v; want %x", where, any, again, err, want)
		}
	}
}

// wrap puts a value into a map, since Canonicalize accepts only maps.
func wrap(value []byte) []byte { return append([]byte{0x81, 0xa1, 'k'}, value...) }

func TestVectorsRespelled(t *testing.T) {
	t.Parallel()
	for _, v := range vectors(t, "respelled.txt", " => ") {
		where := "respelled.txt:" + strconv.Itoa(v.line)
		other, want := unhex(t, v.left), unhex(t, v.right)
		if err := codec.Check(want); err != nil {
			t.Errorf("%s: the right side is not canonical: %v", where, err)
		}
		wantCode(t, where, codec.Check(other), "not_canonical", len(other))
		var x any
		wantCode(t, where, codec.Unmarshal(other, &x), "not_canonical", len(other))
		got, err := codec.Canonicalize(wrap(other))
		if err != nil || !bytes.Equal(got, wrap(want)) {
			t.Errorf("%s: Canonicalize gives %x, %v; want %x", where, got, err, wrap(want))
		}
	}
}

func TestVectorsRefused(t *testing.T) {
	t.Parallel()
	for _, v := range vectors(t, "refused.txt", "!") {
		where := "refused.txt:" + strconv.Itoa(v.line)
		bad := unhex(t, v.left)
		wantCode(t, where, codec.Check(bad), v.right, len(bad))
		var x any
		wantCode(t, where, codec.Unmarshal(bad, &x), v.right, len(bad))
		if x != nil {
			t.Errorf("%s: a failed Unmarshal leaves %v, want nil", where, x)
		}
		if _, err := codec.ToJSON(bad); err == nil {
			t.Errorf("%s: ToJSON takes it", where)
		}
		if v.right == "depth" {
			bad = bad[1:] // the map around it is one more
		}
		got, err := codec.Canonicalize(wrap(bad))
		wantCode(t, where+" in a map", err, v.right, len(bad)+3)
		if got != nil {
			t.Errorf("%s: a failed Canonicalize gives %x", where, got)
		}
	}
}

func TestVectorsJSONRefused(t *testing.T) {
	t.Parallel()
	for _, v := range vectors(t, "json_refused.txt", " !") {
		where := "json_refused.txt:" + strconv.Itoa(v.line)
		text := []byte(v.left)
		if digits, ok := strings.CutPrefix(v.left, "hex:"); ok {
			text = unhex(t, digits)
		}
		got, err := codec.FromJSON(text)
		wantCode(t, where, err, v.right, len(text))
		if got != nil {
			t.Errorf("%s: a failed FromJSON gives %x", where, got)
		}
	}
}

func TestVectorsBinary(t *testing.T) {
	t.Parallel()
	for _, v := range vectors(t, "binary.txt", " => ") {
		data := unhex(t, v.left)
		got, err := codec.ToJSON(data)
		if err != nil || string(got) != v.right {
			t.Errorf("binary.txt:%d: got %s, %v; want %s", v.line, got, err, v.right)
		}
	}
}
