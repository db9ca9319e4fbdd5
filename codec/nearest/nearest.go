// Package nearest suggests the known name that is the fewest edits away from a
// misspelt one. It is a pure function of its arguments, so that a fold may use it.
//
// # Limits
//
// Names of more than NameBytesMax bytes, and known names after the first KnownMax,
// are ignored: an error must not cost more than its cause.
package nearest

import "strings"

// The limits of Name.
const (
	NameBytesMax = 32  // of a name
	KnownMax     = 256 // known names
	editsMax     = 3   // between a name and the one that was meant
)

// Name returns the known name that is nearest to an unknown one, the first of several
// equally near ones; empty if none is near. An edit adds, removes or changes a byte, or
// swaps two; a name may need one for every three bytes, and at most three. Case is
// ignored.
func Name(name string, known []string) string {
	if len(name) == 0 || len(name) > NameBytesMax {
		return ""
	}
	lower, best := strings.ToLower(name), ""
	within := min(editsMax, len(name)/3)
	for _, candidate := range known[:min(len(known), KnownMax)] {
		if candidate == name || len(candidate) > NameBytesMax {
			continue
		}
		if edits := distance(lower, strings.ToLower(candidate), within); edits <= within {
			best, within = candidate, edits-1
		}
		if within < 0 {
			break
		}
	}
	return best
}

// distance returns how many edits turn a into b, or a number over most.
func distance(a, b string, most int) int {
	if len(a)-len(b) > most || len(b)-len(a) > most {
		return most + 1
	}
	var rows [3][NameBytesMax + 1]int // for the current byte of a and the two before it
	for j := range len(b) + 1 {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		above2, above, row := &rows[(i+2)%3], &rows[i%3], &rows[(i+1)%3]
		row[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			n := min(above[j], row[j-1]) + 1
			if a[i-1] == b[j-1] {
				n = min(n, above[j-1])
			} else {
				n = min(n, above[j-1]+1)
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				n = min(n, above2[j-2]+1)
			}
			row[j], least = n, min(least, n)
		}
		if least > most {
			return most + 1
		}
	}
	return rows[(len(a)+1)%3][len(b)]
}
