package spaces

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/space"
)

// Codes of a sync's failure, and of the result of the call that waits for it.
const (
	CodeBadSettlement      = "bad_settlement"
	CodeCancelled          = "cancelled"
	CodeWorkspaceUntrusted = "workspace_untrusted" // of a sync: the manifest is not the requested one, or is not trusted
	CodeApprovalStale      = "approval_stale"      // of a call of extensions_enable: another manifest is read than the approved one
	CodePackRefused        = "pack_refused"        // of a call of extensions_enable: it can't begin, or the manifest was refused
)

// codeVersionUnknown is the code of a reader that has no such version.
const codeVersionUnknown = "version_unknown"

// Report is what a reader answered.
type Report struct {
	Manifest codec.Raw        // what it read; empty: the session has it already, as Hash
	Hash     string           // one of the sync's Known
	Lacks    []string         // needs that are not met on its machine
	Revision string           // of the source, for people
	By       *space.Signature // makes the manifest trusted
	Source   string           // how it identifies itself
}

// Caller is the call of a model that waits for a sync.
type Caller struct {
	Run         uint32
	Approved    *Pin // the pack that a person approved; nil: nobody has yet
	ForApproval bool // the manifest is read for the person who decides, and not staged
}

// Result is what became of a settled sync.
type Result struct {
	Code   string        // empty: it succeeded
	Detail sentence.Text // of a failure: what the caller's model is told
	Read   *Read         // the accepted manifest
	Joined bool          // the caller's run has the pack from the next turn on
}

// Settle judges a reader's answer to a sync that End returned. It stages the manifest,
// holds it for the person who decides about the caller, or publishes why it is refused.
// caller is nil if no call waits.
func (x *Spaces) Settle(o *Sync, report *Report, caller *Caller) Result {
	r := Read{grant: x.grant(o.Grant, o.Space)}
	st := x.Stack()
	var next Stack
	trusted := x.readManifest(&r, o, report) && r.isApproved(caller) && r.isTrusted(o, &st)
	if !trusted || !x.fits(&r, &st, &next) {
		return x.manifestRefused(o, &r, trusted)
	}
	warnings := x.warnings(&r, &next)
	outcome := OutcomeDry
	if caller != nil && caller.ForApproval {
		x.content.add(r.Hash, r.Manifest)
	} else {
		outcome = x.stage(o, &r)
	}
	x.Session.Notify(NoticeWorkspaceStaged, WorkspaceStaged{
		Workspace: o.Space, Kind: o.Kind, Hash: r.Hash.String(), Effect: o.Name(), Outcome: outcome,
		Version: r.Version, Revision: r.revision, Warnings: firstProblems(warnings), Lacks: r.Lacks,
	})
	if o.Apply == "" {
		return Result{Read: &r}
	}
	return x.applySynced(o, &r, outcome, caller)
}

// Fail publishes that a sync that End returned failed, and returns the result.
func (x *Spaces) Fail(o *Sync, code, detail string, problems []space.Problem, caller *Caller) Result {
	x.notifyFailed(o, nil, code, detail, problems)
	told := Result{Code: code, Detail: sentence.Say(sentence.NotRead)}
	if code == codeVersionUnknown && caller != nil && caller.Approved != nil {
		told.Code, told.Detail = CodeApprovalStale, sentence.Say(sentence.OtherManifest)
	} else if code == codeVersionUnknown && o.Version != "" {
		told.Detail = sentence.Say(sentence.NoSuchVersion, sentence.Quoted(o.Version), sentence.Quoted(o.Space))
	}
	return told
}

// ForApproval returns the pin of an accepted manifest for the person who decides about the
// call that waits for it, and the key whose signature makes it trusted.
func (r *Read) ForApproval() (pin Pin, signer string) {
	pin = r.Pin
	pin.Asked, pin.Lacks = 0, nil
	return pin, r.grant.signer(r.Manifest, r.by)
}

// manifestRefused announces a refused manifest. Nothing of a manifest that is not
// trusted is in the result: nobody vouches for its texts. The notice has them, for people.
func (x *Spaces) manifestRefused(o *Sync, r *Read, trusted bool) Result {
	var m *Adopted
	if r.Manifest != nil {
		m = &r.Adopted
	}
	x.notifyFailed(o, m, r.code, r.detail, r.problems)
	switch {
	case r.code == CodeApprovalStale:
		return Result{Code: CodeApprovalStale, Detail: sentence.Say(sentence.OtherManifest)}
	case !trusted:
		return Result{Code: CodePackRefused, Detail: cmp.Or(r.told, sentence.Say(sentence.NotRead))}
	}
	first := &r.problems[0]
	return Result{Code: CodePackRefused, Detail: sentence.Say(sentence.ManifestFault, r.code, string(first.Code), cmp.Or(first.Path, first.File))}
}

// isApproved checks that a manifest is the one that a person approved, if one did.
func (r *Read) isApproved(caller *Caller) bool {
	if caller == nil || caller.Approved == nil || caller.Approved.Hash == r.Hash {
		return true
	}
	return r.refuse(CodeApprovalStale, sentence.Say(sentence.OtherManifest).String(), nil)
}

