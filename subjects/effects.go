package subjects

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/session"
)

// claimToken stands where an effect's subject has its class.
const claimToken = "claim"

// claimTokens is how many tokens the subject of a first claim has: one more
// than an effect's, so that no filter of effects matches a claim.
const claimTokens = 7

// EffectName is an effect's subject, taken apart.
type EffectName struct {
	Class   session.Class
	Target  string
	Session string
	Effect  string
}

// Effect returns the subject of an effect:
// refold.fx.<class>.<target>.<sid>.<effect>.
func (n Names) Effect(name EffectName) (string, error) {
	return n.checked(name.valid(), "fx", string(name.Class), name.Target, name.Session, name.Effect)
}

// ParseEffect reads an effect's subject; it refuses what Effect does not make,
// claims included.
func (n Names) ParseEffect(subject string) (EffectName, error) {
	rest, ours := strings.CutPrefix(subject, n.prefix)
	rest, effects := strings.CutPrefix(rest, ".fx.")
	class, rest, _ := strings.Cut(rest, ".")
	target, rest, _ := strings.Cut(rest, ".")
	sid, effect, whole := strings.Cut(rest, ".")
	if !ours || !effects || !whole || class == claimToken || strings.Contains(effect, ".") {
		return EffectName{}, fmt.Errorf("subjects: %q is no effect: want %s.fx.<class>.<target>.<session>.<effect>", subject, n.prefix)
	}
	name := EffectName{Class: session.Class(class), Target: target, Session: sid, Effect: effect}
	if err := name.valid(); err != nil {
		return EffectName{}, err
	}
	return name, nil
}

func (name EffectName) valid() error {
	return cmp.Or(ValidClass(name.Class), ValidTarget(name.Target), ValidSession(name.Session), ValidEffect(name.Effect))
}

// SessionEffects returns a filter that matches all effects of a session, and no
// claim.
func (n Names) SessionEffects(sid string) (string, error) {
	return n.checked(ValidSession(sid), "fx", "*", "*", sid, "*")
}

// ClaimName is a claim's subject, taken apart.
type ClaimName struct {
	EffectName     // that is claimed
	N          int // 1, or 2 and up: a model turn taken over
}

// Claim returns the subject of a claim, that of the effect behind the token
// claim: refold.fx.claim.<class>.<target>.<sid>.<effect>, and for n ≥ 2
// …<effect>.<n>. An n below 1 is refused.
func (n Names) Claim(name ClaimName) (string, error) {
	if err := name.valid(); err != nil {
		return "", err
	}
	switch {
	case name.N < 1:
		return "", fmt.Errorf("subjects: claim %d of %s: claims count from 1", name.N, name.Effect)
	case name.N == 1:
		return n.join("fx", claimToken, string(name.Class), name.Target, name.Session, name.Effect), nil
	default:
		return n.join("fx", claimToken, string(name.Class), name.Target, name.Session, name.Effect, strconv.Itoa(name.N)), nil
	}
}

// ParseClaim reads a claim's subject; it refuses what Claim does not make.
func (n Names) ParseClaim(subject string) (ClaimName, error) {
	tokens := strings.Split(subject, ".")
	name := ClaimName{N: 1}
	if len(tokens) == claimTokens+1 {
		name.N, _ = strconv.Atoi(tokens[claimTokens]) // what is no number makes another subject
		tokens = tokens[:claimTokens]
	}
	if len(tokens) == claimTokens {
		name.EffectName = EffectName{Class: session.Class(tokens[3]), Target: tokens[4], Session: tokens[5], Effect: tokens[6]}
	}
	if made, err := n.Claim(name); err != nil || made != subject {
		return ClaimName{}, fmt.Errorf("subjects: %q is no claim: want %s.fx.claim.<class>.<target>.<session>.<effect>[.<n>]", subject, n.prefix)
	}
	return name, nil
}

// BridgeName returns the name of the consumer from which bridges of a class
// and target pull: tool-host.
func BridgeName(class session.Class, target string) (string, error) {
	if err := cmp.Or(ValidClass(class), ValidTarget(target)); err != nil {
		return "", err
	}
	return string(class) + "-" + target, nil
}

// ParseBridgeName is the inverse of BridgeName; ok is false for other names.
func ParseBridgeName(name string) (class session.Class, target string, ok bool) {
	text, target, found := strings.Cut(name, "-")
	class = session.Class(text)
	if _, err := BridgeName(class, target); err != nil || !found {
		return "", "", false
	}
	return class, target, true
}

// BridgeFilter returns the subjects of the effects that a bridge's consumer
// delivers.
func (n Names) BridgeFilter(class session.Class, target string) (string, error) {
	_, err := BridgeName(class, target)
	return n.checked(err, "fx", string(class), target, "*", "*")
}
