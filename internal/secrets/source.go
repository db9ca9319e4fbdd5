package secrets

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/refold/refold/space"
)

// Source finds the value of a secret of a space. The empty value means that it
// has none. An error must not hold a value.
type Source interface {
	Secret(ctx context.Context, space, name string) (string, error)
}

// Func is a function that is a Source.
type Func func(ctx context.Context, space, name string) (string, error)

// Secret calls f.
func (f Func) Secret(ctx context.Context, space, name string) (string, error) {
	return f(ctx, space, name)
}

// Chain asks its sources in turn: the first value that is not empty counts.
type Chain []Source

// Secret returns the first value.
func (c Chain) Secret(ctx context.Context, space, name string) (string, error) {
	for _, s := range c {
		value, err := s.Secret(ctx, space, name)
		switch {
		case err != nil:
			return "", fmt.Errorf("secret %s: %w", name, err)
		case len(value) > ValueBytesMax:
			return "", fmt.Errorf("secret %s has %d bytes, at most %d", name, len(value), ValueBytesMax)
		case value != "":
			return value, nil
		}
	}
	return "", nil
}

// ReadFile returns what a file holds, without a line break at its end; nothing if
// there is no such file.
func ReadFile(name string) (string, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", pathless(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, ValueBytesMax+2))
	if err != nil {
		return "", pathless(err)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), nil
}

// pathless returns what an error says without the path: it may be stored.
func pathless(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return fmt.Errorf("its file can't be read: %w", at.Err)
	}
	return err
}

// Files is a folder with a file for each secret, called as the secret is: what
// Kubernetes and agents of secret managers write.
type Files string

// Secret reads the file of that name.
func (d Files) Secret(_ context.Context, _, name string) (string, error) {
	if !space.IsSecretName(name) {
		return "", nil
	}
	return ReadFile(filepath.Join(string(d), name))
}

// Entry of a catalog says where the value of a secret is by default.
type Entry struct {
	ID       string `json:"id"`       // the secret's name
	Label    string `json:"label"`    // for people
	Env      string `json:"env"`      // the environment variable that holds it
	DocsURL  string `json:"docs_url"` // where people learn how to get it
	Optional bool   `json:"optional"` // what needs it can do without it
}

// Catalog is entries by the secret's name. As a Source it reads the environment
// variables of its entries, and no other.
type Catalog struct {
	entries map[string]Entry
	lookup  func(string) (string, bool) // of the environment
}

//go:embed catalog.json
var builtin []byte

// NewCatalog returns the built-in catalog. Files, JSON lists of entries as
// docs/packs.md shows one, add to it; a later entry replaces one of the same id.
// lookup is os.LookupEnv or does the same.
func NewCatalog(lookup func(string) (string, bool), files ...string) (*Catalog, error) {
	c := &Catalog{entries: map[string]Entry{}, lookup: lookup}
	if err := c.add(builtin); err != nil {
		return nil, fmt.Errorf("built-in catalog of secrets: %w", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err == nil {
			err = c.add(text)
		}
		if err != nil {
			return nil, fmt.Errorf("catalog of secrets %s: %w", name, err)
		}
	}
	return c, nil
}

// add reads a list of entries. The error tells of all that are wrong.
func (c *Catalog) add(text []byte) error {
	var list []Entry
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&list); err != nil {
		return err
	}
	var all []error
	for i, e := range list {
		switch {
		case !space.IsSecretName(e.ID):
			all = append(all, fmt.Errorf("[%d].id: is the name of a secret: letters, digits and _, such as CRM_KEY", i))
		case !space.IsSecretName(e.Env):
			all = append(all, fmt.Errorf("[%d].env: is the name of an environment variable, such as CRM_KEY", i))
		case slices.ContainsFunc(list[:i], func(other Entry) bool { return other.ID == e.ID }):
			all = append(all, fmt.Errorf("[%d].id: %s is there twice", i, e.ID))
		}
		c.entries[e.ID] = e
	}
	return errors.Join(all...)
}

// Names returns the names of all secrets that have an entry.
func (c *Catalog) Names() []string { return slices.Sorted(maps.Keys(c.entries)) }

// Entry returns the entry of a secret.
func (c *Catalog) Entry(name string) (Entry, bool) {
	e, ok := c.entries[name]
	return e, ok
}

// Secret returns the environment variable of the secret's entry.
func (c *Catalog) Secret(_ context.Context, _, name string) (string, error) {
	e, ok := c.entries[name]
	if !ok {
		return "", nil
	}
	value, _ := c.lookup(e.Env)
	return value, nil
}

// Advice says how to give a secret to a bridge.
func (c *Catalog) Advice(name string) string {
	e, ok := c.entries[name]
	if !ok {
		return "give the bridge a file with it (--secret " + name + "=FILE)"
	}
	text := "give the bridge a file with it (--secret " + name + "=FILE), or the environment variable " + e.Env
	if e.Label != "" {
		text = e.Label + ": " + text
	}
	if e.DocsURL != "" {
		text += "; see " + e.DocsURL
	}
	return text
}
