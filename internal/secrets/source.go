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

// Source returns the value of a secret of a space, empty if it has none. An error
// must not contain a value.
type Source interface {
	Secret(ctx context.Context, space, name string) (string, error)
}

// Func is a function as a Source.
type Func func(ctx context.Context, space, name string) (string, error)

// Secret calls f.
func (f Func) Secret(ctx context.Context, space, name string) (string, error) {
	return f(ctx, space, name)
}

// Chain tries its sources in turn: the first value that is not empty counts.
type Chain []Source

// Secret implements Source.
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

// ReadFile returns the content of a file, without a line break at its end;
// nothing if there is no such file.
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

// pathless returns an error without its path, since it may be stored.
func pathless(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return fmt.Errorf("its file can't be read: %w", at.Err)
	}
	return err
}

// Files is a folder with a file for each secret, which has the secret's name, as
// Kubernetes and secret managers write it.
type Files string

// Secret reads the file of that name.
func (d Files) Secret(_ context.Context, _, name string) (string, error) {
	if !space.IsSecretName(name) {
		return "", nil
	}
	return ReadFile(filepath.Join(string(d), name))
}

// Entry of a catalog has the default source of a secret.
type Entry struct {
	ID       string `json:"id"`       // the secret's name
	Label    string `json:"label"`    // for people
	Env      string `json:"env"`      // its environment variable
	DocsURL  string `json:"docs_url"` // explains how to get it
	Optional bool   `json:"optional"` // tools that need it also work without it
}

// Catalog holds entries by the secret's name. As a Source it reads the environment
// variables of its entries, and no others.
type Catalog struct {
	entries map[string]Entry
	lookup  func(string) (string, bool) // of the environment
}

//go:embed catalog.json
var builtin []byte

// NewCatalog returns the built-in catalog with the entries of files, which are
// JSON lists as in docs/packs.md; a later entry replaces an earlier one with the
// same id. lookup is os.LookupEnv or a replacement.
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

// add reads a list of entries. The error reports every problem.
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
			all = append(all, fmt.Errorf("[%d].id: want the name of a secret: letters, digits and _, such as CRM_KEY", i))
		case !space.IsSecretName(e.Env):
			all = append(all, fmt.Errorf("[%d].env: want the name of an environment variable, such as CRM_KEY", i))
		case slices.ContainsFunc(list[:i], func(other Entry) bool { return other.ID == e.ID }):
			all = append(all, fmt.Errorf("[%d].id: %s is listed twice", i, e.ID))
		}
		c.entries[e.ID] = e
	}
	return errors.Join(all...)
}

// Names returns the names of all secrets with an entry.
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

// Advice returns a text that says how to give a secret to a bridge.
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
