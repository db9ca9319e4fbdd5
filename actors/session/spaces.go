package session

import (
	"cmp"
	"slices"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// Spaces is what a session knows of its spaces: pins, and never content. It is
// absent in a session that never had a grant or prompt refs. Fields stand in the byte order of
// their wire names.
type Spaces struct {
	Applied    []SpacePin   `msgpack:"applied,omitempty"`    // by Asked: the order of composition
	Composed   codec.Hash   `msgpack:"composed"`             // of the registry with all layers; zero: no layer
	Grants     []GrantPin   `msgpack:"grants,omitempty"`     // through ctl, oldest first: the newest of each space, and those that a sync names
	Pending    []SpaceStage `msgpack:"pending,omitempty"`    // by Asked
	Staged     []SpaceStage `msgpack:"staged,omitempty"`     // by name
	Syncs      []OpenSync   `msgpack:"syncs,omitempty"`      // by number
	SyncsAsked uint32       `msgpack:"syncs_asked"`          // syncs numbered so far
	SyncsDone  []DoneSync   `msgpack:"syncs_done,omitempty"` // the latest SyncsDoneMax
	Turn       *TurnSpace   `msgpack:"turn,omitempty"`       // of the latest turn; absent: no space has a say in it

	content *spaceContent // that pins name
}

// SpacePin names a manifest and the grant that it was adopted under. The
// manifest is in the log.
type SpacePin struct {
	Asked   uint64     `msgpack:"asked"`             // sequence of the request for its apply; 0: the install record
	At      int64      `msgpack:"at"`                // clock when it was applied
	Catalog string     `msgpack:"catalog,omitempty"` // chosen at the apply; empty: the manifest's default
	Grant   uint64     `msgpack:"grant"`             // sequence of the event with its grant; 0: the install record
	Hash    codec.Hash `msgpack:"hash"`
	Kind    space.Kind `msgpack:"kind"`
	Lacks   []string   `msgpack:"lacks,omitempty"`  // needs that are not met
	Prompt  string     `msgpack:"prompt,omitempty"` // as Catalog
	Seq     uint64     `msgpack:"seq"`              // of the event with the manifest; 0: the install record
	Source  string     `msgpack:"source,omitempty"`
	Space   string     `msgpack:"space"`
	Version string     `msgpack:"version,omitempty"`
}

// SpaceStage is a manifest that is staged, or pending with a mode.
type SpaceStage struct {
	Mode string   `msgpack:"mode,omitempty"` // of a pending one
	Pin  SpacePin `msgpack:"pin"`
	Run  uint32   `msgpack:"run,omitempty"` // whose call asked for it; 0: an operator did
}

// GrantPin is a grant that came through ctl.
type GrantPin struct {
	Grant Grant  `msgpack:"grant"`
	Seq   uint64 `msgpack:"seq"` // of its event
}

// OpenSync is a sync that is not settled: all that its effect is made of.
type OpenSync struct {
	Apply    string     `msgpack:"apply,omitempty"` // a mode
	At       int64      `msgpack:"at"`
	Call     string     `msgpack:"call,omitempty"` // that waits for it
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
	Tools    int64      `msgpack:"tools,omitempty"` // of the call's turn, in its registry
	Version  string     `msgpack:"version,omitempty"`
}

// Known is a manifest that a reader need not send again.
type Known struct {
	Hash codec.Hash `msgpack:"hash"`
	Seq  uint64     `msgpack:"seq"` // of the event with the manifest; 0: the install record
}

// DoneSync is what is kept of a sync that is over.
type DoneSync struct {
	Hash   codec.Hash `msgpack:"hash"` // of its settlement; zero: the session ended it
	Number uint32     `msgpack:"number"`
}

// TurnSpace is what spaces brought to a turn. Parts and Vars are kept until its
// generation is settled for good.
type TurnSpace struct {
	Catalog  string       `msgpack:"catalog,omitempty"`  // that counts in its run
	Grants   []UsedGrant  `msgpack:"grants,omitempty"`   // of packs, when the first extension tool was asked
	Mark     codec.Hash   `msgpack:"mark"`               // of what precedes the transcript; zero: nothing does
	Narrowed []string     `msgpack:"narrowed,omitempty"` // active skills whose lists counted
	Parts    []PromptPart `msgpack:"parts,omitempty"`
	Pins     []SpacePin   `msgpack:"pins,omitempty"`   // applied when the turn began
	Prompt   string       `msgpack:"prompt,omitempty"` // prompt pack that counts in its run
	Tools    bool         `msgpack:"tools,omitempty"`  // the session's own tools were there
	Vars     codec.Pairs  `msgpack:"vars,omitempty"`
}

// turnSpace returns what spaces bring to the latest turn; nil: nothing.
func (s *State) turnSpace() *TurnSpace {
	if s.Spaces == nil {
		return nil
	}
	return s.Spaces.Turn
}

// spaceContent is the content that pins name, shared between sessions.
type spaceContent struct {
	base      *planner.Registry // the session's registry without layers
	manifests []heldManifest
	own       []ownRegistry // of runs under a workspace of their own, composed so far
}

// heldManifest is a parsed manifest with its hash.
type heldManifest struct {
	hash codec.Hash
	*space.Manifest
}

// ownRegistry is what runs under another workspace than the applied one are
// offered from.
type ownRegistry struct {
	hash     codec.Hash // of the workspace; zero: none
	registry *planner.Registry
}

// find returns the manifest of a hash, nil if it is not at hand.
func (c *spaceContent) find(hash codec.Hash) *space.Manifest {
	if c == nil {
		return nil
	}
	if m := find(c.manifests, func(m *heldManifest) bool { return m.hash == hash }); m != nil {
		return m.Manifest
	}
	return nil
}

func (c *spaceContent) add(hash codec.Hash, m *space.Manifest) {
	if c.find(hash) == nil {
		c.manifests = append(c.manifests, heldManifest{hash, m})
	}
}

// eachHeld calls fn with the pins of what is applied, pending and staged.
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

// eachPin calls fn with every pin that the state holds.
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
}

