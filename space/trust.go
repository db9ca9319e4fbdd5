package space

import (
	"encoding/base64"
	"slices"
	"strconv"

	"github.com/nats-io/nkeys"

	"github.com/refold/refold/codec"
)

// Signature is a signature of a manifest.
//
// It is Ed25519 over SignedText, by a NATS nkey.
type Signature struct {
	// The public nkey that signed it.
	Key string `json:"key" msgpack:"key" lim:"..session.NameBytesMax"`
	// Ed25519 signature, in base64url without padding, of refold-pack-v1, a line break,
	// the length of the manifest in bytes, a line break, and the canonical bytes of the
	// manifest.
	Sig string `json:"sig" msgpack:"sig" lim:"..session.NameBytesMax"`
}

// SignedText returns the bytes that a signature of a manifest signs: "refold-pack-v1",
// the manifest's length in bytes, and its canonical bytes, with a line break after
// each of the first two. A NATS server has its clients sign a nonce, which is text:
// it can't be one of these, because no canonical map is valid UTF-8.
func SignedText(manifest []byte) []byte {
	return append([]byte("refold-pack-v1\n"+strconv.Itoa(len(manifest))+"\n"), manifest...)
}

// IsKey reports whether text is a public NATS nkey.
func IsKey(text string) bool { return nkeys.IsValidPublicKey(text) }

// Signs reports whether the signature signs a manifest.
func (s Signature) Signs(manifest []byte) bool {
	key, err := nkeys.FromPublicKey(s.Key)
	sig, bad := base64.RawURLEncoding.Strict().DecodeString(s.Sig)
	return err == nil && bad == nil && key.Verify(SignedText(manifest), sig) == nil
}

// Trust says which manifests of a space an operator trusts. Without digests and keys
// it is all of the version.
type Trust struct {
	// Hashes of manifests that are trusted: the grant's, and that of its own manifest.
	Digests []string `json:"digests,omitempty" msgpack:"digests,omitempty" lim:"..spaces.GrantDigestsMax+1,item=@hash"`
	// Public nkeys: a manifest that one of them signed is trusted.
	Keys []string `json:"keys,omitempty" msgpack:"keys,omitempty" lim:"..spaces.GrantKeysMax,item=any"`
	// What a manifest's version must match: 1, 1.4 or 1.4.2; anything if absent.
	Version string `json:"version,omitempty" msgpack:"version,omitempty" lim:"..VersionBytesMax"`
}

// Trusts reports whether a manifest is trusted, whatever its version. by is the
// signature that makes it so, nil if none is needed.
func (t *Trust) Trusts(manifest []byte, signatures ...Signature) (by *Signature, trusted bool) {
	if len(t.Digests) == 0 && len(t.Keys) == 0 || slices.Contains(t.Digests, codec.Sum(manifest).String()) {
		return nil, true
	}
	i := slices.IndexFunc(signatures, func(s Signature) bool { return slices.Contains(t.Keys, s.Key) && s.Signs(manifest) })
	if i < 0 {
		return nil, false
	}
	return &signatures[i], true
}

// Covers reports whether the trust is about a version.
func (t *Trust) Covers(version string) bool { return t.Version == "" || Selects(t.Version, version) }

// Selects reports whether a selector (1, 1.4, 1.4.2) matches a version.
func Selects(selector, version string) bool {
	s, ok := ParseSelector(selector)
	v, is := ParseVersion(version)
	return ok && is && s.Matches(v)
}

// Admit parses the manifest of a pack. It returns nil unless that is valid, of this
// pack, of a version that t covers, and trusted.
func (t *Trust) Admit(pack string, manifest []byte, signatures ...Signature) (m *Manifest, by *Signature) {
	by, trusted := t.Trusts(manifest, signatures...)
	if !trusted {
		return nil, nil
	}
	if m, _ = Parse(manifest); m == nil || m.Kind != Pack || m.Space != pack || !t.Covers(m.Version) {
		return nil, nil
	}
	return m, by
}
