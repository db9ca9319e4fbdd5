package session

import (
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/space"
)

// The events of spaces: the wire's names.
const (
	TypeWorkspaceSyncRequested  = "WorkspaceSyncRequested"
	TypeWorkspaceApplyRequested = "WorkspaceApplyRequested"
	TypeWorkspaceDetached       = "WorkspaceDetached"
	TypeWorkspaceSnapshotReady  = "WorkspaceSnapshotReady"
	TypeWorkspaceSyncUnchanged  = "WorkspaceSyncUnchanged"
	TypeWorkspaceSyncFailed     = "WorkspaceSyncFailed"
)

// WorkspaceSyncRequested requests a read of a space: the effect y<n>. The result is
// staged.
//
// With Apply the result is made pending at once.
//
//wire:rule {"dependentRequired": {"prompt_pack": ["apply"], "tool_catalog": ["apply"]}}
//wire:rule {"properties": {"grant": {"properties": {"space": {"pattern": "^[A-Za-z0-9_-]+$"}}}}}
type WorkspaceSyncRequested struct {
	// Applies the result, in this mode. Absent: the result is staged only.
	Apply spaces.Mode `msgpack:"apply,omitempty"`
	// Read and check, but stage nothing; false if absent. If true, there is no apply,
	// grant or only.
	Dry bool `msgpack:"dry,omitempty"`
	// Grant for this space in this session, in place of the install record's, until the
	// space is detached.
	Grant *spaces.Grant `msgpack:"grant,omitempty"`
	// The request is refused (`invalid_data`) if the grant is for the other kind; any if
	// absent.
	Kind space.Kind `msgpack:"kind,omitempty"`
	// The parts to take from the source: `prompts`, `tools`, `context`, `skills`; the
	// others stay as the session has them. Not under a grant with digests or keys.
	Only []string `msgpack:"only,omitempty" lim:"unique,item=enum=Only"`
	// With apply: the prompt pack to use in place of the default.
	PromptPack string `msgpack:"prompt_pack,omitempty" lim:"@id"`
	// With apply: the catalog to use in place of the default.
	ToolCatalog string `msgpack:"tool_catalog,omitempty" lim:"@id"`
	// The version to read, as its reader understands it.
	Version string `msgpack:"version,omitempty" lim:"..space.VersionBytesMax"`
	// The space; not `refold`, `host` or `none`.
	Workspace string `msgpack:"workspace" lim:"@space"`
}

// WorkspaceApplyRequested makes the staged manifest of a space pending for a boundary.
type WorkspaceApplyRequested struct {
	// The manifest that must be staged or pending, else the event is `stale`.
	Hash string `msgpack:"hash,omitempty" lim:"any"`
	// When it takes effect; `next_run` if absent.
	Mode spaces.Mode `msgpack:"mode,omitempty"`
	// The prompt pack to use in place of the default.
	PromptPack string `msgpack:"prompt_pack,omitempty" lim:"@id"`
	// The catalog to use in place of the default.
	ToolCatalog string `msgpack:"tool_catalog,omitempty" lim:"@id"`
	// The space; if absent the one that is staged, else the pending one.
	Workspace string `msgpack:"workspace,omitempty" lim:"any"`
}

// WorkspaceDetached drops a space: its applied, pending and staged manifests, an open
// sync, and a grant that came through ctl.
type WorkspaceDetached struct {
	// The request is refused if the space is of the other kind. Absent: of any.
	Kind space.Kind `msgpack:"kind,omitempty"`
	// The space.
	Workspace string `msgpack:"workspace" lim:"any"`
}

