package session

import "github.com/refold/refold/space"

// The notices about spaces.
const (
	NoticeWorkspaceStaged  = "WorkspaceStaged"
	NoticeWorkspaceApplied = "WorkspaceApplied"
	NoticeWorkspaceFailed  = "WorkspaceFailed"
	NoticeWorkspaceGone    = "WorkspaceGone"

	NoticeWorkspaceDisplaced = "WorkspaceDisplaced"
)

// WorkspaceStaged is the data of the notice that a sync ended well.
type WorkspaceStaged struct {
	Workspace string          `json:"workspace"`
	Kind      space.Kind      `json:"kind"`
	Hash      string          `json:"hash"`
	Effect    string          `json:"effect"`
	Outcome   string          `json:"outcome"` // staged, unchanged, dry
	Version   string          `json:"version,omitempty"`
	Revision  string          `json:"revision,omitempty"`
	Warnings  []space.Problem `json:"warnings,omitempty"` // at most NoticeProblemsMax
	Lacks     []string        `json:"lacks,omitempty"`
}

// The values of WorkspaceStaged.Outcome.
const (
	OutcomeStaged    = "staged"
	OutcomeUnchanged = "unchanged" // the session has it already: nothing is staged any more
	OutcomeDry       = "dry"       // nothing was staged
)

// WorkspaceApplied is the data of the notice that a space is applied. It is
// published again, without a mode, when another registry or another pack takes a
// tool of its catalogs away.
type WorkspaceApplied struct {
	Workspace   string     `json:"workspace"`
	Kind        space.Kind `json:"kind"`
	Hash        string     `json:"hash"`
	Mode        string     `json:"mode,omitempty"`
	Version     string     `json:"version,omitempty"`
	PromptPack  string     `json:"prompt_pack,omitempty"`  // chosen at the apply
	ToolCatalog string     `json:"tool_catalog,omitempty"` // the same
	Registry    string     `json:"registry"`               // composed registry of later turns

	ToolsAdded   []string `json:"tools_added,omitempty"` // tool_ids that it added
	ToolsRemoved []string `json:"tools_removed,omitempty"`

	Warnings []space.Problem `json:"warnings,omitempty"` // tools that its catalogs name and Registry does not bind; at most NoticeProblemsMax
}

// WorkspaceFailed is the data of the notice that a sync or an apply changed
// nothing.
type WorkspaceFailed struct {
	Workspace string          `json:"workspace"`
	Kind      space.Kind      `json:"kind"`
	Hash      string          `json:"hash,omitempty"`
	Effect    string          `json:"effect,omitempty"` // of the sync
	Code      string          `json:"code"`
	Detail    string          `json:"detail,omitempty"`
	Problems  []space.Problem `json:"problems,omitempty"` // at most NoticeProblemsMax
}

// WorkspaceGone is the data of the notice that a space is no longer applied: it was
// detached, or another workspace replaced it.
type WorkspaceGone struct {
	Workspace    string     `json:"workspace"`
	Kind         space.Kind `json:"kind"`
	Hash         string     `json:"hash"`
	ToolsRemoved []string   `json:"tools_removed,omitempty"` // tool_ids that it removed
}

// WorkspaceDisplaced is the data of the notice that a pending space is not applied:
// another manifest took its place before its boundary.
type WorkspaceDisplaced struct {
	Workspace string     `json:"workspace"`
	Kind      space.Kind `json:"kind"`
	Hash      string     `json:"hash"`
	By        string     `json:"by"` // the space that is pending or applied now
	ByHash    string     `json:"by_hash"`
}
