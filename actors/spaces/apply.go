package spaces

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// Mode is when an apply takes effect.
type Mode string

// The modes of an apply.
const (
	ModeNextRun   Mode = "next_run"           // when the next run starts; the default, also when empty
	ModeNextStep  Mode = "next_step_boundary" // before the active run's next turn
	ModeImmediate Mode = "immediate_if_idle"  // at once if no run is active, else as next_run
)

func (m Mode) known() bool { return m == ModeNextRun || m == ModeNextStep || m == ModeImmediate }

// Apply makes a staged space pending, or applies it at once. A pending space, of which
// nothing newer is staged, is moved to an earlier boundary. Without a name, one space
// alone must be staged, or else pending. hash is what it must have; empty: any. prompt
// and catalog replace the manifest's defaults; empty: they do not.
func (x *Spaces) Apply(name, hash string, mode Mode, prompt, catalog string) *Refusal {
	found, bad := x.appliable(name, hash)
	if bad != nil {
		return bad
	}
	pin := found.Pin
	pin.Prompt, pin.Catalog = cmp.Or(prompt, pin.Prompt), cmp.Or(catalog, pin.Catalog)
	seq, _ := x.Session.Now()
	if bad := x.makePending(pin, cmp.Or(mode, ModeNextRun), seq); bad != nil {
		return bad
	}
	if at := x.stagedAt(pin.Space); at >= 0 && x.Staged[at].Pin.Hash == pin.Hash {
		x.Staged = slices.Delete(x.Staged, at, at+1)
	}
	x.Prune()
	return nil
}

// appliable returns the space that a request applies: the staged one, else the
// pending one.
func (x *Spaces) appliable(name, hash string) (Stage, *Refusal) {
	if grant, _ := x.GrantNow(name); name != "" && grant == nil {
		return Stage{}, unknownSpace(name)
	}
	if x.State == nil {
		return Stage{}, nothingStaged()
	}
	for _, list := range [][]Stage{x.Staged, x.Pending} {
		of := list
		if name != "" {
			of = nil
			if one := find(list, func(st *Stage) bool { return st.Pin.Space == name }); one != nil {
				of = []Stage{*one}
			}
		}
		switch {
		case len(of) > 1:
			return Stage{}, refuse(InvalidData, "workspace: "+strconv.Itoa(len(of))+" spaces are staged or pending: name one")
		case len(of) == 1 && hash != "" && !of[0].Pin.Hash.Is(hash):
			return Stage{}, refuse(Stale, "hash: "+sentence.Quoted(of[0].Pin.Space)+" has "+of[0].Pin.Hash.String())
		case len(of) == 1:
			return of[0], nil
		}
	}
	return Stage{}, nothingStaged()
}

func nothingStaged() *Refusal {
	return refuse(NothingStaged, "workspace: nothing is staged: sync it first")
}

// makePending checks a pin on top of all pending ones and makes it pending. It
// replaces the pending pin of the same space, or the pending workspace, and
// publishes that of another manifest. Of two boundaries of a space the earlier one
// counts. If that is now, the pin is applied at once. requestSeq is the sequence of
// the request.
func (x *Spaces) makePending(pin Pin, mode Mode, requestSeq uint64) *Refusal {
	pin.Asked = requestSeq
	now, atOnce := x.Stack(), mode == ModeImmediate && x.Session.Idle()
	var waiting, displaced []Stage
	for _, p := range x.Pending {
		if p.Pin.Space == pin.Space && p.Mode == ModeNextStep {
			mode = ModeNextStep
		}
		if !p.Pin.isReplacedBy(&pin) {
			waiting = append(waiting, p)
			now = now.with(x.adoptedOf(p.Pin))
		} else if p.Pin.Hash != pin.Hash {
			displaced = append(displaced, p)
		}
	}
	if _, bad := x.stackWith(&now, pin); bad != nil {
		return bad
	}
	if applied := x.Stack(); atOnce {
		if _, bad := x.stackWith(&applied, pin); bad != nil {
			return bad
		}
	}
	x.Pending = waiting
	for i := range displaced {
		was := &displaced[i].Pin
		x.Session.Notify(NoticeWorkspaceDisplaced, WorkspaceDisplaced{Workspace: was.Space, Kind: was.Kind, Hash: was.Hash.String(), By: pin.Space, ByHash: pin.Hash.String()})
	}
	if atOnce {
		x.apply(pin, ModeImmediate)
		return nil
	}
	x.Pending = append(x.Pending, Stage{Mode: mode, Pin: pin})
	slices.SortStableFunc(x.Pending, func(a, b Stage) int { return byAsked(a.Pin, b.Pin) })
	return nil
}

// stackWith returns the stack with a pin on top of st, or why the pin does not fit.
func (x *Spaces) stackWith(st *Stack, pin Pin) (Stack, *Refusal) {
	invalid := func(detail string) (Stack, *Refusal) { return Stack{}, refuse(WorkspaceInvalid, detail) }
	a := x.adoptedOf(pin)
	if pin.Prompt != "" && a.Manifest.Prompt(pin.Prompt) == nil {
		return invalid("prompt_pack: " + a.HasNo("prompt pack", pin.Prompt))
	}
	if pin.Catalog != "" && a.Manifest.Catalog(pin.Catalog) == nil {
		return invalid("tool_catalog: " + a.HasNo("catalog", pin.Catalog))
	}
	out := st.with(a)
	if out.Packs() > PacksMax {
		return invalid(strconv.Itoa(PacksMax) + " packs are applied or pending: detach one")
	}
	if bad := out.Compose(); bad != nil {
		return invalid(bad.Error())
	}
	if bad := x.Record.Floor.Check(out.Registry, a.Manifest.Tools); bad != nil {
		return invalid(bad.Error())
	}
	if missing := a.uncovered(out.Registry); len(missing) > 0 && x.Record.AllBound {
		return invalid(missing[0].Path + ": " + missing[0].Detail)
	}
	if lost := x.Record.CoverageFault(&out); lost != "" {
		return invalid(lost)
	}
	if taken := out.skillProblems(&a); len(taken) > 0 {
		return invalid(taken[0].Path + ": " + taken[0].Detail)
	}
	if over := out.PromptSize(Choice{}).Over(); over != "" {
		return invalid(over)
	}
	if missing := x.Session.Missing(&out); missing != "" {
		return invalid(missing)
	}
	return out, nil
}

// HasNo returns the detail for a name that a workspace, or none, does not have.
func (a *Adopted) HasNo(what, name string) string {
	if a == nil {
		return "no workspace is applied, and " + what + " " + sentence.Quoted(name) + " is one's"
	}
	return "workspace " + sentence.Quoted(a.Space) + " has no " + what + " " + sentence.Quoted(name)
}

// Boundary applies the spaces that wait for this boundary, one after another: the first
// turn of a run, or any turn.
func (x *Spaces) Boundary(firstTurn bool) {
	if x.State == nil || len(x.Pending) == 0 {
		return
	}
	waiting := x.Pending
	x.Pending = nil
	for i := range waiting {
		if !firstTurn && waiting[i].Mode != ModeNextStep {
			x.Pending = append(x.Pending, waiting[i])
			continue
		}
		x.apply(waiting[i].Pin, waiting[i].Mode)
	}
	x.Prune()
}

// apply applies a pin if it fits, and publishes that, or why it doesn't fit.
func (x *Spaces) apply(pin Pin, mode Mode) {
	before := x.Stack()
	_, pin.At = x.Session.Now()
	st, bad := x.stackWith(&before, pin)
	if bad != nil {
		x.notifyDropped(&pin, string(WorkspaceInvalid), bad.Detail)
		return
	}
	if w := before.Workspace(); w != nil && pin.Kind == space.Workspace && w.Space != pin.Space {
		x.notifyGone(w, nil)
	}
	x.Recompose(&st)
	x.Session.Notify(NoticeWorkspaceApplied, WorkspaceApplied{
		Workspace: pin.Space, Kind: pin.Kind, Hash: pin.Hash.String(), Mode: mode, Version: pin.Version,
		PromptPack: pin.Prompt, ToolCatalog: pin.Catalog, Registry: st.Registry.Hash().String(),
		ToolsAdded: toolsMissingFrom(st.Registry, before.Registry), ToolsRemoved: toolsMissingFrom(before.Registry, st.Registry),
		Warnings: firstProblems(st.Find(pin.Space).uncovered(st.Registry)),
	})
}

// CoverageFault returns which tool of a catalog a stack does not bind, if the record
// demands all; else "".
func (r *Record) CoverageFault(st *Stack) string {
	if !r.AllBound {
		return ""
	}
	for i := range st.Spaces {
		if missing := st.Spaces[i].uncovered(st.Registry); len(missing) > 0 {
			return "space " + sentence.Quoted(st.Spaces[i].Space) + ": " + missing[0].Detail
		}
	}
	return ""
}

// Rebase composes the applied spaces on another base. It returns the stack, or why they
// do not fit it.
func (x *Spaces) Rebase(base *planner.Registry) (Stack, string) {
	was := x.Stack()
	st := Stack{Spaces: was.Spaces, base: base, own: was.own}
	if bad := st.Compose(); bad != nil {
		what := "the session's own tools"
		if bad.Layer < len(st.Spaces) {
			what = "space " + sentence.Quoted(st.Spaces[bad.Layer].Space)
		}
		return st, what + ": " + bad.Error()
	}
	return st, x.Record.CoverageFault(&st)
}

// Recompose makes a composed stack the applied one.
func (x *Spaces) Recompose(st *Stack) {
	before := x.Stack()
	x.adopt(st)
	x.Session.SetComposed(st.Registry)
	x.notifyUncovered(&before, st)
}

// adopt stores a composed stack in the state.
func (x *State) adopt(st *Stack) {
	x.content.base, x.content.own, x.content.results = st.base, nil, nil
	x.Applied = nil
	for i := range st.Spaces {
		x.content.add(st.Spaces[i].Hash, st.Spaces[i].Manifest)
		x.Applied = append(x.Applied, st.Spaces[i].Pin)
	}
	x.Composed = st.composed()
}

// composed returns the hash of a composed stack in a state.
func (st *Stack) composed() (hash codec.Hash) {
	if len(st.Spaces) > 0 || st.own != nil {
		hash = st.Registry.Hash()
	}
	return hash
}
