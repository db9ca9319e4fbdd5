package session

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// extensionsPrefix begins the tool_ids of the tools with which a model finds and
// enables packs.
const extensionsPrefix = spaces.OwnLayer + ".extensions."

// enableArguments are the arguments of extensions_enable, checked by its schema.
type enableArguments struct {
	Extension  string         `json:"extension"`
	Source     string         `json:"source"`
	Options    map[string]any `json:"options"`
	Identifier string         `json:"identifier"`
	DryRun     bool           `json:"dryRun"`
}

// enabling is a call of extensions_enable, resolved.
type enabling struct {
	enableArguments
	grant   *spaces.Grant // nil: none lets a model enable the pack
	about   *spaces.Grant // the one about the pack, whoever may enable it; nil: none
	seq     uint64        // sequence of the grant's event
	version string
}

// readEnable decodes the arguments of a call and finds its grant, nil if there is
// none.
func (s *State) readEnable(arguments string) *enabling {
	e := new(enabling)
	_ = json.Unmarshal([]byte(arguments), &e.enableArguments) // the schema was checked
	x := s.spaces()
	e.about, e.seq = x.GrantNow(e.Extension)
	if e.grant = e.about; e.grant != nil && (e.grant.SpaceKind() != space.Pack || !e.grant.MayRequest(spaces.AttachModel)) {
		e.grant = nil
	}
	if name, version, ok := strings.Cut(e.Identifier, "@"); ok && name == e.Extension {
		e.version = version
	}
	return e
}

// target returns the target whose reader reads the pack.
func (e *enabling) target() string {
	if e.grant == nil { // a detach removed it
		return e.Extension
	}
	return e.grant.TargetOf(e.Extension)
}

// enableFault returns why a call of extensions_enable can't begin now: it is
// refused, or the pack is already applied. It is checked when the batch is planned,
// and again when the call is opened.
func (s *State) enableFault(arguments string) (status CallStatus, code string, detail sentence.Text) {
	e := s.readEnable(arguments)
	refused := func(n sentence.Number, args ...string) (CallStatus, string, sentence.Text) {
		return CallFailed, spaces.CodePackRefused, sentence.Say(n, args...)
	}
	if e.grant == nil {
		return CallFailed, spaces.CodePackRefused, e.noGrant()
	}
	_, wildcard := strings.CutSuffix(e.grant.Space, "*")
	x := s.spaces()
	st := x.Stack()
	was := st.Find(e.Extension)
	named := e.Source != "" && e.Source != SourceCurated
	sources := strings.Join(e.grant.ReaderSources(), " or ")
	switch {
	case !named && wildcard:
		return refused(sentence.SourceNeeded, sources)
	case named && !wildcard:
		return refused(sentence.SourceDecided, sentence.Quoted(e.Extension))
	case named && !slices.Contains(e.grant.ReaderSources(), e.Source):
		return refused(sentence.SourceNotGranted, sources, sentence.Quoted(e.Source))
	case len(e.Options) > 0:
		return refused(sentence.OptionsRefused)
	case e.Identifier != "" && e.Identifier != e.Extension && e.version == "":
		return refused(sentence.IdentifierUnknown, sentence.Quoted(e.Extension), sentence.Quoted(e.Extension+"@1.4"), sentence.Quoted(e.Identifier))
	case len(e.version) > space.VersionBytesMax:
		return refused(sentence.VersionTooLong, strconv.Itoa(space.VersionBytesMax))
	case e.version != "" && !e.grant.Covers(e.version):
		return refused(sentence.VersionNotGranted, e.grant.Version, sentence.Quoted(e.version))
	case was != nil && was.Kind == space.Pack:
		return CallSucceeded, CodeAlreadyLoaded, sentence.Own(s.alreadyLoaded(e, was))
	case x.OpenSyncOf(e.Extension) >= 0:
		return refused(sentence.SyncIsOpen)
	case len(x.Known(e.Extension)) > 0:
		return refused(sentence.PackIsWaiting)
	case st.Packs() >= spaces.PacksMax:
		return refused(sentence.PacksMax, strconv.Itoa(spaces.PacksMax))
	}
	if x.RoomFault(e.Extension, e.DryRun, false) != nil {
		return refused(sentence.NoRoom)
	}
	return "", "", ""
}

// noGrant says why no grant lets a model enable the pack.
func (e *enabling) noGrant() sentence.Text {
	if name, version, ok := strings.Cut(e.Extension, "@"); ok {
		return sentence.Say(sentence.VersionInName, sentence.Quoted(name), sentence.Quoted(version), sentence.Quoted(e.Extension))
	}
	switch name := sentence.Quoted(e.Extension); {
	case e.about == nil:
		return sentence.Say(sentence.PackNotGranted, name)
	case e.about.SpaceKind() != space.Pack:
		return sentence.Say(sentence.PackIsWorkspace, name)
	default:
		return sentence.Say(sentence.PackForOperators, name)
	}
}

// SourceCurated is a model's name for the packs that grants name.
const SourceCurated = "curated"

// alreadyLoaded returns the output of a call whose pack is already applied: JSON,
// as readers answer.
func (s *State) alreadyLoaded(e *enabling, was *spaces.Adopted) string {
	tools := s.turnRegistry.Len()
	out := EnableOutput{
		Source: cmp.Or(e.Source, SourceCurated), Extension: e.Extension, Resolved: &EnableResolved{Identifier: was.Space + "@" + was.Version},
		Loaded: true, Skipped: true, Reason: CodeAlreadyLoaded, ToolsAdded: []string{}, ToolsCountBefore: tools, ToolsCountAfter: tools,
	}
	text := out.JSON()
	if len(text) > DetailBytesMax {
		out.Resolved = nil
		text = out.JSON()
	}
	return text
}

