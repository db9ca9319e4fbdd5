package host

import (
	"context"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

type globArguments struct {
	Pattern string `json:"pattern"`
}

// glob lists the paths that match a pattern, sorted: *, ?, [a-z], {a,b}, and **
// for any directories. Wildcards match links, but do not follow them.
func (h *Host) glob(ctx context.Context, p *workdir, args globArguments) (string, error) {
	patterns, err := p.patterns(args.Pattern)
	if err != nil {
		return "", err
	}
	var found []string
	tree := p.tree(ctx)
	tree.lenient = true
	for _, pattern := range patterns {
		err := doublestar.GlobWalk(tree, pattern, func(name string, d fs.DirEntry) error {
			if d.IsDir() {
				name += "/"
			}
			found = append(found, name)
			return tree.spend(0)
		}, doublestar.WithNoFollow(), doublestar.WithFailOnIOErrors())
		if err != nil {
			return "", err
		}
	}
	if len(found) == 0 {
		return "no matches", nil
	}
	slices.Sort(found)
	names := names{bytesMax: h.opts.OutputBytes}
	for _, name := range slices.Compact(found) {
		names.add(name)
	}
	return names.show("use a narrower pattern"), nil
}

// patterns checks a glob and expands its braces. The globs that it returns are
// relative to the working directory.
func (p *workdir) patterns(glob string) ([]string, error) {
	switch {
	case len(glob) > globBytesMax:
		return nil, refuse(CodeTooLarge, "the pattern has %d bytes; use one of at most %d", len(glob), globBytesMax)
	case glob == "" || strings.ContainsRune(glob, 0) || !doublestar.ValidatePattern(glob):
		return nil, notGlob(glob)
	}
	plain, ok := expandBraces(nil, glob)
	if !ok {
		return nil, refuse(CodeTooLarge, "the braces of the pattern stand for more than %d patterns; use fewer alternatives, or several calls", globsMax)
	}
	for i := range plain {
		var err error
		if plain[i], err = p.pattern(plain[i]); err != nil {
			return nil, err
		}
	}
	slices.Sort(plain)
	return slices.Compact(plain), nil
}

func notGlob(pattern string) error {
	return refuse(CodeInvalidArguments, "pattern %.100q is no glob; use *, ?, [a-z], {a,b} and **/ for directories, and \\ before a character meant as such", pattern)
}

// expandBraces appends the patterns of a valid glob: one for each choice of
// alternatives. It returns false if there are more than globsMax.
func expandBraces(out []string, glob string) ([]string, bool) {
	open, ends := alternatives(glob)
	if open < 0 {
		return append(out, glob), len(out) < globsMax
	}
	from := open + 1
	for _, end := range ends {
		var ok bool
		if out, ok = expandBraces(out, glob[:open]+glob[from:end]+glob[ends[len(ends)-1]+1:]); !ok {
			return nil, false
		}
		from = end + 1
	}
	return out, true
}

// alternatives returns where the first brace of a glob opens, or -1, and where
// each of its alternatives ends: at a comma, the last one at the closing brace.
func alternatives(glob string) (open int, ends []int) {
	open, depth := -1, 0
	for i := 0; i < len(glob); i++ {
		switch c := glob[i]; {
		case c == '\\':
			i++
		case c == '[':
			if end := classEnd(glob, i); end > 0 {
				i = end
			}
		case c == '{':
			if depth++; depth == 1 {
				open = i
			}
		case c == ',' && depth == 1:
			ends = append(ends, i)
		case c == '}' && depth > 0:
			if depth--; depth == 0 {
				return open, append(ends, i)
			}
		}
	}
	return -1, nil
}

// classEnd returns the end of the character class that begins at from.
func classEnd(glob string, from int) int {
	for i := from + 1; i < len(glob); i++ {
		switch glob[i] {
		case '\\':
			i++
		case ']':
			return i
		}
	}
	return 0
}

// pattern makes a glob without braces relative to the working directory.
func (p *workdir) pattern(pattern string) (string, error) {
	if pattern == "" || strings.ContainsRune(pattern, 0) || !doublestar.ValidatePattern(pattern) {
		return "", notGlob(pattern)
	}
	rel := pattern
	if path.IsAbs(pattern) {
		inside, ok := within(pattern, p.dir)
		if !ok {
			inside, ok = within(pattern, p.configured)
		}
		if !ok {
			return "", escapes(pattern)
		}
		rel = inside
	}
	var parts []string
	for part := range strings.SplitSeq(rel, "/") {
		switch part {
		case "", ".":
			continue
		case "..":
			return "", escapes(pattern)
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return ".", nil
	}
	return strings.Join(parts, "/"), nil
}
