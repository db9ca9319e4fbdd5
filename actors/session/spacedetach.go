package session

import (
	"slices"
	"strconv"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/space"
)

// workspaceDetached drops all of a space.
func (s *State) workspaceDetached(b *WorkspaceDetached) *refusal {
	if s.Spaces == nil || !s.holdsSpace(b.Workspace) {
		return refuse(RejectUnknownSpace, "workspace: the session has nothing of "+quoted(b.Workspace))
	}
	if kind := s.kindOf(b.Workspace); b.Kind != "" && kind != b.Kind {
		return otherKind(b.Workspace, kind, b.Kind)
	}
	is := func(p *SpacePin) bool { return p.Space == b.Workspace }
	if place := s.namesOwn(is); place != "" {
		return refuse(RejectWorkspaceInvalid, place+" names a manifest of "+quoted(b.Workspace))
	}
	now := s.stack()
	st := now.without(func(a *adopted) bool { return is(&a.SpacePin) })
	st.tools = len(s.install.Record.Spaces) > 0 || slices.ContainsFunc(s.Spaces.Grants, func(g GrantPin) bool { return g.Grant.Space != b.Workspace })
	if bad := st.compose(); bad != nil {
		return refuse(RejectWorkspaceInvalid, bad.Error())
	}
	if bad := s.orphanFault(&st); bad != nil {
		return refuse(RejectWorkspaceInvalid, bad.detail)
	}
	if lost := s.coverageFault(&st); lost != "" {
		return refuse(RejectWorkspaceInvalid, lost)
	}
	for i := range now.spaces {
		if is(&now.spaces[i].SpacePin) {
			s.notifyGone(&now.spaces[i], toolsMissingFrom(now.registry, st.registry))
		}
	}
	var withdrawn []OpenSync
	for i := s.anySyncOf(b.Workspace); i >= 0; i = s.anySyncOf(b.Workspace) {
		withdrawn = append(withdrawn, s.endSync(i, codec.Hash{}, CodeCancelled, detached))
	}
	s.Spaces.Pending = slices.DeleteFunc(s.Spaces.Pending, func(p SpaceStage) bool { return is(&p.Pin) })
	s.Spaces.Staged = slices.DeleteFunc(s.Spaces.Staged, func(p SpaceStage) bool { return is(&p.Pin) })
	s.Spaces.Grants = slices.DeleteFunc(s.Spaces.Grants, func(g GrantPin) bool { return g.Grant.Space == b.Workspace })
	s.recompose(&st)
	s.dropContent()
	for i := range withdrawn {
		s.endEnable(&withdrawn[i], CallCancelled, CodeCancelled, detached, nil)
	}
	return nil
}

// anySyncOf returns the index of any open sync of a space, -1 if there is none.
func (s *State) anySyncOf(name string) int {
	return s.findSync(func(o *OpenSync) bool { return o.Space == name })
}

// kindOf returns the kind of a space that the session holds.
func (s *State) kindOf(name string) (kind space.Kind) {
	if grant, _ := s.grantNow(name); grant != nil {
		kind = grant.kind()
	}
	s.eachHeld(func(p *SpacePin) {
		if p.Space == name {
			kind = p.Kind
		}
	})
	return kind
}

const detached = "the space was detached"

// holdsSpace reports whether the session has anything of a space.
func (s *State) holdsSpace(name string) bool {
	x := s.Spaces
	return len(s.known(name)) > 0 || s.anySyncOf(name) >= 0 ||
		slices.ContainsFunc(x.Grants, func(g GrantPin) bool { return g.Grant.Space == name })
}

// namesOwn returns the operator's config or run that names a matching workspace.
func (s *State) namesOwn(is func(*SpacePin) bool) string {
	if s.Config != nil && s.Config.Workspace != nil && is(s.Config.Workspace) {
		return "the session's config.workspace"
	}
	for _, run := range s.runs() {
		if run.Operators && run.Workspace != nil && is(run.Workspace) {
			return "run " + strconv.FormatUint(uint64(run.Number), 10) + ": config.workspace"
		}
	}
	return ""
}

// closeSpaces ends the open syncs and drops pending and staged spaces when the
// session is closed.
func (s *State) closeSpaces() {
	if s.Spaces == nil {
		return
	}
	for len(s.Spaces.Syncs) > 0 {
		s.endSync(0, codec.Hash{}, CodeCancelled, "the session was closed")
	}
	s.Spaces.Pending, s.Spaces.Staged = nil, nil
	s.dropContent()
}
