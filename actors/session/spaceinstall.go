package session

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// composeSpaces checks the grants of a record, and composes their manifests: they
// are applied from a session's first event.
func (in *Install) composeSpaces() error {
	in.stack = stack{base: in.Registry, registry: in.Registry}
	grants := in.Record.Spaces
	if len(grants) == 0 {
		return nil
	}
	if len(grants) > GrantsMax {
		return fmt.Errorf("spaces: %d grants, at most %d", len(grants), GrantsMax)
	}
	in.stack.tools = true
	in.content = &spaceContent{base: in.Registry}
	for i := range grants {
		if bad := grants[i].fault(); bad != nil {
			return fmt.Errorf("spaces[%d].%w", i, bad)
		}
		if len(grants[i].Manifest) == 0 {
			continue
		}
		if err := in.embed(&grants[i]); err != nil {
			return fmt.Errorf("spaces[%d].manifest: %w", i, err)
		}
	}
	if bad := in.stack.compose(); bad != nil {
		return fmt.Errorf("spaces: %w", bad)
	}
	if in.stack.packs() > PacksMax {
		return fmt.Errorf("spaces: %d packs come with the record, at most %d", in.stack.packs(), PacksMax)
	}
	if over := in.stack.promptSize(&RunConfig{}).Over(); over != "" {
		return fmt.Errorf("spaces: %s", over)
	}
	for i := range in.stack.spaces {
		a := &in.stack.spaces[i]
		if bad := in.floor.Check(in.stack.registry, a.manifest.Tools); bad != nil {
			return fmt.Errorf("spaces: %s: %w", a.Space, bad)
		}
		if twice := a.repeated(in.stack.registry); len(twice) > 0 {
			return fmt.Errorf("spaces: %s: %s: %s", a.Space, twice[0].Path, twice[0].Detail)
		}
		if missing := a.uncovered(in.stack.registry); len(missing) > 0 && in.Record.Policy.Coverage == CoverageFail {
			return fmt.Errorf("spaces: %s: %s: %s", a.Space, missing[0].Path, missing[0].Detail)
		}
	}
	return nil
}

// embed applies the manifest of a grant.
func (in *Install) embed(g *Grant) error {
	m, problems := space.Parse(g.Manifest)
	r := read{adopted: adopted{manifest: m, names: in.Registry}, grant: g}
	switch {
	case m == nil:
		return fmt.Errorf("%s", problems[0])
	case m.Space != g.Space:
		return fmt.Errorf("is that of %s, the grant is about %s", quoted(m.Space), quoted(g.Space))
	case m.Kind != g.kind():
		return fmt.Errorf("is of kind %s, the grant is for a %s", quoted(string(m.Kind)), g.kind())
	case g.Version != "" && !space.Selects(g.Version, m.Version):
		return fmt.Errorf("is of version %s, the grant is for %s", quoted(m.Version), g.Version)
	case m.Kind == space.Workspace && in.stack.workspace() != nil:
		return fmt.Errorf("a record brings one workspace, and %s is one too", quoted(in.stack.workspace().Space))
	case !r.isGranted():
		return fmt.Errorf("%s", r.problems[0])
	}
	pin := SpacePin{Hash: codec.Sum(g.Manifest), Kind: m.Kind, Space: m.Space, Version: m.Version}
	for _, need := range m.AllNeeds() { // no reader has reported yet
		if !strings.HasSuffix(need, "?") {
			pin.Lacks = append(pin.Lacks, need)
		}
	}
	if len(pin.Lacks) > LacksMax {
		return fmt.Errorf("%s", space.TooManyNeeds(pin.Lacks))
	}
	in.content.add(pin.Hash, m)
	in.pins = append(in.pins, pin)
	in.stack.spaces = append(in.stack.spaces, adopted{pin, m, in.Registry})
	return nil
}

// configFault checks the record's config.
func (in *Install) configFault() *refusal {
	c := in.Record.Config
	if c == nil {
		return nil
	}
	s := New(in, "")
	own, bad := s.ownWorkspace(c)
	if bad == nil {
		st := s.stack()
		bad = s.configFault(&st, c, own, true)
	}
	return bad
}

// Composed returns the registry of a new session's turns: Registry plus the tools
// of the record's spaces.
func (in *Install) Composed() *planner.Registry { return in.stack.registry }

// Manifests returns the record's manifests, by hash. Their blobs and files must be
// stored before the record is.
func (in *Install) Manifests() []*space.Manifest {
	var out []*space.Manifest
	for i := range in.stack.spaces {
		out = append(out, in.stack.spaces[i].manifest)
	}
	return out
}

// ErrNotGranted reports that no grant of a record trusts a manifest.
var ErrNotGranted = errors.New("no grant of the record trusts this manifest")

// CheckSpace judges a manifest from a folder as a new session under the record
// would: problems keep it from being staged, warnings don't. The error wraps
// ErrNotGranted if no grant covers the space, or if its grant does not trust the
// manifest without a signature; problems are returned in both cases.
func (in *Install) CheckSpace(m *space.Manifest) (problems, warnings []space.Problem, err error) {
	s := New(in, "")
	r := read{adopted: adopted{SpacePin{Hash: m.Hash(), Kind: m.Kind, Source: "module", Space: m.Space, Version: m.Version}, m, in.Registry}, grant: in.grant(m.Space)}
	o := OpenSync{Kind: m.Kind, Space: m.Space}
	st := s.stack()
	if !r.isTrusted(&o, &st) {
		err = fmt.Errorf("%w: %s", ErrNotGranted, r.detail)
	}
	var next stack
	if r.grant == nil {
		return nil, nil, err
	}
	if !s.fits(&r, &st, &next) {
		return r.problems, nil, err
	}
	return nil, s.warnings(&r, &next), err
}

