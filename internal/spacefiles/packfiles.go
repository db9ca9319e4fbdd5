package spacefiles

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/refold/refold/space"
)

// BindingsName is the file in which PackFiles writes a pack's tools.
const BindingsName = "bindings.json"

// PackHead is the name, version and descriptions of a pack.
type PackHead struct {
	Name, Version, Description, DisplayName, Category string
}

// PackFiles returns the files that turn files into a pack with these tools and
// needs: an index and bindings, by name. An existing index is kept except for
// the fields of head; it must name no other bindings. files may be nil.
func PackFiles(files fs.FS, head PackHead, tools []json.RawMessage, needs []string) (map[string][]byte, error) {
	index := map[string]any{}
	if files != nil {
		text, err := fs.ReadFile(files, IndexName)
		if err == nil {
			err = json.Unmarshal(text, &index)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: %w", IndexName, err)
		}
		if named, ok := index["bindings"]; ok && named != BindingsName {
			return nil, fmt.Errorf("%s: names the bindings %v, and the tools are given otherwise: take that out", IndexName, named)
		}
	}
	index["v"], index["kind"], index["name"], index["version"] = 1, space.Pack, head.Name, head.Version
	for name, text := range map[string]string{"description": head.Description, "display_name": head.DisplayName, "category": head.Category} {
		if text != "" {
			index[name] = text
		}
	}
	added := map[string][]byte{}
	if delete(index, "bindings"); len(tools)+len(needs) > 0 {
		index["bindings"] = BindingsName
		bindings := map[string]any{"tools": append([]json.RawMessage{}, tools...)}
		if len(needs) > 0 {
			bindings["needs"] = needs
		}
		text, err := json.MarshalIndent(bindings, "", "  ")
		if err != nil {
			return nil, err
		}
		added[BindingsName] = append(text, '\n')
	}
	text, err := json.MarshalIndent(index, "", "  ")
	if err != nil {
		return nil, err
	}
	added[IndexName] = append(text, '\n')
	return added, nil
}

// Overlay returns files with others added, which replace files of the same
// name. files may be nil. The others are directly below the root.
func Overlay(files fs.FS, others map[string][]byte) fs.FS {
	var entries []Object
	for name, content := range others {
		entries = append(entries, Object{Name: name, Size: int64(len(content))})
	}
	added := NewObjects(entries, func(name string, _ int64) ([]byte, error) { return others[name], nil })
	if files == nil {
		return added
	}
	return overlay{files, added}
}

type overlay struct {
	below fs.FS
	added *Objects
}

// in returns the file system that has a name.
func (o overlay) in(name string) fs.FS {
	if _, folder, ok := o.added.find(name); ok && !folder {
		return o.added
	}
	return o.below
}

func (o overlay) Open(name string) (fs.File, error)          { return o.in(name).Open(name) }
func (o overlay) Stat(name string) (fs.FileInfo, error)      { return fs.Stat(o.in(name), name) }
func (o overlay) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(o.below, name) }
