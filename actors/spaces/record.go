package spaces

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// Record is what an install record says of spaces. It is immutable once NewRecord
// has returned it, and the sessions under the record share it.
type Record struct {
	Grants   []Grant
	Registry *planner.Registry
	Floor    *planner.Floor
	Own      *planner.Layer // the session's own tools, which every session with a grant has
	Results  *planner.Layer // the tool that reads results, which every run with a context has
	AllBound bool           // catalogs may name only tools that the registry binds

	// Checks of the fold that parts of manifests must pass: they return what is wrong, or
	// "".
	PromptFault func(params, format codec.Raw) string
	ToolFault   func(*planner.ToolSpec) string

	stack   Stack    // of the record's manifests
	pins    []Pin    // of these manifests
	content *content // of these manifests; nil: there are none
}

// NewRecord checks the grants of a record, and composes their manifests: they
// are applied from a session's first event.
func NewRecord(r Record) (*Record, error) {
	r.stack = Stack{base: r.Registry, Registry: r.Registry}
	if len(r.Grants) == 0 {
		return &r, nil
	}
	if len(r.Grants) > GrantsMax {
		return nil, fmt.Errorf("spaces: %d grants, at most %d", len(r.Grants), GrantsMax)
	}
	r.stack.own = r.Own
	r.content = &content{base: r.Registry}
	for i := range r.Grants {
		if bad := r.Grants[i].Fault(); bad != nil {
			return nil, fmt.Errorf("spaces[%d].%w", i, bad)
		}
		if len(r.Grants[i].Manifest) == 0 {
			continue
		}
		if err := r.embed(&r.Grants[i]); err != nil {
			return nil, fmt.Errorf("spaces[%d].manifest: %w", i, err)
		}
	}
	if bad := r.stack.Compose(); bad != nil {
		return nil, fmt.Errorf("spaces: %w", bad)
	}
	if packs := r.stack.Packs(); packs > PacksMax {
		return nil, fmt.Errorf("spaces: %d packs come with the record, at most %d", packs, PacksMax)
	}
	if over := r.stack.PromptSize(Choice{}).Over(); over != "" {
		return nil, fmt.Errorf("spaces: %s", over)
	}
	for i := range r.stack.Spaces {
		a := &r.stack.Spaces[i]
		if bad := r.Floor.Check(r.stack.Registry, a.Manifest.Tools); bad != nil {
			return nil, fmt.Errorf("spaces: %s: %w", a.Space, bad)
		}
		if twice := a.repeated(r.stack.Registry); len(twice) > 0 {
			return nil, fmt.Errorf("spaces: %s: %s: %s", a.Space, twice[0].Path, twice[0].Detail)
		}
		if missing := a.uncovered(r.stack.Registry); len(missing) > 0 && r.AllBound {
			return nil, fmt.Errorf("spaces: %s: %s: %s", a.Space, missing[0].Path, missing[0].Detail)
		}
	}
	return &r, nil
}

// embed applies the manifest of a grant.
func (r *Record) embed(g *Grant) error {
	m, problems := space.Parse(g.Manifest)
	read := Read{Adopted: Adopted{Manifest: m, names: r.Registry}, grant: g}
	switch {
	case m == nil:
		return fmt.Errorf("%s", problems[0])
	case m.Space != g.Space:
		return fmt.Errorf("is that of %s, the grant is about %s", sentence.Quoted(m.Space), sentence.Quoted(g.Space))
	case m.Kind != g.SpaceKind():
		return fmt.Errorf("is of kind %s, the grant is for a %s", sentence.Quoted(string(m.Kind)), g.SpaceKind())
	case g.Version != "" && !space.Selects(g.Version, m.Version):
		return fmt.Errorf("is of version %s, the grant is for %s", sentence.Quoted(m.Version), g.Version)
	case m.Kind == space.Workspace && r.stack.Workspace() != nil:
		return fmt.Errorf("a record brings one workspace, and %s is one too", sentence.Quoted(r.stack.Workspace().Space))
	case !read.isGranted(r):
		return fmt.Errorf("%s", read.problems[0])
	}
	pin := Pin{Hash: codec.Sum(g.Manifest), Kind: m.Kind, Space: m.Space, Version: m.Version}
	for _, need := range m.AllNeeds() { // no reader has reported yet
		if !strings.HasSuffix(need, "?") {
			pin.Lacks = append(pin.Lacks, need)
		}
	}
	if len(pin.Lacks) > LacksMax {
		return fmt.Errorf("%s", space.TooManyNeeds(pin.Lacks))
	}
	r.content.add(pin.Hash, m)
	r.pins = append(r.pins, pin)
	r.stack.Spaces = append(r.stack.Spaces, Adopted{pin, m, r.Registry})
	return nil
}

