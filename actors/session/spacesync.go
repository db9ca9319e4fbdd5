package session

import (
	"slices"
	"strconv"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/space"
)

// workspaceSyncRequested opens a sync of a space. It withdraws an open sync of the
// space, unless that was requested with the same data. A dry sync withdraws none.
func (s *State) workspaceSyncRequested(data codec.Raw) *refusal {
	var b WorkspaceSyncRequested
	if bad := decodeBody(data, &b); bad != nil {
		return bad
	}
	if bad := b.fault(); bad != nil {
		return bad
	}
	grant, seq := b.Grant, s.Seq
	if grant == nil {
		grant, seq = s.grantNow(b.Workspace)
	}
	if grant == nil {
		return unknownSpace(b.Workspace)
	}
	switch {
	case b.Kind != "" && b.Kind != grant.kind():
		return otherKind(b.Workspace, grant.kind(), b.Kind)
	case !grant.attaches(AttachOperator):
		return refuse(RejectNotPermitted, "workspace: the grant lets models alone ask for "+quoted(b.Workspace)+": see its attach")
	case grant.pinned() && len(b.Only) > 0:
		return refuse(RejectNotPermitted, "only: the grant trusts whole manifests, by digests or keys")
	case b.Version != "" && !grant.covers(b.Version):
		return refuse(RejectNotPermitted, "version: the grant is for version "+grant.Version)
	}
	hash := codec.Digest(data)
	if s.findSync(func(o *OpenSync) bool { return o.Space == b.Workspace && o.Data == hash }) >= 0 {
		return nil
	}
	at := -1
	if !b.Dry {
		at = s.openSyncOf(b.Workspace)
	}
	if bad := s.syncRoomFault(b.Workspace, b.Dry, at >= 0); bad != nil {
		return bad
	}
	if b.Grant != nil {
		if bad := s.takeGrant(b.Grant); bad != nil {
			return bad
		}
	}
	var withdrawn OpenSync
	if at >= 0 {
		withdrawn = s.endSync(at, codec.Hash{}, CodeCancelled, "another sync of the space was requested")
	}
	s.enterSpaces()
	x := s.Spaces
	x.SyncsAsked++
	x.Syncs = append(x.Syncs, OpenSync{
		Apply: b.Apply, At: s.Clock, Catalog: b.ToolCatalog, Data: hash, Deadline: s.Clock + 2*grant.runMS(), Dry: b.Dry, Grant: seq,
		Kind: grant.kind(), Known: s.known(b.Workspace), Number: x.SyncsAsked, Only: b.Only, Prompt: b.PromptPack, RunMS: grant.runMS(),
		Seq: s.Seq, Space: b.Workspace, Target: grant.target(b.Workspace), Version: b.Version,
	})
	s.dropContent()
	s.endEnable(&withdrawn, CallCancelled, CodeCancelled, "an operator asked for the pack", nil)
	return nil
}

// fault checks the request by itself.
func (b *WorkspaceSyncRequested) fault() *refusal {
	switch {
	case !space.IsSpaceName(b.Workspace, space.Workspace):
		return refuse(RejectInvalidData, "workspace: is the name of a space, not "+quoted(b.Workspace))
	case b.Apply == "" && (b.PromptPack != "" || b.ToolCatalog != ""):
		return refuse(RejectInvalidData, "prompt_pack and tool_catalog are chosen with apply")
	case b.Dry && (b.Apply != "" || b.Grant != nil || len(b.Only) > 0):
		return refuse(RejectInvalidData, "dry: stages nothing, so it takes no apply, no grant and no only")
	}
	if bad := choiceFault(b.PromptPack, b.ToolCatalog); bad != nil {
		return bad
	}
	for i, part := range b.Only {
		if slices.Contains(b.Only[:i], part) {
			return refuse(RejectInvalidData, "only["+strconv.Itoa(i)+"]: "+part+" is listed before")
		}
	}
	if b.Grant == nil {
		return nil
	}
	if bad := b.Grant.fault(); bad != nil {
		return refuse(RejectInvalidData, "grant."+bad.Error())
	}
	switch {
	case b.Grant.Space != b.Workspace:
		return refuse(RejectInvalidData, "grant.space: is the workspace of the request, "+quoted(b.Workspace))
	case len(b.Grant.Manifest) > 0:
		return refuse(RejectInvalidData, "grant.manifest: comes with the install record alone")
	}
	return nil
}

