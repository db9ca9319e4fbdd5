package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/prompt"
	"github.com/refold/refold/internal/spacefiles"
	"github.com/refold/refold/space"
	"github.com/refold/refold/subjects"
)

// Codes of syncs that could not be read.
const (
	CodeSpaceUnknown    = "space_unknown"
	CodeSpaceUnreadable = "space_unreadable"
	CodeVersionUnknown  = "version_unknown"
	CodeSpaceInvalid    = "workspace_invalid"
)

const revisionBytesMax = 128

var syncs = safeClass[session.Space]{
	executor: "reader", code: CodeSpaceUnreadable,
	served: func(s *Target) bool { return s.Spaces != nil },
	read: func(p *session.Space, target string) (any, header, error) {
		name := subjects.EffectName{Class: p.Class, Target: target, Session: p.Session, Effect: p.Effect}
		return p, header{name, p.V, p.RunMS, p.StartBy}, nil
	},
	run: func(ctx context.Context, w *Worker, f *execution, _ string) (*settled, error) {
		return w.sync(ctx, f, f.own.(*session.Space))
	},
	failed: func(effect string, fault *session.Fault) *settled {
		return &settled{session.TypeWorkspaceSyncFailed, session.WorkspaceSyncFailed{Effect: effect, Error: *fault}}
	},
}

// sync reads a space, stores its files and its manifest, and returns the
// settlement.
func (w *Worker) sync(ctx context.Context, f *execution, s *session.Space) (*settled, error) {
	only := s.Only
	known, err := w.knownManifest(ctx, s)
	if errors.Is(err, natsio.ErrNotFound) || errors.Is(err, journal.ErrOtherBytes) {
		only, err = nil, nil // it is lost: read all parts
	}
	if err != nil {
		return nil, err
	}
	request := executor.SpaceRequest{Session: s.Session, Space: s.Space, Kind: string(s.Kind), Version: s.Version, Only: only, Trust: s.Trust}
	built, content, err := buildSpace(ctx, f.served.Spaces, request, known)
	if err != nil {
		return nil, err
	}
	for _, warning := range built.Warnings {
		w.logFor(f).Warn("space_warning", "warning", warning.String())
	}
	if built.Manifest == nil {
		return syncFailed(f, built.Problems), nil
	}
	return w.storeSpace(ctx, f, s, built, content)
}

// buildSpace reads a space and builds its manifest. Parts that the request leaves
// out are taken from the manifest known.
func buildSpace(ctx context.Context, reader executor.SpaceReader, request executor.SpaceRequest, known *space.Manifest) (*spacefiles.Built, executor.SpaceContent, error) {
	content, err := reader.ReadSpace(ctx, request)
	if err != nil || content.Manifest != nil {
		return &spacefiles.Built{Manifest: content.Manifest, Files: content.Blobs, Warnings: content.Warnings}, content, err
	}
	again := false
	open := func(ctx context.Context) (fs.FS, error) {
		if again {
			content, err = reader.ReadSpace(ctx, request)
		}
		if again = true; err == nil && content.Files == nil {
			err = &executor.Error{Code: CodeSpaceUnknown, Detail: "the reader returned no files"}
		}
		return content.Files, err
	}
	options := spacefiles.Options{Space: request.Space, Kind: space.Kind(request.Kind), Only: request.Only, Known: known}
	built, err := spacefiles.Read(ctx, open, func() spacefiles.Options {
		options.NoScan = content.NoScan
		return options
	})
	return &built, content, err
}

// knownManifest returns the manifest for the parts that a sync leaves out, nil if
// it reads all.
func (w *Worker) knownManifest(ctx context.Context, s *session.Space) (*space.Manifest, error) {
	if len(s.Only) == 0 || len(s.Known) == 0 {
		return nil, nil
	}
	ref := codec.Ref{Hash: s.Known[0]}
	data, err := w.wire.Blob(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("read the known manifest %s: %w", ref, err)
	}
	m, problems := space.Parse(data)
	if m == nil {
		return nil, fmt.Errorf("the known manifest %s: %s", ref, problems[0])
	}
	return m, nil
}