// WorkspaceSnapshotReady settles a sync with the content of the space. Its files are
// blobs already.
type WorkspaceSnapshotReady struct {
	// The effect that this settles.
	Effect string `msgpack:"effect" lim:"@sync"`
	// Needs of the manifest that are not met on the reader's machine.
	Lacks []string `msgpack:"lacks,omitempty" lim:"..spaces.LacksMax,item=any"`
	// The manifest (Manifest), of at most 512 KiB. A fault inside it is workspace_invalid.
	Manifest codec.Raw `msgpack:"manifest" lim:"object"`
	// The result of the call of `extensions_enable` that waits for the sync: the output in
	// JSON, as [semantics.md](semantics.md#packs) has it. Set it if the effect has a
	// `call`.
	Output *Content `msgpack:"output,omitempty"`
	// Revision of the source, for people.
	Revision string `msgpack:"revision,omitempty" lim:"..spaces.RevisionBytesMax"`
	// One that makes the manifest trusted under the effect's `trust`.
	Signature *space.Signature `msgpack:"signature,omitempty"`
	// How the reader identifies itself.
	Source string `msgpack:"source,omitempty" lim:"enum=factory|package|module"`
}

// WorkspaceSyncUnchanged settles a sync: the session already has the content of the
// space.
type WorkspaceSyncUnchanged struct {
	// The effect that this settles.
	Effect string `msgpack:"effect" lim:"@sync"`
	// Hash of the manifest: one of the effect's known.
	Hash string `msgpack:"hash" lim:"any"`
	// As in WorkspaceSnapshotReady.
	Lacks []string `msgpack:"lacks,omitempty" lim:"..spaces.LacksMax,item=any"`
	// What the model is shown whose call of extensions_enable waits for the sync.
	Output    *Content         `msgpack:"output,omitempty"`
	Signature *space.Signature `msgpack:"signature,omitempty"`
	// How the reader identifies itself.
	Source string `msgpack:"source,omitempty" lim:"enum=factory|package|module"`
}

// WorkspaceSyncFailed settles a sync: the space could not be read.
type WorkspaceSyncFailed struct {
	// The effect that this settles.
	Effect string `msgpack:"effect" lim:"@sync"`
	Error  Fault  `msgpack:"error"`
	// All problems of the content, at once.
	Problems []space.Problem `msgpack:"problems,omitempty" lim:"..space.ProblemsMax"`
}

// The values of WorkspaceSyncRequested.Only.
const (
	OnlyPrompts = "prompts"
	OnlyTools   = "tools"
	OnlyContext = "context"
	OnlySkills  = "skills"
)

// Space is an effect of class space: it reads the manifest of a space. The target is
// that of the grant.
//
// It is not claimed, since reading twice does no harm.
type Space struct {
	// The session's clock when the effect was opened, Unix milliseconds.
	At int64 `msgpack:"at"`
	// The call of extensions_enable that waits for the settlement, which gives its result.
	Call string `msgpack:"call,omitempty" lim:"@call"`
	// The class of the effect.
	Class Class `msgpack:"class" lim:"=space"`
	// Nothing will be staged: store no blobs; false if absent.
	Dry bool `msgpack:"dry,omitempty"`
	// The effect's name.
	Effect string `msgpack:"effect" lim:"@sync"`
	// Kind that the manifest must have.
	Kind space.Kind `msgpack:"kind"`
	// Manifests that the session has: staged, pending and applied; or the one that a
	// person approved.
	Known []codec.Hash `msgpack:"known,omitempty" lim:"..3"`
	// Parts to read; the others are taken from the first of known, or are empty.
	Only []string `msgpack:"only,omitempty" lim:"item=enum=Only"`
	// How long one start may take, in milliseconds.
	RunMS   int64  `msgpack:"run_ms" lim:"1.."`
	Session string `msgpack:"session" lim:"@session"`
	// The space to read.
	Space string `msgpack:"space" lim:"@space"`
	// Unix milliseconds; no bridge starts the effect after it.
	StartBy int64 `msgpack:"start_by"`
	// With call: the number of tools of the registry of its turn.
	Tools int64 `msgpack:"tools,omitempty" lim:"0.."`
	// What the grant trusts; absent if that is whatever is read. If there are several
	// versions, read the newest that it admits: the session refuses all others.
	Trust *space.Trust `msgpack:"trust,omitempty"`
	// Version of the protocol.
	V int `msgpack:"v" lim:"=1"`
	// The requested version.
	Version string `msgpack:"version,omitempty" lim:"..space.VersionBytesMax"`
}