// grant returns the record's first grant that covers a space, or nil.
func (r *Record) grant(name string) *Grant {
	return find(r.Grants, func(g *Grant) bool { return g.matches(name) })
}

// Composed returns the registry of a new session's turns: Registry plus the tools
// of the record's spaces.
func (r *Record) Composed() *planner.Registry { return r.stack.Registry }

// Manifests returns the record's manifests. Their blobs and files must be stored before
// the record is.
func (r *Record) Manifests() (out []*space.Manifest) {
	for i := range r.stack.Spaces {
		out = append(out, r.stack.Spaces[i].Manifest)
	}
	return out
}

// NewState returns the spaces of a session without events, nil if the record has no
// grant.
func (r *Record) NewState() *State {
	if len(r.Grants) == 0 {
		return nil
	}
	x := NewState(r.Registry)
	x.adopt(&r.stack)
	return x
}

// ErrNotGranted reports that no grant of a record trusts a manifest.
var ErrNotGranted = errors.New("no grant of the record trusts this manifest")

// Check judges a manifest from a folder as a new session would: problems keep it from
// being staged, warnings don't. The error wraps ErrNotGranted if no grant covers the
// space, or if its grant does not trust the manifest without a signature; problems are
// returned in both cases.
func (x *Spaces) Check(m *space.Manifest) (problems, warnings []space.Problem, err error) {
	pin := Pin{Hash: m.Hash(), Kind: m.Kind, Source: SourceModule, Space: m.Space, Version: m.Version}
	r := Read{Adopted: Adopted{pin, m, x.Record.Registry}, grant: x.Record.grant(m.Space)}
	st := x.Stack()
	if !r.isTrusted(&Sync{Kind: m.Kind, Space: m.Space}, &st) {
		err = fmt.Errorf("%w: %s", ErrNotGranted, r.detail)
	}
	var next Stack
	if r.grant == nil {
		return nil, nil, err
	}
	if !x.fits(&r, &st, &next) {
		return r.problems, nil, err
	}
	return nil, x.warnings(&r, &next), err
}

// Source is where Restore finds what pins name.
type Source interface {
	Space(seq uint64, hash codec.Hash) (*space.Manifest, error)
	Named(*RegistryPin) (*planner.Registry, error)
}

// Restore loads the manifests and registries that the pins of a restored state name, and
// composes the stack on the session's registry. It returns the composed registry.
func (x *Spaces) Restore(base *planner.Registry, from Source) (*planner.Registry, error) {
	var err error
	x.content = &content{base: base}
	load := func(seq uint64, hash codec.Hash) {
		if err != nil || x.Manifest(hash) != nil {
			return
		}
		m, failed := from.Space(seq, hash)
		if failed != nil || m.Hash() != hash {
			err = fmt.Errorf("manifest %s of event %d: %w", hash, seq, cmp.Or(failed, errOtherManifest))
			return
		}
		x.content.add(hash, m)
	}
	x.eachPin(func(p *Pin) {
		load(p.Seq, p.Hash)
		if err == nil && p.Registry != nil && x.content.registry(p.Registry) == nil {
			var names *planner.Registry
			if names, err = from.Named(p.Registry); err == nil {
				x.content.name(names)
			}
		}
	})
	for i := range x.Syncs {
		for _, k := range x.Syncs[i].Known {
			load(k.Seq, k.Hash)
		}
	}
	if err != nil {
		return nil, err
	}
	st := Stack{base: base, Spaces: x.adopted(x.Applied), own: x.ownLayer()}
	if bad := st.Compose(); bad != nil {
		return nil, fmt.Errorf("what is applied does not compose: %w", bad)
	}
	return st.Registry, nil
}

