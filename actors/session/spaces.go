package session

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// spaceSession implements spaces.Session.
type spaceSession State

func (s *spaceSession) state() *State { return (*State)(s) }

func (s *spaceSession) Now() (seq uint64, clock int64) { return s.Seq, s.Clock }

func (s *spaceSession) Base() (*planner.Registry, *spaces.RegistryPin) {
	return s.state().baseRegistry(), s.state().pinned()
}

func (s *spaceSession) Composed() *planner.Registry { return s.registry }

func (s *spaceSession) Idle() bool { return s.Run == nil }

func (s *spaceSession) Missing(st *spaces.Stack) string {
	if bad := s.state().orphanFault(st); bad != nil {
		return bad.detail
	}
	return ""
}

func (s *spaceSession) NamedBy(matches func(*spaces.Pin) bool) string {
	if s.Config != nil && s.Config.Workspace != nil && matches(s.Config.Workspace) {
		return "the session's config.workspace"
	}
	for _, run := range s.state().runs() {
		if run.Operators && run.Workspace != nil && matches(run.Workspace) {
			return "run " + strconv.FormatUint(uint64(run.Number), 10) + ": config.workspace"
		}
	}
	return ""
}

func (s *spaceSession) EachPin(fn func(*spaces.Pin)) {
	if s.Config != nil && s.Config.Workspace != nil {
		fn(s.Config.Workspace)
	}
	for _, run := range s.state().runs() {
		if run.Workspace != nil {
			fn(run.Workspace)
		}
	}
	if s.Turn != nil && s.Turn.Batch != nil {
		for i := range s.Turn.Batch.Calls {
			if pack := s.Turn.Batch.Calls[i].Pack; pack != nil {
				fn(&pack.Pin)
			}
		}
	}
}

func (s *spaceSession) Withdraw(sync uint32) { s.state().withdraw(Place{kind: kindSpace, n: sync}) }

func (s *spaceSession) SetComposed(registry *planner.Registry) {
	s.registry, s.toolsMoved = registry, true
	s.state().doubtClients()
}

func (s *spaceSession) ToolsChanged() { s.toolsMoved = true }

func (s *spaceSession) Notify(typ string, notice any) { notify(s.state(), typ, notice) }

// spaces returns the session's spaces. If a method makes their State, the caller stores
// it in s.Spaces.
func (s *State) spaces() spaces.Spaces {
	return spaces.Spaces{State: s.Spaces, Record: s.install.spaces, Session: (*spaceSession)(s)}
}

// isGranted reports whether a grant is about a space.
func (s *State) isGranted(name string) bool {
	x := s.spaces()
	grant, _ := x.GrantNow(name)
	return grant != nil
}

// dropContent drops what no pin names any more.
func (s *State) dropContent() {
	if x := s.spaces(); x.State != nil {
		x.Prune()
	}
}

// refusalOf returns a refusal of package spaces; nil for nil.
func refusalOf(bad *spaces.Refusal) *refusal {
	if bad == nil {
		return nil
	}
	return refuse(Rejection(bad.Code), bad.Detail)
}

// workspaceSyncRequested opens a sync of a space.
func (s *State) workspaceSyncRequested(data codec.Raw) *refusal {
	var b WorkspaceSyncRequested
	if bad := decodeBody(data, &b); bad != nil {
		return bad
	}
	if bad := b.fault(); bad != nil {
		return bad
	}
	x := s.spaces()
	withdrawn, bad := x.Request(spaces.Sync{
		Apply: b.Apply, Catalog: b.ToolCatalog, Data: codec.Digest(data), Dry: b.Dry, Only: b.Only, Prompt: b.PromptPack, Space: b.Workspace, Version: b.Version,
	}, b.Kind, b.Grant)
	if bad != nil {
		return refusalOf(bad)
	}
	s.Spaces = x.State
	if withdrawn != nil {
		s.endEnable(&withdrawn.Sync, CallCancelled, withdrawn.Code, withdrawn.Detail, nil)
	}
	return nil
}

