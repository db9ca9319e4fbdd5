package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/spacefiles"
	"github.com/refold/refold/internal/transcript"
	"github.com/refold/refold/space"
)

// bundled is a folder whose manifest goes into a record.
type bundled struct {
	name, dir string
	built     spacefiles.Built
}

// bundle reads the folder of a space. Without a name it takes the index's or the
// folder's. It prints problems, and returns their number as an error.
func bundle(ctx context.Context, s streams, name, dir string) (*bundled, error) {
	built, err := readFolder(ctx, dir, name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	tellWarnings(s, dir, built.Warnings)
	if built.Manifest != nil && (name == "" || built.Manifest.Space == name) {
		return &bundled{name: built.Manifest.Space, dir: dir, built: built}, nil
	}
	if built.Manifest != nil {
		return nil, fmt.Errorf("%s: its index calls the space %s, not %s: use that name", dir, built.Manifest.Space, name)
	}
	for _, p := range built.Problems {
		fmt.Fprintln(s.out, placed(dir, p))
	}
	return nil, fmt.Errorf("%s: %s", dir, transcript.Count(len(built.Problems), "problem"))
}

// decodeRecord decodes a record, JSON or msgpack.
func decodeRecord(record []byte) (r session.InstallRecord, err error) {
	canonical, err := codec.Canonicalize(record)
	if err == nil {
		err = codec.Decode(canonical, &r)
	}
	return r, err
}

// into returns the record with the manifest embedded: in the grant of that name, or
// in a new one, which copies the first grant whose wildcard matches the space.
func (b *bundled) into(record []byte) ([]byte, error) {
	r, err := decodeRecord(record)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(r.Spaces, func(g spaces.Grant) bool { return g.Space == b.name })
	if i < 0 {
		grant := spaces.Grant{Space: b.name}
		if b.built.Manifest.Kind == space.Pack {
			grant.Kind = space.Pack
		}
		if i = slices.IndexFunc(r.Spaces, func(g spaces.Grant) bool { return b.isWildcard(g) && g.Kind == grant.Kind }); i >= 0 {
			grant = r.Spaces[i]
			grant.Space = b.name
		}
		i = max(i, 0)
		r.Spaces = slices.Insert(r.Spaces, i, grant)
	}
	r.Spaces[i].Manifest = b.built.Manifest.Bytes()
	return codec.Marshal(r)
}

// withoutManifests returns a record whose grants have no workspace's manifest.
func withoutManifests(record []byte) ([]byte, error) {
	r, err := decodeRecord(record)
	if err != nil {
		return nil, err
	}
	for i := range r.Spaces {
		if r.Spaces[i].Kind != space.Pack {
			r.Spaces[i].Manifest = nil
		}
	}
	return codec.Marshal(r)
}

// isWildcard reports whether a grant is for the space and for others.
func (b *bundled) isWildcard(g spaces.Grant) bool {
	prefix, wildcard := strings.CutSuffix(g.Space, "*")
	return wildcard && strings.HasPrefix(b.name, prefix)
}

// store stores the files and then the manifest, for the first session to open.
func (b *bundled) store(ctx context.Context, to *bus.Bus) error {
	m := b.built.Manifest
	for i := range m.Files {
		if _, err := to.PutBlob(ctx, b.built.Files[m.Files[i].Ref]); err != nil {
			return fmt.Errorf("store %s: %w", m.Files[i].Path, err)
		}
	}
	if _, err := to.PutBlob(ctx, m.Bytes()); err != nil {
		return fmt.Errorf("store the manifest of %s: %w", b.name, err)
	}
	return nil
}

// warn prints the warnings that a fresh session under the record would have.
func (b *bundled) warn(s streams, install *session.Install) error {
	problems, warnings, err := install.CheckSpace(b.built.Manifest)
	if err != nil && !errors.Is(err, spaces.ErrNotGranted) { // a manifest in the record needs no signature
		return err
	}
	tellWarnings(s, "", slices.DeleteFunc(append(problems, warnings...), func(p space.Problem) bool { return p.Code == space.NoIndex }))
	return nil
}

// parseBundles reads the folders of --space NAME=DIR.
func parseBundles(ctx context.Context, s streams, given []string) (all []*bundled, err error) {
	for _, text := range given {
		name, dir, ok := strings.Cut(text, "=")
		if !ok || dir == "" || !space.IsSpaceName(name, space.Workspace) {
			return nil, &statusError{statusUsage, fmt.Sprintf("install: --space %s: is NAME=DIR, a name of A-Za-z0-9_- and a folder", text)}
		}
		b, err := bundle(ctx, s, name, dir)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}
