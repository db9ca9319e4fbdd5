package session

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// Grant is what the operator permits a space: which target reads it, what makes it
// trusted, and what it may contain.
type Grant struct {
	Attach   []string   `msgpack:"attach,omitempty"`  // pack: who may request it: operator (default) or model
	Digests  []string   `msgpack:"digests,omitempty"` // hex: manifests that are trusted
	Keys     []string   `msgpack:"keys,omitempty"`    // public nkeys whose signature makes a manifest trusted
	Kind     space.Kind `msgpack:"kind,omitempty"`    // workspace (default), pack
	Manifest codec.Raw  `msgpack:"manifest,omitempty"`
	May      []string   `msgpack:"may,omitempty"`     // what it may contain besides context; absent: all
	RunMS    int64      `msgpack:"run_ms,omitempty"`  // limit of one reading; 0: a minute
	Sources  []string   `msgpack:"sources,omitempty"` // sources that the reader may name; absent: any for a workspace, factory for a pack
	Space    string     `msgpack:"space"`             // its name; a trailing * matches the rest
	Target   string     `msgpack:"target,omitempty"`  // target of its reader; absent: the space's name
	Targets  []string   `msgpack:"targets,omitempty"` // pack: executor targets of its tools; absent: only <space>-v<major>
	Version  string     `msgpack:"version,omitempty"` // selector of the manifest's version: 1, 1.4, 1.4.2; absent: any
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

// grantFault is a field of a grant and what is wrong with it.
type grantFault struct{ field, detail string }

func (f *grantFault) Error() string { return f.field + ": " + f.detail }

// fault returns the first fault of a grant.
func (g *Grant) fault() *grantFault {
	name, wildcard := strings.CutSuffix(g.Space, "*")
	switch {
	case g.Kind != "" && g.Kind != space.Workspace && g.Kind != space.Pack:
		return &grantFault{"kind", "workspace or pack, not " + quoted(string(g.Kind))}
	case wildcard && name != "" && !planner.IsName(name), !wildcard && !space.IsSpaceName(name, g.kind()):
		return &grantFault{"space", "is a name of 1 to 64 of A-Za-z0-9_-, of a pack 1 to 56, with a * at the end for all that begin so; refold, host and none name no space"}
	case g.Target != "" && !planner.IsName(g.Target):
		return &grantFault{"target", "is a subject token: 1 to 64 of A-Za-z0-9_-"}
	case g.RunMS != 0 && (g.RunMS < SyncRunMinMS || g.RunMS > SyncRunMaxMS):
		return &grantFault{"run_ms", fmt.Sprintf("%d to %d, or absent", SyncRunMinMS, SyncRunMaxMS)}
	case g.Version != "" && !isSelector(g.Version):
		return &grantFault{"version", "1, 1.4 or 1.4.2, not " + quoted(g.Version)}
	case wildcard && len(g.Manifest) > 0:
		return &grantFault{"manifest", "a grant with a * is about no one space"}
	}
	if bad := g.listsFault(); bad != nil {
		return bad
	}
	return g.packFault(wildcard)
}

// packFault checks what only packs may or must have.
func (g *Grant) packFault(wildcard bool) *grantFault {
	if g.kind() != space.Pack {
		switch {
		case g.Attach != nil:
			return &grantFault{"attach", "is for packs"}
		case g.Targets != nil:
			return &grantFault{"targets", "is for packs: a workspace brings no tools"}
		}
		return nil
	}
	switch {
	case !g.pinned() && len(g.Manifest) == 0:
		return &grantFault{"digests", "a pack is trusted by digests, keys or the manifest itself: give one"}
	case wildcard && len(g.Keys) == 0:
		return &grantFault{"keys", "a grant with a * trusts packs by keys: give one"}
	case len(g.Targets) > GrantTargetsMax:
		return &grantFault{"targets", fmt.Sprintf("at most %d", GrantTargetsMax)}
	}
	for i, target := range g.Targets {
		if !planner.IsName(target) || slices.Contains(g.Targets[:i], target) {
			return &grantFault{fmt.Sprintf("targets[%d]", i), "is a subject token, each once, not " + quoted(target)}
		}
	}
	for i, who := range g.Attach {
		if who != AttachOperator && who != AttachModel || slices.Contains(g.Attach[:i], who) {
			return &grantFault{fmt.Sprintf("attach[%d]", i), "operator or model, each once, not " + quoted(who)}
		}
	}
	for i, may := range g.May {
		if may != MayPrompt && may != MaySkills {
			return &grantFault{fmt.Sprintf("may[%d]", i), "a pack may bring prompt and skills, not " + quoted(may)}
		}
	}
	return nil
}

// kind returns the kind of space that the grant is for.
func (g *Grant) kind() space.Kind { return cmp.Or(g.Kind, space.Workspace) }

// sources returns the sources that a reader may name; nil: any.
func (g *Grant) sources() []string {
	if g.Sources == nil && g.kind() == space.Pack {
		return []string{SourceFactory}
	}
	return g.Sources
}

// attaches reports whether an operator or a model may request the space.
func (g *Grant) attaches(who string) bool {
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

func (g *Grant) listsFault() *grantFault {
	if len(g.Digests) > GrantDigestsMax {
		return &grantFault{"digests", fmt.Sprintf("at most %d", GrantDigestsMax)}
	}
	if len(g.Keys) > GrantKeysMax {
		return &grantFault{"keys", fmt.Sprintf("at most %d", GrantKeysMax)}
	}
	for i, text := range g.Digests {
		if _, err := codec.ParseHash(text); err != nil {
			return &grantFault{fmt.Sprintf("digests[%d]", i), "is 64 lower-case hex digits"}
		}
	}
	for i, key := range g.Keys {
		if !space.IsKey(key) {
			return &grantFault{fmt.Sprintf("keys[%d]", i), "is no public nkey: " + quoted(key)}
		}
	}
	for i, may := range g.May {
		if !slices.Contains([]string{MayPrompt, MaySkills, MayResponseFormat, MayParams, MayRewords}, may) {
			return &grantFault{fmt.Sprintf("may[%d]", i), "prompt, skills, response_format, params or rewords, not " + quoted(may)}
		}
		if slices.Contains(g.May[:i], may) {
			return &grantFault{fmt.Sprintf("may[%d]", i), quoted(may) + " is listed before"}
		}
	}
	for i, source := range g.Sources {
		if !isSource(source) || slices.Contains(g.Sources[:i], source) {
			return &grantFault{fmt.Sprintf("sources[%d]", i), "factory, package or module, each once, not " + quoted(source)}
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

func isSource(source string) bool {
	return source == SourceFactory || source == SourcePackage || source == SourceModule
}

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

// target returns the target whose reader reads a space under the grant.
func (g *Grant) target(name string) string {
	return cmp.Or(g.Target, name)
}

func (g *Grant) runMS() int64 {
	return cmp.Or(g.RunMS, SyncRunDefaultMS)
}

// pinned reports whether only manifests that the grant names or signs are trusted.
func (g *Grant) pinned() bool { return len(g.Digests) > 0 || len(g.Keys) > 0 }

// may reports whether the space may contain a part.
func (g *Grant) may(what string) bool { return g.May == nil || slices.Contains(g.May, what) }

// trust returns what makes a manifest trusted under the grant.
func (g *Grant) trust() *space.Trust {
	t := &space.Trust{Digests: g.Digests, Keys: g.Keys, Version: g.Version}
	if len(g.Manifest) > 0 && (g.pinned() || g.kind() == space.Pack) {
		t.Digests = append(slices.Clone(t.Digests), codec.Sum(g.Manifest).String())
	}
	return t
}

// signer returns the key whose signature makes a trusted manifest trusted; empty if
// it needs none.
func (g *Grant) signer(m *space.Manifest, by *Signature) string {
	if by == nil {
		return ""
	}
	if by, _ = g.trust().Trusts(m.Bytes(), *by); by == nil {
		return ""
	}
	return by.Key
}

// trusts reports whether the grant trusts a manifest: it is among the digests, one
// of the keys signed it, or it is the grant's own. Without digests and keys, any
// bridge of a workspace's target is trusted.
func (g *Grant) trusts(m *space.Manifest, by *Signature) bool {
	if !g.pinned() && (g.kind() == space.Workspace || len(g.Manifest) == 0) {
		return g.kind() == space.Workspace
	}
	var signatures []Signature
	if by != nil {
		signatures = []Signature{*by}
	}
	_, trusted := g.trust().Trusts(m.Bytes(), signatures...)
	return trusted
}
