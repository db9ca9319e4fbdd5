package space

import (
	"encoding/base64"
	"strconv"
	"testing"
	"unicode/utf8"

	"github.com/nats-io/nkeys"

	"github.com/refold/refold/codec"
)

// signer returns a key that signs any bytes, and its public form.
func signer(t *testing.T) (sign func([]byte) Signature, public string) {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err == nil {
		public, err = pair.PublicKey()
	}
	if err != nil {
		t.Fatal(err)
	}
	return func(text []byte) Signature {
		sig, err := pair.Sign(text)
		if err != nil {
			t.Fatal(err)
		}
		return Signature{Key: public, Sig: base64.RawURLEncoding.EncodeToString(sig)}
	}, public
}

func packManifest(version string) []byte {
	return (&Manifest{V: 1, Kind: Pack, Space: "crm", Version: version}).Bytes()
}

// TestAttackNonceAsSignature: what a key signed for another purpose, such as a
// server's login nonce, is no signature of a manifest.
func TestAttackNonceAsSignature(t *testing.T) {
	t.Parallel()
	sign, _ := signer(t)
	manifest := packManifest("1.0.0")
	size := strconv.Itoa(len(manifest))
	if !sign([]byte("refold-pack-v1\n" + size + "\n" + string(manifest))).Signs(manifest) {
		t.Error("a signature as the protocol describes it is refused")
	}
	for name, text := range map[string][]byte{
		"the bare bytes":       manifest,
		"the hash":             []byte(codec.Sum(manifest).String()),
		"the former text":      []byte("refold space " + codec.Sum(manifest).String()),
		"without its length":   append([]byte("refold-pack-v1\n"), manifest...),
		"with another length":  append([]byte("refold-pack-v1\n1\n"), manifest...),
		"with another name":    append([]byte("refold-pack-v2\n"+size+"\n"), manifest...),
		"of another manifest":  SignedText(packManifest("1.0.1")),
		"more than a manifest": append(SignedText(manifest), 0),
	} {
		if sign(text).Signs(manifest) {
			t.Errorf("%s: the signature counts", name)
		}
	}
	if utf8.Valid(SignedText(manifest)) {
		t.Error("the signed bytes are text, which a server's nonce could be")
	}
}

func TestTrustAdmits(t *testing.T) {
	t.Parallel()
	sign, key := signer(t)
	other, otherKey := signer(t)
	manifest := packManifest("1.4.2")
	hash := codec.Sum(manifest).String()
	ours, theirs := sign(SignedText(manifest)), other(SignedText(manifest))
	for name, c := range map[string]struct {
		trust      Trust
		pack       string
		signatures []Signature
		by         string
		want       bool
	}{
		"a digest":                   {Trust{Digests: []string{hash}}, "crm", nil, "", true},
		"another digest":             {Trust{Digests: []string{codec.Sum(nil).String()}}, "crm", []Signature{ours}, "", false},
		"a key":                      {Trust{Keys: []string{key}}, "crm", []Signature{ours}, key, true},
		"the second of the keys":     {Trust{Keys: []string{otherKey, key}}, "crm", []Signature{ours}, key, true},
		"the second signature":       {Trust{Keys: []string{key}}, "crm", []Signature{theirs, ours}, key, true},
		"no signature":               {Trust{Keys: []string{key}}, "crm", nil, "", false},
		"another's signature":        {Trust{Keys: []string{key}}, "crm", []Signature{theirs}, "", false},
		"another's, under this name": {Trust{Keys: []string{key}}, "crm", []Signature{{Key: key, Sig: theirs.Sig}}, "", false},
		"cut short":                  {Trust{Keys: []string{key}}, "crm", []Signature{{Key: key, Sig: ours.Sig[:40]}}, "", false},
		"no base64":                  {Trust{Keys: []string{key}}, "crm", []Signature{{Key: key, Sig: "!"}}, "", false},
		"the version":                {Trust{Keys: []string{key}, Version: "1.4"}, "crm", []Signature{ours}, key, true},
		"another version":            {Trust{Keys: []string{key}, Version: "2"}, "crm", []Signature{ours}, "", false},
		"another pack":               {Trust{Keys: []string{key}}, "shop", []Signature{ours}, "", false},
		"anything":                   {Trust{}, "crm", nil, "", true},
	} {
		m, by := c.trust.Admit(c.pack, manifest, c.signatures...)
		if (m != nil) != c.want || (by != nil) != (c.by != "") || by != nil && by.Key != c.by {
			t.Errorf("%s: got %v by %v, want %t by %q", name, m != nil, by, c.want, c.by)
		}
	}
	if m, _ := (&Trust{}).Admit("crm", []byte("no manifest")); m != nil {
		t.Error("bytes that are no manifest are admitted")
	}
}
