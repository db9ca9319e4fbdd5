package subjects

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/refold/refold/space"
)

// Pack returns the subject of one version of a pack: refold.pack.crm.1_4_2.
func (n Names) Pack(pack, version string) (string, error) {
	if err := validPack(pack); err != nil {
		return "", err
	}
	if _, ok := space.ParseVersion(version); !ok {
		return "", fmt.Errorf("subjects: %q is no version: use MAJOR.MINOR.PATCH, with or without - and a pre-release", version)
	}
	return n.join("pack", pack, strings.ReplaceAll(version, ".", "_")), nil
}

// PackSignature returns the subject of a signature of a version, which has both its
// key and its bytes: refold.pack.crm.1_4_2.<key>.<sig>. So nobody can take the place
// of a signature without having it.
func (n Names) PackSignature(pack, version string, by space.Signature) (string, error) {
	subject, err := n.Pack(pack, version)
	if sig, bad := base64.RawURLEncoding.DecodeString(by.Sig); err == nil && (bad != nil || len(sig) != signatureBytes || !space.IsKey(by.Key)) {
		err = fmt.Errorf("subjects: the signature by %.60q of %s %s is not that of a NATS nkey, in base64url", by.Key, pack, version)
	}
	if err != nil {
		return "", err
	}
	return subject + "." + by.Key + "." + by.Sig, nil
}

// signatureBytes is the size of an Ed25519 signature.
const signatureBytes = 64

// PackVersions matches every version of a pack, and every signature of one.
func (n Names) PackVersions(pack string) (string, error) {
	return n.checked(validPack(pack), "pack", pack, ">")
}

func validPack(pack string) error {
	if !space.IsSpaceName(pack, space.Pack) {
		return fmt.Errorf("subjects: %q names no pack: use 1 to %d of A-Z a-z 0-9 _ -", pack, space.PackNameBytesMax)
	}
	return nil
}

// PackAll matches every version of every pack.
func (n Names) PackAll() string { return n.join("pack", "*", "*") }

// PackSignatures matches every signature of every version.
func (n Names) PackSignatures() string { return n.join("pack", "*", "*", "*", "*") }

// PackEverything matches whatever is published: versions and signatures.
func (n Names) PackEverything() string { return n.join("pack", ">") }

// ParsePack returns pack and version of a subject that Pack or PackSignature made;
// by is the signature, zero for the version itself.
func (n Names) ParsePack(subject string) (pack, version string, by space.Signature, err error) {
	tokens := strings.Split(subject, ".")
	if len(tokens) == 4 || len(tokens) == 6 {
		pack, version = tokens[2], strings.ReplaceAll(tokens[3], "_", ".")
		made, err := n.Pack(pack, version)
		if err == nil && len(tokens) == 6 {
			by = space.Signature{Key: tokens[4], Sig: tokens[5]}
			made, err = n.PackSignature(pack, version, by)
		}
		if err == nil && made == subject {
			return pack, version, by, nil
		}
	}
	return "", "", space.Signature{}, fmt.Errorf("subjects: %q is no %s.pack.<pack>.<version>, and no signature of one", subject, n.prefix)
}
