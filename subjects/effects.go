package subjects

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/refold/refold/actors/session"
)

// claimToken is in the place of the class in an effect's subject.
const claimToken = "claim"

// claimTokens is the number of tokens of a first claim's subject: one more than an
// effect's, so that no filter of effects matches a claim.
const claimTokens = 7

// EffectName has the parts of an effect's subject.
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

// EffectOf is Effect for an effect whose subject holds one of another system: the
// identity of its log follows the effect's name, <effect>-<log>. Its claims have the
// name alone.
func (n Names) EffectOf(name EffectName, log string) (string, error) {
	name.Effect += logMark + log
	return n.Effect(name)
}

// logMark separates an effect's name, which never contains it, from a log's identity, a
// ULID.
const logMark = "-"

// ParseEffect parses a subject that Effect or EffectOf made. It refuses all others,
// including claims.
func (n Names) ParseEffect(subject string) (EffectName, error) {
	rest, ours := strings.CutPrefix(subject, n.prefix)
	rest, effects := strings.CutPrefix(rest, ".fx.")
	class, rest, _ := strings.Cut(rest, ".")
	target, rest, _ := strings.Cut(rest, ".")
	sid, effect, whole := strings.Cut(rest, ".")
	if !ours || !effects || !whole || class == claimToken || strings.Contains(effect, ".") {
		return EffectName{}, fmt.Errorf("subjects: %q is no effect: want %s.fx.<class>.<target>.<session>.<effect>", subject, n.prefix)
	}
	if at := len(effect) - ulid.EncodedSize - len(logMark); at > 0 && effect[at:at+1] == logMark {
		if _, err := ulid.ParseStrict(effect[at+1:]); err == nil {
			effect = effect[:at]
		}
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

// SessionEffects returns a filter that matches all effects of a session, without
// their claims.
func (n Names) SessionEffects(sid string) (string, error) {
	return n.checked(ValidSession(sid), "fx", "*", "*", sid, "*")
}

// SessionClaims returns filters that match all claims of a session's effects.
func (n Names) SessionClaims(sid string) ([]string, error) {
	one, err := n.checked(ValidSession(sid), "fx", claimToken, "*", "*", sid, "*")
	return []string{one, one + ".*"}, err
}

// ClaimName has the parts of a claim's subject.
type ClaimName struct {
	EffectName     // of the claimed effect
	N          int // 1, or 2 and up: a takeover of a model turn
}

// Claim returns the subject of a claim: refold.fx.claim.<class>.<target>.<sid>.<effect>,
// and for n ≥ 2 …<effect>.<n>. It refuses an n below 1.
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

// ParseClaim parses a subject that Claim made, and refuses all others.
func (n Names) ParseClaim(subject string) (ClaimName, error) {
	tokens := strings.Split(subject, ".")
	name := ClaimName{N: 1}
	if len(tokens) == claimTokens+1 {
		name.N, _ = strconv.Atoi(tokens[claimTokens]) // without a number, made differs from subject
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

// BridgeFilter returns the filter of the consumer of a class and target.
func (n Names) BridgeFilter(class session.Class, target string) (string, error) {
	_, err := BridgeName(class, target)
	return n.checked(err, "fx", string(class), target, "*", "*")
}
