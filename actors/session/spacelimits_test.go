package session

// How the limits of spaces relate to those of states, effects and events.

import (
	"strings"
	"testing"

	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// appliedMax is how many spaces may be applied at once: a workspace, and packs
// of a later release.
const appliedMax = 17

// longToken is a name of the greatest length.
var longToken = strings.Repeat("t", space.TokenBytesMax)

// longPin is a pin at its limits.
func longPin() spaces.Pin {
	lacks := make([]string, spaces.LacksMax)
	for i := range lacks {
		lacks[i] = strings.Repeat("n", space.NeedBytesMax)
	}
	return spaces.Pin{
		Asked: 1 << 63, At: NumberMax, Catalog: longToken, Grant: 1 << 63, Kind: space.Workspace, Lacks: lacks, Prompt: longToken, Seq: 1 << 63,
		Source: "package", Space: longToken, Version: longToken, Registry: &spaces.RegistryPin{Seq: 1 << 63},
	}
}

// longGrant is a grant at its limits, without a manifest: those come with the
// record alone.
func longGrant() spaces.Grant {
	g := spaces.Grant{
		Kind: space.Workspace, May: []string{spaces.MayPrompt, spaces.MaySkills, spaces.MayResponseFormat, spaces.MayParams, spaces.MayRewords}, RunMS: spaces.SyncRunMaxMS,
		Sources: []string{"factory", "package", "module"}, Space: longToken, Target: longToken, Version: longToken,
		Attach: []string{spaces.AttachOperator, spaces.AttachModel},
	}
	for range spaces.GrantTargetsMax {
		g.Targets = append(g.Targets, longToken)
	}
	for range spaces.GrantDigestsMax {
		g.Digests = append(g.Digests, codec.Hash{}.String())
	}
	for range spaces.GrantKeysMax {
		g.Keys = append(g.Keys, strings.Repeat("U", NameBytesMax))
	}
	return g
}

// longTrust is what a grant at its limits trusts, with a manifest of its own.
func longTrust() space.Trust {
	t := space.Trust{Version: strings.Repeat("9", space.VersionBytesMax)}
	for range spaces.GrantDigestsMax + 1 {
		t.Digests = append(t.Digests, codec.Sum(nil).String())
	}
	for range spaces.GrantKeysMax {
		t.Keys = append(t.Keys, strings.Repeat("U", 56))
	}
	return t
}

// longUsedGrants is what the extension tools are told of grants, at their limits.
func longUsedGrants() []spaces.UsedGrant {
	used := make([]spaces.UsedGrant, spaces.GrantsMax)
	for i := range used {
		used[i] = spaces.UsedGrant{Attach: []string{spaces.AttachOperator, spaces.AttachModel}, Kind: space.Pack, Sources: []string{"factory", "package", "module"}, Space: longToken, Target: longToken, Trust: longTrust()}
	}
	return used
}

// longPrompt is the parts and variables of a prompt at their limits, one part
// being an index of skills.
func longPrompt() (parts []spaces.PromptPart, vars codec.Pairs) {
	for range space.PartsMax {
		parts = append(parts, spaces.PromptPart{
			Input: 1 << 63, MediaType: strings.Repeat("m", space.MediaTypeBytesMax), Names: []string{strings.Repeat("p", space.PathBytesMax)}, Role: spaces.PromptAssistant,
		})
	}
	parts[0].Names = nil
	for range space.SkillsMax {
		parts[0].Names = append(parts[0].Names, longToken)
	}
	for i := range space.VarsMax {
		name := space.VarFact + string(rune('A'+i)) + strings.Repeat("f", space.FactNameBytesMax-1)
		vars = append(vars, codec.Pair{Key: name, Value: codec.AppendString(nil, strings.Repeat("v", space.FactValueBytesMax))})
	}
	return parts, vars
}

// spacesBytesBound is what a state holds of spaces at their limits.
func spacesBytesBound() int {
	pin := len(encode(spaces.Stage{Mode: spaces.ModeImmediate, Pin: longPin()}))
	own := longPin()
	own.Lacks = nil // a config's has none
	open := spaces.Sync{
		Apply: spaces.ModeImmediate, At: NumberMax, Catalog: longToken, Deadline: NumberMax, Dry: true, Grant: 1 << 63, Kind: space.Workspace, Known: make([]spaces.Known, spaces.KnownMax),
		Number: 1 << 31, Only: []string{OnlyPrompts, OnlyTools, OnlyContext, OnlySkills}, Prompt: longToken, RunMS: spaces.SyncRunMaxMS, Seq: 1 << 63, Space: longToken, Target: longToken,
		Version: longToken, Call: longToken, Tools: NumberMax,
	}
	return 1<<10 + len(encode(longUsedGrants())) + (3*appliedMax+spaces.StagedMax)*pin + // applied, pending, staged, and of the turn
		(spaces.GrantsMax+spaces.SyncsMax)*len(encode(spaces.GrantPin{Grant: longGrant(), Seq: 1 << 63})) +
		spaces.SyncsMax*len(encode(open)) + spaces.SyncsDoneMax*64 +
		(queueHeldMax+2)*len(encode(own)) + promptBytesMax +
		SkillsActiveMax*len(encode(ActiveSkill{Name: longToken, Space: longToken}))
}

// The parts that spaces add to effects and events fit.
func TestSpaceLimitsRelate(t *testing.T) {
	t.Parallel()
	parts, vars := longPrompt()
	mark := codec.Hash{}
	with := len(encode(Generation{Prompt: parts, PromptMark: &mark, Vars: vars})) - len(encode(Generation{}))
	used := make([]spaces.UsedSpace, appliedMax)
	for i := range used {
		used[i] = spaces.UsedSpace{At: NumberMax, Kind: space.Workspace, Source: "package", Space: longToken, Version: longToken}
	}
	call := len(encode(ToolCall{Grants: longUsedGrants(), Spaces: used})) - len(encode(ToolCall{}))
	ids := make([]string, planner.ToolsMax)
	for i := range ids {
		ids[i] = strings.Repeat("t", planner.ToolIDBytesMax)
	}
	problems := make([]space.Problem, space.ProblemsMax)
	for i := range problems {
		problems[i] = space.Problem{
			Code: space.BindingInWorkspace, Detail: strings.Repeat("d", space.DetailBytesMax), File: strings.Repeat("f", space.PathBytesMax), Line: 1 << 30,
			Path: strings.Repeat("p", space.ProblemPathBytesMax),
		}
	}
	moved := Notice{Data: spaces.WorkspaceApplied{ToolsAdded: ids, ToolsRemoved: ids, Warnings: escaped(problems)[:spaces.NoticeProblemsMax]}}
	settled := len(encode(WorkspaceSyncFailed{Problems: problems}))
	notice := Notice{Data: spaces.WorkspaceFailed{Problems: escaped(problems)[:spaces.NoticeProblemsMax]}}
	for _, c := range []struct {
		why string
		ok  bool
	}{
		{"a prompt at its limits is within what a transcript leaves it", with <= promptBytesMax},
		{"a transcript beside a full prompt is worth having", promptBytesMax <= TranscriptBytesMax/8},
		{"a session tool's call fits with its spaces and grants", planner.ArgumentsBytesMax+callFixedBytesMax+call <= EffectBytesMax},
		{"a settlement with a full manifest fits an event", space.ManifestBytesMax+spaces.LacksMax*(2+space.NeedBytesMax)+4<<10 <= EventBytesMax},
		{"a failed sync with all problems fits an event, with half of it left", 2*settled <= EventBytesMax},
		{"a notice with all problems fits", len(notice.JSON()) <= NoticeBytesMax},
		{"a notice with all tools fits", len(moved.JSON()) <= NoticeBytesMax},
		{"a sync's deadline is within its limit", 2*spaces.SyncRunMaxMS <= DeadlineMaxMS && 2*spaces.SyncRunMinMS >= DeadlineMinMS},
		{"facts are as long as templates take them", FactNameBytesMax == space.FactNameBytesMax && FactValueBytesMax == space.FactValueBytesMax},
		{"a prompt pack brings no more than a config", space.ParamsBytesMax <= ParamsBytesMax && space.FormatBytesMax <= FormatBytesMax},
		{"an index of skills has room for all names", space.SkillsMax*(space.TokenBytesMax+1)+1<<10 <= space.SkillIndexBytesMax},
		{"a detail of a problem is not cut", space.DetailBytesMax <= DetailBytesMax},
		{"a version of a space is a name", space.VersionBytesMax <= NameBytesMax},
	} {
		if !c.ok {
			t.Errorf("%s: it does not hold (prompt %d of %d, a call %d, problems %d)", c.why, with, promptBytesMax, call, settled)
		}
	}
	t.Logf("spaces take up to %d bytes of a state, a prompt up to %d of %d", spacesBytesBound(), with, promptBytesMax)
}

// escaped returns problems of which JSON makes as many bytes as it can.
func escaped(problems []space.Problem) []space.Problem {
	out := make([]space.Problem, len(problems))
	for i, p := range problems {
		long := strings.Repeat("\x01", space.DetailBytesMax)
		out[i] = space.Problem{Code: p.Code, Detail: long, File: long, Line: p.Line, Path: long}
	}
	return out
}