// readManifest decodes the manifest: steps 1 and 2 of the checks.
func (x *Spaces) readManifest(r *Read, o *Sync, report *Report) bool {
	r.Grant, r.Kind, r.Space = o.Grant, o.Kind, o.Space
	r.Seq, _ = x.Session.Now()
	r.names = x.Record.Registry
	if o.Kind == space.Workspace {
		r.names, r.Registry = x.Session.Base()
	}
	if len(report.Manifest) == 0 {
		known := find(o.Known, func(k *Known) bool { return k.Hash.Is(report.Hash) })
		if known == nil {
			return r.refuse(CodeBadSettlement, "hash: is none of the effect's known", nil)
		}
		r.Hash, r.Seq, r.Manifest = known.Hash, known.Seq, x.Manifest(known.Hash)
	} else {
		m, problems := space.Parse(report.Manifest)
		if m == nil {
			return r.refuse(string(WorkspaceInvalid), "the manifest is invalid", problems)
		}
		r.Hash, r.Manifest = codec.Sum(report.Manifest), m
	}
	r.Lacks, r.Source, r.by, r.revision = report.Lacks, report.Source, report.By, report.Revision
	r.Version = r.Manifest.Version
	needs := r.Manifest.AllNeeds()
	for i, need := range r.Lacks {
		if !slices.Contains(needs, need) || slices.Contains(r.Lacks[:i], need) {
			return r.refuse(CodeBadSettlement, "lacks["+strconv.Itoa(i)+"]: "+sentence.Quoted(need)+" is no need of the manifest, or stands twice", nil)
		}
	}
	return true
}

// stage stages a manifest, unless the session has it already, and returns the
// outcome.
func (x *Spaces) stage(o *Sync, r *Read) string {
	if o.Dry {
		return OutcomeDry
	}
	x.takeLacks(r)
	at := x.stagedAt(o.Space)
	if x.isKnown(&r.Pin) {
		if at >= 0 {
			x.Staged = slices.Delete(x.Staged, at, at+1)
		}
		return OutcomeUnchanged
	}
	x.content.add(r.Hash, r.Manifest)
	if r.Registry != nil {
		x.content.name(r.names)
	}
	pin := r.Pin
	pin.Asked = 0
	if at >= 0 {
		x.Staged[at] = Stage{Pin: pin}
		return OutcomeStaged
	}
	x.Staged = append(x.Staged, Stage{Pin: pin})
	slices.SortFunc(x.Staged, func(a, b Stage) int { return cmp.Compare(a.Pin.Space, b.Pin.Space) })
	return OutcomeStaged
}

// isKnown reports whether a manifest is pending under the same grant, or applied
// under it with nothing pending.
func (x *Spaces) isKnown(p *Pin) bool {
	same := func(q *Pin) bool { return q.Space == p.Space && q.Hash == p.Hash && q.Grant == p.Grant }
	waits := false
	for i := range x.Pending {
		q := &x.Pending[i].Pin
		if same(q) {
			return true
		}
		waits = waits || q.Space == p.Space
	}
	return !waits && slices.ContainsFunc(x.Applied, func(q Pin) bool { return same(&q) })
}

// takeLacks updates all pins of the manifest with the needs that its reader reports
// as unmet.
func (x *Spaces) takeLacks(r *Read) {
	x.eachHeld(func(p *Pin) {
		if p.Space == r.Space && p.Hash == r.Hash && !slices.Equal(p.Lacks, r.Lacks) {
			p.Lacks = r.Lacks
			x.Session.ToolsChanged()
		}
	})
}

// applySynced applies a synced manifest as its request says; a known one only if
// the request chooses another prompt or catalog, or an earlier boundary. It fails if the
// manifest does not fit; one that a model's call enabled is not staged then.
func (x *Spaces) applySynced(o *Sync, r *Read, outcome string, caller *Caller) Result {
	pin := r.Pin
	pin.Prompt, pin.Catalog = o.Prompt, o.Catalog
	if outcome == OutcomeUnchanged {
		was := x.latest(o.Space)
		if (o.Prompt == "" || o.Prompt == was.Prompt) && (o.Catalog == "" || o.Catalog == was.Catalog) && !x.comesEarlier(o) {
			return Result{Read: r}
		}
		pin = *was
		pin.Prompt, pin.Catalog = cmp.Or(o.Prompt, was.Prompt), cmp.Or(o.Catalog, was.Catalog)
	}
	bad := x.makePending(pin, o.Apply, o.Seq)
	if at := x.stagedAt(o.Space); at >= 0 && x.Staged[at].Pin.Hash == pin.Hash && (bad == nil || o.Call != "") {
		x.Staged = slices.Delete(x.Staged, at, at+1)
	}
	if bad != nil {
		x.notifyFailed(o, &r.Adopted, string(WorkspaceInvalid), bad.Detail, nil)
		return Result{Code: CodePackRefused, Detail: sentence.Say(sentence.PackUnfit, string(WorkspaceInvalid))}
	}
	if caller != nil {
		find(x.Pending, func(p *Stage) bool { return p.Pin.Space == o.Space }).Run = caller.Run
	}
	return Result{Read: r, Joined: caller != nil}
}

// comesEarlier reports whether a sync applies a pending space before its boundary.
func (x *Spaces) comesEarlier(o *Sync) bool {
	p := find(x.Pending, func(p *Stage) bool { return p.Pin.Space == o.Space })
	return p != nil && (o.Apply == ModeImmediate && x.Session.Idle() || o.Apply == ModeNextStep && p.Mode != ModeNextStep)
}

// latest returns a space's pending pin, else its applied one. There must be one.
func (x *Spaces) latest(name string) *Pin {
	if p := find(x.Pending, func(p *Stage) bool { return p.Pin.Space == name }); p != nil {
		return &p.Pin
	}
	return find(x.Applied, func(p *Pin) bool { return p.Space == name })
}
