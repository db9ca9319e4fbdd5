// Package strict holds the rules that providers' APIs state of a conversation,
// at least as strict as they are: what passes here, they take. Each rule has a
// name; rules_test.go says where it comes from, and has conversations that break
// it. Tests alone use this package: those of the session's fold, and those of the
// providers.
package strict

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

// broken says which rule of a provider a conversation breaks, and where.
type broken struct {
	rule providerRule
	why  string
}

func (b *broken) Error() string { return string(b.rule) + ": " + b.why }

func breaks(rule providerRule, format string, args ...any) error {
	return &broken{rule: rule, why: fmt.Sprintf(format, args...)}
}

// providerRule names a rule. Where each comes from is in ruleSources.
type providerRule string

// IsBlank reports whether a text is empty, or white space alone.
func IsBlank(text string) bool { return strings.TrimSpace(text) == "" }

// nameMax is what all providers take of a tool's name, in bytes.
const nameMax = 64

// IsName reports whether providers take a name: those of a registry's
// tools they do, and a model may have made another one up.
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

// decode reads what a struct is, with no field unknown.
func decode(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(v)
}

// dataURL says what is wrong with an image that is in its URL.
func dataURL(url string) error {
	media, data, ok := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
	if !ok || !strings.HasPrefix(url, "data:") {
		return fmt.Errorf("an image at %.20q", url)
	}
	return image(media, data)
}

// image says what is wrong with an image.
func image(media, data string) error {
	if b, err := base64.StdEncoding.DecodeString(data); err != nil || len(b) == 0 || !strings.HasPrefix(media, "image/") {
		return fmt.Errorf("not a valid image of type %q", media)
	}
	return nil
}

// imageText stands for an image in the text of a form.
const imageText = "[image]"
