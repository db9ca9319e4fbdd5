// Package strict has the rules of providers' APIs for a conversation, at least as
// strict as the APIs: a conversation that passes here is accepted. Each rule has
// a name; rules_test.go names its source, and has conversations that break it.
// Only tests use this package: those of the session's fold, and those of the
// providers.
package strict

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// broken is the rule of a provider that a conversation breaks, and where.
type broken struct {
	rule providerRule
	why  string
}

func (b *broken) Error() string { return string(b.rule) + ": " + b.why }

func breaks(rule providerRule, format string, args ...any) error {
	return &broken{rule: rule, why: fmt.Sprintf(format, args...)}
}

// providerRule names a rule. ruleSources has the source of each.
type providerRule string

// IsBlank reports whether a text is empty, or only white space.
func IsBlank(text string) bool { return strings.TrimSpace(text) == "" }

// nameMax is the greatest length of a tool's name for all providers, in bytes.
const nameMax = 64

// IsName reports whether providers accept a name. They accept those of a
// registry's tools; a model may have invented another.
func IsName(name string) bool {
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return name != "" && len(name) <= nameMax
}

// IsObject reports whether a text is a JSON object.
func IsObject(text string) bool {
	return strings.HasPrefix(strings.TrimSpace(text), "{") && json.Valid([]byte(text))
}

// decode decodes a struct, and refuses unknown fields.
func decode(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(v)
}

// imageText replaces an image in a text.
const imageText = "[image]"