// EnableOutput is the output of extensions_enable that a model is shown, as JSON.
type EnableOutput struct {
	Source           string          `json:"source"` // curated, package, module
	Extension        string          `json:"extension"`
	Resolved         *EnableResolved `json:"resolved,omitempty"`
	Loaded           bool            `json:"loaded"`
	Skipped          bool            `json:"skipped,omitempty"` // nothing was done; Reason is why
	Reason           string          `json:"reason,omitempty"`  // already_loaded, dry_run
	ToolsAdded       []string        `json:"toolsAdded"`        // tool_ids of the manifest, offered or not
	ToolsCountBefore int             `json:"toolsCountBefore"`
	ToolsCountAfter  int             `json:"toolsCountAfter"`
}

// EnableResolved is the pack that a name resolves to.
type EnableResolved struct {
	PackageName     string `json:"packageName,omitempty"`     // source package
	ModuleSpecifier string `json:"moduleSpecifier,omitempty"` // source module
	Identifier      string `json:"identifier"`                // <space>@<version>
}

// JSON returns the output as text.
func (o *EnableOutput) JSON() string {
	text, err := json.Marshal(o)
	if err != nil {
		panic("session: an output does not encode: " + err.Error())
	}
	return string(text)
}

// isEnable reports whether the session itself carries a call out, by a sync.
func (s *State) isEnable(c *Call) bool {
	return s.tool(c.ToolID).Executor.Kind == planner.ExecutorSpace
}

// openSyncFor opens a sync for an enabling call.
func (s *State) openSyncFor(i int) (o *spaces.Sync, e *enabling) {
	c := &s.Turn.Batch.Calls[i]
	e = s.readEnable(c.Arguments)
	x := s.spaces()
	o = x.Open(spaces.Sync{
		At: s.Clock, Call: callName(s.Turn.Run, s.Turn.Number, i), Data: codec.Digest([]byte(c.Arguments)), Deadline: s.Clock + 2*e.grant.RunLimitMS(),
		Grant: e.seq, Kind: space.Pack, RunMS: e.grant.RunLimitMS(), Seq: s.Seq, Space: e.Extension,
		Target: e.grant.TargetOf(e.Extension), Tools: int64(s.turnRegistry.Len()), Version: e.version,
	})
	s.Spaces, c.Sync = x.State, o.Number
	return o, e
}

// readForApproval has the pack of a waiting call read, so that a person sees what
// the call enables. Nothing is staged.
func (s *State) readForApproval(i int) { s.openSyncFor(i) }

// enableNow opens the sync that runs an open enabling call. If a person approved a
// manifest, it must read that one.
func (s *State) enableNow(i int) {
	o, e := s.openSyncFor(i)
	c := &s.Turn.Batch.Calls[i]
	o.Deadline, o.RunMS, o.Dry = c.Deadline, c.RunMS, e.DryRun
	if c.Pack != nil {
		o.Version, o.Known = c.Pack.Pin.Version, []spaces.Known{{Hash: c.Pack.Pin.Hash, Seq: c.Pack.Pin.Seq}}
	}
	if !e.DryRun {
		o.Apply = spaces.ModeNextStep
	}
}

// callOfSync returns the index of the call that waits for a sync, -1 if none does.
func (s *State) callOfSync(o *spaces.Sync) int {
	if o.Call == "" || !s.turnIsRuns() || s.Turn.Batch == nil {
		return -1
	}
	return slices.IndexFunc(s.Turn.Batch.Calls, func(c Call) bool { return c.Sync == o.Number && !c.done() })
}

// endEnable gives the call that waits for a sync its result, if there is one.
// Without a code the result is in the event being folded.
func (s *State) endEnable(o *spaces.Sync, status CallStatus, code string, detail sentence.Text, output *Content) {
	i := s.callOfSync(o)
	if i < 0 {
		return
	}
	if code == "" {
		result := &ToolCallSettled{Status: string(status), Output: output}
		s.takeResult(i, result)
	} else {
		s.endCall(i, status, code, detail)
	}
	s.closeGroup()
}

// ApprovalGrant is what a person is shown of the grant for a call that enables a
// pack.
type ApprovalGrant struct {
	// The pack.
	Space string `json:"space" lim:"@space"`
	// The bridges that read it.
	Target string `json:"target" lim:"@token"`
	// What a manifest's version must match.
	Version string `json:"version,omitempty" lim:"..space.VersionBytesMax"`
	// Executor targets that its tools may name; <space>-v<major> alone if absent.
	Targets []string `json:"targets,omitempty" lim:"item=@token"`
	// Manifests that are trusted.
	Digests []string `json:"digests,omitempty" lim:"item=@hash"`
	// Public nkeys whose signature makes a manifest trusted.
	Keys []string `json:"keys,omitempty" lim:"item=any"`
}

// approvalGrant returns the grant for a call, nil if the call enables nothing.
func (s *State) approvalGrant(c *Call) *ApprovalGrant {
	if !s.isEnable(c) {
		return nil
	}
	e := s.readEnable(c.Arguments)
	if e.grant == nil {
		return nil
	}
	g := e.grant
	return &ApprovalGrant{Space: e.Extension, Target: g.TargetOf(e.Extension), Version: g.Version, Targets: g.Targets, Digests: g.Digests, Keys: g.Keys}
}
