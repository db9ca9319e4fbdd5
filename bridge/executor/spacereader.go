package executor

import (
	"context"
	"io/fs"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/space"
)

// SpaceReader reads the files of spaces: it executes the syncs of one target,
// which a session's grants name. It is called from several goroutines for
// different syncs, at most once at a time per effect name in this process.
//
// Its result becomes a manifest, whose files the bridge stores before it settles
// the sync. The session decides whether it trusts the manifest; until an operator
// applies it, nothing changes. A reader may be called more than once for one sync
// (a bridge died, files changed while they were read): the settlement recorded
// first counts.
//
// A returned *Error settles the sync with its code: space_unknown, if the reader
// has no such space, version_unknown, space_unreadable, or another one. Any other
// error settles it space_unreadable. When ctx ends (run time over, sync withdrawn,
// bridge draining past its grace time) ReadSpace must return soon.
type SpaceReader interface {
	ReadSpace(ctx context.Context, r SpaceRequest) (SpaceContent, error)
}

// SpaceRequest is the request of a sync.
type SpaceRequest struct {
	Session string   // session id
	Space   string   // name of the space
	Kind    string   // workspace or pack
	Version string   // as the operator wrote it; empty: the current one
	Only    []string // a hint: the wanted parts of prompts, tools, context, skills; nil: all

	// Trust is which manifests the session's grant trusts; nil: any. The session
	// refuses all others, so a reader with several versions should choose among
	// those that Trust admits.
	Trust *space.Trust
}

// SpaceContent is the result of a reader.
type SpaceContent struct {
	// Files are the space, with agent.workspace.json at its root. An io.Closer is
	// closed after it was read.
	Files    fs.FS
	NoScan   bool     // a folder without an index is not a space
	Revision string   // of the source, for people: a commit, a date; at most 128 bytes
	Source   string   // factory, package or module, as the reader reports it; may be empty
	Lacks    []string // needs of the manifest that are not met here, besides those that the bridge finds

	Signatures []space.Signature // of the manifest: Trust decides which one counts

	// Manifest, if it is not nil, replaces Files and NoScan: it is complete, and
	// Blobs has those of its files that are not stored yet.
	Manifest *space.Manifest
	Blobs    map[codec.Ref][]byte
	Warnings []space.Problem // of Manifest: they are logged
}

// SpaceAsked is a pack requested from a reader.
type SpaceAsked struct {
	Space string      `json:"space"`
	Trust space.Trust `json:"trust"`
}

// SpaceOffer describes a pack as a session would adopt it now, from a manifest that
// its grant trusts, for people and models.
type SpaceOffer struct {
	Space           string   `json:"space"`
	Version         string   `json:"version"`
	Source          string   `json:"source,omitempty"` // factory, package or module, as its reader reports it
	Category        string   `json:"category,omitempty"`
	DisplayName     string   `json:"display_name,omitempty"`
	Description     string   `json:"description,omitempty"`
	RequiredSecrets []string `json:"required_secrets,omitempty"` // of the pack, its tools and its skills, by name
}
