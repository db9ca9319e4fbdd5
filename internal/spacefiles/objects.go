package spacefiles

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// ErrReplaced means that an object was replaced or deleted after it was listed.
var ErrReplaced = errors.New("the object was replaced after it was listed")

// Object is an entry of an object store.
type Object struct {
	Name     string // with slashes: prompts/base.md
	Size     int64
	Modified time.Time
}

// Objects is a file system of objects. Objects whose names are not paths are
// left out: nothing can name them.
type Objects struct {
	entries []Object // by name
	get     func(name string, size int64) ([]byte, error)
}

// NewObjects returns the objects of a store as a file system. get returns the
// content of one, of at most size bytes; its error wraps ErrReplaced if the
// object was replaced after it was listed.
func NewObjects(entries []Object, get func(name string, size int64) ([]byte, error)) *Objects {
	valid := slices.DeleteFunc(slices.Clone(entries), func(o Object) bool { return !fs.ValidPath(o.Name) || o.Name == "." })
	slices.SortFunc(valid, func(a, b Object) int { return cmp.Compare(a.Name, b.Name) })
	return &Objects{entries: valid, get: get}
}

// find returns the object of that name; folder means that there are names below it.
func (o *Objects) find(name string) (entry Object, folder, ok bool) {
	i, ok := slices.BinarySearchFunc(o.entries, name, func(e Object, name string) int { return cmp.Compare(e.Name, name) })
	if ok {
		return o.entries[i], false, true
	}
	below := name + "/"
	i, _ = slices.BinarySearchFunc(o.entries, below, func(e Object, name string) int { return cmp.Compare(e.Name, name) })
	folder = name == "." || i < len(o.entries) && strings.HasPrefix(o.entries[i].Name, below)
	return Object{Name: name}, folder, folder
}

// Open returns a file, with its content, or a folder.
func (o *Objects) Open(name string) (fs.File, error) {
	entry, folder, ok := o.find(name)
	if !ok || !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	f := &object{info: objectInfo{entry, folder}}
	if folder {
		return f, nil
	}
	content, err := o.get(name, entry.Size)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	f.Reset(content)
	return f, nil
}

// Stat describes a file or folder.
func (o *Objects) Stat(name string) (fs.FileInfo, error) {
	entry, folder, ok := o.find(name)
	if !ok || !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return objectInfo{entry, folder}, nil
}

// ReadDir lists a folder.
func (o *Objects) ReadDir(name string) ([]fs.DirEntry, error) {
	below := name + "/"
	if name == "." {
		below = ""
	}
	var list []fs.DirEntry
	start, _ := slices.BinarySearchFunc(o.entries, below, func(e Object, name string) int { return cmp.Compare(e.Name, name) })
	for _, e := range o.entries[start:] {
		rest, ok := strings.CutPrefix(e.Name, below)
		if !ok {
			break
		}
		first, _, deeper := strings.Cut(rest, "/")
		if deeper && len(list) > 0 && list[len(list)-1].Name() == first {
			continue
		}
		if deeper {
			e = Object{Name: below + first}
		}
		list = append(list, fs.FileInfoToDirEntry(objectInfo{e, deeper}))
	}
	return list, nil
}

type object struct {
	bytes.Reader
	info objectInfo
}

func (f *object) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *object) Close() error               { return nil }

type objectInfo struct {
	entry  Object
	folder bool
}

func (i objectInfo) Name() string       { return path.Base(i.entry.Name) }
func (i objectInfo) Size() int64        { return i.entry.Size }
func (i objectInfo) ModTime() time.Time { return i.entry.Modified }
func (i objectInfo) IsDir() bool        { return i.folder }
func (i objectInfo) Sys() any           { return nil }
func (i objectInfo) Mode() fs.FileMode {
	if i.folder {
		return fs.ModeDir | 0o555
	}
	return 0o444
}