// RestoreTurn returns the composed registry of the latest turn, given the session's at
// that time. results reports whether the turn had the tool that reads results.
func (x *Spaces) RestoreTurn(base *planner.Registry, results bool) (*planner.Registry, error) {
	st := x.TurnStack(base)
	if results {
		st.results = x.Record.Results
	}
	if bad := st.Compose(); bad != nil {
		return nil, fmt.Errorf("the latest turn does not compose: %w", bad)
	}
	return st.Registry, nil
}

var errOtherManifest = errors.New("it is another one")

// Invariant returns what is wrong with the spaces of a session, nil if nothing is.
func (x *Spaces) Invariant() error {
	if x.State == nil {
		if x.HasGrants() {
			return errors.New("the record has grants, and the state no spaces")
		}
		return nil
	}
	if len(x.Applied) > 1+PacksMax || len(x.Pending) > 1+PacksMax || len(x.Staged) > StagedMax || len(x.Syncs) > SyncsMax || len(x.Grants) > GrantsMax+SyncsMax || len(x.SyncsDone) > SyncsDoneMax {
		return fmt.Errorf("%d spaces are applied, %d pending, %d staged; %d syncs are open, %d known, under %d grants",
			len(x.Applied), len(x.Pending), len(x.Staged), len(x.Syncs), len(x.SyncsDone), len(x.Grants))
	}
	if err := x.pinsInvariant(); err != nil {
		return err
	}
	for i := range x.Pending {
		if !x.Pending[i].Mode.known() {
			return fmt.Errorf("%q is pending for %q", x.Pending[i].Pin.Space, x.Pending[i].Mode)
		}
	}
	seq, clock := x.Session.Now()
	for i := range x.Grants {
		if g := &x.Grants[i]; g.Seq == 0 || g.Seq > seq || g.Grant.Fault() != nil || len(g.Grant.Manifest) > 0 ||
			g.Grant.RunLimitMS() < SyncRunMinMS || g.Grant.RunLimitMS() > SyncRunMaxMS || g.Grant.SpaceKind() != space.Workspace && g.Grant.SpaceKind() != space.Pack {
			return fmt.Errorf("the grant of event %d is about %s", g.Seq, sentence.Quoted(g.Grant.Space))
		}
	}
	for i := range x.SyncsDone {
		if n := x.SyncsDone[i].Number; n == 0 || n > x.SyncsAsked {
			return fmt.Errorf("sync %d of %d has ended", n, x.SyncsAsked)
		}
	}
	if x.Turn != nil {
		if err := x.Turn.invariant(seq); err != nil {
			return err
		}
	}
	before := uint32(0)
	for i := range x.Syncs {
		o := &x.Syncs[i]
		if err := o.invariant(seq, clock); err != nil {
			return fmt.Errorf("sync %d: %w", o.Number, err)
		}
		for _, known := range o.Known {
			if known.Seq > seq || x.Manifest(known.Hash) == nil {
				return fmt.Errorf("sync %d knows the manifest %s of event %d", o.Number, known.Hash, known.Seq)
			}
		}
		if o.Number <= before || o.Number > x.SyncsAsked || x.grant(o.Grant, o.Space) == nil || len(o.Known) > KnownMax ||
			o.RunMS < SyncRunMinMS || o.RunMS > SyncRunMaxMS || !o.isLook() && x.OpenSyncOf(o.Space) != i {
			return fmt.Errorf("the sync %+v is of nothing", *o)
		}
		before = o.Number
	}
	st := x.Stack()
	if got := st.composed(); got != x.Composed {
		return fmt.Errorf("registry %s is composed, the state names %s", got, x.Composed)
	}
	if again := st; again.Compose() != nil || again.Registry.Hash() != st.Registry.Hash() {
		return fmt.Errorf("what is applied composes to another registry than %s", x.Composed)
	}
	return nil
}

