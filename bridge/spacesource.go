package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/spaces"
	"github.com/refold/refold/internal/worker"
	"github.com/refold/refold/space"
)

// Folder reads spaces from a folder of this machine: every space is that folder. A
// version is the folder of that name in it.
type Folder struct {
	Dir    string
	NoScan bool // a folder without an index is not a space
}

// ReadSpace opens the folder.
func (f Folder) ReadSpace(ctx context.Context, r executor.SpaceRequest) (executor.SpaceContent, error) {
	return readSource(ctx, spaces.Source{Dir: f.Dir}, f.NoScan, r, nil)
}

// Bucket reads spaces from a NATS object store, over the connection of a bridge:
// every space is the objects whose names begin with Prefix. A version is a prefix
// below that.
type Bucket struct {
	Bridge *Bridge
	Name   string
	Prefix string // empty, or ends with a slash
	NoScan bool   // a folder without an index is not a space
}

// ReadSpace lists the bucket.
func (b Bucket) ReadSpace(ctx context.Context, r executor.SpaceRequest) (executor.SpaceContent, error) {
	return readSource(ctx, spaces.Source{Bucket: b.Name, Prefix: b.Prefix}, b.NoScan, r, b.Bridge.bus.Objects)
}

func readSource(ctx context.Context, s spaces.Source, noScan bool, r executor.SpaceRequest, store spaces.Store) (executor.SpaceContent, error) {
	files, err := s.Open(ctx, r.Version, store)
	switch {
	case errors.Is(err, spaces.ErrVersion):
		return executor.SpaceContent{}, &executor.Error{Code: worker.CodeVersionUnknown, Detail: err.Error()}
	case errors.Is(err, fs.ErrNotExist):
		return executor.SpaceContent{}, &executor.Error{Code: worker.CodeSpaceUnknown, Detail: err.Error()}
	case err != nil:
		return executor.SpaceContent{}, &executor.Error{Code: worker.CodeSpaceUnreadable, Detail: err.Error()}
	}
	content := executor.SpaceContent{Files: files, NoScan: noScan, Source: sourceModule}
	signature, err := spaces.ReadSignature(files)
	if err == nil {
		content.Sign, err = signOf(signature)
	}
	if err != nil {
		if c, ok := files.(io.Closer); ok {
			_ = c.Close() // it was only read
		}
		return executor.SpaceContent{}, &executor.Error{Code: worker.CodeSpaceUnreadable, Detail: err.Error()}
	}
	return content, nil
}

// signOf decodes a signature of a file or a message.
func signOf(s *spaces.Signature) (*executor.SpaceSignature, error) {
	if s == nil {
		return nil, nil
	}
	sig, err := s.Bytes()
	if err != nil {
		return nil, fmt.Errorf("the signature is not base64url: %w", err)
	}
	return &executor.SpaceSignature{Key: s.Key, Sig: sig}, nil
}

// Published reads packs from the stream of packs, over the connection of a
// bridge. For the version 1, 1.4 or 1.4.2 it reads the newest that matches,
// without a version the newest release.
type Published struct{ Bridge *Bridge }

// ReadSpace reads the manifest of a published version. Its files are stored
// already.
func (p Published) ReadSpace(ctx context.Context, r executor.SpaceRequest) (executor.SpaceContent, error) {
	if !space.IsSpaceName(r.Space, space.Pack) || r.Kind != string(space.Pack) {
		return executor.SpaceContent{}, &executor.Error{Code: worker.CodeSpaceUnknown, Detail: fmt.Sprintf("only packs are published, and %s %s is none", r.Kind, r.Space)}
	}
	found, known, err := p.Bridge.bus.FindPack(ctx, r.Space, r.Version)
	switch {
	case errors.Is(err, natsio.ErrNotFound) && len(known) == 0:
		return executor.SpaceContent{}, &executor.Error{Code: worker.CodeSpaceUnknown, Detail: fmt.Sprintf("no version of %s is published: publish one with refold pack publish", r.Space)}
	case errors.Is(err, natsio.ErrNotFound):
		slices.Sort(known)
		return executor.SpaceContent{}, &executor.Error{Code: worker.CodeVersionUnknown, Detail: fmt.Sprintf("no published version of %s is %s; there are %s", r.Space, cmp.Or(r.Version, "a release"), strings.Join(known, ", "))}
	case err != nil:
		return executor.SpaceContent{}, err
	}
	m, problems := space.Parse(found.Manifest)
	if m == nil {
		return executor.SpaceContent{}, &executor.Error{Code: worker.CodeSpaceInvalid, Detail: fmt.Sprintf("the published manifest of %s %s: %s", found.Pack, found.Version, problems[0])}
	}
	content := executor.SpaceContent{Manifest: m, Source: sourcePackage}
	if found.Signature.Key != "" {
		content.Sign, err = signOf(&spaces.Signature{Key: found.Signature.Key, Sig: found.Signature.Sig})
	}
	if err != nil {
		return executor.SpaceContent{}, &executor.Error{Code: worker.CodeSpaceUnreadable, Detail: err.Error()}
	}
	return content, nil
}

// Sources that the readers of this package report.
const (
	sourceModule  = "module"
	sourcePackage = "package"
	sourceFactory = "factory"
)

// Blob returns the content of a blob, such as a manifest or a file of a space, by
// its name, sha256-….
func (b *Bridge) Blob(ctx context.Context, name string) ([]byte, error) {
	ref, err := codec.ParseRef(name)
	if err != nil {
		return nil, err
	}
	return b.wire.Blob(ctx, ref)
}

// SessionTools makes e execute the sessions' own tools, target refold, which show
// a workspace's context files. It must be called before Run, once. It creates or
// updates the target's consumer at once. If this user lacks the permission, the
// error is a *natsio.PermissionError, and the bridge may still run with its other
// targets.
func (b *Bridge) SessionTools(ctx context.Context, e executor.Executor, options ...ServeOption) error {
	const target = "refold"
	if _, err := b.bus.EnsureBridge(ctx, b.conf, session.ClassTool, target); err != nil {
		return fmt.Errorf("serve session tools: %w", err)
	}
	return b.Tool(target, e, options...)
}
