package spacefiles

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path"
	"syscall"
)

// Dir is a folder. Links that lead out of it can't be read.
type Dir struct {
	root *os.Root
	fs   fs.FS // of root: for names and sizes
}

// OpenDir opens a folder. The caller must close it.
func OpenDir(name string) (*Dir, error) {
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return &Dir{root: root, fs: root.FS()}, nil
}

// Below returns the folder of that name right below d, and closes d.
func (d *Dir) Below(name string) (*Dir, error) {
	defer d.Close()
	if name != path.Base(name) || !fs.ValidPath(name) || name == "." {
		return nil, fmt.Errorf("%q is no name of a folder: %w", name, fs.ErrNotExist)
	}
	if info, err := d.Stat(name); err != nil || !info.IsDir() {
		return nil, cmp.Or(err, fs.ErrNotExist)
	}
	root, err := d.root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return &Dir{root: root, fs: root.FS()}, nil
}

// Open opens a file or a folder. It does not block on a pipe without a writer.
func (d *Dir) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return d.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// Stat describes a file or folder. It follows links inside the folder.
func (d *Dir) Stat(name string) (fs.FileInfo, error) { return fs.Stat(d.fs, name) }

// ReadDir lists a folder.
func (d *Dir) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(d.fs, name) }

// Close closes the folder.
func (d *Dir) Close() error { return d.root.Close() }
