package settings

import (
	"fmt"
	"strconv"
	"strings"
)

// Size is a number of bytes, given as 500000, 512KiB, 256MiB or 2GiB. KB and K
// mean the same as KiB: memory is not counted in thousands.
type Size int64

var units = []struct {
	name  string
	shift int
}{{"K", 10}, {"M", 20}, {"G", 30}, {"T", 40}}

// UnmarshalText reads a size.
func (s *Size) UnmarshalText(text []byte) error {
	number, shift := strings.TrimSpace(string(text)), 0
	bare := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(number), "B"), "I")
	for _, u := range units {
		if rest, ok := strings.CutSuffix(bare, u.name); ok {
			bare, shift = strings.TrimSpace(rest), u.shift
			break
		}
	}
	n, err := strconv.ParseInt(bare, 10, 64)
	if err != nil || n < 0 || n > 1<<62>>shift {
		return fmt.Errorf("%q is not a number of bytes: give it as 256MiB or 2GiB", text)
	}
	*s = Size(n << shift)
	return nil
}

// String formats the size in the largest unit of which it is a whole multiple.
func (s Size) String() string {
	for i := len(units) - 1; i >= 0; i-- {
		if u := units[i]; s != 0 && s&(1<<u.shift-1) == 0 {
			return strconv.FormatInt(int64(s>>u.shift), 10) + u.name + "iB"
		}
	}
	return strconv.FormatInt(int64(s), 10)
}