// stillThere returns a fault if a file that was not read is not stored.
func (w *Worker) stillThere(ctx context.Context, file *space.File, published bool) error {
	there, err := w.wire.KeepBlob(ctx, file.Ref)
	if err != nil || there {
		return err
	}
	do := "sync all parts of the space"
	if published {
		do = "publish the pack again"
	}
	return &executor.Error{Code: CodeSpaceUnreadable, Detail: fmt.Sprintf("the blob %s of %s is lost: %s", file.Ref, file.Path, do)}
}

func syncFailed(f *execution, problems []space.Problem) *settled {
	detail := fmt.Sprintf("%d problems; the first: %s", len(problems), problems[0])
	return &settled{session.TypeWorkspaceSyncFailed, session.WorkspaceSyncFailed{
		Effect:   f.name.Effect,
		Error:    session.Fault{Code: CodeSpaceInvalid, Detail: prompt.Clip(detail, session.DetailBytesMax)},
		Problems: problems[:min(len(problems), space.ProblemsMax)],
	}}
}

// storeSpace stores a manifest and its files, unless the sync is dry, and returns
// the settlement.
func (w *Worker) storeSpace(ctx context.Context, f *execution, s *session.Space, built *spacefiles.Built, content executor.SpaceContent) (*settled, error) {
	lacks, err := w.vault.lacks(ctx, built.Manifest)
	if err != nil {
		return nil, err
	}
	for _, need := range content.Lacks {
		lacks = append(lacks, prompt.Valid(need))
	}
	slices.Sort(lacks)
	lacks = slices.Compact(lacks)
	if len(lacks) > space.LacksMax {
		return syncFailed(f, []space.Problem{space.TooManyNeeds(lacks)}), nil
	}
	manifest := built.Manifest.Bytes()
	hash := codec.Sum(manifest)
	if !s.Dry {
		for i := range built.Manifest.Files {
			of := &built.Manifest.Files[i]
			if file, ok := built.Files[of.Ref]; ok {
				_, err = w.wire.PutBlob(ctx, file)
			} else { // stored before, with the known manifest or by the publisher of the pack
				err = w.stillThere(ctx, of, content.Manifest != nil)
			}
			if err != nil {
				return nil, fmt.Errorf("store %s: %w", of.Path, err)
			}
		}
		if _, err := w.wire.PutBlob(ctx, manifest); err != nil {
			return nil, fmt.Errorf("store the manifest: %w", err)
		}
	}
	var signature *space.Signature
	if s.Trust != nil {
		signature, _ = s.Trust.Trusts(manifest, content.Signatures...)
	}
	output := enableOutput(s, built.Manifest, content.Source)
	if slices.Contains(s.Known, hash) {
		return &settled{session.TypeWorkspaceSyncUnchanged, session.WorkspaceSyncUnchanged{
			Effect: f.name.Effect, Hash: hash.String(), Lacks: lacks, Output: output, Signature: signature, Source: prompt.Valid(content.Source),
		}}, nil
	}
	return &settled{session.TypeWorkspaceSnapshotReady, session.WorkspaceSnapshotReady{
		Effect: f.name.Effect, Lacks: lacks, Manifest: manifest, Output: output, Revision: prompt.Clip(content.Revision, revisionBytesMax),
		Signature: signature, Source: prompt.Valid(content.Source),
	}}, nil
}

// enableOutput is the result of the call of extensions_enable that waits for the
// sync; nil if none does.
func enableOutput(s *session.Space, m *space.Manifest, source string) *session.Content {
	if s.Call == "" {
		return nil
	}
	out := session.EnableOutput{
		Source: session.SourceCurated, Extension: s.Space, Resolved: &session.EnableResolved{Identifier: m.Space + "@" + m.Version},
		Loaded: !s.Dry, ToolsAdded: make([]string, len(m.Tools)), ToolsCountBefore: int(s.Tools), ToolsCountAfter: int(s.Tools) + len(m.Tools),
	}
	switch source {
	case spaces.SourcePackage:
		out.Source, out.Resolved.PackageName = source, m.Space
	case spaces.SourceModule:
		out.Source, out.Resolved.ModuleSpecifier = source, m.Space
	}
	for i := range m.Tools {
		out.ToolsAdded[i] = m.Tools[i].ToolID
	}
	if s.Dry {
		out.Skipped, out.Reason, out.ToolsCountAfter = true, "dry_run", out.ToolsCountBefore
	}
	return &session.Content{Text: out.JSON()}
}