// fault checks the request by itself.
func (b *WorkspaceSyncRequested) fault() *refusal {
	switch {
	case !space.IsSpaceName(b.Workspace, space.Workspace):
		return refuse(RejectInvalidData, "workspace: must be the name of a space, not "+sentence.Quoted(b.Workspace))
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
	if bad := b.Grant.Fault(); bad != nil {
		return refuse(RejectInvalidData, "grant."+bad.Error())
	}
	switch {
	case b.Grant.Space != b.Workspace:
		return refuse(RejectInvalidData, "grant.space: must be the workspace of the request, "+sentence.Quoted(b.Workspace))
	case len(b.Grant.Manifest) > 0:
		return refuse(RejectInvalidData, "grant.manifest: is only allowed in the install record")
	}
	return nil
}

func choiceFault(prompt, catalog string) *refusal {
	switch {
	case prompt != "" && !space.IsID(prompt):
		return refuse(RejectInvalidData, "prompt_pack: must be the name of one, not "+sentence.Quoted(prompt))
	case catalog != "" && !space.IsID(catalog):
		return refuse(RejectInvalidData, "tool_catalog: must be the name of one, not "+sentence.Quoted(catalog))
	}
	return nil
}

// workspaceApplyRequested makes a staged space pending, or applies it at once.
func (s *State) workspaceApplyRequested(b *WorkspaceApplyRequested) *refusal {
	if bad := choiceFault(b.PromptPack, b.ToolCatalog); bad != nil {
		return bad
	}
	x := s.spaces()
	return refusalOf(x.Apply(b.Workspace, b.Hash, b.Mode, b.PromptPack, b.ToolCatalog))
}

// workspaceDetached drops all of a space.
func (s *State) workspaceDetached(b *WorkspaceDetached) *refusal {
	x := s.spaces()
	withdrawn, bad := x.Detach(b.Workspace, b.Kind)
	for _, o := range withdrawn {
		s.endEnable(&o.Sync, CallCancelled, o.Code, o.Detail, nil)
	}
	return refusalOf(bad)
}

// syncs folds the effects of class space.
type syncs struct{}

// syncSettlement is a decoded settlement of a sync.
type syncSettlement struct {
	ready     WorkspaceSnapshotReady
	unchanged WorkspaceSyncUnchanged
	failed    WorkspaceSyncFailed
}

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
	x := s.spaces()
	o := x.End(x.SyncAt(p.n), settlementHash(b.typ, b.data))
	waiting := s.callOfSync(&o)
	var c *Call
	var caller *spaces.Caller
	if waiting >= 0 {
		c = &s.Turn.Batch.Calls[waiting]
		caller = &spaces.Caller{Run: s.Run.Number, ForApproval: s.isBeingRead(c)}
		if c.Pack != nil {
			caller.Approved = &c.Pack.Pin
		}
	}
	bad, sync := b.bad, b.body.(*syncSettlement)
	if bad == nil {
		bad = sync.fault(b.typ)
	}
	var result spaces.Result
	switch failed := &sync.failed; {
	case bad != nil:
		result = x.Fail(&o, CodeBadSettlement, bad.detail, nil, caller)
	case b.typ == TypeWorkspaceSyncFailed:
		result = x.Fail(&o, failed.Error.Code, failed.Error.Detail, failed.Problems, caller)
	default:
		result = x.Settle(&o, sync.report(), caller)
	}
	if result.Joined {
		s.Run.Joined = append(s.Run.Joined, o.Space)
	}
	if caller != nil && caller.ForApproval && result.Read != nil {
		c.Pack = &ReadPack{}
		c.Pack.Pin, c.Pack.Signer = result.Read.ForApproval()
	}
	x.Prune()
	if c != nil && c.Pack != nil && c.Status == CallAwaiting {
		s.notifyApproval(waiting)
		return nil
	}
	status := CallFailed
	if result.Code == "" {
		status = CallSucceeded
	}
	s.endEnable(&o, status, result.Code, result.Detail, sync.output())
	return nil
}

// report returns what the reader answered.
func (b *syncSettlement) report() *spaces.Report {
	if r := &b.ready; len(r.Manifest) > 0 {
		return &spaces.Report{Manifest: r.Manifest, Lacks: r.Lacks, Revision: r.Revision, By: r.Signature, Source: r.Source}
	}
	u := &b.unchanged
	return &spaces.Report{Hash: u.Hash, Lacks: u.Lacks, By: u.Signature, Source: u.Source}
}

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
				return refuse(RejectInvalidData, "problems["+strconv.Itoa(i)+"]: has an unknown code, or is too long")
			}
		}
		return nil
	case TypeWorkspaceSnapshotReady:
		r := &b.ready
		if !codec.IsMap(r.Manifest) || codec.HasBinary(r.Manifest) {
			return refuse(RejectInvalidData, "manifest: must be an object")
		}
		return readerFault(r.Signature, r.Output)
	}
	u := &b.unchanged
	return readerFault(u.Signature, u.Output)
}

// readerFault checks the other fields that a reader sends with a manifest.
func readerFault(by *space.Signature, output *Content) *refusal {
	if bad := contentFault("output", output, true); bad != nil {
		return bad
	}
	if by != nil && (len(by.Key) > NameBytesMax || len(by.Sig) > NameBytesMax) {
		return refuse(RejectInvalidData, "signature: is not valid")
	}
	return nil
}

func (syncs) status(s *State, p Place) (codec.Hash, effectStatus) {
	x := s.spaces()
	switch {
	case s.Spaces == nil || p.n > s.Spaces.SyncsAsked:
		return codec.Hash{}, effectUnknown
	case x.SyncAt(p.n) >= 0:
		return codec.Hash{}, effectOpen
	}
	if hash := s.Spaces.Settlement(p.n); !hash.IsZero() {
		return hash, effectSettled
	}
	return codec.Hash{}, effectOver
}

func (syncs) effect(s *State, p Place, _ []byte) Effect {
	x := s.spaces()
	o := &x.Syncs[x.SyncAt(p.n)]
	var known []codec.Hash
	for i := range o.Known {
		known = append(known, o.Known[i].Hash)
	}
	name, startBy := o.Name(), o.Deadline-o.RunMS
	payload := Space{
		At: o.At, Call: o.Call, Class: ClassSpace, Dry: o.Dry, Effect: name, Kind: o.Kind, Known: known, Only: o.Only, RunMS: o.RunMS,
		Session: s.Session, Space: o.Space, StartBy: startBy, Tools: o.Tools, Trust: x.TrustOf(o), V: Version, Version: o.Version,
	}
	return Effect{Name: name, Class: ClassSpace, Target: o.Target, Deadline: o.Deadline, StartBy: startBy, Payload: encode(payload)}
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
	x := s.spaces()
	for i := x.Overdue(); i >= 0; i = x.Overdue() {
		ended := x.Withdraw(i, CodeDeadlineExceeded, noSettlement("space/"+x.Syncs[i].Target))
		s.endEnable(&ended.Sync, CallFailed, ended.Code, ended.Detail, nil) // unless the call is overdue, too
	}
}

// noSettlement is the detail for an effect that no bridge of its target settled.
func noSettlement(from string) sentence.Text { return sentence.Say(sentence.NoSettlement, from) }

// endSyncOf withdraws a call's sync, if that is open.
func (s *State) endSyncOf(c *Call, code string, detail sentence.Text) {
	x := s.spaces()
	x.WithdrawOf(c.Sync, code, detail)
}

func (s *State) spacesInvariant() error {
	x := s.spaces()
	return x.Invariant()
}

// spaceSource is where a restored state's spaces find what they name.
type spaceSource struct {
	Source
	*State
}

func (s spaceSource) Named(pin *spaces.RegistryPin) (*planner.Registry, error) {
	return s.registryAt(pin, s.Source)
}

// restoreSpaces loads the manifests of a restored state's pins, and composes the
// registries.
func (s *State) restoreSpaces(from Source) (err error) {
	x := s.spaces()
	if x.State != nil {
		if s.registry, err = x.Restore(s.registry, spaceSource{from, s}); err != nil {
			return err
		}
	}
	switch {
	case s.Turn == nil:
	case s.turnSpace() == nil && s.Turn.Toolset.Registry == s.install.Offered().Hash():
		s.turnRegistry = s.install.Offered() // the common case: nothing is composed
	default:
		s.turnRegistry, err = x.RestoreTurn(s.turnRegistry, s.Turn.Results)
	}
	return err
}

// turnSpace returns what spaces add to the latest turn; nil: nothing.
func (s *State) turnSpace() *spaces.Turn {
	if s.Spaces == nil {
		return nil
	}
	return s.Spaces.Turn
}

// baseRegistry returns the session's registry without layers.
func (s *State) baseRegistry() *planner.Registry {
	if s.Spaces == nil {
		return s.registry
	}
	return s.Spaces.Base()
}

// stack returns the stack that is applied now.
func (s *State) stack() spaces.Stack {
	x := s.spaces()
	return x.Stack()
}

// stackAtStart returns the stack that applies when a run begins that is requested now.
// waits reports whether spaces wait that are applied before its first turn.
func (s *State) stackAtStart() (st spaces.Stack, waits bool) {
	x := s.spaces()
	return x.AtStart()
}

// turnStack returns the stack of the latest turn.
func (s *State) turnStack() spaces.Stack {
	x := s.spaces()
	return x.TurnStack(s.turnRegistry)
}

// runStack returns the stack of the active run's next turn. Without an active run it is
// that of a run whose request brings no config, under the applied workspace.
func (s *State) runStack() spaces.Stack {
	st, context := s.stack(), s.heldContext()
	if s.Run != nil {
		context = s.Run.Config.Context
		if s.Run.Config.isOwn() {
			x := s.spaces()
			st = x.RunStack(&st, s.Run.Workspace)
		}
	}
	if context != nil {
		return s.withResults(&st)
	}
	return st
}

// isOwn reports whether a config names a workspace.
func (c *RunConfig) isOwn() bool { return c.Workspace != "" }

// choice returns what a config chooses of spaces.
func (c *RunConfig) choice() spaces.Choice {
	return spaces.Choice{PromptPack: c.PromptPack, ToolCatalog: c.ToolCatalog, PromptRefs: c.PromptRefs, Skills: c.Skills}
}

// stackOf returns the stack of a run with a config, given the applied stack st. own
// is the workspace that the config names.
func (s *State) stackOf(st *spaces.Stack, c *RunConfig, own *spaces.Pin) (spaces.Stack, *refusal) {
	out := *st
	if c != nil && c.isOwn() {
		x := s.spaces()
		out = x.Under(st, own)
		if bad := out.Compose(); bad != nil {
			return out, refuse(RejectWorkspaceInvalid, "config.workspace: "+bad.Error())
		}
	}
	if c != nil && c.Context != nil {
		out = s.withResults(&out)
	}
	return out, nil
}

// ownWorkspace returns the workspace that a config names, nil if it names none: an
// applied, pending or staged one, or the install record's.
func (s *State) ownWorkspace(c *RunConfig) (*spaces.Pin, *refusal) {
	if c == nil || !c.isOwn() || c.Workspace == space.None {
		return nil, nil
	}
	x := s.spaces()
	own := x.PinOf(c.Workspace, space.Workspace)
	if own == nil {
		return nil, refuse(RejectWorkspaceInvalid, "config.workspace: no manifest of the session has the hash "+sentence.Quoted(c.Workspace)+": sync it first")
	}
	return own, nil
}

// configFault checks a config under a stack. own is the workspace that the config
// names.
func (s *State) configFault(st *spaces.Stack, c *RunConfig, own *spaces.Pin, complete bool) *refusal {
	if c == nil {
		return nil
	}
	if c.isOwn() && c.Workspace != space.None && own == nil {
		return refuse(RejectWorkspaceInvalid, "config.workspace: is not a manifest of the session")
	}
	of, bad := s.stackOf(st, c, own)
	if bad == nil {
		bad = configFault(of.Registry, c, complete)
	}
	if bad == nil {
		bad = namesFault(&of, c)
	}
	return bad
}

// namesFault checks a config's names against the stack's spaces.
func namesFault(st *spaces.Stack, c *RunConfig) *refusal {
	w := st.Workspace()
	if c.PromptPack != "" && c.PromptPack != space.None && (w == nil || w.Manifest.Prompt(c.PromptPack) == nil) {
		return refuse(RejectWorkspaceInvalid, "config.prompt_pack: "+w.HasNo("prompt pack", c.PromptPack))
	}
	if c.ToolCatalog != "" && c.ToolCatalog != space.None && (w == nil || w.Manifest.Catalog(c.ToolCatalog) == nil) {
		return refuse(RejectWorkspaceInvalid, "config.tool_catalog: "+w.HasNo("catalog", c.ToolCatalog))
	}
	return skillsFault(st, c)
}

// skillsFault checks, under a stack, a config's skills and the size of what it
// shows before the transcript.
func skillsFault(st *spaces.Stack, c *RunConfig) *refusal {
	for i, name := range c.Skills {
		path := "config.skills[" + strconv.Itoa(i) + "]: "
		if slices.Contains(c.Skills[:i], name) {
			return refuse(RejectInvalidData, path+sentence.Quoted(name)+" stands twice")
		}
		if _, skill := st.Skill(name); skill == nil {
			return refuse(RejectWorkspaceInvalid, path+"no applied space has a skill "+sentence.Quoted(name))
		}
	}
	if len(st.Spaces) == 0 {
		return nil
	}
	if over := st.PromptSize(c.choice()).Over(); over != "" {
		return refuse(RejectLimitExceeded, "config: "+over)
	}
	return nil
}

// enterTurn records what spaces add to the turn that begins: nothing in a session
// without spaces, if the run has no prompt refs.
func (s *State) enterTurn(st *spaces.Stack) {
	if s.Spaces != nil {
		s.Spaces.Turn = nil
	}
	if !st.HasOwnTools() && len(st.Spaces) == 0 && s.Run.Config.PromptRefs == nil {
		return
	}
	x := s.spaces()
	x.EnterTurn(st, s.Run.Config.choice())
	s.Spaces = x.State
}

// fixPrompt fixes the prompt of the latest turn: parts, variables and their mark.
// Failed attempts do not change it, unless the window was made smaller.
func (s *State) fixPrompt() {
	t := s.turnSpace()
	if t == nil {
		return
	}
	t.Parts, t.Vars = nil, nil
	st, c := s.turnStack(), s.Run.Config.choice()
	for _, ref := range listOf(s.Run.Config.PromptRefs) {
		t.Parts = append(t.Parts, spaces.PromptPart{Ref: ref.Hash})
	}
	t.Parts = append(t.Parts, st.PromptParts(c, s.skillParts(&st))...)
	for _, name := range st.Vars(c) {
		t.Vars = append(t.Vars, codec.Pair{Key: name, Value: codec.AppendString(nil, s.variable(name, st.Workspace()))})
	}
	if len(t.Parts) > 0 {
		t.Mark = codec.Digest(encode(struct {
			Prompt []spaces.PromptPart `msgpack:"prompt"`
			System string              `msgpack:"system,omitempty"`
			Vars   codec.Pairs         `msgpack:"vars,omitempty"`
		}{t.Parts, s.system(), t.Vars}))
	}
}

