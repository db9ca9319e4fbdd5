package subjects

import (
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

// PackVersions matches every version of a pack.
func (n Names) PackVersions(pack string) (string, error) {
	return n.checked(validPack(pack), "pack", pack, "*")
}

func validPack(pack string) error {
	if !space.IsSpaceName(pack, space.Pack) {
		return fmt.Errorf("subjects: %q names no pack: use 1 to %d of A-Z a-z 0-9 _ -", pack, space.PackNameBytesMax)
	}
	return nil
}

// PackAll matches every version of every pack.
func (n Names) PackAll() string { return n.join("pack", "*", "*") }

// ParsePack returns pack and version of a subject that Pack made.
func (n Names) ParsePack(subject string) (pack, version string, err error) {
	if tokens := strings.Split(subject, "."); len(tokens) == 4 {
		pack, version = tokens[2], strings.ReplaceAll(tokens[3], "_", ".")
		if made, err := n.Pack(pack, version); err == nil && made == subject {
			return pack, version, nil
		}
	}
	return "", "", fmt.Errorf("subjects: %q is no %s.pack.<pack>.<version>", subject, n.prefix)
}
