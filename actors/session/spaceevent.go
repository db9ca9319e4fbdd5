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

// WorkspaceSyncRequested requests a reading of a space: the effect y<n>. The result
// is staged, and with Apply made pending at once.
type WorkspaceSyncRequested struct {
	Apply       string     `msgpack:"apply,omitempty"` // a mode; absent: only stage the space
	Dry         bool       `msgpack:"dry,omitempty"`   // read and check, and stage nothing
	Grant       *Grant     `msgpack:"grant,omitempty"` // replaces the install record's for this space
	Kind        space.Kind `msgpack:"kind,omitempty"`  // the request is refused if the grant is for the other kind
	Only        []string   `msgpack:"only,omitempty"`  // prompts, tools, context, skills: the other parts stay as they are
	PromptPack  string     `msgpack:"prompt_pack,omitempty"`
	ToolCatalog string     `msgpack:"tool_catalog,omitempty"`
	Version     string     `msgpack:"version,omitempty"`
	Workspace   string     `msgpack:"workspace"`
}

// WorkspaceApplyRequested makes a staged space pending for a boundary, or moves a
// pending one to an earlier boundary.
type WorkspaceApplyRequested struct {
	Hash        string `msgpack:"hash,omitempty"` // hex: the manifest that must be staged or pending
	Mode        string `msgpack:"mode,omitempty"` // next_run if absent
	PromptPack  string `msgpack:"prompt_pack,omitempty"`
	ToolCatalog string `msgpack:"tool_catalog,omitempty"`
	Workspace   string `msgpack:"workspace,omitempty"` // absent: the staged workspace, else the pending one
}

// The modes of an apply: when it takes effect.
const (
	ModeNextRun   = "next_run"           // when the next run starts; the default, also when empty
	ModeNextStep  = "next_step_boundary" // before the active run's next turn
	ModeImmediate = "immediate_if_idle"  // at once if no run is active, else as next_run
)

// WorkspaceDetached drops a space: what is applied, pending and staged of it, an
// open sync, and its grant through ctl.
type WorkspaceDetached struct {
	Kind      space.Kind `msgpack:"kind,omitempty"` // the request is refused if the space is of the other kind
	Workspace string     `msgpack:"workspace"`
}

// WorkspaceSnapshotReady settles a sync with the space's content.
type WorkspaceSnapshotReady struct {
	Effect    string     `msgpack:"effect"`
	Lacks     []string   `msgpack:"lacks,omitempty"` // needs of the manifest that are not met at its reader
	Manifest  codec.Raw  `msgpack:"manifest"`
	Output    *Content   `msgpack:"output,omitempty"`   // shown to a model whose call waits for the sync
	Revision  string     `msgpack:"revision,omitempty"` // of the source, for people
	Signature *Signature `msgpack:"signature,omitempty"`
	Source    string     `msgpack:"source,omitempty"` // factory, package, module: as the reader reports
}

// WorkspaceSyncUnchanged settles a sync: the session knows the space's content.
type WorkspaceSyncUnchanged struct {
	Effect    string     `msgpack:"effect"`
	Hash      string     `msgpack:"hash"` // hex: one of the effect's Known
	Lacks     []string   `msgpack:"lacks,omitempty"`
	Output    *Content   `msgpack:"output,omitempty"`
	Signature *Signature `msgpack:"signature,omitempty"`
	Source    string     `msgpack:"source,omitempty"`
}

// WorkspaceSyncFailed settles a sync: the space could not be read.
type WorkspaceSyncFailed struct {
	Effect   string          `msgpack:"effect"`
	Error    Fault           `msgpack:"error"`
	Problems []space.Problem `msgpack:"problems,omitempty"` // at most space.ProblemsMax
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

// Space is the payload of an effect of class space: it requests a space's manifest.
// It is not claimed, since reading twice does no harm.
type Space struct {
	At      int64        `msgpack:"at"`
	Call    string       `msgpack:"call,omitempty"` // the call that waits for it: r1t2c0
	Class   Class        `msgpack:"class"`
	Dry     bool         `msgpack:"dry,omitempty"` // no blobs are stored
	Effect  string       `msgpack:"effect"`        // y1
	Kind    space.Kind   `msgpack:"kind"`
	Known   []codec.Hash `msgpack:"known,omitempty"` // manifests that are staged, pending and applied, in this order
	Only    []string     `msgpack:"only,omitempty"`  // parts to read; all others are those of the first of Known, or empty
	RunMS   int64        `msgpack:"run_ms"`
	Session string       `msgpack:"session"`
	Space   string       `msgpack:"space"`
	StartBy int64        `msgpack:"start_by"`        // Unix ms; after it nobody starts it
	Tools   int64        `msgpack:"tools,omitempty"` // of a call: number of tools in its turn's registry
	Trust   *space.Trust `msgpack:"trust,omitempty"` // the grant's; absent: it trusts what the reader reads
	V       int          `msgpack:"v"`
	Version string       `msgpack:"version,omitempty"`
}

// UsedSpace is one space in the effect of a session tool.
type UsedSpace struct {
	At      int64      `msgpack:"at"` // the session's clock at its apply
	Hash    codec.Hash `msgpack:"hash"`
	Kind    space.Kind `msgpack:"kind"`
	Source  string     `msgpack:"source,omitempty"`
	Space   string     `msgpack:"space"`
	Version string     `msgpack:"version,omitempty"`
}

// PromptPart is one part of a prompt, which is shown before the transcript.
type PromptPart struct {
	Input     uint64     `msgpack:"input,omitempty"` // of a skill: the item whose text is its arguments
	MediaType string     `msgpack:"media_type,omitempty"`
	Names     []string   `msgpack:"names,omitempty"` // the path of a document or an image, or skills
	Ref       codec.Hash `msgpack:"ref"`             // the blob with its content
	Role      string     `msgpack:"role,omitempty"`  // empty: system text
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