// Uncovered returns the tools that applied catalogs name and the session's registry
// does not bind.
func (s *State) Uncovered() (problems []space.Problem) {
	st := s.stack()
	for i := range st.spaces {
		problems = append(problems, st.spaces[i].uncovered(st.registry)...)
	}
	return problems
}

// ParseSnapshotReady returns the manifest in a WorkspaceSnapshotReady, with the
// hash that the fold gave it when it accepted the event.
func ParseSnapshotReady(e Event) (*space.Manifest, codec.Hash, error) {
	env, bad := open(e)
	if bad == nil && env.Type != TypeWorkspaceSnapshotReady {
		bad = refuse(RejectInvalidData, "is a "+quoted(env.Type))
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

// restoreSpaces loads the manifests of a restored state's pins, and composes the
// registries.
func (s *State) restoreSpaces(from Source) error {
	if s.Spaces == nil {
		return nil
	}
	s.Spaces.content = &spaceContent{base: s.registry}
	var failed error
	load := func(seq uint64, hash codec.Hash) {
		if failed != nil || s.manifest(hash) != nil {
			return
		}
		m, err := from.Space(seq, hash)
		if err != nil || m.Hash() != hash {
			failed = fmt.Errorf("manifest %s of event %d: %w", hash, seq, cmp.Or(err, errOtherManifest))
			return
		}
		s.Spaces.content.add(hash, m)
	}
	s.eachPin(func(p *SpacePin) {
		load(p.Seq, p.Hash)
		if failed == nil && p.Registry != nil && s.Spaces.content.registry(p.Registry) == nil {
			var names *planner.Registry
			if names, failed = s.registryAt(p.Registry, from); failed == nil {
				s.Spaces.content.name(names)
			}
		}
	})
	for i := range s.Spaces.Syncs {
		for _, k := range s.Spaces.Syncs[i].Known {
			load(k.Seq, k.Hash)
		}
	}
	if failed != nil {
		return failed
	}
	st := stack{base: s.registry, spaces: s.adopted(s.Spaces.Applied), tools: s.hasGrants()}
	if bad := st.compose(); bad != nil {
		return fmt.Errorf("what is applied does not compose: %w", bad)
	}
	s.registry = st.registry
	if s.turnSpace() == nil {
		return nil
	}
	turn := s.turnStack()
	if bad := turn.compose(); bad != nil {
		return fmt.Errorf("the latest turn does not compose: %w", bad)
	}
	s.turnRegistry = turn.registry
	return nil
}

var errOtherManifest = fmt.Errorf("it is another one")

func (s *State) checkSpaces() error {
	x := s.Spaces
	if x == nil {
		if s.hasGrants() {
			return fmt.Errorf("the record has grants, and the state no spaces")
		}
		return nil
	}
	if len(x.Applied) > 1+PacksMax || len(x.Pending) > 1+PacksMax || len(x.Staged) > StagedMax || len(x.Syncs) > SyncsMax || len(x.Grants) > GrantsMax+SyncsMax || len(x.SyncsDone) > SyncsDoneMax {
		return fmt.Errorf("%d spaces are applied, %d pending, %d staged; %d syncs are open, %d known, under %d grants",
			len(x.Applied), len(x.Pending), len(x.Staged), len(x.Syncs), len(x.SyncsDone), len(x.Grants))
	}
	var bad error
	s.eachPin(func(p *SpacePin) {
		switch {
		case s.manifest(p.Hash) == nil:
			bad = fmt.Errorf("the manifest %s of %q is not at hand", p.Hash, p.Space)
		case p.Registry != nil && (x.content.registry(p.Registry) == nil || p.Registry.Seq > s.Seq):
			bad = fmt.Errorf("the registry %s, under which %q was staged, is not at hand", p.Registry.Hash, p.Space)
		case p.Seq > s.Seq || p.Asked > s.Seq || p.Grant > s.Seq || p.Kind != s.manifest(p.Hash).Kind || s.manifest(p.Hash).Space != p.Space:
			bad = fmt.Errorf("the pin %+v is of nothing", *p)
		}
	})
	if bad != nil {
		return bad
	}
	for i := range x.Pending {
		if !isMode(x.Pending[i].Mode) {
			return fmt.Errorf("%q is pending for %q", x.Pending[i].Pin.Space, x.Pending[i].Mode)
		}
	}
	before := uint32(0)
	for i := range x.Syncs {
		o := &x.Syncs[i]
		if o.Number <= before || o.Number > x.SyncsAsked || s.grant(o.Grant, o.Space) == nil || len(o.Known) > knownMax ||
			o.RunMS < SyncRunMinMS || o.RunMS > SyncRunMaxMS || !o.isLook() && s.openSyncOf(o.Space) != i {
			return fmt.Errorf("the sync %+v is of nothing", *o)
		}
		before = o.Number
	}
	st := s.stack()
	if got := composedHash(&st); got != x.Composed {
		return fmt.Errorf("registry %s is composed, the state names %s", got, x.Composed)
	}
	if again := st; again.compose() != nil || again.registry.Hash() != st.registry.Hash() {
		return fmt.Errorf("what is applied composes to another registry than %s", x.Composed)
	}
	return nil
}
