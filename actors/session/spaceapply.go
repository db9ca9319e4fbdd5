package session

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// workspaceApplyRequested makes a staged space pending, or applies it at once.
func (s *State) workspaceApplyRequested(b *WorkspaceApplyRequested) *refusal {
	mode := cmp.Or(b.Mode, ModeNextRun)
	if !isMode(mode) {
		return modeFault("mode", mode)
	}
	if bad := choiceFault(b.PromptPack, b.ToolCatalog); bad != nil {
		return bad
	}
	at, bad := s.stagedFor(b.Workspace)
	if bad != nil {
		return bad
	}
	pin := s.Spaces.Staged[at].Pin
	if b.Hash != "" && !pin.Hash.Is(b.Hash) {
		return refuse(RejectStale, "hash: staged is "+pin.Hash.String())
	}
	pin.Prompt, pin.Catalog = b.PromptPack, b.ToolCatalog
	if bad := s.makePending(pin, mode, s.Seq); bad != nil {
		return bad
	}
	s.Spaces.Staged = slices.Delete(s.Spaces.Staged, at, at+1)
	s.dropContent()
	return nil
}

// stagedFor returns the index of the staged space of an apply. Without a name it is
// the only staged one.
func (s *State) stagedFor(name string) (int, *refusal) {
	switch {
	case name != "" && !s.isGranted(name):
		return 0, unknownSpace(name)
	case s.Spaces == nil || len(s.Spaces.Staged) == 0 || name != "" && s.stagedAt(name) < 0:
		return 0, refuse(RejectNothingStaged, "workspace: nothing is staged: sync it first")
	case name != "":
		return s.stagedAt(name), nil
	case len(s.Spaces.Staged) > 1:
		return 0, refuse(RejectInvalidData, "workspace: "+strconv.Itoa(len(s.Spaces.Staged))+" spaces are staged: name one")
	}
	return 0, nil
}

func (s *State) isGranted(name string) bool {
	grant, _ := s.grantNow(name)
	return grant != nil
}

// makePending checks a pin on top of all pending ones and makes it pending. It
// replaces the pending pin of the same space, or the pending workspace. An earlier
// boundary of the space stays. If the boundary is now, the pin is applied at once.
// requestSeq is the sequence of the request.
func (s *State) makePending(pin SpacePin, mode string, requestSeq uint64) *refusal {
	pin.Asked = requestSeq
	now, atOnce := s.stack(), mode == ModeImmediate && s.Run == nil
	var waiting []SpaceStage
	for _, p := range s.Spaces.Pending {
		if p.Pin.Space == pin.Space && p.Mode == ModeNextStep {
			mode = ModeNextStep
		}
		if !p.Pin.isReplacedBy(&pin) {
			waiting = append(waiting, p)
			now = now.with(adopted{p.Pin, s.manifest(p.Pin.Hash)})
		}
	}
	if _, bad := s.stackWith(&now, pin); bad != nil {
		return bad
	}
	s.Spaces.Pending = waiting
	if atOnce {
		s.applyPin(pin, ModeImmediate)
		return nil
	}
	s.Spaces.Pending = append(s.Spaces.Pending, SpaceStage{Mode: mode, Pin: pin})
	slices.SortStableFunc(s.Spaces.Pending, func(a, b SpaceStage) int { return byAsked(a.Pin, b.Pin) })
	return nil
}

// isReplacedBy reports whether q replaces p: a space has one pin, and there is one
// workspace.
func (p *SpacePin) isReplacedBy(q *SpacePin) bool {
	return p.Space == q.Space || p.Kind == space.Workspace && q.Kind == space.Workspace
}

// stackWith returns the stack with a pin on top of st, or why the pin does not fit.
func (s *State) stackWith(st *stack, pin SpacePin) (stack, *refusal) {
	a := adopted{pin, s.manifest(pin.Hash)}
	if pin.Prompt != "" && a.manifest.Prompt(pin.Prompt) == nil {
		return stack{}, refuse(RejectWorkspaceInvalid, "prompt_pack: "+a.lacks("prompt pack", pin.Prompt))
	}
	if pin.Catalog != "" && a.manifest.Catalog(pin.Catalog) == nil {
		return stack{}, refuse(RejectWorkspaceInvalid, "tool_catalog: "+a.lacks("catalog", pin.Catalog))
	}
	out := st.with(a)
	if out.packs() > PacksMax {
		return stack{}, refuse(RejectWorkspaceInvalid, strconv.Itoa(PacksMax)+" packs are applied or pending: detach one")
	}
	if bad := out.compose(); bad != nil {
		return stack{}, refuse(RejectWorkspaceInvalid, bad.Error())
	}
	if bad := s.install.floor.Check(out.registry, a.manifest.Tools); bad != nil {
		return stack{}, refuse(RejectWorkspaceInvalid, bad.Error())
	}
	if s.install.Record.Policy.Coverage == CoverageFail {
		if missing := a.uncovered(out.registry); len(missing) > 0 {
			return stack{}, refuse(RejectWorkspaceInvalid, missing[0].Path+": "+missing[0].Detail)
		}
	}
	if taken := out.skillProblems(&a); len(taken) > 0 {
		return stack{}, refuse(RejectWorkspaceInvalid, taken[0].Path+": "+taken[0].Detail)
	}
	if over := out.promptSize(&RunConfig{}).Over(); over != "" {
		return stack{}, refuse(RejectWorkspaceInvalid, over)
	}
	if bad := s.orphanFault(&out); bad != nil {
		return stack{}, refuse(RejectWorkspaceInvalid, bad.detail)
	}
	return out, nil
}

