package session

import (
	"cmp"
	"slices"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// Spaces is a session's spaces: pins without content. It is absent if the session
// never had a grant or prompt refs. Fields are in the byte order of their wire
// names.
type Spaces struct {
	Applied    []SpacePin   `msgpack:"applied,omitempty"`    // by Asked: the order of composition
	Composed   codec.Hash   `msgpack:"composed"`             // of the registry with all layers; zero: no layer
	Grants     []GrantPin   `msgpack:"grants,omitempty"`     // through ctl, oldest first: the newest of each space, and those of open syncs
	Pending    []SpaceStage `msgpack:"pending,omitempty"`    // by Asked
	Staged     []SpaceStage `msgpack:"staged,omitempty"`     // by name
	Syncs      []OpenSync   `msgpack:"syncs,omitempty"`      // by number
	SyncsAsked uint32       `msgpack:"syncs_asked"`          // syncs numbered so far
	SyncsDone  []DoneSync   `msgpack:"syncs_done,omitempty"` // the latest SyncsDoneMax
	Turn       *TurnSpace   `msgpack:"turn,omitempty"`       // of the latest turn; absent: spaces add nothing to it

	content *spaceContent // the manifests that pins name
}

// SpacePin names a manifest and its grant. The manifest is in the log.
type SpacePin struct {
	Asked   uint64     `msgpack:"asked"`             // sequence of the request that applies it; 0: the install record
	At      int64      `msgpack:"at"`                // the session's clock at its apply
	Catalog string     `msgpack:"catalog,omitempty"` // chosen at the apply; empty: the manifest's default
	Grant   uint64     `msgpack:"grant"`             // sequence of the event with its grant; 0: the install record
	Hash    codec.Hash `msgpack:"hash"`
	Kind    space.Kind `msgpack:"kind"`
	Lacks   []string   `msgpack:"lacks,omitempty"`  // needs that are not met
	Prompt  string     `msgpack:"prompt,omitempty"` // the same for a prompt pack

	// Registry is the session's registry when a workspace was staged: its catalogs,
	// words and skills mean the tools that have their names there. Absent: the
	// install record's.
	Registry *RegistryPin `msgpack:"registry,omitempty"`

	Seq     uint64 `msgpack:"seq"` // of the event with the manifest; 0: the install record
	Source  string `msgpack:"source,omitempty"`
	Space   string `msgpack:"space"`
	Version string `msgpack:"version,omitempty"`
}

// SpaceStage is a manifest that is staged, or pending with a mode.
type SpaceStage struct {
	Mode string   `msgpack:"mode,omitempty"` // of a pending one
	Pin  SpacePin `msgpack:"pin"`
	Run  uint32   `msgpack:"run,omitempty"` // whose call enabled it; 0: an operator requested it
}

// GrantPin is a grant that came through ctl.
type GrantPin struct {
	Grant Grant  `msgpack:"grant"`
	Seq   uint64 `msgpack:"seq"` // of its event
}

// OpenSync is a sync that is not settled: the content of its effect.
type OpenSync struct {
	Apply    string     `msgpack:"apply,omitempty"` // a mode
	At       int64      `msgpack:"at"`
	Call     string     `msgpack:"call,omitempty"` // the call that waits for it
	Catalog  string     `msgpack:"catalog,omitempty"`
	Data     codec.Hash `msgpack:"data"`     // BLAKE2b-256 of the request
	Deadline int64      `msgpack:"deadline"` // Unix ms
	Dry      bool       `msgpack:"dry,omitempty"`
	Grant    uint64     `msgpack:"grant"`
	Kind     space.Kind `msgpack:"kind"`
	Known    []Known    `msgpack:"known,omitempty"`
	Number   uint32     `msgpack:"number"`
	Only     []string   `msgpack:"only,omitempty"`
	Prompt   string     `msgpack:"prompt,omitempty"`
	RunMS    int64      `msgpack:"run_ms"`
	Seq      uint64     `msgpack:"seq"` // of the request
	Space    string     `msgpack:"space"`
	Target   string     `msgpack:"target"`
	Tools    int64      `msgpack:"tools,omitempty"` // number of tools in the registry of the call's turn
	Version  string     `msgpack:"version,omitempty"`
}

// Known is a manifest that a reader need not send again.
type Known struct {
	Hash codec.Hash `msgpack:"hash"`
	Seq  uint64     `msgpack:"seq"` // of the event with the manifest; 0: the install record
}

// DoneSync is what is stored of an ended sync.
type DoneSync struct {
	Hash   codec.Hash `msgpack:"hash"` // of its settlement; zero: the session ended it
	Number uint32     `msgpack:"number"`
}

// TurnSpace is what spaces add to a turn. Parts and Vars are kept until no attempt
// at its generation can follow.
type TurnSpace struct {
	Catalog  string       `msgpack:"catalog,omitempty"`  // of its run
	Grants   []UsedGrant  `msgpack:"grants,omitempty"`   // of packs, when the first extension tool was called
	Mark     codec.Hash   `msgpack:"mark"`               // fingerprint of the prompt; zero: there is none
	Narrowed []string     `msgpack:"narrowed,omitempty"` // active skills whose allowed-tools applied
	Parts    []PromptPart `msgpack:"parts,omitempty"`
	Pins     []SpacePin   `msgpack:"pins,omitempty"`   // those applied when the turn began
	Prompt   string       `msgpack:"prompt,omitempty"` // prompt pack of its run
	Tools    bool         `msgpack:"tools,omitempty"`  // it has the session's own tools
	Vars     codec.Pairs  `msgpack:"vars,omitempty"`
}

// turnSpace returns what spaces add to the latest turn; nil: nothing.
func (s *State) turnSpace() *TurnSpace {
	if s.Spaces == nil {
		return nil
	}
	return s.Spaces.Turn
}

// spaceContent is the manifests that pins name, shared between sessions.
type spaceContent struct {
	base      *planner.Registry // the session's registry without layers
	manifests []heldManifest
	named     []*planner.Registry // those that pins name
	own       []ownRegistry       // of runs under a workspace of their own, a cache
}

// heldManifest is a parsed manifest with its hash.
type heldManifest struct {
	hash codec.Hash
	*space.Manifest
}

// ownRegistry is the registry of runs under another workspace than the applied one.
type ownRegistry struct {
	hash     codec.Hash // of the workspace; zero: none
	registry *planner.Registry
}

// find returns the manifest with a hash, nil if it is not loaded.
func (c *spaceContent) find(hash codec.Hash) *space.Manifest {
	if c == nil {
		return nil
	}
	if m := find(c.manifests, func(m *heldManifest) bool { return m.hash == hash }); m != nil {
		return m.Manifest
	}
	return nil
}

// registry returns the registry that a pin names, nil if it is not loaded.
func (c *spaceContent) registry(pin *RegistryPin) *planner.Registry {
	if c == nil {
		return nil
	}
	if r := find(c.named, func(r **planner.Registry) bool { return (*r).Hash() == pin.Hash }); r != nil {
		return *r
	}
	return nil
}

// name stores a registry that a pin names.
func (c *spaceContent) name(r *planner.Registry) {
	if !slices.Contains(c.named, r) {
		c.named = append(c.named, r)
	}
}

func (c *spaceContent) add(hash codec.Hash, m *space.Manifest) {
	if c.find(hash) == nil {
		c.manifests = append(c.manifests, heldManifest{hash, m})
	}
}

// eachHeld calls fn with all applied, pending and staged pins.
func (s *State) eachHeld(fn func(*SpacePin)) {
	if s.Spaces != nil {
		for i := range s.Spaces.Applied {
			fn(&s.Spaces.Applied[i])
		}
		for i := range s.Spaces.Pending {
			fn(&s.Spaces.Pending[i].Pin)
		}
		for i := range s.Spaces.Staged {
			fn(&s.Spaces.Staged[i].Pin)
		}
	}
}

// eachPin calls fn with every pin in the state.
func (s *State) eachPin(fn func(*SpacePin)) {
	s.eachHeld(fn)
	if s.Config != nil && s.Config.Workspace != nil {
		fn(s.Config.Workspace)
	}
	for _, run := range s.runs() {
		if run.Workspace != nil {
			fn(run.Workspace)
		}
	}
	if s.turnSpace() != nil {
		for i := range s.turnSpace().Pins {
			fn(&s.turnSpace().Pins[i])
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

// dropContent drops unused manifests, grants, and registries of runs.
func (s *State) dropContent() {
	var named []codec.Hash
	var registries []codec.Hash
	s.eachPin(func(p *SpacePin) {
		named = append(named, p.Hash)
		if p.Registry != nil {
			registries = append(registries, p.Registry.Hash)
		}
	})
	s.Spaces.content.named = slices.DeleteFunc(s.Spaces.content.named, func(r *planner.Registry) bool { return !slices.Contains(registries, r.Hash()) })
	for i := range s.Spaces.Syncs {
		for _, known := range s.Spaces.Syncs[i].Known {
			named = append(named, known.Hash)
		}
	}
	s.Spaces.content.manifests = slices.DeleteFunc(s.Spaces.content.manifests, func(m heldManifest) bool { return !slices.Contains(named, m.hash) })
	s.Spaces.content.own = slices.DeleteFunc(s.Spaces.content.own, func(o ownRegistry) bool { return !o.hash.IsZero() && !slices.Contains(named, o.hash) })
	s.Spaces.Grants = slices.DeleteFunc(s.Spaces.Grants, func(g GrantPin) bool {
		_, newest := s.grantNow(g.Grant.Space)
		return newest != g.Seq && !slices.ContainsFunc(s.Spaces.Syncs, func(o OpenSync) bool { return o.Grant == g.Seq })
	})
}

// grant returns the grant of a sequence; 0 is the install record's for the space.
func (s *State) grant(seq uint64, name string) *Grant {
	if seq == 0 {
		return s.install.grant(name)
	}
	if pin := find(s.Spaces.Grants, func(g *GrantPin) bool { return g.Seq == seq }); pin != nil {
		return &pin.Grant
	}
	return nil
}

// grant returns the record's first grant that covers a space, or nil.
func (in *Install) grant(name string) *Grant {
	return find(in.Record.Spaces, func(g *Grant) bool { return g.matches(name) })
}

// grantNow returns the valid grant for a space, and the sequence of its event.
func (s *State) grantNow(name string) (*Grant, uint64) {
	if s.Spaces != nil {
		for _, g := range slices.Backward(s.Spaces.Grants) {
			if g.Grant.Space == name {
				return &g.Grant, g.Seq
			}
		}
	}
	return s.install.grant(name), 0
}

// byAsked orders pins for composition. Pins of one request, which are the install
// record's, keep their order.
func byAsked(a, b SpacePin) int { return cmp.Compare(a.Asked, b.Asked) }

// content returns the content of pins, nil for a session without spaces.
func (s *State) content() *spaceContent {
	if s.Spaces == nil {
		return nil
	}
	return s.Spaces.content
}

// manifest returns the manifest with a hash that a pin in the state names.
func (s *State) manifest(hash codec.Hash) *space.Manifest {
	if m := s.content().find(hash); m != nil {
		return m
	}
	return s.install.content.find(hash)
}

// Manifest returns the manifest with a hash, nil if no pin in the state names it.
// It must not be changed.
func (s *State) Manifest(hash codec.Hash) *space.Manifest { return s.manifest(hash) }
