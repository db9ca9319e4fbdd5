package subjects

import (
	"fmt"
	"slices"

	"github.com/refold/refold/actors/session"
)

const (
	tokenBytesMax  = 64
	prefixBytesMax = 32
)

// ValidSession returns nil if sid can name a session: 1 to 64 of the characters
// A-Z, a-z, 0-9, _ and -.
func ValidSession(sid string) error { return validToken("session id", sid) }

// ValidTarget returns nil if target can be in an effect's subject. "-" means "no
// target" and is valid.
func ValidTarget(target string) error { return validToken("target", target) }

// ValidEffect returns nil if effect can be in a subject. It checks only the
// characters; package session has the grammar of effect names.
func ValidEffect(effect string) error { return validToken("effect name", effect) }

// ValidInstance returns nil if instance can name a process.
func ValidInstance(instance string) error { return validToken("instance", instance) }

// ValidDoor returns nil if door is a session's door. The install door has no session
// and is refused.
func ValidDoor(door session.Door) error {
	if slices.Contains(doors, door) {
		return nil
	}
	return fmt.Errorf("subjects: no such door %q: use one of %v", door, doors)
}

// ValidClass returns nil if class is a class of effects.
func ValidClass(class session.Class) error {
	if slices.Contains(classes, class) {
		return nil
	}
	return fmt.Errorf("subjects: no such class %q: use one of %v", class, classes)
}

func validToken(name, token string) error {
	if token == "" {
		return fmt.Errorf("subjects: empty %s: use 1 to %d of A-Z a-z 0-9 _ -", name, tokenBytesMax)
	}
	if len(token) > tokenBytesMax {
		return fmt.Errorf("subjects: %s has %d bytes: use at most %d", name, len(token), tokenBytesMax)
	}
	for i := range len(token) {
		if !tokenByte(token[i]) {
			return fmt.Errorf("subjects: %s %q has %q at byte %d: use A-Z a-z 0-9 _ -", name, token, token[i], i)
		}
	}
	return nil
}

func tokenByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// validPrefix refuses upper case: streams have the prefix in upper case, and two
// prefixes must not share a stream.
func validPrefix(prefix string) error {
	if prefix == "" || len(prefix) > prefixBytesMax {
		return fmt.Errorf("subjects: prefix has %d bytes: use 1 to %d", len(prefix), prefixBytesMax)
	}
	if prefix[0] < 'a' || prefix[0] > 'z' {
		return fmt.Errorf("subjects: prefix %q: begin with a-z", prefix)
	}
	for i := range len(prefix) {
		if c := prefix[i]; !tokenByte(c) || c >= 'A' && c <= 'Z' {
			return fmt.Errorf("subjects: prefix %q has %q at byte %d: use a-z 0-9 _ -", prefix, c, i)
		}
	}
	return nil
}
