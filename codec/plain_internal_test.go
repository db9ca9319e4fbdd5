package codec

// The unescaped prefix of a JSON string, against a loop over its bytes.

import (
	"bytes"
	"testing"
)

func FuzzPlain(f *testing.F) {
	for c := range 256 {
		for at := range 17 {
			b := bytes.Repeat([]byte{'a'}, 17)
			b[at] = byte(c)
			f.Add(b)
			f.Add(append(bytes.Repeat([]byte{0xff}, 3), b...))
		}
	}
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		want := 0
		for ; want < len(b) && b[want] != '"' && b[want] != '\\' && b[want] >= ' '; want++ {
		}
		if got := plain(b); got != want {
			t.Errorf("plain(%q): got %d, want %d", b, got, want)
		}
	})
}