// dropContent lets go of what nothing names any more: manifests, grants, and
// registries of runs.
func (s *State) dropContent() {
	var named []codec.Hash
	s.eachPin(func(p *SpacePin) { named = append(named, p.Hash) })
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

// grant returns the grant of a sequence; 0 is the install record's for a space.
func (s *State) grant(seq uint64, name string) *Grant {
	if seq == 0 {
		return s.install.grant(name)
	}
	if pin := find(s.Spaces.Grants, func(g *GrantPin) bool { return g.Seq == seq }); pin != nil {
		return &pin.Grant
	}
	return nil
}

// grant returns the first grant of the record that is about a space, or nil.
func (in *Install) grant(name string) *Grant {
	return find(in.Record.Spaces, func(g *Grant) bool { return g.matches(name) })
}

// grantNow returns the grant that a sync of a space counts under, and the
// sequence of its event.
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

// byAsked orders pins as they are composed. Pins of one request, which are the
// install record's, stay in their order.
func byAsked(a, b SpacePin) int { return cmp.Compare(a.Asked, b.Asked) }

// content returns what pins name, nil for a session without spaces.
func (s *State) content() *spaceContent {
	if s.Spaces == nil {
		return nil
	}
	return s.Spaces.content
}

// manifest returns the manifest of a hash that a pin of the state names.
func (s *State) manifest(hash codec.Hash) *space.Manifest {
	if m := s.content().find(hash); m != nil {
		return m
	}
	return s.install.content.find(hash)
}

// Manifest returns the manifest of a hash, nil if no pin of the state names it.
// Nobody may change what it returns.
func (s *State) Manifest(hash codec.Hash) *space.Manifest { return s.manifest(hash) }
