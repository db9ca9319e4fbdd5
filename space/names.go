package space

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/refold/refold/planner"
)

// reserved are names that no space may have: each is a target or a choice.
var reserved = []string{"refold", "host", None}

// IsSpaceName reports whether name can name a space of that kind.
func IsSpaceName(name string, kind Kind) bool {
	return planner.IsName(name) && !slices.Contains(reserved, name) && (kind != Pack || len(name) <= PackNameBytesMax)
}

// IsID reports whether id can name a prompt pack, a catalog or a group.
func IsID(id string) bool { return planner.IsName(id) && id != None }

// IsPath reports whether p names a file below the root: names joined by single
// slashes, none of them . or .., without control characters and backslashes.
func IsPath(p string) bool {
	if p == "" || p == "." || len(p) > PathBytesMax || !utf8.ValidString(p) || path.Clean(p) != p || p[0] == '/' || p == ".." || strings.HasPrefix(p, "../") {
		return false
	}
	return !strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == 0x7F || r == '\\' })
}

// IsSkillName reports whether name can name a skill: 1 to 64 of a-z0-9-, no
// hyphen at an end or doubled.
func IsSkillName(name string) bool {
	if name == "" || len(name) > TokenBytesMax || strings.Contains(name, "--") || name[0] == '-' || name[len(name)-1] == '-' {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool { return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') })
}

// IsNeed reports whether need is secret:NAME, env:NAME, bin:a|b or
// os:linux|darwin, with a ? at its end if it is optional.
func IsNeed(need string) bool {
	if len(need) > NeedBytesMax {
		return false
	}
	kind, what, ok := strings.Cut(strings.TrimSuffix(need, "?"), ":")
	if !ok || what == "" {
		return false
	}
	switch kind {
	case "secret", "env":
		return IsSecretName(what)
	case "bin", "os":
		for one := range strings.SplitSeq(what, "|") {
			if one == "" || strings.ContainsFunc(one, func(r rune) bool { return r > 0x7E || !isAlphanumeric(byte(r)) && !strings.ContainsRune("._+-", r) }) {
				return false
			}
		}
		return true
	}
	return false
}

// IsSecretName reports whether s can name a secret or an environment variable:
// letters, digits and _, not a digit first.
func IsSecretName(s string) bool {
	for i := range len(s) {
		if c := s[i]; c != '_' && !isAlphanumeric(c) || i == 0 && '0' <= c && c <= '9' {
			return false
		}
	}
	return s != ""
}

func isText(s string, max int) bool { return len(s) <= max && utf8.ValidString(s) }

// quoted quotes and shortens an untrusted name for a detail.
func quoted(name string) string { return strconv.QuoteToASCII(clip(name, TokenBytesMax)) }

// at formats a place in a list: files[3].
func at(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }
