package session

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// syncSettlement is a decoded settlement of a sync.
type syncSettlement struct {
	ready     WorkspaceSnapshotReady
	unchanged WorkspaceSyncUnchanged
	failed    WorkspaceSyncFailed
}

// syncs is the folder of the effects of class space.
type syncs struct{}

func (syncs) decode(typ string, data codec.Raw) (body any, effect string, bad *refusal) {
	var sync syncSettlement
	switch typ {
	case TypeWorkspaceSnapshotReady:
		bad = decodeBody(data, &sync.ready)
		effect = sync.ready.Effect
	case TypeWorkspaceSyncUnchanged:
		bad = decodeBody(data, &sync.unchanged)
		effect = sync.unchanged.Effect
	default:
		bad = decodeBody(data, &sync.failed)
		effect = sync.failed.Effect
	}
	return &sync, effect, bad
}

// settle folds the settlement of a sync. Any fault ends the sync and changes
// nothing that is staged, pending or applied.
func (syncs) settle(s *State, p Place, b *settlement) *refusal {
	o := s.endSync(s.syncAt(p.n), settlementHash(b.typ, b.data), "", "")
	waiting := s.callOfSync(&o)
	bad, sync := b.bad, b.body.(*syncSettlement)
	if bad == nil {
		bad = sync.fault(b.typ)
	}
	status, code := CallFailed, CodeBadSettlement
	detail := detailNotRead
	switch {
	case bad != nil:
		s.notifyFailed(&o, nil, code, bad.detail, nil)
	case b.typ == TypeWorkspaceSyncFailed:
		failed := &sync.failed
		code = failed.Error.Code
		if code == codeVersionUnknown && waiting >= 0 && s.Turn.Batch.Calls[waiting].Pack != nil {
			code, detail = CodeApprovalStale, detailStale
		}
		if code == codeVersionUnknown && o.Version != "" {
			detail = "there is no version " + quoted(o.Version) + " of " + quoted(o.Space) + " that the grant trusts: leave the version out, or ask for another"
		}
		s.notifyFailed(&o, nil, failed.Error.Code, failed.Error.Detail, failed.Problems)
	default:
		if code, detail = s.takeManifest(&o, b.typ, sync); code == "" {
			status = CallSucceeded
		}
	}
	s.dropContent()
	if waiting >= 0 && s.Turn.Batch.Calls[waiting].Pack != nil && s.Turn.Batch.Calls[waiting].Status == CallAwaiting {
		s.notifyApproval(waiting)
		return nil
	}
	s.endEnable(&o, status, code, detail, sync.output())
	return nil
}

// detailNotRead is what a model is told of a failed sync. Details may quote content
// that nobody vouches for: the notice has them, for people.
const detailNotRead = "no trusted manifest could be read: the notice WorkspaceFailed tells an operator why"

// output returns the output for the model whose call waited.
func (b *syncSettlement) output() *Content {
	if b.ready.Output != nil {
		return b.ready.Output
	}
	return b.unchanged.Output
}

// fault checks a settlement by itself.
func (b *syncSettlement) fault(typ string) *refusal {
	switch typ {
	case TypeWorkspaceSyncFailed:
		for i := range b.failed.Problems {
			if p := &b.failed.Problems[i]; !p.Code.Known() || p.Line < 0 || p.Line > NumberMax || len(p.Detail) > DetailBytesMax || len(p.File) > space.PathBytesMax || len(p.Path) > space.ProblemPathBytesMax {
				return refuse(RejectInvalidData, "problems["+strconv.Itoa(i)+"]: has no such code, or is too long")
			}
		}
		return nil
	case TypeWorkspaceSnapshotReady:
		r := &b.ready
		if !codec.IsMap(r.Manifest) || codec.HasBinary(r.Manifest) {
			return refuse(RejectInvalidData, "manifest: is an object")
		}
		return readerFault(r.Signature, r.Output)
	}
	u := &b.unchanged
	return readerFault(u.Signature, u.Output)
}

// readerFault checks the other fields that a reader sends with a manifest.
func readerFault(by *Signature, output *Content) *refusal {
	if bad := contentFault("output", output, true); bad != nil {
		return bad
	}
	if by != nil && (len(by.Key) > NameBytesMax || len(by.Sig) > NameBytesMax) {
		return refuse(RejectInvalidData, "signature: is none")
	}
	return nil
}

// read is the result of a sync: the manifest, and its reader's report.
type read struct {
	adopted
	grant    *Grant
	by       *Signature
	revision string
	code     string // why it is refused
	detail   string
	told     string // what a model is told of a manifest that is not trusted; empty: detailNotRead
	problems []space.Problem
}

// refuse records why the manifest is refused.
func (r *read) refuse(code, detail string, problems []space.Problem) bool {
	r.code, r.detail, r.problems = code, detail, problems
	return false
}

// takeManifest judges a settlement's manifest, and stages it or shows it to the
// person who decides over the call that waits for it. It returns the code and the
// detail of the call's result if the manifest is refused.
func (s *State) takeManifest(o *OpenSync, typ string, b *syncSettlement) (code, detail string) {
	r := read{grant: s.grant(o.Grant, o.Space)}
	st := s.stack()
	var next stack
	trusted := s.readManifest(&r, o, typ, b) && s.isApproved(&r, o) && r.isTrusted(o, &st)
	if !trusted || !s.fits(&r, &st, &next) {
		return s.manifestRefused(o, &r, trusted)
	}
	warnings := s.warnings(&r, &next)
	outcome := OutcomeDry
	waiting := s.callOfSync(o)
	if waiting >= 0 && s.isBeingRead(&s.Turn.Batch.Calls[waiting]) {
		s.wasReadFor(&s.Turn.Batch.Calls[waiting], &r)
	} else {
		outcome = s.stage(o, &r)
	}
	staged := WorkspaceStaged{
		Workspace: o.Space, Kind: o.Kind, Hash: r.Hash.String(), Effect: o.name(), Outcome: outcome,
		Version: r.Version, Revision: r.revision, Warnings: firstProblems(warnings), Lacks: r.Lacks,
	}
	notify(s, NoticeWorkspaceStaged, staged)
	if o.Apply == "" {
		return "", ""
	}
	if detail := s.applySynced(o, &r, outcome); detail != "" {
		return CodePackRefused, detail
	}
	return "", ""
}

// manifestRefused announces a refused manifest, and returns the result of the call
// that waits for it. Nothing of a manifest that is not trusted is in that.
func (s *State) manifestRefused(o *OpenSync, r *read, trusted bool) (code, detail string) {
	var m *adopted
	if r.manifest != nil {
		m = &r.adopted
	}
	s.notifyFailed(o, m, r.code, r.detail, r.problems)
	switch {
	case r.code == CodeApprovalStale:
		return CodeApprovalStale, r.detail
	case !trusted:
		return CodePackRefused, r.code + ": " + cmp.Or(r.told, detailNotRead)
	case len(r.problems) > 0:
		return CodePackRefused, r.code + ": " + r.problems[0].String()
	}
	return CodePackRefused, r.code + ": " + r.detail
}

// isApproved checks that a manifest is the one that a person approved, if one did.
func (s *State) isApproved(r *read, o *OpenSync) bool {
	i := s.callOfSync(o)
	if i < 0 || s.Turn.Batch.Calls[i].Pack == nil || s.Turn.Batch.Calls[i].Pack.Pin.Hash == r.Hash {
		return true
	}
	return r.refuse(CodeApprovalStale, detailStale, nil)
}

// codeVersionUnknown is the code of a reader that has no such version.
const codeVersionUnknown = "version_unknown"

const detailStale = "another manifest is read now than the one that was approved: call the tool again, so that a person sees it"

// readManifest decodes the manifest: steps 1 and 2 of the checks.
func (s *State) readManifest(r *read, o *OpenSync, typ string, b *syncSettlement) bool {
	r.Grant, r.Kind, r.Space, r.Seq = o.Grant, o.Kind, o.Space, s.Seq
	r.names = s.install.Registry
	if o.Kind == space.Workspace {
		r.Registry, r.names = s.pinned(), s.baseRegistry()
	}
	if typ == TypeWorkspaceSyncUnchanged {
		u := &b.unchanged
		i := slices.IndexFunc(o.Known, func(k Known) bool { return k.Hash.Is(u.Hash) })
		if i < 0 {
			return r.refuse(CodeBadSettlement, "hash: is none of the effect's known", nil)
		}
		r.Hash, r.Seq, r.manifest = o.Known[i].Hash, o.Known[i].Seq, s.manifest(o.Known[i].Hash)
		r.Lacks, r.Source, r.by = u.Lacks, u.Source, u.Signature
	} else {
		ready := &b.ready
		m, problems := space.Parse(ready.Manifest)
		if m == nil {
			return r.refuse(string(RejectWorkspaceInvalid), "the manifest is invalid", problems)
		}
		r.Hash, r.manifest = codec.Sum(ready.Manifest), m
		r.Lacks, r.Source, r.by, r.revision = ready.Lacks, ready.Source, ready.Signature, ready.Revision
	}
	r.Version = r.manifest.Version
	needs := r.manifest.AllNeeds()
	for i, need := range r.Lacks {
		if !slices.Contains(needs, need) || slices.Contains(r.Lacks[:i], need) {
			return r.refuse(CodeBadSettlement, "lacks["+strconv.Itoa(i)+"]: "+quoted(need)+" is no need of the manifest, or stands twice", nil)
		}
	}
	return true
}

// uncovered returns a problem for each catalog entry whose tool a registry lacks.
func (a *adopted) uncovered(registry *planner.Registry) (problems []space.Problem) {
	for i := range a.manifest.Catalogs {
		c := &a.manifest.Catalogs[i]
		entries, _ := c.Entries()
		for j := range entries {
			if _, ok := registry.Lookup(a.tool(registry, entries[j].Tool)); !ok {
				problems = append(problems, space.Problem{
					Code: space.UnknownTool, Path: "catalogs[" + strconv.Itoa(i) + "].tools[" + strconv.Itoa(j) + "]",
					Detail: "catalog " + c.ToolCatalog + " names " + quoted(entries[j].Tool) + ", which the registry does not bind",
				})
			}
		}
		choice, ok := registry.Lookup(a.tool(registry, c.ToolChoice))
		if ok && !slices.ContainsFunc(entries, func(e space.Entry) bool {
			t, listed := registry.Lookup(a.tool(registry, e.Tool))
			return listed && t == choice
		}) {
			problems = append(problems, space.Problem{
				Code: space.UnknownTool, Path: "catalogs[" + strconv.Itoa(i) + "].tool_choice",
				Detail: "catalog " + c.ToolCatalog + " chooses " + quoted(c.ToolChoice) + ", which it does not list",
			})
		}
		if !ok && !isModeOfChoice(c.ToolChoice) {
			problems = append(problems, space.Problem{
				Code: space.UnknownTool, Path: "catalogs[" + strconv.Itoa(i) + "].tool_choice",
				Detail: "catalog " + c.ToolCatalog + " chooses " + quoted(c.ToolChoice) + ", which the registry does not bind",
			})
		}
	}
	return problems
}

// warnings returns an operator's warnings about a space that can be staged.
func (s *State) warnings(r *read, next *stack) []space.Problem {
	warnings := append(r.uncovered(next.registry), r.unknownAllowed(next.registry)...)
	for _, l := range r.manifest.LeftOut {
		warnings = append(warnings, l.Problem())
	}
	if r.manifest.Scanned {
		warnings = append(warnings, space.Problem{Code: space.NoIndex, Detail: "there is no index: write one with refold space index DIR > agent.workspace.json"})
	}
	if bad := s.orphanFault(next); bad != nil {
		warnings = append(warnings, space.Problem{Code: space.NameInUse, Detail: bad.detail})
	}
	return space.SortProblems(warnings)
}

// stage stages a manifest, unless the session has it already, and returns the
// outcome.
func (s *State) stage(o *OpenSync, r *read) string {
	if o.Dry {
		return OutcomeDry
	}
	s.takeLacks(r)
	at := s.stagedAt(o.Space)
	if s.isKnown(&r.SpacePin) {
		if at >= 0 {
			s.Spaces.Staged = slices.Delete(s.Spaces.Staged, at, at+1)
		}
		return OutcomeUnchanged
	}
	s.Spaces.content.add(r.Hash, r.manifest)
	if r.Registry != nil {
		s.Spaces.content.name(r.names)
	}
	pin := r.SpacePin
	pin.Asked = 0
	if at >= 0 {
		s.Spaces.Staged[at] = SpaceStage{Pin: pin}
		return OutcomeStaged
	}
	s.Spaces.Staged = append(s.Spaces.Staged, SpaceStage{Pin: pin})
	slices.SortFunc(s.Spaces.Staged, func(a, b SpaceStage) int { return cmp.Compare(a.Pin.Space, b.Pin.Space) })
	return OutcomeStaged
}

// isKnown reports whether a manifest is pending under the same grant, or applied
// under it with nothing pending.
func (s *State) isKnown(p *SpacePin) bool {
	same := func(q *SpacePin) bool { return q.Space == p.Space && q.Hash == p.Hash && q.Grant == p.Grant }
	waits := false
	for i := range s.Spaces.Pending {
		q := &s.Spaces.Pending[i].Pin
		if same(q) {
			return true
		}
		waits = waits || q.Space == p.Space
	}
	return !waits && slices.ContainsFunc(s.Spaces.Applied, func(q SpacePin) bool { return same(&q) })
}

// takeLacks updates all pins of the manifest with the needs that its reader reports
// as unmet.
func (s *State) takeLacks(r *read) {
	s.eachHeld(func(p *SpacePin) {
		if p.Space == r.Space && p.Hash == r.Hash && !slices.Equal(p.Lacks, r.Lacks) {
			p.Lacks, s.toolsMoved = r.Lacks, true
		}
	})
}

// applySynced applies a synced manifest as its request says; a known one only if
// the request chooses another prompt or catalog, or an earlier boundary. It returns why the manifest does
// not fit, or "". If a model's call enabled it, it is not staged then.
func (s *State) applySynced(o *OpenSync, r *read, outcome string) string {
	pin := r.SpacePin
	pin.Prompt, pin.Catalog = o.Prompt, o.Catalog
	if outcome == OutcomeUnchanged {
		was := s.latest(o.Space)
		if (o.Prompt == "" || o.Prompt == was.Prompt) && (o.Catalog == "" || o.Catalog == was.Catalog) && !s.comesEarlier(o) {
			return ""
		}
		pin = *was
		pin.Prompt, pin.Catalog = cmp.Or(o.Prompt, was.Prompt), cmp.Or(o.Catalog, was.Catalog)
	}
	bad := s.makePending(pin, o.Apply, o.Seq)
	if at := s.stagedAt(o.Space); at >= 0 && s.Spaces.Staged[at].Pin.Hash == pin.Hash && (bad == nil || o.Call != "") {
		s.Spaces.Staged = slices.Delete(s.Spaces.Staged, at, at+1)
	}
	if bad != nil {
		s.notifyFailed(o, &r.adopted, string(RejectWorkspaceInvalid), bad.detail, nil)
		return string(RejectWorkspaceInvalid) + ": " + bad.detail
	}
	if s.callOfSync(o) >= 0 {
		s.Spaces.Pending[slices.IndexFunc(s.Spaces.Pending, func(p SpaceStage) bool { return p.Pin.Space == o.Space })].Run = s.Run.Number
		s.Run.Joined = append(s.Run.Joined, o.Space)
	}
	return ""
}

// comesEarlier reports whether a sync applies a pending space before its boundary.
func (s *State) comesEarlier(o *OpenSync) bool {
	p := find(s.Spaces.Pending, func(p *SpaceStage) bool { return p.Pin.Space == o.Space })
	return p != nil && (o.Apply == ModeImmediate && s.Run == nil || o.Apply == ModeNextStep && p.Mode != ModeNextStep)
}

// latest returns a space's pending pin, else its applied one. There must be one.
func (s *State) latest(name string) *SpacePin {
	if p := find(s.Spaces.Pending, func(p *SpaceStage) bool { return p.Pin.Space == name }); p != nil {
		return &p.Pin
	}
	return find(s.Spaces.Applied, func(p *SpacePin) bool { return p.Space == name })
}
