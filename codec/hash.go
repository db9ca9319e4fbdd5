package codec

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"golang.org/x/crypto/blake2b"
)

// Hash is a hash of 32 bytes: of [Sum] for content that is addressed by its hash, of
// [Digest] for values that are only compared. Its text form is 64 lower-case hex digits;
// in msgpack it is a bin of 32 bytes.
type Hash [sha256.Size]byte

// Sum returns the SHA-256 of b. It names stored content (blobs, descriptors, records,
// arguments) or is shown to people with it.
func Sum(b []byte) Hash { return sha256.Sum256(b) }

// Digest returns the BLAKE2b-256 of b (RFC 7693, 32 bytes, no key). It
// distinguishes states, events, settlements, plans and toolsets. A fold does so
// several times an event, and SHA-256 takes three times as long on processors
// without instructions for it (docs/adr/0022).
func Digest(b []byte) Hash { return blake2b.Sum256(b) }

// ParseHash reads the text form: exactly 64 lower-case hex digits.
func ParseHash(text string) (Hash, error) {
	var h Hash
	if len(text) != hex.EncodedLen(len(h)) {
		return Hash{}, fmt.Errorf("codec: a hash is %d hex digits, got %d characters", hex.EncodedLen(len(h)), len(text))
	}
	for _, c := range []byte(text) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return Hash{}, fmt.Errorf("codec: a hash is lower-case hex, got %q", text)
		}
	}
	if _, err := hex.Decode(h[:], []byte(text)); err != nil {
		return Hash{}, fmt.Errorf("codec: hash %q: %w", text, err)
	}
	return h, nil
}

// String returns the text form.
func (h Hash) String() string {
	var text [2 * len(h)]byte // on the stack: only the string is allocated
	hex.Encode(text[:], h[:])
	return string(text[:])
}

// Is reports whether text is the text form. It allocates nothing.
func (h Hash) Is(text string) bool {
	var own [2 * len(h)]byte
	hex.Encode(own[:], h[:])
	return string(own[:]) == text
}

// IsZero reports whether h is the zero value, which means "none".
func (h Hash) IsZero() bool { return h == Hash{} }

// MarshalText writes the text form.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads the text form.
func (h *Hash) UnmarshalText(text []byte) error {
	parsed, err := ParseHash(string(text))
	if err != nil {
		return err
	}
	*h = parsed
	return nil
}
