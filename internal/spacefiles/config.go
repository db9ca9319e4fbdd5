package spacefiles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/goccy/go-yaml"

	"github.com/refold/refold/internal/yamlfile"
	"github.com/refold/refold/space"
	"github.com/refold/refold/subjects"
)

// Config says which spaces a bridge reads, by target.
type Config struct {
	Targets map[string]Target `yaml:"targets"`
}

// Target is the spaces of one target, by name.
type Target struct {
	Spaces map[string]Source `yaml:"spaces"`
}

// Source says where the files of a space are: in a folder, in a bucket or, for
// packs, in the stream of published packs.
type Source struct {
	Dir    string `yaml:"dir"`    // on this machine; a version is a folder in it
	Bucket string `yaml:"bucket"` // a NATS object store; a version is a prefix below Prefix
	Prefix string `yaml:"prefix"` // of the names of objects; ends with a slash
	Scan   *bool  `yaml:"scan"`   // false: a space must have an index
	Packs  bool   `yaml:"packs"`  // published packs; under the name *, all without an entry of their own

	Secrets map[string]SecretSource `yaml:"secrets"` // of the space, by name
}

// SecretSource says where the value of a secret is: in a file or an environment
// variable. It is read on each use.
type SecretSource struct {
	File string `yaml:"file"`
	Env  string `yaml:"env"`
}

// AnySpace stands for all spaces of a target without an entry of their own.
const AnySpace = "*"

// LoadConfig reads the file of a Config. Folders are relative to the file. The
// error reports every problem, each with its key.
func LoadConfig(file string) (*Config, error) {
	text, err := yamlfile.Read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	c := new(Config)
	if err := yaml.UnmarshalWithOptions(text, c, yaml.Strict(), yaml.DisallowUnknownField()); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", file, yamlfile.Explain(err, c))
	}
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, t := range c.Targets {
		for name, s := range t.Spaces {
			if s.Dir != "" && !filepath.IsAbs(s.Dir) {
				s.Dir = filepath.Join(filepath.Dir(file), s.Dir)
				t.Spaces[name] = s
			}
			for secret, from := range s.Secrets {
				if from.File != "" && !filepath.IsAbs(from.File) {
					from.File = filepath.Join(filepath.Dir(file), from.File)
					s.Secrets[secret] = from
				}
			}
		}
	}
	return c, nil
}

// isBucket matches the names that NATS accepts for an object store.
var isBucket = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func (c *Config) validate() error {
	var all []error
	say := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	if len(c.Targets) == 0 {
		say("targets: name one, with its spaces")
	}
	for _, target := range slices.Sorted(maps.Keys(c.Targets)) {
		at := "targets." + target
		if err := subjects.ValidTarget(target); err != nil {
			say("%s: %w", at, err)
		}
		list := c.Targets[target].Spaces
		if len(list) == 0 {
			say("%s.spaces: name one, with dir, bucket or packs", at)
		}
		for _, name := range slices.Sorted(maps.Keys(list)) {
			s, at := list[name], at+".spaces."+name
			all = append(all, s.secretProblems(at)...)
			switch {
			case name == AnySpace && !s.Packs:
				say("%s: stands for published packs alone: write packs: true", at)
			case name != AnySpace && !space.IsSpaceName(name, space.Workspace):
				say("%s: a space's name is 1 to 64 of A-Za-z0-9_-, and not refold, host or none", at)
			case s.sources() != 1:
				say("%s: give one of dir, bucket and packs: true", at)
			case s.Packs && s.Scan != nil:
				say("%s.scan: a published pack is never scanned", at)
			case s.Bucket != "" && !isBucket.MatchString(s.Bucket):
				say("%s.bucket: %q names no object store: use A-Za-z0-9_-", at, s.Bucket)
			case s.Prefix != "" && s.Bucket == "":
				say("%s.prefix: only a bucket has use for it", at)
			case s.Prefix != "" && (s.Prefix[len(s.Prefix)-1] != '/' || !fs.ValidPath(s.Prefix[:len(s.Prefix)-1])):
				say("%s.prefix: is names joined by slashes, with a slash at the end", at)
			}
		}
	}
	return errors.Join(all...)
}

func (s *Source) sources() (n int) {
	for _, given := range []bool{s.Dir != "", s.Bucket != "", s.Packs} {
		if given {
			n++
		}
	}
	return n
}

func (s *Source) secretProblems(at string) (all []error) {
	for _, name := range slices.Sorted(maps.Keys(s.Secrets)) {
		from, at := s.Secrets[name], at+".secrets."+name
		switch {
		case !space.IsSecretName(name):
			all = append(all, fmt.Errorf("%s: a secret's name is letters, digits and _, such as CRM_KEY", at))
		case (from.File == "") == (from.Env == ""):
			all = append(all, fmt.Errorf("%s: give either file or env", at))
		case from.Env != "" && !space.IsSecretName(from.Env):
			all = append(all, fmt.Errorf("%s.env: %q names no environment variable", at, from.Env))
		}
	}
	return all
}

// Store lists a NATS object store: the entries whose names begin with prefix,
// which is cut off. The error wraps fs.ErrNotExist if the store does not exist.
type Store func(ctx context.Context, bucket, prefix string) (fs.FS, error)

// ErrVersion means that a space has no such version.
var ErrVersion = errors.New("there is no such version")

// Open opens the files of a source. version is the name of a folder or of a
// part of the prefix; empty: the source itself. Only buckets need store.
func (s *Source) Open(ctx context.Context, version string, store Store) (fs.FS, error) {
	if version != "" && (filepath.Base(version) != version || !fs.ValidPath(version) || version == ".") {
		return nil, fmt.Errorf("version %q is no name of a folder: %w", version, ErrVersion)
	}
	if s.Dir != "" {
		return s.openDir(version)
	}
	prefix := s.Prefix
	if version != "" {
		prefix += version + "/"
	}
	objects, err := store(ctx, s.Bucket, prefix)
	if err != nil || version == "" {
		return objects, err
	}
	if list, err := fs.ReadDir(objects, "."); err == nil && len(list) == 0 {
		return nil, fmt.Errorf("bucket %s has nothing below %s: %w", s.Bucket, prefix, ErrVersion)
	}
	return objects, nil
}

// openDir opens a folder, or the folder of a version in it. Errors do not
// contain the path: they are stored in the log.
func (s *Source) openDir(version string) (fs.FS, error) {
	dir, err := OpenDir(s.Dir)
	if err != nil {
		return nil, fmt.Errorf("the folder can't be opened: %w", pathless(err))
	}
	if version == "" {
		return dir, nil
	}
	below, err := dir.Below(version)
	switch {
	case err == nil:
		return below, nil
	case errors.Is(err, fs.ErrNotExist), codeOf(err) == space.PathEscapes:
		return nil, fmt.Errorf("in the folder, %q is no folder: %w", version, ErrVersion)
	}
	return nil, fmt.Errorf("the folder %q can't be opened: %w", version, pathless(err))
}

// pathless returns an error without its path.
func pathless(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
