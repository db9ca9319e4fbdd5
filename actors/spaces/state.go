package spaces

import (
	"cmp"
	"slices"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// State is what a session stores of its spaces: pins without content. Fields are in
// the byte order of their wire names.
type State struct {
	Applied    []Pin      `msgpack:"applied,omitempty"`    // by Asked: the order of composition
	Composed   codec.Hash `msgpack:"composed"`             // of the registry with all layers; zero: no layer
	Grants     []GrantPin `msgpack:"grants,omitempty"`     // through ctl, oldest first: the newest of each space, and those of open syncs
	Pending    []Stage    `msgpack:"pending,omitempty"`    // by Asked
	Staged     []Stage    `msgpack:"staged,omitempty"`     // by name
	Syncs      []Sync     `msgpack:"syncs,omitempty"`      // by number
	SyncsAsked uint32     `msgpack:"syncs_asked"`          // syncs numbered so far
	SyncsDone  []Done     `msgpack:"syncs_done,omitempty"` // the latest SyncsDoneMax
	Turn       *Turn      `msgpack:"turn,omitempty"`       // of the latest turn; absent: spaces add nothing to it

	content *content // the manifests that pins name
}

// NewState returns the state of spaces on a registry without layers.
func NewState(base *planner.Registry) *State { return &State{content: &content{base: base}} }

// Base returns the registry without layers.
func (x *State) Base() *planner.Registry { return x.content.base }

// RegistryPin names a registry that an event set. The registry is in the log.
type RegistryPin struct {
	Hash codec.Hash `msgpack:"hash"`
	Seq  uint64     `msgpack:"seq"` // of its ToolRegistrySet
}

// Pin names a manifest and its grant. The manifest is in the log.
type Pin struct {
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

// Stage is a manifest that is staged, or pending with a mode.
type Stage struct {
	Mode Mode   `msgpack:"mode,omitempty"` // of a pending one
	Pin  Pin    `msgpack:"pin"`
	Run  uint32 `msgpack:"run,omitempty"` // whose call enabled it; 0: an operator requested it
}

// GrantPin is a grant that came through ctl.
type GrantPin struct {
	Grant Grant  `msgpack:"grant"`
	Seq   uint64 `msgpack:"seq"` // of its event
}

// Sync is a sync that is not settled: the content of its effect.
type Sync struct {
	Apply    Mode       `msgpack:"apply,omitempty"`
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

// Done is what is stored of an ended sync.
type Done struct {
	Hash   codec.Hash `msgpack:"hash"` // of its settlement; zero: the session ended it
	Number uint32     `msgpack:"number"`
}

// Turn is what spaces add to a turn. Parts and Vars are kept until no attempt
// at its generation can follow.
type Turn struct {
	Catalog  string       `msgpack:"catalog,omitempty"`  // of its run
	Grants   []UsedGrant  `msgpack:"grants,omitempty"`   // of packs, when the first extension tool was called
	Mark     codec.Hash   `msgpack:"mark"`               // fingerprint of the prompt; zero: there is none
	Narrowed []string     `msgpack:"narrowed,omitempty"` // active skills whose allowed-tools applied
	Parts    []PromptPart `msgpack:"parts,omitempty"`
	Pins     []Pin        `msgpack:"pins,omitempty"`   // those applied when the turn began
	Prompt   string       `msgpack:"prompt,omitempty"` // prompt pack of its run
	Tools    bool         `msgpack:"tools,omitempty"`  // it has the session's own tools
	Vars     codec.Pairs  `msgpack:"vars,omitempty"`
}

// content is the manifests that pins name, shared between sessions.
type content struct {
	base      *planner.Registry // the session's registry without layers
	manifests []heldManifest
	named     []*planner.Registry // those that pins name
	own       []ownRegistry       // of runs under a workspace of their own, a cache
	results   *resultsRegistry    // of runs with a context, a cache; nil: empty
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

// resultsRegistry is a registry with the tool that reads results on top of another.
type resultsRegistry struct {
	of       codec.Hash // of the other one
	registry *planner.Registry
}

// find returns the manifest with a hash, nil if it is not loaded.
func (c *content) find(hash codec.Hash) *space.Manifest {
	if c == nil {
		return nil
	}
	if m := find(c.manifests, func(m *heldManifest) bool { return m.hash == hash }); m != nil {
		return m.Manifest
	}
	return nil
}

// registry returns the registry that a pin names, nil if it is not loaded.
func (c *content) registry(pin *RegistryPin) *planner.Registry {
	if c == nil {
		return nil
	}
	if r := find(c.named, func(r **planner.Registry) bool { return (*r).Hash() == pin.Hash }); r != nil {
		return *r
	}
	return nil
}

// name stores a registry that a pin names.
func (c *content) name(r *planner.Registry) {
	if !slices.Contains(c.named, r) {
		c.named = append(c.named, r)
	}
}

func (c *content) add(hash codec.Hash, m *space.Manifest) {
	if c.find(hash) == nil {
		c.manifests = append(c.manifests, heldManifest{hash, m})
	}
}

// eachHeld calls fn with all applied, pending and staged pins.
func (x *State) eachHeld(fn func(*Pin)) {
	for i := range x.Applied {
		fn(&x.Applied[i])
	}
	for i := range x.Pending {
		fn(&x.Pending[i].Pin)
	}
	for i := range x.Staged {
		fn(&x.Staged[i].Pin)
	}
}

// eachPin calls fn with every pin of the session.
func (x *Spaces) eachPin(fn func(*Pin)) {
	x.eachHeld(fn)
	x.Session.EachPin(fn)
	if x.Turn != nil {
		for i := range x.Turn.Pins {
			fn(&x.Turn.Pins[i])
		}
	}
}

// Prune drops manifests, grants and registries that nothing names any more. The session
// calls it after it has dropped a pin.
func (x *Spaces) Prune() {
	var named, registries []codec.Hash
	x.eachPin(func(p *Pin) {
		named = append(named, p.Hash)
		if p.Registry != nil {
			registries = append(registries, p.Registry.Hash)
		}
	})
	c := x.content
	c.named = slices.DeleteFunc(c.named, func(r *planner.Registry) bool { return !slices.Contains(registries, r.Hash()) })
	for i := range x.Syncs {
		for _, known := range x.Syncs[i].Known {
			named = append(named, known.Hash)
		}
	}
	c.manifests = slices.DeleteFunc(c.manifests, func(m heldManifest) bool { return !slices.Contains(named, m.hash) })
	c.own = slices.DeleteFunc(c.own, func(o ownRegistry) bool { return !o.hash.IsZero() && !slices.Contains(named, o.hash) })
	x.Grants = slices.DeleteFunc(x.Grants, func(g GrantPin) bool {
		_, newest := x.GrantNow(g.Grant.Space)
		return newest != g.Seq && !slices.ContainsFunc(x.Syncs, func(o Sync) bool { return o.Grant == g.Seq })
	})
}

// grant returns the grant of a sequence; 0 is the install record's for the space.
func (x *Spaces) grant(seq uint64, name string) *Grant {
	if seq == 0 {
		return x.Record.grant(name)
	}
	if pin := find(x.Grants, func(g *GrantPin) bool { return g.Seq == seq }); pin != nil {
		return &pin.Grant
	}
	return nil
}

// GrantNow returns the valid grant for a space, nil if there is none, and the sequence
// of its event: 0 if it is the install record's.
func (x *Spaces) GrantNow(name string) (*Grant, uint64) {
	if x.State != nil {
		for _, g := range slices.Backward(x.Grants) {
			if g.Grant.Space == name {
				return &g.Grant, g.Seq
			}
		}
	}
	return x.Record.grant(name), 0
}

// HasGrants reports whether the session has any grant.
func (x *Spaces) HasGrants() bool {
	return len(x.Record.Grants) > 0 || x.State != nil && len(x.Grants) > 0
}

// EachGrant calls fn with the valid grants: those of the session, then the install
// record's.
func (x *Spaces) EachGrant(fn func(*Grant)) {
	if x.State != nil {
		for i := range x.Grants {
			if _, seq := x.GrantNow(x.Grants[i].Grant.Space); seq == x.Grants[i].Seq {
				fn(&x.Grants[i].Grant)
			}
		}
	}
	for i := range x.Record.Grants {
		fn(&x.Record.Grants[i])
	}
}

// byAsked orders pins for composition. Pins of one request, which are the install
// record's, keep their order.
func byAsked(a, b Pin) int { return cmp.Compare(a.Asked, b.Asked) }

// Manifest returns the manifest with a hash that a pin of the session names, nil if none
// does. It must not be changed.
func (x *Spaces) Manifest(hash codec.Hash) *space.Manifest {
	if x.State != nil {
		if m := x.content.find(hash); m != nil {
			return m
		}
	}
	return x.Record.content.find(hash)
}
