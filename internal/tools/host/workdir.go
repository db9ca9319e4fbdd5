package host

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// workdir is the working directory of one host session, opened for one call.
type workdir struct {
	root       *os.Root
	dir        string // absolute, symbolic links resolved
	configured string // absolute, as configured
	git        bool   // what is in .git may be used
}

// openWorkdir opens the directory rel of base, which may not lead out of base.
func openWorkdir(base, rel string) (*workdir, error) {
	outer, err := os.OpenRoot(base)
	if err != nil {
		return nil, err
	}
	defer outer.Close()
	root, err := outer.OpenRoot(rel)
	if err != nil {
		return nil, err
	}
	configured := filepath.Join(base, rel)
	dir, err := filepath.EvalSymlinks(configured)
	if err == nil {
		err = sameDirectory(root, dir)
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return &workdir{root: root, dir: dir, configured: configured}, nil
}

// sameDirectory returns an error if the path does not name the open directory any
// more: a command of another session that shares it may replace it by a link.
func sameDirectory(root *os.Root, dir string) error {
	opened, err := root.Stat(".")
	if err != nil {
		return err
	}
	if named, err := os.Lstat(dir); err != nil || !os.SameFile(opened, named) {
		return refuse(CodeIO, "the working directory was moved or replaced during the call; try again")
	}
	return nil
}

func (p *workdir) close() { p.root.Close() }

// local turns a path from a model into a clean relative one. It is cleaned as
// text, before links are resolved, just as the planner does to decide which
// calls touch the same file (TestKeysAreThePathsOfTheHost).
func (p *workdir) local(name string) (string, error) {
	switch {
	case name == "":
		return "", refuse(CodeInvalidArguments, "the path is empty; use \".\" for the working directory")
	case strings.ContainsRune(name, 0):
		return "", refuse(CodeInvalidArguments, "the path holds a zero byte")
	}
	rel := path.Clean(name)
	if path.IsAbs(rel) {
		inside, ok := within(rel, p.dir)
		if !ok {
			inside, ok = within(rel, p.configured)
		}
		if !ok {
			return "", escapes(name)
		}
		rel = inside
	}
	if rel == ".." || strings.HasPrefix(rel, "../") {
		return "", escapes(name)
	}
	return rel, nil
}

func within(abs, dir string) (string, bool) {
	if abs == dir {
		return ".", true
	}
	rest, ok := strings.CutPrefix(abs, strings.TrimSuffix(dir, "/")+"/")
	return rest, ok
}

// resolve is follow for a path that is used, and not only asked about: it refuses
// .git and what is in it. Git runs programs that are named there (core.fsmonitor,
// hooks), for whoever uses it in the directory later.
func (p *workdir) resolve(name string) (string, error) {
	rel, err := p.follow(name)
	if err == nil && !p.git && inGit(rel) {
		return "", refuse(CodePermission, "%s belongs to .git, which file tools don't touch: git runs what its files name; use git in the shell", name)
	}
	return rel, err
}

// inGit reports whether a path is .git, or leads into it, in the spelling of any
// file system.
func inGit(rel string) bool {
	return slices.ContainsFunc(strings.Split(rel, "/"), func(part string) bool { return strings.EqualFold(part, ".git") })
}

// follow returns the path that name leads to: relative, clean and without
// symbolic links, so that two names of one file give one path. Elements that do
// not exist are kept. os.Root confines every later use of the path; following
// links first gives those to absolute paths inside the working directory a
// meaning, and names the path in errors about escapes.
func (p *workdir) follow(name string) (string, error) {
	rel, err := p.local(name)
	if err != nil {
		return "", err
	}
	pending := strings.Split(rel, "/")
	var done []string
	for links := 0; len(pending) > 0; {
		part := pending[0]
		pending = pending[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if len(done) == 0 {
				return "", escapes(name)
			}
			done = done[:len(done)-1]
			continue
		}
		target, isLink, err := p.link(path.Join(append(done[:len(done):len(done)], part)...))
		switch {
		case err != nil:
			return "", err
		case !isLink:
			done = append(done, part)
			continue
		}
		if links++; links > linksMax {
			return "", refuse(CodeNotRegular, "%s leads through more than %d symbolic links; use the path of the file itself", name, linksMax)
		}
		if path.IsAbs(target) {
			inside, ok := within(path.Clean(target), p.dir)
			if !ok {
				return "", escapes(name)
			}
			target, done = inside, nil
		}
		pending = append(strings.Split(target, "/"), pending...)
	}
	if len(done) == 0 {
		return ".", nil
	}
	return path.Join(done...), nil
}

// link reads the symbolic link at rel. isLink is false if there is none.
func (p *workdir) link(rel string) (target string, isLink bool, err error) {
	fi, err := p.root.Lstat(rel)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", false, nil
	case err != nil:
		return "", false, err
	case fi.Mode()&fs.ModeSymlink == 0:
		return "", false, nil
	}
	target, err = p.root.Readlink(rel)
	return target, true, err
}

func (p *workdir) abs(rel string) string { return filepath.Join(p.dir, filepath.FromSlash(rel)) }

// openText opens a regular file for reading. Errors about others say what to do
// instead. It never blocks on a pipe.
func (p *workdir) openText(name string) (*os.File, fs.FileInfo, error) {
	rel, err := p.resolve(name)
	if err != nil {
		return nil, nil, err
	}
	f, err := p.root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	fi, err := f.Stat()
	if err == nil {
		err = regular(name, fi.Mode())
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, fi, nil
}

// regular returns an error unless mode is a regular file's.
func regular(name string, mode fs.FileMode) error {
	switch {
	case mode.IsDir():
		return refuse(CodeIsDirectory, "%s is a directory; list_dir shows what is in it", name)
	case mode&fs.ModeSymlink != 0:
		return refuse(CodeNotRegular, "%s is a symbolic link; use the path of the file itself, or the shell", name)
	case !mode.IsRegular():
		return refuse(CodeNotRegular, "%s is a device, pipe or socket, not a file; use the shell", name)
	}
	return nil
}
