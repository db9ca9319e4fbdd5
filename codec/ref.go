package codec

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// refPrefix begins the text form of every Ref: the name of the hash.
const refPrefix = "sha256-"

// Ref names a blob by its content. Its text form is "sha256-" and 64 hex digits, which
// is also the name of the blob's object; msgpack and JSON have that text.
type Ref struct{ Hash Hash }

// RefOf returns the name of content.
func RefOf(content []byte) Ref { return Ref{Hash: Sum(content)} }

// ParseRef reads the text form.
func ParseRef(text string) (Ref, error) {
	digits, ok := strings.CutPrefix(text, refPrefix)
	if !ok {
		return Ref{}, fmt.Errorf("codec: a blob reference begins with %q, got %q", refPrefix, text)
	}
	h, err := ParseHash(digits)
	return Ref{Hash: h}, err
}

// String returns the text form.
func (r Ref) String() string { return refPrefix + r.Hash.String() }

// appendTo appends the text form to b, with its header.
func (r *Ref) appendTo(b []byte) []byte {
	b = append(appendTextHead(b, len(refPrefix)+hex.EncodedLen(len(r.Hash))), refPrefix...)
	return hex.AppendEncode(b, r.Hash[:])
}

// IsZero reports whether r names nothing.
func (r Ref) IsZero() bool { return r.Hash.IsZero() }

// MarshalText writes the text form.
func (r Ref) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the text form.
func (r *Ref) UnmarshalText(text []byte) error {
	parsed, err := ParseRef(string(text))
	if err != nil {
		return err
	}
	*r = parsed
	return nil
}
