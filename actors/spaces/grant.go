package spaces

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// Grant is the operator's permission for a space: who reads it, what makes it trusted,
// and what it may bring.
//
//wire:rule {"if": {"properties": {"kind": {"const": "pack"}}, "required": ["kind"]}}
//wire:rule {"then": {"anyOf": [{"properties": {"digests": {"minItems": 1}}, "required": ["digests"]}, {"properties": {"keys": {"minItems": 1}}, "required": ["keys"]}, {"required": ["manifest"]}]}}
//wire:rule {"then": {"properties": {"may": {"items": {"enum": ["prompt", "skills"]}}, "space": {"pattern": "^([A-Za-z0-9_-]{1,56}|[A-Za-z0-9_-]{0,64}[*])$"}}}}
//wire:rule {"else": {"properties": {"attach": false, "targets": false}}}
type Grant struct {
	// Of a pack: who may request it. `operator` (the default): by WorkspaceSyncRequested;
	// `model`: by a call of `extensions_enable`.
	Attach []string `msgpack:"attach,omitempty" lim:"unique,item=enum=Attach"`
	// Hashes of manifests that are trusted.
	Digests []string `msgpack:"digests,omitempty" lim:"..spaces.GrantDigestsMax,item=@hash"`
	// Public nkeys: a manifest that one of them signed is trusted. Without digests and
	// keys, any bridge that serves the target of a workspace is trusted.
	Keys []string `msgpack:"keys,omitempty" lim:"..spaces.GrantKeysMax,item=any"`
	// `workspace` if absent. A pack needs `digests`, `keys` or `manifest`; with a `*` it
	// needs `keys`. Its name has at most 56 bytes.
	Kind space.Kind `msgpack:"kind,omitempty"`
	// A manifest that is applied from a session's first event on. In the install record
	// alone.
	Manifest codec.Raw `msgpack:"manifest,omitempty" lim:"object"`
	// What it may bring besides context and catalogs: `prompt`, `skills`,
	// `response_format`, `params`, `rewords`; of a pack, `prompt` and `skills`. All if
	// absent.
	May []string `msgpack:"may,omitempty" lim:"unique,item=enum=May"`
	// How long one read may take; 60000 if absent. The sync's deadline is twice that. A
	// call of `extensions_enable` has the deadline of a call.
	RunMS int64 `msgpack:"run_ms,omitempty" lim:"spaces.SyncRunMinMS..spaces.SyncRunMaxMS"`
	// The sources that the reader may declare: `factory`, `package`, `module`. Absent: any
	// of a workspace, `factory` of a pack.
	Sources []string `msgpack:"sources,omitempty" lim:"unique,item=enum=factory|package|module"`
	// Its name. A * at the end matches the rest; the grant then has no manifest. The first
	// grant of a list that matches counts.
	Space string `msgpack:"space" pattern:"^([A-Za-z0-9_-]{1,64}[*]?|[*])$"`
	// The target of syncs: the bridges that read the space; the space's name if absent.
	Target string `msgpack:"target,omitempty" lim:"@token"`
	// Of a pack: executor targets of its tools; <space>-v<major> alone if absent.
	Targets []string `msgpack:"targets,omitempty" lim:"..spaces.GrantTargetsMax,unique,item=@token"`
	// What a manifest's version must match: 1, 1.4, 1.4.2 or 1.4.2-rc.1; anything if
	// absent.
	Version string `msgpack:"version,omitempty" lim:"any"`
}

// The values of Grant.May.
const (
	MayPrompt         = "prompt"
	MaySkills         = "skills"
	MayResponseFormat = "response_format"
	MayParams         = "params"
	MayRewords        = "rewords"
)

// The values of Grant.Attach.
const (
	AttachOperator = "operator" // through the door ctl
	AttachModel    = "model"    // by a call of extensions_enable
)

// GrantFault is a field of a grant and what is wrong with it.
type GrantFault struct{ field, detail string }

func (f *GrantFault) Error() string { return f.field + ": " + f.detail }

