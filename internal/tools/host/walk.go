package host

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// readAtOnce is how many entries of a directory are read between checks of the
// call's context.
const readAtOnce = 1024

// treeFS is the working directory as a file system for one call. Every entry
// that is read and every path element that is looked up is a step. All its
// calls fail once the steps are used up or the context has ended.
type treeFS struct {
	ctx  context.Context
	root *os.Root
	git  bool // .git has content
	left int  // steps left

	// lenient makes unreadable entries count as absent, for a walk that would
	// end at the error.
	lenient bool
}

func (p *workdir) tree(ctx context.Context) *treeFS {
	return &treeFS{ctx: ctx, root: p.root, git: p.git, left: walkStepsMax}
}

// errSteps ends a walk that takes too long.
var errSteps = refuse(CodeTooLarge, "more than %d files and directories to look at; begin at a directory further down, or use a narrower pattern", walkStepsMax)

func (t *treeFS) spend(steps int) error {
	if err := t.ctx.Err(); err != nil {
		return err
	}
	if t.left -= steps; t.left < 0 {
		return errSteps
	}
	return nil
}

func (t *treeFS) Open(name string) (fs.File, error) {
	if err := t.spend(parts(name)); err != nil {
		return nil, err
	}
	if t.hidden(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	f, err := t.root.FS().Open(name)
	return f, t.absent(err)
}

// ReadDir reads a directory, sorted by name.
func (t *treeFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := t.spend(parts(name)); err != nil {
		return nil, err
	}
	if t.hidden(name + "/.") {
		return nil, nil
	}
	f, err := t.root.Open(name)
	if err != nil {
		return nil, t.absent(err)
	}
	defer f.Close()
	var all []fs.DirEntry
	for {
		some, err := f.ReadDir(readAtOnce)
		all = append(all, some...)
		if spent := t.spend(len(some)); spent != nil {
			return nil, spent
		}
		switch {
		case errors.Is(err, io.EOF):
			all = slices.DeleteFunc(all, func(e fs.DirEntry) bool { return t.hidden(path.Join(name, e.Name())) })
			slices.SortFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
			return all, nil
		case err != nil:
			return nil, t.absent(err)
		}
	}
}

// Stat follows links that stay inside.
func (t *treeFS) Stat(name string) (fs.FileInfo, error) {
	if err := t.spend(parts(name)); err != nil {
		return nil, err
	}
	if t.hidden(name) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	fi, err := t.root.Stat(name)
	return fi, t.absent(err)
}

// hidden reports whether a walk passes over a path: the content of .git, and the
// temporary directories of commands.
func (t *treeFS) hidden(name string) bool {
	return !t.git && inGit(path.Dir(name)) || strings.HasPrefix(path.Base(name), tempPrefix)
}

// parts returns how many elements a path has; each of them is opened.
func parts(name string) int { return 1 + strings.Count(name, "/") }

func (t *treeFS) absent(err error) error {
	if err == nil || !t.lenient {
		return err
	}
	return &fs.PathError{Op: "open", Path: ".", Err: fs.ErrNotExist}
}
