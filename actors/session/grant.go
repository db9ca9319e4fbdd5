package session

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nkeys"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// Grant is what the operator permits of a space: who reads it, what makes it
// trusted, and what it may bring. Grants of kind pack are reserved.
type Grant struct {
	Digests  []string   `msgpack:"digests,omitempty"` // hex: manifests that are trusted
	Keys     []string   `msgpack:"keys,omitempty"`    // public nkeys whose signature makes a manifest trusted
	Kind     space.Kind `msgpack:"kind,omitempty"`    // workspace (default), pack
	Manifest codec.Raw  `msgpack:"manifest,omitempty"`
	May      []string   `msgpack:"may,omitempty"`     // what it may bring beside context; absent: all
	RunMS    int64      `msgpack:"run_ms,omitempty"`  // what one reading may take; 0: a minute
	Sources  []string   `msgpack:"sources,omitempty"` // which source the reader may name; absent: any
	Space    string     `msgpack:"space"`             // its name; a trailing * matches the rest
	Target   string     `msgpack:"target,omitempty"`  // who reads it; absent: the space's name
	Version  string     `msgpack:"version,omitempty"` // that a manifest's version must match: 1, 1.4, 1.4.2; absent: any
}

// The values of Grant.May.
const (
	MayPrompt         = "prompt"
	MaySkills         = "skills"
	MayResponseFormat = "response_format"
	MayParams         = "params"
	MayRewords        = "rewords"
)

// grantFault says what is wrong with which field of a grant.
type grantFault struct{ field, detail string }

func (f *grantFault) Error() string { return f.field + ": " + f.detail }

// fault returns the first thing that is wrong with a grant.
func (g *Grant) fault() *grantFault {
	name, wildcard := strings.CutSuffix(g.Space, "*")
	switch {
	case wildcard && name != "" && !planner.IsName(name), !wildcard && !space.IsSpaceName(name, space.Workspace):
		return &grantFault{"space", "is a name of 1 to 64 of A-Za-z0-9_-, with a * at the end for all that begin so; refold, host and none name no space"}
	case g.Kind == space.Pack:
		return &grantFault{"kind", "pack is reserved: this release has workspaces alone"}
	case g.Kind != "" && g.Kind != space.Workspace:
		return &grantFault{"kind", "workspace, not " + quoted(string(g.Kind))}
	case g.Target != "" && !planner.IsName(g.Target):
		return &grantFault{"target", "is a subject token: 1 to 64 of A-Za-z0-9_-"}
	case g.RunMS != 0 && (g.RunMS < SyncRunMinMS || g.RunMS > SyncRunMaxMS):
		return &grantFault{"run_ms", fmt.Sprintf("%d to %d, or absent", SyncRunMinMS, SyncRunMaxMS)}
	case g.Version != "" && !isSelector(g.Version):
		return &grantFault{"version", "1, 1.4 or 1.4.2, not " + quoted(g.Version)}
	case wildcard && len(g.Manifest) > 0:
		return &grantFault{"manifest", "a grant with a * is about no one space"}
	}
	return g.listsFault()
}

// listsFault is fault for the lists of a grant.
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
		if !nkeys.IsValidPublicKey(key) {
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

// isSource reports whether a reader may call itself so.
func isSource(source string) bool {
	return source == "factory" || source == "package" || source == "module"
}

// isSelector reports whether a grant can name versions so.
func isSelector(text string) bool {
	_, ok := space.ParseSelector(text)
	return ok
}

// matches reports whether the grant is about a space.
func (g *Grant) matches(name string) bool {
	if prefix, wildcard := strings.CutSuffix(g.Space, "*"); wildcard {
		return strings.HasPrefix(name, prefix)
	}
	return g.Space == name
}

// target returns who reads a space under the grant.
func (g *Grant) target(name string) string {
	if g.Target != "" {
		return g.Target
	}
	return name
}

// runMS returns what one reading may take.
func (g *Grant) runMS() int64 {
	if g.RunMS > 0 {
		return g.RunMS
	}
	return SyncRunDefaultMS
}

// pinned reports whether only manifests that the grant names or signs are
// trusted.
func (g *Grant) pinned() bool { return len(g.Digests) > 0 || len(g.Keys) > 0 }

// may reports whether the space may bring something.
func (g *Grant) may(what string) bool { return g.May == nil || slices.Contains(g.May, what) }

// SignedText is what a signature of a manifest is over.
func SignedText(hash codec.Hash) []byte { return []byte("refold space " + hash.String()) }

// trusts reports whether a manifest is one that the grant trusts: it is among
// the digests, or one of the keys signed it. Without both whoever serves the
// target is trusted.
func (g *Grant) trusts(hash codec.Hash, by *Signature) bool {
	if !g.pinned() || slices.Contains(g.Digests, hash.String()) {
		return true
	}
	if by == nil || !slices.Contains(g.Keys, by.Key) {
		return false
	}
	key, err := nkeys.FromPublicKey(by.Key)
	sig, bad := base64.RawURLEncoding.DecodeString(by.Sig)
	return err == nil && bad == nil && key.Verify(SignedText(hash), sig) == nil
}
