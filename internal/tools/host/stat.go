package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type pathArguments struct {
	Path string `json:"path"`
}

// stat describes the file or directory at a path.
func (h *Host) stat(_ context.Context, p *workdir, args pathArguments) (string, error) {
	rel, err := p.follow(args.Path)
	if err != nil {
		return "", err
	}
	fi, err := p.root.Stat(rel)
	if err != nil {
		return "", err
	}
	out := fmt.Sprintf("path: %s\ntype: %s\nsize: %d\nmode: %s\nmodified: %s\n",
		rel, fileType(fi.Mode()), fi.Size(), fi.Mode().Perm(), fi.ModTime().UTC().Format(time.RFC3339))
	return validText(out), nil
}

func fileType(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "directory"
	case mode.IsRegular():
		return "file"
	case mode&fs.ModeSymlink != 0:
		return "link"
	}
	return "other"
}

// exists returns true or false. A link that leads nowhere doesn't exist; a path
// that leads out of the working directory is refused.
func (h *Host) exists(_ context.Context, p *workdir, args pathArguments) (string, error) {
	rel, err := p.follow(args.Path)
	if err == nil {
		_, err = p.root.Stat(rel)
	}
	switch {
	case err == nil:
		return "true", nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return "false", nil
	}
	return "", err
}

type listDirArguments struct {
	Path *string `json:"path,omitempty"`
}

// listDir lists a directory, sorted by name: type, size in bytes and name of
// each entry, separated by tabs. Directories end in a slash, and links show
// their targets.
func (h *Host) listDir(ctx context.Context, p *workdir, args listDirArguments) (string, error) {
	name := "."
	if args.Path != nil {
		name = *args.Path
	}
	rel, err := p.directory(name)
	if err != nil {
		return "", err
	}
	entries, err := p.tree(ctx).ReadDir(rel)
	if err != nil {
		return "", err
	}
	if len(entries) == 0 {
		return "[the directory is empty]", nil
	}
	names := names{bytesMax: h.opts.OutputBytes}
	for i, e := range entries {
		if !names.add(p.entry(rel, e)) {
			names.left += len(entries) - i - 1
			break
		}
	}
	return names.show("use glob with a narrower pattern"), nil
}

func (p *workdir) entry(dir string, e fs.DirEntry) string {
	name, size := e.Name(), "-"
	switch {
	case e.IsDir():
		name += "/"
	case e.Type()&fs.ModeSymlink != 0:
		if target, err := p.root.Readlink(path.Join(dir, name)); err == nil {
			name += " -> " + target
		}
	case e.Type().IsRegular():
		if fi, err := p.root.Lstat(path.Join(dir, name)); err == nil {
			size = strconv.FormatInt(fi.Size(), 10)
		}
	}
	return fileType(e.Type()) + "\t" + size + "\t" + name
}

// directory resolves a path that must be a directory.
func (p *workdir) directory(name string) (string, error) {
	rel, err := p.resolve(name)
	if err != nil {
		return "", err
	}
	fi, err := p.root.Stat(rel)
	if err != nil {
		return "", err
	}
	if !fi.IsDir() {
		return "", refuse(CodeNotDirectory, "%s is a file, not a directory; use its directory %s", name, path.Dir(rel))
	}
	return rel, nil
}

// names is a list that is limited in lines and bytes.
type names struct {
	bytesMax int
	b        strings.Builder
	shown    int
	left     int
}

// add reports whether the name fitted.
func (n *names) add(line string) bool {
	line = validText(strings.ReplaceAll(line, "\n", `\n`)) + "\n"
	if n.left > 0 || n.shown == namesMax || n.b.Len()+len(line) > n.bytesMax {
		n.left++
		return false
	}
	n.b.WriteString(line)
	n.shown++
	return true
}

func (n *names) show(advice string) string {
	if n.left == 0 {
		return n.b.String()
	}
	return fmt.Sprintf("%s[%d more; %s]", n.b.String(), n.left, advice)
}