func choiceFault(prompt, catalog string) *refusal {
	switch {
	case prompt != "" && !space.IsID(prompt):
		return refuse(RejectInvalidData, "prompt_pack: is the name of one, not "+quoted(prompt))
	case catalog != "" && !space.IsID(catalog):
		return refuse(RejectInvalidData, "tool_catalog: is the name of one, not "+quoted(catalog))
	}
	return nil
}

func isMode(mode string) bool {
	return mode == ModeNextRun || mode == ModeNextStep || mode == ModeImmediate
}

func unknownSpace(name string) *refusal {
	return refuse(RejectUnknownSpace, "workspace: no grant is about "+quoted(name)+": bring one, or add it to the install record")
}

// otherKind refuses a request that names another kind than the space has.
func otherKind(name string, is, asked space.Kind) *refusal {
	return refuse(RejectInvalidData, "kind: "+quoted(name)+" is a "+string(is)+", not a "+string(asked))
}

// isLook reports whether a sync is an operator's dry one: it changes nothing, so any
// number of them may be open beside another sync of their space.
func (o *OpenSync) isLook() bool { return o.Dry && o.Call == "" }

// openSyncOf returns the index of a space's open sync, -1 if there is none.
// An operator's dry syncs don't count.
func (s *State) openSyncOf(name string) int {
	return s.findSync(func(o *OpenSync) bool { return o.Space == name && !o.isLook() })
}

// findSync returns the index of the first open sync that matches, -1 if none does.
func (s *State) findSync(is func(*OpenSync) bool) int {
	if s.Spaces != nil {
		for i := range s.Spaces.Syncs {
			if is(&s.Spaces.Syncs[i]) {
				return i
			}
		}
	}
	return -1
}

// syncRoomFault checks that there is room for a sync and for what it stages, which
// is nothing if it is dry. With again, it replaces an open sync of the space.
func (s *State) syncRoomFault(name string, dry, again bool) *refusal {
	if s.Spaces == nil || again {
		return nil
	}
	if len(s.Spaces.Syncs) >= SyncsMax {
		return refuse(RejectLimitExceeded, "workspace: "+strconv.Itoa(SyncsMax)+" syncs are open: wait for one")
	}
	places := len(s.Spaces.Staged)
	for i := range s.Spaces.Syncs {
		if o := &s.Spaces.Syncs[i]; !o.isLook() && s.stagedAt(o.Space) < 0 {
			places++
		}
	}
	if !dry && s.stagedAt(name) < 0 && places >= StagedMax {
		return refuse(RejectLimitExceeded, "workspace: "+strconv.Itoa(StagedMax)+" spaces are staged: apply or detach one")
	}
	return nil
}

// stagedAt returns the index of a staged space, -1 if it is not staged.
func (s *State) stagedAt(name string) int {
	return slices.IndexFunc(s.Spaces.Staged, func(st SpaceStage) bool { return st.Pin.Space == name })
}

// takeGrant stores a grant that came through ctl; it is valid at once. The first
// grant adds the session's own tools.
func (s *State) takeGrant(grant *Grant) *refusal {
	if s.Spaces != nil && len(s.Spaces.Grants) >= GrantsMax {
		if _, seq := s.grantNow(grant.Space); seq == 0 {
			return refuse(RejectLimitExceeded, "grant: a session holds "+strconv.Itoa(GrantsMax)+": detach a space")
		}
	}
	first := !s.hasGrants()
	if first {
		st := s.stack()
		st.tools = true
		if bad := st.compose(); bad != nil {
			return refuse(RejectWorkspaceInvalid, "grant: the session's own tools do not fit: "+bad.Error())
		}
		s.enterSpaces()
		s.recompose(&st)
	}
	s.enterSpaces()
	held := *grant
	s.Spaces.Grants = append(s.Spaces.Grants, GrantPin{Grant: held, Seq: s.Seq})
	return nil
}

// enterSpaces makes s.Spaces non-nil.
func (s *State) enterSpaces() {
	if s.Spaces == nil {
		s.Spaces = &Spaces{content: &spaceContent{base: s.registry}}
	}
}

// known returns the session's manifests of a space.
func (s *State) known(name string) []Known {
	var out []Known
	add := func(p *SpacePin) {
		if p.Space == name && !slices.ContainsFunc(out, func(k Known) bool { return k.Hash == p.Hash }) {
			out = append(out, Known{Hash: p.Hash, Seq: p.Seq})
		}
	}
	for i := range s.Spaces.Staged {
		add(&s.Spaces.Staged[i].Pin)
	}
	for i := range s.Spaces.Pending {
		add(&s.Spaces.Pending[i].Pin)
	}
	for i := range s.Spaces.Applied {
		add(&s.Spaces.Applied[i])
	}
	return out
}