// variable returns the value of a template's variable, under workspace w. The value
// of a missing fact is "".
func (s *State) variable(name string, w *spaces.Adopted) string {
	switch name {
	case space.VarSession:
		return s.Session
	case space.VarRun:
		return "r" + strconv.FormatUint(uint64(s.Run.Number), 10)
	case space.VarVersion: // no pack uses it
		return w.Version
	}
	fact := strings.TrimPrefix(name, space.VarFact)
	if i := slices.IndexFunc(s.Facts, func(f planner.Fact) bool { return f.Name == fact }); i >= 0 {
		return s.Facts[i].Value
	}
	return ""
}

// showPrompt fills in a generation's prompt, and the prompt pack's settings that
// the run's config does not have.
func (s *State) showPrompt(g *Generation) {
	t := s.turnSpace()
	if t == nil {
		return
	}
	g.Prompt, g.Vars = t.Parts, t.Vars
	if len(g.Prompt) > 0 {
		g.PromptMark = &t.Mark
	}
	st := s.turnStack()
	if p := st.Prompt(s.Run.Config.choice()); p != nil && len(g.Params) == 0 {
		g.Params = p.Params
	}
}

// ResponseFormat returns the form that answers of the latest turn must have, a
// ResponseFormat: the run's, else the prompt pack's. It is empty if neither has one.
func (s *State) ResponseFormat() codec.Raw {
	own := s.Run.Config.ResponseFormat
	if len(own) > 0 || s.turnSpace() == nil {
		return own
	}
	st := s.turnStack()
	if p := st.Prompt(s.Run.Config.choice()); p != nil {
		return p.ResponseFormat
	}
	return nil
}

// catalogChoice returns the tool_choice of the latest turn's catalog.
func (s *State) catalogChoice() string {
	st := s.turnStack()
	if c := st.Catalog(s.Run.Config.choice()); c != nil {
		return st.Workspace().ToolIn(st.Registry, c.ToolChoice)
	}
	return ""
}

// promptBytes is an upper bound of the latest turn's prompt, without the system
// text.
func (s *State) promptBytes() int64 {
	if s.turnSpace() == nil {
		return 0
	}
	st := s.turnStack()
	size := st.PromptSize(s.Run.Config.choice())
	return size.Bytes + int64(size.Images)*ImageBytes
}

// Manifest returns the manifest with a hash, nil if no pin in the state names it.
// It must not be changed.
func (s *State) Manifest(hash codec.Hash) *space.Manifest {
	x := s.spaces()
	return x.Manifest(hash)
}

// Uncovered returns the tools that applied catalogs name and the session's registry
// does not bind.
func (s *State) Uncovered() (problems []space.Problem) {
	st := s.stack()
	return st.Uncovered()
}

// CheckSpace judges a manifest from a folder as a new session under the record
// would: problems keep it from being staged, warnings don't. The error wraps
// spaces.ErrNotGranted if no grant covers the space, or if its grant does not trust the
// manifest without a signature; problems are returned in both cases.
func (in *Install) CheckSpace(m *space.Manifest) (problems, warnings []space.Problem, err error) {
	x := New(in, "").spaces()
	return x.Check(m)
}

// ParseSnapshotReady returns the manifest in a WorkspaceSnapshotReady, with the
// hash that the fold gave it when it accepted the event.
func ParseSnapshotReady(e Event) (*space.Manifest, codec.Hash, error) {
	env, bad := open(e)
	if bad == nil && env.Type != TypeWorkspaceSnapshotReady {
		bad = refuse(RejectInvalidData, "is a "+sentence.Quoted(env.Type))
	}
	var b WorkspaceSnapshotReady
	if bad == nil {
		bad = decodeBody(env.Data, &b)
	}
	if bad != nil {
		return nil, codec.Hash{}, fmt.Errorf("event %d: no manifest: %s: %s", e.Seq, bad.code, bad.detail)
	}
	m, problems := space.Parse(b.Manifest)
	if m == nil {
		return nil, codec.Hash{}, fmt.Errorf("event %d: no manifest: %s", e.Seq, problems[0])
	}
	return m, codec.Sum(b.Manifest), nil
}
