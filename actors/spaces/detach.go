package spaces

import (
	"slices"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/space"
)

// Detach drops all of a space. kind is the one that it must have; empty: any. It returns
// the syncs that it withdrew.
func (x *Spaces) Detach(name string, kind space.Kind) (withdrawn []*Ended, bad *Refusal) {
	if x.State == nil || !x.holds(name) {
		return nil, refuse(UnknownSpace, "workspace: the session has nothing of "+sentence.Quoted(name))
	}
	if is := x.kindOf(name); kind != "" && is != kind {
		return nil, otherKind(name, is, kind)
	}
	is := func(p *Pin) bool { return p.Space == name }
	if place := x.Session.NamedBy(is); place != "" {
		return nil, refuse(WorkspaceInvalid, place+" names a manifest of "+sentence.Quoted(name))
	}
	now := x.Stack()
	st := now.without(func(a *Adopted) bool { return is(&a.Pin) })
	if len(x.Record.Grants) == 0 && !slices.ContainsFunc(x.Grants, func(g GrantPin) bool { return g.Grant.Space != name }) {
		st.own = nil
	}
	if bad := st.Compose(); bad != nil {
		return nil, refuse(WorkspaceInvalid, bad.Error())
	}
	if missing := x.Session.Missing(&st); missing != "" {
		return nil, refuse(WorkspaceInvalid, missing)
	}
	if lost := x.Record.CoverageFault(&st); lost != "" {
		return nil, refuse(WorkspaceInvalid, lost)
	}
	for i := range now.Spaces {
		if is(&now.Spaces[i].Pin) {
			x.notifyGone(&now.Spaces[i], toolsMissingFrom(now.Registry, st.Registry))
		}
	}
	for i := x.anySyncOf(name); i >= 0; i = x.anySyncOf(name) {
		withdrawn = append(withdrawn, x.Withdraw(i, CodeCancelled, sentence.Say(sentence.SpaceDetached)))
	}
	x.Pending = slices.DeleteFunc(x.Pending, func(p Stage) bool { return is(&p.Pin) })
	x.Staged = slices.DeleteFunc(x.Staged, func(p Stage) bool { return is(&p.Pin) })
	x.Grants = slices.DeleteFunc(x.Grants, func(g GrantPin) bool { return g.Grant.Space == name })
	x.Recompose(&st)
	x.Prune()
	return withdrawn, nil
}

// anySyncOf returns the index of any open sync of a space, -1 if there is none.
func (x *Spaces) anySyncOf(name string) int {
	return x.findSync(func(o *Sync) bool { return o.Space == name })
}

// kindOf returns the kind of a space that the session holds.
func (x *Spaces) kindOf(name string) (kind space.Kind) {
	if grant, _ := x.GrantNow(name); grant != nil {
		kind = grant.SpaceKind()
	}
	x.eachHeld(func(p *Pin) {
		if p.Space == name {
			kind = p.Kind
		}
	})
	return kind
}

// holds reports whether the session has anything of a space.
func (x *Spaces) holds(name string) bool {
	return len(x.Known(name)) > 0 || x.anySyncOf(name) >= 0 ||
		slices.ContainsFunc(x.Grants, func(g GrantPin) bool { return g.Grant.Space == name })
}

// Close ends the open syncs and drops pending and staged spaces, when the session is
// closed.
func (x *Spaces) Close() {
	if x.State == nil {
		return
	}
	for len(x.Syncs) > 0 {
		x.Withdraw(0, CodeCancelled, sentence.Say(sentence.SessionClosed))
	}
	x.Pending, x.Staged = nil, nil
	x.Prune()
}

// DropRun drops pending packs that calls of an ending run enabled.
func (x *Spaces) DropRun(run uint32) {
	if x.State == nil {
		return
	}
	var kept []Stage
	for _, p := range x.Pending {
		if p.Run == 0 || p.Run != run {
			kept = append(kept, p)
			continue
		}
		x.notifyDropped(&p.Pin, CodeCancelled, sentence.Say(sentence.CallersRunEnded).String())
	}
	if len(kept) < len(x.Pending) {
		x.Pending = kept
		x.Prune()
	}
}
