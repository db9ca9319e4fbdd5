package roles

import (
	"fmt"
	"regexp"
	"strconv"
)

// limitsDefault is the name of the limits for all other accounts.
const limitsDefault = "default"

// payloadLeast is the smallest useful limit: below it, the server would close the
// connections of Refold's programs.
const payloadLeast = 1 << 10

func (l Limits) problems(name string) (all []error) {
	if l.Connections < 0 || l.Subscriptions < 0 {
		all = append(all, fmt.Errorf("limits of %s: connections and subscriptions are 0 (no limit) or more", name))
	}
	if n, err := size(l.Payload); err != nil {
		all = append(all, fmt.Errorf("limits of %s: payload: %w", name, err))
	} else if n > 0 && n < payloadLeast {
		all = append(all, fmt.Errorf("limits of %s: payload: at least 1KB", name))
	}
	return all
}

var sizes = regexp.MustCompile(`^(\d{1,12})(B|KB|MB|GB|TB)$`)

// size parses a size as NATS does: 64KB are 65536 bytes. Empty is 0.
func size(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	m := sizes.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%q is no size: write such as 64KB, 1MB, 10GB", text)
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return 0, err
	}
	for _, unit := range []string{"B", "KB", "MB", "GB", "TB"} {
		if unit == m[2] {
			break
		}
		n <<= 10
	}
	return n, nil
}

func (f *File) limits(u User) Limits {
	if l, ok := f.Limits[u.Name]; ok {
		return l
	}
	if u.Home() {
		return Limits{}
	}
	return f.Limits[limitsDefault]
}
