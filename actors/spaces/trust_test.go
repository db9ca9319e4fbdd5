package spaces

import (
	"encoding/base64"
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/space"
)

// A manifest is trusted if its hash is among the digests, if one of the keys signed
// it, or if it is the grant's own. Nothing else makes a pack trusted.
func TestTrust(t *testing.T) {
	t.Parallel()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	key, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	m := &space.Manifest{V: 1, Kind: space.Pack, Space: "crm", Version: "1.0.0"}
	sig, err := pair.Sign(space.SignedText(m.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	by := &space.Signature{Key: key, Sig: base64.RawURLEncoding.EncodeToString(sig)}
	for name, c := range map[string]struct {
		grant Grant
		by    *space.Signature
		want  bool
	}{
		"a digest":                {Grant{Kind: space.Pack, Digests: []string{m.Hash().String()}}, nil, true},
		"another digest":          {Grant{Kind: space.Pack, Digests: []string{codec.Sum(nil).String()}}, by, false},
		"the key":                 {Grant{Kind: space.Pack, Keys: []string{key}}, by, true},
		"no signature":            {Grant{Kind: space.Pack, Keys: []string{key}}, nil, false},
		"its own manifest":        {Grant{Kind: space.Pack, Manifest: m.Bytes()}, nil, true},
		"another pack's manifest": {Grant{Kind: space.Pack, Manifest: codec.Raw{0x80}}, by, false},
		"nothing":                 {Grant{Kind: space.Pack}, by, false},
		"a workspace, anybody's":  {Grant{}, nil, true},
		"a workspace with a key":  {Grant{Keys: []string{key}}, nil, false},
	} {
		if got := c.grant.trusts(m, c.by); got != c.want {
			t.Errorf("%s: trusted is %v, want %v", name, got, c.want)
		}
	}
}
