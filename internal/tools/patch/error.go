package patch

import (
	"strconv"
	"strings"
)

// Error says what is wrong with a patch, and where. Nothing was changed.
type Error struct {
	Path   string // the section's file, or empty
	Hunk   int    // of that section, from 1; 0: none
	Line   int    // of the patch, from 1; 0: none
	Detail string // what to do about it
}

// Error returns "PATH: hunk N: patch line N: detail", without unknown parts.
func (e *Error) Error() string {
	var parts []string
	if e.Path != "" {
		parts = append(parts, e.Path)
	}
	if e.Hunk > 0 {
		parts = append(parts, "hunk "+strconv.Itoa(e.Hunk))
	}
	if e.Line > 0 {
		parts = append(parts, "patch line "+strconv.Itoa(e.Line))
	}
	return strings.Join(append(parts, e.Detail), ": ")
}

// quotedMax is how many bytes of a line an error shows.
const quotedMax = 100

// quote quotes a line for an error, and cuts it if it is long.
func quote(line string) string {
	if len(line) > quotedMax {
		line = strings.ToValidUTF8(line[:quotedMax], "") + "…"
	}
	return strconv.Quote(line)
}