// Fault returns the first fault of a grant, nil if it has none.
func (g *Grant) Fault() *GrantFault {
	name, wildcard := strings.CutSuffix(g.Space, "*")
	switch {
	case wildcard && name != "" && !planner.IsName(name), !wildcard && !space.IsSpaceName(name, g.SpaceKind()):
		return &GrantFault{"space", "is a name of 1 to 64 of A-Za-z0-9_-, of a pack 1 to 56, with a * at the end for all that begin so; refold, host and none name no space"}
	case g.Target != "" && !planner.IsName(g.Target):
		return &GrantFault{"target", "must be a subject token: 1 to 64 of A-Za-z0-9_-"}
	case g.Version != "" && !isSelector(g.Version):
		return &GrantFault{"version", "1, 1.4 or 1.4.2, not " + sentence.Quoted(g.Version)}
	case wildcard && len(g.Manifest) > 0:
		return &GrantFault{"manifest", "a grant with a * is about no one space"}
	}
	if bad := g.listsFault(); bad != nil {
		return bad
	}
	return g.packFault(wildcard)
}

// packFault checks what only packs may or must have.
func (g *Grant) packFault(wildcard bool) *GrantFault {
	if g.SpaceKind() != space.Pack {
		switch {
		case g.Attach != nil:
			return &GrantFault{"attach", "is for packs"}
		case g.Targets != nil:
			return &GrantFault{"targets", "is for packs: a workspace brings no tools"}
		}
		return nil
	}
	switch {
	case !g.pinned() && len(g.Manifest) == 0:
		return &GrantFault{"digests", "a pack is trusted by digests, keys or the manifest itself: give one"}
	case wildcard && len(g.Keys) == 0:
		return &GrantFault{"keys", "a grant with a * trusts packs by keys: give one"}
	}
	for i, target := range g.Targets {
		if !planner.IsName(target) || slices.Contains(g.Targets[:i], target) {
			return &GrantFault{fmt.Sprintf("targets[%d]", i), "is a subject token, each once, not " + sentence.Quoted(target)}
		}
	}
	for i, who := range g.Attach {
		if slices.Contains(g.Attach[:i], who) {
			return &GrantFault{fmt.Sprintf("attach[%d]", i), who + " is listed before"}
		}
	}
	for i, may := range g.May {
		if may != MayPrompt && may != MaySkills {
			return &GrantFault{fmt.Sprintf("may[%d]", i), "a pack may bring prompt and skills, not " + sentence.Quoted(may)}
		}
	}
	return nil
}

// SpaceKind returns the kind of space that the grant is for.
func (g *Grant) SpaceKind() space.Kind { return cmp.Or(g.Kind, space.Workspace) }

// ReaderSources returns the sources that a reader may name; nil: any.
func (g *Grant) ReaderSources() []string {
	if g.Sources == nil && g.SpaceKind() == space.Pack {
		return []string{SourceFactory}
	}
	return g.Sources
}

// MayRequest reports whether an operator or a model may request the space.
func (g *Grant) MayRequest(who string) bool {
	return slices.Contains(g.Attach, who) || g.Attach == nil && who == AttachOperator
}

// binds reports whether tools of this version of a pack may name a target.
func (g *Grant) binds(name, version, target string) bool {
	if g.Targets != nil {
		return slices.Contains(g.Targets, target)
	}
	v, _ := space.ParseVersion(version)
	return target == name+"-v"+strconv.FormatUint(uint64(v.Major), 10)
}

func (g *Grant) listsFault() *GrantFault {
	for i, text := range g.Digests {
		if _, err := codec.ParseHash(text); err != nil {
			return &GrantFault{fmt.Sprintf("digests[%d]", i), "is 64 lower-case hex digits"}
		}
	}
	for i, key := range g.Keys {
		if !space.IsKey(key) {
			return &GrantFault{fmt.Sprintf("keys[%d]", i), "is no public nkey: " + sentence.Quoted(key)}
		}
	}
	for i, may := range g.May {
		if slices.Contains(g.May[:i], may) {
			return &GrantFault{fmt.Sprintf("may[%d]", i), sentence.Quoted(may) + " is listed before"}
		}
	}
	for i, source := range g.Sources {
		if slices.Contains(g.Sources[:i], source) {
			return &GrantFault{fmt.Sprintf("sources[%d]", i), source + " is listed before"}
		}
	}
	return nil
}

// The sources that a reader may name.
const (
	SourceFactory = "factory" // a value in a program
	SourcePackage = "package" // a version in REFOLD_PACKS
	SourceModule  = "module"  // a folder or a bucket
)

// isSelector reports whether text selects versions.
func isSelector(text string) bool {
	_, ok := space.ParseSelector(text)
	return ok
}

