package session

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// workspaceApplyRequested makes a staged space pending, or applies it at once. A
// pending space, of which nothing newer is staged, is moved to an earlier boundary.
func (s *State) workspaceApplyRequested(b *WorkspaceApplyRequested) *refusal {
	mode := cmp.Or(b.Mode, ModeNextRun)
	if bad := choiceFault(b.PromptPack, b.ToolCatalog); bad != nil {
		return bad
	}
	found, bad := s.appliable(b)
	if bad != nil {
		return bad
	}
	pin := found.Pin
	pin.Prompt, pin.Catalog = cmp.Or(b.PromptPack, pin.Prompt), cmp.Or(b.ToolCatalog, pin.Catalog)
	if bad := s.makePending(pin, mode, s.Seq); bad != nil {
		return bad
	}
	if at := s.stagedAt(pin.Space); at >= 0 && s.Spaces.Staged[at].Pin.Hash == pin.Hash {
		s.Spaces.Staged = slices.Delete(s.Spaces.Staged, at, at+1)
	}
	s.dropContent()
	return nil
}

// appliable returns the space that a request applies: the staged one, else the
// pending one. Without a name there must be one alone.
func (s *State) appliable(b *WorkspaceApplyRequested) (SpaceStage, *refusal) {
	if b.Workspace != "" && !s.isGranted(b.Workspace) {
		return SpaceStage{}, unknownSpace(b.Workspace)
	}
	if s.Spaces == nil {
		return SpaceStage{}, nothingStaged()
	}
	for _, list := range [][]SpaceStage{s.Spaces.Staged, s.Spaces.Pending} {
		of := list
		if b.Workspace != "" {
			of = nil
			if one := find(list, func(st *SpaceStage) bool { return st.Pin.Space == b.Workspace }); one != nil {
				of = []SpaceStage{*one}
			}
		}
		switch {
		case len(of) > 1:
			return SpaceStage{}, refuse(RejectInvalidData, "workspace: "+strconv.Itoa(len(of))+" spaces are staged or pending: name one")
		case len(of) == 1 && b.Hash != "" && !of[0].Pin.Hash.Is(b.Hash):
			return SpaceStage{}, refuse(RejectStale, "hash: "+quoted(of[0].Pin.Space)+" has "+of[0].Pin.Hash.String())
		case len(of) == 1:
			return of[0], nil
		}
	}
	return SpaceStage{}, nothingStaged()
}

func nothingStaged() *refusal {
	return refuse(RejectNothingStaged, "workspace: nothing is staged: sync it first")
}

func (s *State) isGranted(name string) bool {
	grant, _ := s.grantNow(name)
	return grant != nil
}

// makePending checks a pin on top of all pending ones and makes it pending. It
// replaces the pending pin of the same space, or the pending workspace, and
// publishes that of another manifest. Of two boundaries of a space the earlier one
// counts. If that is now, the pin is applied at once. requestSeq is the sequence of
// the request.
func (s *State) makePending(pin SpacePin, mode string, requestSeq uint64) *refusal {
	pin.Asked = requestSeq
	now, atOnce := s.stack(), mode == ModeImmediate && s.Run == nil
	var waiting, displaced []SpaceStage
	for _, p := range s.Spaces.Pending {
		if p.Pin.Space == pin.Space && p.Mode == ModeNextStep {
			mode = ModeNextStep
		}
		if !p.Pin.isReplacedBy(&pin) {
			waiting = append(waiting, p)
			now = now.with(s.adoptedOf(p.Pin))
		} else if p.Pin.Hash != pin.Hash {
			displaced = append(displaced, p)
		}
	}
	if _, bad := s.stackWith(&now, pin); bad != nil {
		return bad
	}
	if applied := s.stack(); atOnce {
		if _, bad := s.stackWith(&applied, pin); bad != nil {
			return bad
		}
	}
	s.Spaces.Pending = waiting
	for i := range displaced {
		was := &displaced[i].Pin
		notify(s, NoticeWorkspaceDisplaced, WorkspaceDisplaced{Workspace: was.Space, Kind: was.Kind, Hash: was.Hash.String(), By: pin.Space, ByHash: pin.Hash.String()})
	}
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
	a := s.adoptedOf(pin)
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
	if missing := a.uncovered(out.registry); len(missing) > 0 && s.install.Record.Policy.Coverage == CoverageFail {
		return stack{}, refuse(RejectWorkspaceInvalid, missing[0].Path+": "+missing[0].Detail)
	}
	if lost := s.coverageFault(&out); lost != "" {
		return stack{}, refuse(RejectWorkspaceInvalid, lost)
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
		s.notifyDropped(&pin, string(RejectWorkspaceInvalid), bad.detail)
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
		Warnings: firstProblems(st.find(pin.Space).uncovered(st.registry)),
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
	before := s.stack()
	s.adopt(st)
	s.toolsMoved = true
	s.doubtClients()
	s.notifyUncovered(&before, st)
}

// notifyUncovered publishes anew that a space is applied if its catalogs lose a
// tool: another registry, or another pack, lacks it.
func (s *State) notifyUncovered(before, st *stack) {
	for i := range st.spaces {
		a := &st.spaces[i]
		was := before.find(a.Space)
		if was == nil || was.Hash != a.Hash {
			continue
		}
		lost := a.uncovered(st.registry)
		if known := was.uncovered(before.registry); !slices.ContainsFunc(lost, func(p space.Problem) bool { return !slices.Contains(known, p) }) {
			continue
		}
		notify(s, NoticeWorkspaceApplied, WorkspaceApplied{
			Workspace: a.Space, Kind: a.Kind, Hash: a.Hash.String(), Version: a.Version, PromptPack: a.Prompt, ToolCatalog: a.Catalog,
			Registry: st.registry.Hash().String(), ToolsRemoved: toolsMissingFrom(before.registry, st.registry), Warnings: firstProblems(lost),
		})
	}
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

// notifyDropped publishes that a pending space is not applied.
func (s *State) notifyDropped(pin *SpacePin, code, detail string) {
	notify(s, NoticeWorkspaceFailed, WorkspaceFailed{Workspace: pin.Space, Kind: pin.Kind, Hash: pin.Hash.String(), Code: code, Detail: detail})
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
