package bridge

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/spaces"
)

// Folder reads spaces from a folder of this machine: whichever space is asked
// for, it is that folder. A version is the folder of that name in it.
type Folder struct {
	Dir    string
	NoScan bool // without an index there is no space
}

// ReadSpace opens the folder.
func (f Folder) ReadSpace(ctx context.Context, r SpaceRequest) (SpaceContent, error) {
	return readSource(ctx, spaces.Source{Dir: f.Dir}, f.NoScan, r, nil)
}

// Bucket reads spaces from a NATS object store, over the connection of a bridge:
// whichever space is asked for, it is the objects whose names begin with Prefix.
// A version is a prefix below that.
type Bucket struct {
	Bridge *Bridge
	Name   string
	Prefix string // empty, or ends with a slash
	NoScan bool   // without an index there is no space
}

// ReadSpace lists the bucket.
func (b Bucket) ReadSpace(ctx context.Context, r SpaceRequest) (SpaceContent, error) {
	return readSource(ctx, spaces.Source{Bucket: b.Name, Prefix: b.Prefix}, b.NoScan, r, b.Bridge.bus.Objects)
}

func readSource(ctx context.Context, s spaces.Source, noScan bool, r SpaceRequest, store spaces.Store) (SpaceContent, error) {
	files, err := s.Open(ctx, r.Version, store)
	switch {
	case errors.Is(err, spaces.ErrVersion):
		return SpaceContent{}, &Error{Code: codeVersionUnknown, Detail: err.Error()}
	case errors.Is(err, fs.ErrNotExist):
		return SpaceContent{}, &Error{Code: codeSpaceUnknown, Detail: err.Error()}
	case err != nil:
		return SpaceContent{}, &Error{Code: codeSpaceUnreadable, Detail: err.Error()}
	}
	return SpaceContent{Files: files, NoScan: noScan, Source: "module"}, nil
}

// Blob returns the content of a blob by its name, sha256-…: a file of a space, a
// manifest.
func (b *Bridge) Blob(ctx context.Context, name string) ([]byte, error) {
	ref, err := codec.ParseRef(name)
	if err != nil {
		return nil, err
	}
	return b.worker.wire.Blob(ctx, ref)
}

// SessionTools makes e carry out the tools that sessions have of their own,
// target refold: those that show a workspace's context files. It must come before
// Run, once. What it pulls from is made, or updated, at once: the error says what
// this user may not do (a *bus.PermissionError), and then the bridge may still
// run and serve the rest.
func (b *Bridge) SessionTools(ctx context.Context, e Executor, options ...ServeOption) error {
	const target = "refold"
	if _, err := b.bus.EnsureBridge(ctx, b.conf, session.ClassTool, target); err != nil {
		return fmt.Errorf("serve session tools: %w", err)
	}
	return b.Tool(target, e, options...)
}