// matches reports whether the grant covers a space.
func (g *Grant) matches(name string) bool {
	if prefix, wildcard := strings.CutSuffix(g.Space, "*"); wildcard {
		return strings.HasPrefix(name, prefix)
	}
	return g.Space == name
}

// TargetOf returns the target whose reader reads a space under the grant.
func (g *Grant) TargetOf(name string) string {
	return cmp.Or(g.Target, name)
}

// RunLimitMS returns how long one read may take, in milliseconds.
func (g *Grant) RunLimitMS() int64 {
	return cmp.Or(g.RunMS, SyncRunDefaultMS)
}

// pinned reports whether only manifests that the grant names or signs are trusted.
func (g *Grant) pinned() bool { return len(g.Digests) > 0 || len(g.Keys) > 0 }

// may reports whether the space may contain a part.
func (g *Grant) may(what string) bool { return g.May == nil || slices.Contains(g.May, what) }

// AsTrust returns what makes a manifest trusted under the grant.
func (g *Grant) AsTrust() *space.Trust {
	t := &space.Trust{Digests: g.Digests, Keys: g.Keys, Version: g.Version}
	if len(g.Manifest) > 0 && (g.pinned() || g.SpaceKind() == space.Pack) {
		t.Digests = append(slices.Clone(t.Digests), codec.Sum(g.Manifest).String())
	}
	return t
}

// signer returns the key whose signature makes a trusted manifest trusted; empty if
// it needs none.
func (g *Grant) signer(m *space.Manifest, by *space.Signature) string {
	if by == nil {
		return ""
	}
	if by, _ = g.AsTrust().Trusts(m.Bytes(), *by); by == nil {
		return ""
	}
	return by.Key
}

// trusts reports whether the grant trusts a manifest: it is among the digests, one
// of the keys signed it, or it is the grant's own. Without digests and keys, any
// bridge of a workspace's target is trusted.
func (g *Grant) trusts(m *space.Manifest, by *space.Signature) bool {
	if !g.pinned() && (g.SpaceKind() == space.Workspace || len(g.Manifest) == 0) {
		return g.SpaceKind() == space.Workspace
	}
	var signatures []space.Signature
	if by != nil {
		signatures = []space.Signature{*by}
	}
	_, trusted := g.AsTrust().Trusts(m.Bytes(), signatures...)
	return trusted
}

// Covers reports whether the grant allows a requested version.
func (g *Grant) Covers(version string) bool {
	if g.Version == "" {
		return true
	}
	if v, ok := space.ParseVersion(version); ok {
		s, ok := space.ParseSelector(g.Version)
		return ok && s.Matches(v)
	}
	return version == g.Version || strings.HasPrefix(version, g.Version+".")
}

// UsedGrant is one grant in the effect of an extension tool: a pack, or packs,
// that the session may adopt.
type UsedGrant struct {
	// Who may request it; operator if absent.
	Attach []string `msgpack:"attach,omitempty" lim:"item=enum=Attach"`
	// Kind of the space.
	Kind space.Kind `msgpack:"kind" lim:"=pack"`
	// How its reader may identify itself.
	Sources []string `msgpack:"sources,omitempty" lim:"item=enum=factory|package|module"`
	// Name of the pack; a * at the end matches the rest.
	Space string `msgpack:"space" lim:"any"`
	// The bridges that read it; its name if absent.
	Target string `msgpack:"target,omitempty" lim:"@token"`
	// What the grant trusts: show nothing of other manifests.
	Trust space.Trust `msgpack:"trust"`
}

// UsedGrants returns the grants that the extension tools need: those of packs.
func (x *Spaces) UsedGrants() (used []UsedGrant) {
	x.EachGrant(func(g *Grant) {
		if g.SpaceKind() == space.Pack && len(used) < GrantsMax {
			used = append(used, UsedGrant{Attach: g.Attach, Kind: g.SpaceKind(), Sources: g.ReaderSources(), Space: g.Space, Target: g.Target, Trust: *g.AsTrust()})
		}
	})
	return used
}

// ModelsMayEnable reports whether a grant lets models enable packs.
func (x *Spaces) ModelsMayEnable() bool {
	is := func(g *Grant) bool { return g.SpaceKind() == space.Pack && g.MayRequest(AttachModel) }
	return slices.ContainsFunc(x.Record.Grants, func(g Grant) bool { return is(&g) }) ||
		x.State != nil && slices.ContainsFunc(x.Grants, func(g GrantPin) bool { return is(&g.Grant) })
}