// invariant checks an open sync by itself.
func (o *Sync) invariant(seq uint64, clock int64) error {
	switch {
	case o.At > clock || o.Deadline <= 0 || o.Seq > seq || o.Tools < 0 || o.Apply != "" && !o.Apply.known():
		return fmt.Errorf("it is of event %d, was opened at %d, and is applied %q", o.Seq, o.At, o.Apply)
	case len(o.Call) > nameBytesMax || len(o.Version) > space.VersionBytesMax || len(o.Only) > onlyMax:
		return errors.New("a text of it is too long")
	case o.Prompt != "" && !space.IsID(o.Prompt) || o.Catalog != "" && !space.IsID(o.Catalog) || !planner.IsName(o.Target):
		return errors.New("a name of it is invalid")
	case o.Kind != space.Workspace && o.Kind != space.Pack || !space.IsSpaceName(o.Space, o.Kind):
		return fmt.Errorf("it is of the %s %s", o.Kind, sentence.Quoted(o.Space))
	}
	return nil
}

// invariant checks what spaces add to the latest turn.
func (t *Turn) invariant(seq uint64) error {
	if len(t.Pins) > 1+PacksMax || len(t.Grants) > GrantsMax || len(t.Parts) > space.PartsMax || len(t.Vars) > space.VarsMax || len(t.Narrowed) > space.SkillsMax {
		return fmt.Errorf("the turn has %d spaces, %d grants, %d parts, %d variables", len(t.Pins), len(t.Grants), len(t.Parts), len(t.Vars))
	}
	if t.Prompt != "" && !space.IsID(t.Prompt) || t.Catalog != "" && !space.IsID(t.Catalog) {
		return fmt.Errorf("the turn has the prompt pack %s and the catalog %s", sentence.Quoted(t.Prompt), sentence.Quoted(t.Catalog))
	}
	for i := range t.Grants {
		if g := &t.Grants[i]; g.Kind != space.Pack || len(g.Space) > nameBytesMax {
			return fmt.Errorf("the turn has a grant about the %s %s", g.Kind, sentence.Quoted(g.Space))
		}
	}
	for i := range t.Parts {
		p := &t.Parts[i]
		switch p.Role {
		case "", PromptUser, PromptAssistant, PromptDocument, PromptImage, PromptSkills, PromptSkill:
		default:
			return fmt.Errorf("a part of the prompt is a %q", p.Role)
		}
		if p.Input > seq || len(p.MediaType) > space.MediaTypeBytesMax || len(p.Names) > space.SkillsMax {
			return fmt.Errorf("a part of the prompt has %d names, and the input of event %d", len(p.Names), p.Input)
		}
	}
	return nil
}

func (x *Spaces) pinsInvariant() (err error) {
	seq, clock := x.Session.Now()
	x.eachPin(func(p *Pin) {
		switch {
		case x.Manifest(p.Hash) == nil:
			err = fmt.Errorf("the manifest %s of %q is not at hand", p.Hash, p.Space)
		case p.Registry != nil && (x.content.registry(p.Registry) == nil || p.Registry.Seq > seq):
			err = fmt.Errorf("the registry %s, under which %q was staged, is not at hand", p.Registry.Hash, p.Space)
		case p.Seq > seq || p.Asked > seq || p.Grant > seq || p.Kind != x.Manifest(p.Hash).Kind || x.Manifest(p.Hash).Space != p.Space:
			err = fmt.Errorf("the pin %+v is of nothing", *p)
		case p.At > clock || len(p.Lacks) > LacksMax || p.Version != x.Manifest(p.Hash).Version || len(p.Source) > nameBytesMax ||
			p.Prompt != "" && x.Manifest(p.Hash).Prompt(p.Prompt) == nil || p.Catalog != "" && x.Manifest(p.Hash).Catalog(p.Catalog) == nil:
			err = fmt.Errorf("the pin %+v does not fit its manifest", *p)
		}
	})
	return err
}
