package session

import (
	"encoding/base64"
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/space"
)

// A manifest is trusted if its hash is among the digests, or if one of the keys
// signed exactly this hash. Nothing else makes a pack trusted.
func TestTrust(t *testing.T) {
	t.Parallel()
	key, public := signer(t)
	other, otherPublic := signer(t)
	hash, another := codec.Sum([]byte("this")), codec.Sum([]byte("another"))
	sign := func(by nkeys.KeyPair, hash codec.Hash) string {
		sig, err := by.Sign(SignedText(hash))
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(sig)
	}
	keys := Grant{Kind: space.Pack, Keys: []string{public}}
	for name, c := range map[string]struct {
		grant Grant
		by    *Signature
		want  bool
	}{
		"a digest":                {Grant{Kind: space.Pack, Digests: []string{hash.String()}}, nil, true},
		"another digest":          {Grant{Kind: space.Pack, Digests: []string{another.String()}}, nil, false},
		"the key":                 {keys, &Signature{Key: public, Sig: sign(key, hash)}, true},
		"no signature":            {keys, nil, false},
		"another key":             {keys, &Signature{Key: otherPublic, Sig: sign(other, hash)}, false},
		"another key's signature": {keys, &Signature{Key: public, Sig: sign(other, hash)}, false},
		"over another hash":       {keys, &Signature{Key: public, Sig: sign(key, another)}, false},
		"cut short":               {keys, &Signature{Key: public, Sig: sign(key, hash)[:40]}, false},
		"no base64":               {keys, &Signature{Key: public, Sig: "!"}, false},
		"another pack's manifest": {Grant{Kind: space.Pack, Manifest: codec.Raw{0x80}}, nil, false},
		"a workspace, anybody's":  {Grant{}, nil, true},
	} {
		if got := c.grant.trusts(hash, c.by); got != c.want {
			t.Errorf("%s: trusted is %v, want %v", name, got, c.want)
		}
	}
}

func signer(t *testing.T) (key nkeys.KeyPair, public string) {
	t.Helper()
	key, err := nkeys.CreateUser()
	if err == nil {
		public, err = key.PublicKey()
	}
	if err != nil {
		t.Fatal(err)
	}
	return key, public
}
