package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/refold/refold/codec"
)

// Pin is the imported properties of a tool, on which calls rely.
type Pin struct {
	Tool   string    `json:"tool"`   // its name at the server
	Schema codec.Ref `json:"schema"` // hash of the schema, as the server listed it
	// Hints are those of read_only, idempotent and destructive that apply.
	Hints []string `json:"hints"`
}

// Lock holds the pins by tool_id.
type Lock map[string]Pin

// LockFile returns the name of a config file's lock.
func LockFile(config string) string { return config + ".lock" }

const lockVersion = 1

type lockFile struct {
	V     int  `json:"v"`
	Tools Lock `json:"tools"`
}

// ReadLock reads the lock of a config file. If it is missing, the error says
// how to make it.
func ReadLock(config string) (Lock, error) {
	file := LockFile(config)
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s is not there, and no tool runs that was not imported: refold tools import mcp %s writes it (%w)", file, config, os.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d := json.NewDecoder(io.LimitReader(f, lockBytesMax))
	d.DisallowUnknownFields()
	var l lockFile
	if err := d.Decode(&l); err != nil {
		return nil, fmt.Errorf("%s: %w: import the tools again", file, err)
	}
	if l.V != lockVersion {
		return nil, fmt.Errorf("%s: is of version %d, and this program knows %d: import the tools again", file, l.V, lockVersion)
	}
	return l.Tools, nil
}

// WriteLock writes the lock of a config file atomically.
func WriteLock(config string, l Lock) error {
	text, err := json.MarshalIndent(lockFile{V: lockVersion, Tools: l}, "", "  ")
	if err != nil {
		return err
	}
	file := LockFile(config)
	if there, err := os.ReadFile(file); err == nil && bytes.Equal(there, append(text, '\n')) {
		return nil
	}
	temp, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	_, err = temp.Write(append(text, '\n'))
	err = errors.Join(err, temp.Chmod(0o644), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return nil
}

// differences names the properties in which two pins differ.
func (p Pin) differences(is Pin) (names []string) {
	if p.Tool != is.Tool {
		names = append(names, "name")
	}
	if p.Schema != is.Schema {
		names = append(names, "schema")
	}
	for _, hint := range hints {
		if slices.Contains(p.Hints, hint) != slices.Contains(is.Hints, hint) {
			names = append(names, hint)
		}
	}
	return names
}

// The hints of a Pin, as registries name them.
const (
	hintReadOnly    = "read_only"
	hintIdempotent  = "idempotent"
	hintDestructive = "destructive"
)

var hints = []string{hintReadOnly, hintIdempotent, hintDestructive}

// Since returns how tools have changed since an earlier import, for people.
func (l Lock) Since(before Lock) (notes []string) {
	for _, id := range slices.Sorted(maps.Keys(before)) {
		is, there := l[id]
		if !there {
			notes = append(notes, id+" is not there any more")
			continue
		}
		if changed := before[id].differences(is); len(changed) > 0 {
			notes = append(notes, fmt.Sprintf("%s has changed since it was imported: %s", id, strings.Join(changed, ", ")))
		}
	}
	return notes
}
