package spaces

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
	"strings"

	"github.com/nats-io/nkeys"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// SignatureName is the file with the signature of a space's manifest. It is not
// part of the space.
const SignatureName = "agent.workspace.sig"

// signatureBytesMax bounds the file of a signature or a seed.
const signatureBytesMax = 4 << 10

// Signature is the content of a signature file. Sig is base64url without padding.
type Signature struct {
	Key string `json:"key"`
	Sig string `json:"sig"`
}

// ReadSignature returns the signature in a folder, or nil if there is none.
func ReadSignature(files fs.FS) (*Signature, error) {
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
	s := new(Signature)
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(s); err != nil {
		return nil, fmt.Errorf("%s: is {\"key\", \"sig\"}, as refold pack sign writes it: %w", SignatureName, err)
	}
	if _, err := s.Bytes(); err != nil || !nkeys.IsValidPublicKey(s.Key) {
		return nil, fmt.Errorf("%s: its key is no public key of NATS, or its sig is not base64url: sign again with refold pack sign", SignatureName)
	}
	return s, nil
}

// Bytes returns the decoded signature.
func (s *Signature) Bytes() ([]byte, error) { return base64.RawURLEncoding.DecodeString(s.Sig) }

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

// Sign signs the manifest with that hash.
func (s *Signer) Sign(hash codec.Hash) (Signature, error) {
	key, err := s.pair.PublicKey()
	if err != nil {
		return Signature{}, err
	}
	sig, err := s.pair.Sign(session.SignedText(hash))
	if err != nil {
		return Signature{}, err
	}
	return Signature{Key: key, Sig: base64.RawURLEncoding.EncodeToString(sig)}, nil
}

// WriteSignature writes the file of a signature into a folder atomically: a
// concurrent reader sees the old file or the new one.
func WriteSignature(dir string, s Signature) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	fresh := "." + SignatureName + "." + strings.ToLower(rand.Text()[:8])
	if err := root.WriteFile(fresh, append(text, '\n'), 0o644); err != nil {
		return err
	}
	if err := root.Rename(fresh, SignatureName); err != nil {
		return errors.Join(err, root.Remove(fresh))
	}
	return nil
}
