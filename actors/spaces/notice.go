package spaces

import (
	"slices"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// The types of the notices about spaces: the wire's names.
const (
	NoticeWorkspaceStaged    = "WorkspaceStaged"
	NoticeWorkspaceApplied   = "WorkspaceApplied"
	NoticeWorkspaceFailed    = "WorkspaceFailed"
	NoticeWorkspaceGone      = "WorkspaceGone"
	NoticeWorkspaceDisplaced = "WorkspaceDisplaced"
)

// WorkspaceStaged says that a sync succeeded.
type WorkspaceStaged struct {
	// The space.
	Workspace string `json:"workspace" lim:"@space"`
	// Kind of the space.
	Kind space.Kind `json:"kind"`
	// Hash of the manifest.
	Hash string `json:"hash" lim:"@hash"`
	// The sync.
	Effect string `json:"effect" lim:"@sync"`
	// staged: the manifest can be applied. unchanged: the session has it already, and
	// nothing is staged any more. dry: nothing was staged.
	Outcome string `json:"outcome" lim:"enum=Outcome"`
	// Version of the manifest.
	Version string `json:"version,omitempty" lim:"..space.VersionBytesMax"`
	// Revision of the source, for people.
	Revision string `json:"revision,omitempty" lim:"..RevisionBytesMax"`
	// The first 16 problems that do not prevent an apply.
	Warnings []space.Problem `json:"warnings,omitempty" lim:"..NoticeProblemsMax"`
	// Needs of the manifest that are not met on the reader's machine.
	Lacks []string `json:"lacks,omitempty" lim:"..LacksMax,item=any"`
}

// The values of WorkspaceStaged.Outcome.
const (
	OutcomeStaged    = "staged"
	OutcomeUnchanged = "unchanged" // the session has it already: nothing is staged any more
	OutcomeDry       = "dry"       // nothing was staged
)

// WorkspaceApplied says that a space takes effect from now on. It is published again,
// without a mode, when another registry or another pack takes a tool of its catalogs
// away.
type WorkspaceApplied struct {
	// The space.
	Workspace string `json:"workspace" lim:"@space"`
	// Kind of the space.
	Kind space.Kind `json:"kind"`
	// Hash of the manifest.
	Hash string `json:"hash" lim:"@hash"`
	// Mode of the apply; absent: the space was applied before.
	Mode Mode `json:"mode,omitempty"`
	// Version of the manifest.
	Version string `json:"version,omitempty" lim:"..space.VersionBytesMax"`
	// Chosen at the apply.
	PromptPack string `json:"prompt_pack,omitempty" lim:"@id"`
	// Chosen at the apply.
	ToolCatalog string `json:"tool_catalog,omitempty" lim:"@id"`
	// Hash of the composed registry, from which turns are offered.
	Registry string `json:"registry" lim:"@hash"`

	// Tools that the registry did not have before.
	ToolsAdded []string `json:"tools_added,omitempty" lim:"item=@tool_id"`
	// Tools that were removed with the replaced space.
	ToolsRemoved []string `json:"tools_removed,omitempty" lim:"item=@tool_id"`

	// The first 16 tools that the space's catalogs name and the registry does not bind.
	Warnings []space.Problem `json:"warnings,omitempty" lim:"..NoticeProblemsMax"`
}

// WorkspaceFailed says that a sync ended without staging anything, or an apply was
// dropped. Applied spaces stay.
type WorkspaceFailed struct {
	// The space.
	Workspace string `json:"workspace" lim:"@space"`
	// Kind of the space.
	Kind space.Kind `json:"kind"`
	// Hash of the manifest.
	Hash string `json:"hash,omitempty" lim:"@hash"`
	// The sync; absent: an apply failed at its boundary.
	Effect string `json:"effect,omitempty" lim:"@sync"`
	// workspace_invalid, workspace_untrusted, bad_settlement, deadline_exceeded,
	// cancelled, or the reader's own.
	Code string `json:"code" lim:"..session.CodeBytesMax"`
	// For people.
	Detail string `json:"detail,omitempty" lim:"..session.DetailBytesMax"`
	// What is wrong with the content: the first 16.
	Problems []space.Problem `json:"problems,omitempty" lim:"..NoticeProblemsMax"`
}

// WorkspaceGone says that an applied space is no longer in effect: it was detached, or
// another workspace replaced it.
type WorkspaceGone struct {
	// The space.
	Workspace string `json:"workspace" lim:"@space"`
	// Kind of the space.
	Kind space.Kind `json:"kind"`
	// Hash of the manifest.
	Hash string `json:"hash" lim:"@hash"`
	// Tools that were removed with it.
	ToolsRemoved []string `json:"tools_removed,omitempty" lim:"item=@tool_id"`
}

// WorkspaceDisplaced says that a pending space is not applied: another manifest took
// its place before its boundary.
type WorkspaceDisplaced struct {
	// The displaced space.
	Workspace string `json:"workspace" lim:"@space"`
	// Kind of the space.
	Kind space.Kind `json:"kind"`
	// Hash of the displaced manifest.
	Hash string `json:"hash" lim:"@hash"`
	// The space that is pending or applied now.
	By string `json:"by" lim:"@space"`
	// The space and the manifest that are pending or applied in its place.
	ByHash string `json:"by_hash" lim:"@hash"`
}

// notifyUncovered publishes anew that a space is applied if its catalogs lose a
// tool: another registry, or another pack, lacks it.
func (x *Spaces) notifyUncovered(before, st *Stack) {
	for i := range st.Spaces {
		a := &st.Spaces[i]
		was := before.Find(a.Space)
		if was == nil || was.Hash != a.Hash {
			continue
		}
		lost := a.uncovered(st.Registry)
		if known := was.uncovered(before.Registry); !slices.ContainsFunc(lost, func(p space.Problem) bool { return !slices.Contains(known, p) }) {
			continue
		}
		x.Session.Notify(NoticeWorkspaceApplied, WorkspaceApplied{
			Workspace: a.Space, Kind: a.Kind, Hash: a.Hash.String(), Version: a.Version, PromptPack: a.Prompt, ToolCatalog: a.Catalog,
			Registry: st.Registry.Hash().String(), ToolsRemoved: toolsMissingFrom(before.Registry, st.Registry), Warnings: firstProblems(lost),
		})
	}
}

// notifyGone publishes that a space is no longer applied, and which tools it removed.
func (x *Spaces) notifyGone(a *Adopted, removed []string) {
	x.Session.Notify(NoticeWorkspaceGone, WorkspaceGone{Workspace: a.Space, Kind: a.Kind, Hash: a.Hash.String(), ToolsRemoved: removed})
}

// notifyDropped publishes that a pending space is not applied.
func (x *Spaces) notifyDropped(pin *Pin, code, detail string) {
	x.Session.Notify(NoticeWorkspaceFailed, WorkspaceFailed{Workspace: pin.Space, Kind: pin.Kind, Hash: pin.Hash.String(), Code: code, Detail: sentence.Clip(detail, sentence.BytesMax)})
}

// notifyFailed publishes that a sync ended without staging anything. m is the
// manifest, nil if it could not be read.
func (x *Spaces) notifyFailed(o *Sync, m *Adopted, code, detail string, problems []space.Problem) {
	failed := WorkspaceFailed{
		Workspace: o.Space, Kind: o.Kind, Effect: o.Name(), Code: code,
		Detail: sentence.Clip(detail, sentence.BytesMax), Problems: firstProblems(problems),
	}
	if m != nil {
		failed.Hash = m.Hash.String()
	}
	x.Session.Notify(NoticeWorkspaceFailed, failed)
}

func firstProblems(problems []space.Problem) []space.Problem {
	return problems[:min(len(problems), NoticeProblemsMax)]
}

// toolsMissingFrom returns the tool_ids that are in registry and not in other.
func toolsMissingFrom(registry, other *planner.Registry) (ids []string) {
	for i := range registry.Tools() {
		id := registry.Tools()[i].ToolID
		if _, ok := other.LookupID(id); !ok {
			ids = append(ids, id)
		}
	}
	return ids
}
