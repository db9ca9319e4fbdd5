package codec_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/refold/refold/codec"
)

const (
	emptyHex = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	abcHex   = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
)

// TestHashText: the text form, both ways, by each of its functions.
func TestHashText(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{"": emptyHex, "abc": abcHex} {
		h := codec.Sum([]byte(content))
		if got := h.String(); got != want {
			t.Errorf("Sum(%q): got %s, want %s", content, got, want)
		}
		if got, err := codec.ParseHash(want); err != nil || got != h {
			t.Errorf("ParseHash(%s): got %s, %v", want, got, err)
		}
		if got, err := codec.ParseRef("sha256-" + want); err != nil || got != codec.RefOf([]byte(content)) {
			t.Errorf("ParseRef: got %s, %v", got, err)
		}
		text, err := json.Marshal([]any{h, codec.Ref{Hash: h}})
		if err != nil || string(text) != `["`+want+`","sha256-`+want+`"]` {
			t.Errorf("as JSON: got %s, %v", text, err)
		}
		var back struct {
			H codec.Hash
			R codec.Ref
		}
		if err := json.Unmarshal([]byte(`{"H":"`+want+`","R":"sha256-`+want+`"}`), &back); err != nil || back.H != h || back.R.Hash != h {
			t.Errorf("from JSON: got %v, %v", back, err)
		}
	}
}

// TestDigest: a digest is BLAKE2b of 32 bytes, as Python's hashlib computes it.
func TestDigest(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"":    "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8",
		"abc": "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319",
	} {
		if got := codec.Digest([]byte(content)).String(); got != want {
			t.Errorf("Digest(%q): got %s, want %s", content, got, want)
		}
	}
}

// TestHashTextRefused: a hash has no other text form.
func TestHashTextRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", emptyHex[1:], emptyHex + "0", strings.ToUpper(emptyHex), "g" + emptyHex[1:], " " + emptyHex[1:], "0x" + emptyHex[2:],
		strings.Repeat("é", 32),
	} {
		if got, err := codec.ParseHash(text); err == nil || !got.IsZero() {
			t.Errorf("ParseHash(%q): got %s, %v", text, got, err)
		}
		if got, err := codec.ParseRef("sha256-" + text); err == nil || !got.IsZero() {
			t.Errorf("ParseRef(%q): got %s, %v", text, got, err)
		}
		var h codec.Hash
		var r codec.Ref
		if h.UnmarshalText([]byte(text)) == nil || r.UnmarshalText([]byte("sha256-"+text)) == nil {
			t.Errorf("UnmarshalText takes %q", text)
		}
	}
	for _, text := range []string{"", emptyHex, "sha256:" + emptyHex, "SHA256-" + emptyHex, "sha256-", "sha1-" + emptyHex} {
		if got, err := codec.ParseRef(text); err == nil || !got.IsZero() {
			t.Errorf("ParseRef(%q): got %s, %v", text, got, err)
		}
	}
}

// TestHashWire: a hash is a binary of 32 bytes and a reference is text; optional ones
// are omitted if they are zero, and other lengths are refused.
func TestHashWire(t *testing.T) {
	t.Parallel()
	type holder struct {
		H codec.Hash `msgpack:"h,omitempty"`
		R codec.Ref  `msgpack:"r,omitempty"`
	}
	for _, test := range []struct {
		v    holder
		want string
	}{
		{holder{}, "80"},
		{holder{H: codec.Sum(nil)}, "81a168c420" + emptyHex},
		{holder{R: codec.RefOf(nil)}, "81a172d9477368613235362d" + hexOf(emptyHex)},
	} {
		data, err := codec.Marshal(test.v)
		if err != nil || string(data) != string(unhex(t, test.want)) {
			t.Errorf("got %x, %v; want %s", data, err, test.want)
		}
		wantTaken(t, test.want, test.v, data)
	}
	for _, bad := range []string{
		"81a168c420 00*32", "81a168c0", "81a168c41f 01*31", "81a168c421 01*33", "81a168d940" + hexOf(emptyHex),
		"81a172d9477368613235362d" + strings.Repeat("30", 64), "81a172c0", "81a172c420" + emptyHex, "81a172d940" + hexOf(emptyHex),
	} {
		var got holder
		if err := codec.Unmarshal(unhex(t, bad), &got); err == nil {
			t.Errorf("%s was taken as %v", bad, got)
		}
	}
}

// hexOf returns the hex digits of text's bytes.
func hexOf(text string) string {
	var out strings.Builder
	for _, c := range []byte(text) {
		out.WriteByte(hexDigits[c>>4])
		out.WriteByte(hexDigits[c&15])
	}
	return out.String()
}
