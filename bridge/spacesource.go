package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/spacefiles"
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
	if f.Dir == "" {
		return executor.SpaceContent{}, isMissing("Folder.Dir")
	}
	return readSource(ctx, spacefiles.Source{Dir: f.Dir}, f.NoScan, r, nil)
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
	switch {
	case b.Bridge == nil:
		return executor.SpaceContent{}, isMissing("Bucket.Bridge")
	case b.Name == "":
		return executor.SpaceContent{}, isMissing("Bucket.Name")
	}
	return readSource(ctx, spacefiles.Source{Bucket: b.Name, Prefix: b.Prefix}, b.NoScan, r, b.Bridge.bus.Objects)
}

// isMissing returns the error of a reader without a field that it needs.
func isMissing(field string) error {
	return &executor.Error{Code: worker.CodeSpaceUnreadable, Detail: "bridge." + field + " is missing: set it where the reader is made"}
}

func readSource(ctx context.Context, s spacefiles.Source, noScan bool, r executor.SpaceRequest, store spacefiles.Store) (executor.SpaceContent, error) {
	files, err := s.Open(ctx, r.Version, store)
	switch {
	case errors.Is(err, spacefiles.ErrVersion):
		return executor.SpaceContent{}, &executor.Error{Code: worker.CodeVersionUnknown, Detail: err.Error()}
	case errors.Is(err, fs.ErrNotExist):
		return executor.SpaceContent{}, &executor.Error{Code: worker.CodeSpaceUnknown, Detail: err.Error()}
	case err != nil:
		return executor.SpaceContent{}, &executor.Error{Code: worker.CodeSpaceUnreadable, Detail: err.Error()}
	}
	content := executor.SpaceContent{Files: files, NoScan: noScan, Source: sourceModule}
	if content.Signatures, err = spacefiles.ReadSignatures(files); err != nil {
		if c, ok := files.(io.Closer); ok {
			_ = c.Close() // it was only read
		}
		return executor.SpaceContent{}, &executor.Error{Code: worker.CodeSpaceUnreadable, Detail: err.Error()}
	}
	return content, nil
}

// Published reads packs from the stream of packs, over the connection of a
// bridge. For the version 1, 1.4 or 1.4.2 it reads the newest that matches,
// without a version the newest release: of those that the request's Trust admits.
type Published struct{ Bridge *Bridge }

// ReadSpace reads the manifest of a published version. Its files are stored
// already. Its errors name no version: any publisher could have chosen its words.
func (p Published) ReadSpace(ctx context.Context, r executor.SpaceRequest) (executor.SpaceContent, error) {
	if !space.IsSpaceName(r.Space, space.Pack) || r.Kind != string(space.Pack) {
		return executor.SpaceContent{}, &executor.Error{Code: worker.CodeSpaceUnknown, Detail: fmt.Sprintf("only packs are published, and %s %s is none", r.Kind, r.Space)}
	}
	if p.Bridge == nil {
		return executor.SpaceContent{}, isMissing("Published.Bridge")
	}
	found, err := p.Bridge.bus.FindPack(ctx, r.Space, r.Version, r.Trust)
	switch {
	case errors.Is(err, natsio.ErrNotFound):
		return executor.SpaceContent{}, &executor.Error{Code: worker.CodeSpaceUnknown, Detail: fmt.Sprintf("no version of %s is published: publish one with refold pack publish", r.Space)}
	case errors.Is(err, journal.ErrVersion):
		return executor.SpaceContent{}, &executor.Error{Code: worker.CodeVersionUnknown, Detail: fmt.Sprintf("no published version of %s that the grant permits is %s: refold pack list %s shows which there are", r.Space, cmp.Or(r.Version, "a release"), r.Space)}
	case errors.Is(err, journal.ErrUntrusted):
		return executor.SpaceContent{}, &executor.Error{Code: spaces.CodeWorkspaceUntrusted, Detail: fmt.Sprintf("versions of %s are published that match, and the grant trusts none: no manifest is among its digests, and none of its keys signed one; refold pack list %s shows who did", r.Space, r.Space)}
	case err != nil:
		return executor.SpaceContent{}, err
	}
	m, problems := space.Parse(found.Manifest)
	if m == nil {
		return executor.SpaceContent{}, &executor.Error{Code: worker.CodeSpaceInvalid, Detail: fmt.Sprintf("the published manifest of %s %s: %s", found.Pack, found.Version, problems[0])}
	}
	return executor.SpaceContent{Manifest: m, Source: sourcePackage, Signatures: found.Signatures}, nil
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

// BlobOf is [Bridge.Blob] for a call of session sid. A lost manifest that the
// session has applied is made again from its log, and stored.
func (b *Bridge) BlobOf(ctx context.Context, sid, name string) ([]byte, error) {
	content, err := b.Blob(ctx, name)
	if !errors.Is(err, natsio.ErrNotFound) && !errors.Is(err, journal.ErrOtherBytes) {
		return content, err
	}
	ref, _ := codec.ParseRef(name) // Blob has parsed it
	made, failed := b.wire.Remade(ctx, sid, ref)
	switch {
	case failed == nil:
		return made, nil
	case !errors.Is(failed, natsio.ErrNotFound):
		err = failed
	}
	return nil, err
}

// ResultOf returns the text of the result of a call of session sid, such as r1t2c0, as
// a model is shown it, but uncut. An [*executor.Error] says why there is none.
func (b *Bridge) ResultOf(ctx context.Context, sid, call string) (string, error) {
	return b.results.Of(ctx, sid, call)
}

// SessionTools makes e execute the sessions' own tools, target refold, which show
// a workspace's context files, and results again. It must be called before Run, once. It creates or
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
