package session

import (
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
	Apply string `msgpack:"apply,omitempty" lim:"enum=Mode"`
	// Read and check, but stage nothing; false if absent. If true, there is no apply,
	// grant or only.
	Dry bool `msgpack:"dry,omitempty"`
	// Grant for this space in this session, in place of the install record's, until the
	// space is detached.
	Grant *Grant `msgpack:"grant,omitempty"`
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
	Mode string `msgpack:"mode,omitempty" lim:"enum=Mode"`
	// The prompt pack to use in place of the default.
	PromptPack string `msgpack:"prompt_pack,omitempty" lim:"@id"`
	// The catalog to use in place of the default.
	ToolCatalog string `msgpack:"tool_catalog,omitempty" lim:"@id"`
	// The space; if absent the one that is staged, else the pending one.
	Workspace string `msgpack:"workspace,omitempty" lim:"any"`
}

// The modes of an apply: when it takes effect.
const (
	ModeNextRun   = "next_run"           // when the next run starts; the default, also when empty
	ModeNextStep  = "next_step_boundary" // before the active run's next turn
	ModeImmediate = "immediate_if_idle"  // at once if no run is active, else as next_run
)

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
	Lacks []string `msgpack:"lacks,omitempty" lim:"..LacksMax,item=any"`
	// The manifest (Manifest), of at most 512 KiB. A fault inside it is workspace_invalid.
	Manifest codec.Raw `msgpack:"manifest" lim:"object"`
	// The result of the call of `extensions_enable` that waits for the sync: the output in
	// JSON, as [semantics.md](semantics.md#packs) has it. Set it if the effect has a
	// `call`.
	Output *Content `msgpack:"output,omitempty"`
	// Revision of the source, for people.
	Revision string `msgpack:"revision,omitempty" lim:"..RevisionBytesMax"`
	// One that makes the manifest trusted under the effect's `trust`.
	Signature *Signature `msgpack:"signature,omitempty"`
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
	Lacks []string `msgpack:"lacks,omitempty" lim:"..LacksMax,item=any"`
	// What the model is shown whose call of extensions_enable waits for the sync.
	Output    *Content   `msgpack:"output,omitempty"`
	Signature *Signature `msgpack:"signature,omitempty"`
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

// Signature is a key's signature of a manifest.
type Signature = space.Signature

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

// UsedSpace is one space in the effect of a session tool.
type UsedSpace struct {
	// The session's clock when it was applied, Unix milliseconds.
	At int64 `msgpack:"at"`
	// Hash of its manifest, which is a blob.
	Hash codec.Hash `msgpack:"hash"`
	// Kind of the space.
	Kind space.Kind `msgpack:"kind"`
	// How its reader identified itself.
	Source string `msgpack:"source,omitempty" lim:"enum=factory|package|module"`
	Space  string `msgpack:"space" lim:"@space"`
	// Version of the manifest.
	Version string `msgpack:"version,omitempty" lim:"..space.VersionBytesMax"`
}

// PromptPart is one part of a prompt, which is shown before the transcript.
type PromptPart struct {
	// Of a skill's text: the sequence of the item whose text is filled in for $ARGUMENTS,
	// $1 and so on.
	Input uint64 `msgpack:"input,omitempty" lim:"1.."`
	// Media type of an image.
	MediaType string `msgpack:"media_type,omitempty" lim:"..space.MediaTypeBytesMax"`
	// The path of a document or an image, or the names of skills.
	Names []string `msgpack:"names,omitempty" lim:"..space.SkillsMax,item=..space.PathBytesMax"`
	// The blob that holds it, named sha256-<hex>.
	Ref codec.Hash `msgpack:"ref"`
	// A message of user or assistant, a document, an image, an index of skills (ref is the
	// manifest of their space), or a skill's text; absent: system text, a template.
	Role string `msgpack:"role,omitempty" lim:"enum=Prompt"`
}

// The values of PromptPart.Role.
const (
	PromptUser      = "user"
	PromptAssistant = "assistant"
	PromptDocument  = "document"
	PromptImage     = "image"
	PromptSkills    = "skills" // the index of the skills in Names; Ref is their space's manifest
	PromptSkill     = "skill"  // the text of the skill in Names
)