// applyPending applies the spaces that wait for this boundary, one after another:
// the first turn of a run, or any turn.
func (s *State) applyPending(firstTurn bool) {
	if s.Spaces == nil || len(s.Spaces.Pending) == 0 {
		return
	}
	waiting := s.Spaces.Pending
	s.Spaces.Pending = nil
	for i := range waiting {
		if !firstTurn && waiting[i].Mode != ModeNextStep {
			s.Spaces.Pending = append(s.Spaces.Pending, waiting[i])
			continue
		}
		s.applyPin(waiting[i].Pin, waiting[i].Mode)
	}
	s.dropContent()
}

// applyPin applies a pin if it fits, and publishes that, or why it doesn't fit.
func (s *State) applyPin(pin SpacePin, mode string) {
	before := s.stack()
	pin.At = s.Clock
	st, bad := s.stackWith(&before, pin)
	if bad != nil {
		notify(s, NoticeWorkspaceFailed, WorkspaceFailed{
			Workspace: pin.Space, Kind: pin.Kind, Hash: pin.Hash.String(), Code: string(RejectWorkspaceInvalid), Detail: bad.detail,
		})
		return
	}
	if w := before.workspace(); w != nil && pin.Kind == space.Workspace && w.Space != pin.Space {
		s.notifyGone(w, nil)
	}
	s.recompose(&st)
	notify(s, NoticeWorkspaceApplied, WorkspaceApplied{
		Workspace: pin.Space, Kind: pin.Kind, Hash: pin.Hash.String(), Mode: mode, Version: pin.Version,
		PromptPack: pin.Prompt, ToolCatalog: pin.Catalog, Registry: st.registry.Hash().String(),
		ToolsAdded: toolsMissingFrom(st.registry, before.registry), ToolsRemoved: toolsMissingFrom(before.registry, st.registry),
	})
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

func (s *State) recompose(st *stack) {
	s.adopt(st)
	s.toolsMoved = true
	s.doubtClients()
}

// adopt stores a composed stack in the state.
func (s *State) adopt(st *stack) {
	s.Spaces.content.base, s.registry, s.Spaces.content.own = st.base, st.registry, nil
	s.Spaces.Applied = nil
	for i := range st.spaces {
		s.Spaces.content.add(st.spaces[i].Hash, st.spaces[i].manifest)
		s.Spaces.Applied = append(s.Spaces.Applied, st.spaces[i].SpacePin)
	}
	s.Spaces.Composed = composedHash(st)
}

// composedHash returns the hash of a composed stack in a state.
func composedHash(st *stack) (hash codec.Hash) {
	if len(st.spaces) > 0 || st.tools {
		hash = st.registry.Hash()
	}
	return hash
}

// notifyGone publishes that a space is no longer applied, and which tools it removed.
func (s *State) notifyGone(a *adopted, removed []string) {
	notify(s, NoticeWorkspaceGone, WorkspaceGone{Workspace: a.Space, Kind: a.Kind, Hash: a.Hash.String(), ToolsRemoved: removed})
}

// notifyFailed publishes that a sync ended without staging anything. m is the
// manifest, nil if it could not be read.
func (s *State) notifyFailed(o *OpenSync, m *adopted, code, detail string, problems []space.Problem) {
	failed := WorkspaceFailed{
		Workspace: o.Space, Kind: o.Kind, Effect: o.name(), Code: code,
		Detail: clip(detail, DetailBytesMax), Problems: firstProblems(problems),
	}
	if m != nil {
		failed.Hash = m.Hash.String()
	}
	notify(s, NoticeWorkspaceFailed, failed)
}

func firstProblems(problems []space.Problem) []space.Problem {
	return problems[:min(len(problems), NoticeProblemsMax)]
}