// endSync ends open sync i and returns it. Without a settlement's hash, the session
// ends it and publishes that. The caller gives the waiting call its result.
func (s *State) endSync(i int, hash codec.Hash, code, detail string) OpenSync {
	o := s.Spaces.Syncs[i]
	if hash.IsZero() {
		s.withdraw(Place{kind: kindSpace, n: o.Number})
		s.notifyFailed(&o, nil, code, detail, nil)
	}
	s.Spaces.Syncs = slices.Delete(s.Spaces.Syncs, i, i+1)
	if len(s.Spaces.SyncsDone) == SyncsDoneMax {
		s.Spaces.SyncsDone = slices.Delete(s.Spaces.SyncsDone, 0, 1)
	}
	s.Spaces.SyncsDone = append(s.Spaces.SyncsDone, DoneSync{Hash: hash, Number: o.Number})
	return o
}

// endSyncOf ends a call's sync, if that is open.
func (s *State) endSyncOf(c *Call, code, detail string) {
	if i := s.syncAt(c.Sync); i >= 0 {
		s.endSync(i, codec.Hash{}, code, detail)
	}
}

func (s *State) syncAt(n uint32) int {
	return s.findSync(func(o *OpenSync) bool { return o.Number == n })
}

// Name returns the name of the sync's effect.
func (o *OpenSync) Name() string { return o.name() }

func (o *OpenSync) name() string { return Place{kind: kindSpace, n: o.Number}.String() }

func (syncs) status(s *State, p Place) (codec.Hash, effectStatus) {
	switch {
	case s.Spaces == nil || p.n > s.Spaces.SyncsAsked:
		return codec.Hash{}, effectUnknown
	case s.syncAt(p.n) >= 0:
		return codec.Hash{}, effectOpen
	}
	if done := find(s.Spaces.SyncsDone, func(d *DoneSync) bool { return d.Number == p.n && !d.Hash.IsZero() }); done != nil {
		return done.Hash, effectSettled
	}
	return codec.Hash{}, effectOver
}

func (syncs) effect(s *State, p Place, _ []byte) Effect {
	o := &s.Spaces.Syncs[s.syncAt(p.n)]
	var known []codec.Hash
	for i := range o.Known {
		known = append(known, o.Known[i].Hash)
	}
	name, startBy := o.name(), o.Deadline-o.RunMS
	payload := Space{
		At: o.At, Call: o.Call, Class: ClassSpace, Dry: o.Dry, Effect: name, Kind: o.Kind, Known: known, Only: o.Only, RunMS: o.RunMS,
		Session: s.Session, Space: o.Space, StartBy: startBy, Tools: o.Tools, Trust: s.trustOf(o), V: Version, Version: o.Version,
	}
	return Effect{Name: name, Class: ClassSpace, Target: o.Target, Deadline: o.Deadline, StartBy: startBy, Payload: encode(payload)}
}

// trustOf returns the trust of the grant that a sync is under, nil if that trusts
// whatever its reader reads.
func (s *State) trustOf(o *OpenSync) *space.Trust {
	grant := s.grant(o.Grant, o.Space)
	if grant == nil {
		return nil
	}
	if trust := grant.trust(); len(trust.Digests) > 0 || len(trust.Keys) > 0 || trust.Version != "" {
		return trust
	}
	return nil
}

func (syncs) open(s *State, index int) (uint32, bool) {
	if s.Spaces == nil || index >= len(s.Spaces.Syncs) {
		return 0, false
	}
	return s.Spaces.Syncs[index].Number, true
}

func (syncs) deadline(s *State) int64 {
	next := int64(noDeadline)
	if s.Spaces != nil {
		for i := range s.Spaces.Syncs {
			next = min(next, s.Spaces.Syncs[i].Deadline)
		}
	}
	return next
}

func (syncs) settleOverdue(s *State) {
	if s.Spaces == nil {
		return
	}
	for i := 0; i < len(s.Spaces.Syncs); {
		o := &s.Spaces.Syncs[i]
		if o.Deadline > s.Clock {
			i++
			continue
		}
		detail := noSettlement("space/" + o.Target)
		ended := s.endSync(i, codec.Hash{}, CodeDeadlineExceeded, detail)
		s.endEnable(&ended, CallFailed, CodeDeadlineExceeded, detail, nil) // unless the call is overdue, too
	}
}

// noSettlement is the detail for an effect that no bridge of its target settled.
func noSettlement(from string) string { return "no settlement from " + from + " by its deadline" }
