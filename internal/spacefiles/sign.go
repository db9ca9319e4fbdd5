package spacefiles

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/nats-io/nkeys"

	"github.com/refold/refold/space"
)

// SignatureName is the file with the signatures of a space's manifest: a list of
// {"key", "sig"}. It is not part of the space.
const SignatureName = "agent.workspace.sig"

// signatureBytesMax bounds the file of signatures or of a seed.
const signatureBytesMax = 4 << 10

// ReadSignatures returns the signatures in a folder, nil if there are none.
func ReadSignatures(files fs.FS) (all []space.Signature, err error) {
	f, err := files.Open(SignatureName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", SignatureName, pathless(err))
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s: is no regular file", SignatureName), err)
	}
	text, err := io.ReadAll(io.LimitReader(f, signatureBytesMax))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", SignatureName, pathless(err))
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&all); err != nil {
		return nil, fmt.Errorf("%s: is a list of {\"key\", \"sig\"} of at most %d bytes: sign again with refold pack sign: %w", SignatureName, signatureBytesMax, err)
	}
	for _, s := range all {
		if _, err := base64.RawURLEncoding.DecodeString(s.Sig); err != nil || !space.IsKey(s.Key) {
			return nil, fmt.Errorf("%s: a key is no public key of NATS, or a sig is not base64url: sign again with refold pack sign", SignatureName)
		}
	}
	return all, nil
}

// Signer signs manifests.
type Signer struct{ pair nkeys.KeyPair }

// ReadSigner reads the seed of an nkey from a file, which may have other lines,
// as a credentials file does. The error never contains a part of the file.
func ReadSigner(name string) (*Signer, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, signatureBytesMax))
	if err != nil {
		return nil, err
	}
	defer clear(text)
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0 || line[0] != 'S' && !nkeys.IsValidPublicKey(string(line)):
			continue
		case line[0] != 'S':
			return nil, fmt.Errorf("%s: holds a public key: signing needs the seed, which begins with S", name)
		}
		pair, err := nkeys.FromSeed(line)
		if err != nil {
			return nil, fmt.Errorf("%s: its seed is damaged: it has 58 characters and a checksum; copy it again, or make another with nk -gen user", name)
		}
		return &Signer{pair}, nil
	}
	return nil, fmt.Errorf("%s: holds no seed of a NATS nkey, which begins with S: make one with nk -gen user > %s", name, name)
}

// Sign signs a manifest, given as its canonical bytes.
func (s *Signer) Sign(manifest []byte) (space.Signature, error) {
	key, err := s.pair.PublicKey()
	if err != nil {
		return space.Signature{}, err
	}
	sig, err := s.pair.Sign(space.SignedText(manifest))
	if err != nil {
		return space.Signature{}, err
	}
	return space.Signature{Key: key, Sig: base64.RawURLEncoding.EncodeToString(sig)}, nil
}

// AddSignature adds a signature of a manifest to those in a folder, which it
// returns. It drops those that do not sign the manifest: the content has changed
// since. A concurrent reader sees the old file or the new one.
func AddSignature(dir string, manifest []byte, s space.Signature) (all []space.Signature, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	all, _ = ReadSignatures(root.FS()) // a file that can't be read signs nothing
	all = slices.DeleteFunc(all, func(old space.Signature) bool { return old.Key == s.Key || !old.Signs(manifest) })
	all = append(all, s)
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return nil, err
	}
	if len(text) >= signatureBytesMax {
		return nil, fmt.Errorf("%s: would have %d signatures, and it has at most %d bytes: remove the file, and sign again with the keys that grants still name", SignatureName, len(all), signatureBytesMax)
	}
	fresh := "." + SignatureName + "." + strings.ToLower(rand.Text()[:8])
	if err := root.WriteFile(fresh, append(text, '\n'), 0o644); err != nil {
		return nil, err
	}
	if err := root.Rename(fresh, SignatureName); err != nil {
		return nil, errors.Join(err, root.Remove(fresh))
	}
	return all, nil
}
