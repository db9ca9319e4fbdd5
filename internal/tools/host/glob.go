package host

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

type globArguments struct {
	Pattern string `json:"pattern"`
}

// glob shows the paths that match a pattern, sorted: *, ?, [a-z], {a,b}, and **
// for any directories. Links are shown, and not followed by wildcards.
func (h *Host) glob(ctx context.Context, p *place, raw json.RawMessage) (string, error) {
	var args globArguments
	if err := decode(raw, &args); err != nil {
		return "", err
	}
	pattern, err := p.pattern(args.Pattern)
	if err != nil {
		return "", err
	}
	var found []string
	err = doublestar.GlobWalk(treeFS{ctx, p.root}, pattern, func(name string, d fs.DirEntry) error {
		if d.IsDir() {
			name += "/"
		}
		found = append(found, name)
		return ctx.Err()
	}, doublestar.WithNoFollow())
	if err == nil {
		// The walk takes file system errors for no match, a cancelled one too.
		err = ctx.Err()
	}
	if err != nil {
		return "", err
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

// pattern checks a glob and makes it relative to the working directory.
func (p *place) pattern(pattern string) (string, error) {
	if pattern == "" || strings.ContainsRune(pattern, 0) || !doublestar.ValidatePattern(pattern) {
		return "", refuse(CodeInvalidArguments, "pattern %.100q is no glob; use *, ?, [a-z], {a,b} and **/ for directories, and \\ before a character meant as such", pattern)
	}
	rel := pattern
	if path.IsAbs(pattern) {
		inside, ok := within(pattern, p.dir)
		if !ok {
			inside, ok = within(pattern, p.was)
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

// treeFS is the working directory as a file system whose calls end with a
// context: a walk of a large tree asks nobody else whether it is still wanted.
type treeFS struct {
	ctx  context.Context
	root *os.Root
}

// Open opens a file.
func (t treeFS) Open(name string) (fs.File, error) {
	if err := t.ctx.Err(); err != nil {
		return nil, err
	}
	return t.root.FS().Open(name)
}

// ReadDir reads a directory, sorted by name.
func (t treeFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := t.ctx.Err(); err != nil {
		return nil, err
	}
	return fs.ReadDir(t.root.FS(), name)
}

// Stat follows links, as far as they stay inside.
func (t treeFS) Stat(name string) (fs.FileInfo, error) {
	if err := t.ctx.Err(); err != nil {
		return nil, err
	}
	return t.root.Stat(name)
}
