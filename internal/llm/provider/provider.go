// Package provider has a row for each kind of model that bridges call over the
// network: all that other packages know about it. To add one, write its package, its
// row here, its constructor in cmd/bridge, and its package below provider at the
// module's root, for programs that own an agent.
package provider

import (
	"strings"

	"github.com/refold/refold/internal/llm/schema"
)

// Provider is a kind of model.
type Provider struct {
	Kind    string          // the value of --model, and the provider's name in a config
	Owner   string          // begins the names of its environment variables
	BaseURL string          // the address of its own server
	Dialect *schema.Dialect // what it accepts as tools
}

// All are the kinds, in the order of helps.
var All = []Provider{
	{"openai", "OPENAI", "https://api.openai.com/v1", schema.OpenAI},
	{"openai-chat", "OPENAI", "https://api.openai.com/v1", schema.OpenAI},
	{"anthropic", "ANTHROPIC", "https://api.anthropic.com", schema.Anthropic},
	{"gemini", "GEMINI", "https://generativelanguage.googleapis.com", schema.Gemini},
}

// KeyVariable names the environment variable of its key.
func (p Provider) KeyVariable() string { return p.Owner + "_API_KEY" }

// BaseURLVariable names the environment variable of another server's address.
func (p Provider) BaseURLVariable() string { return p.Owner + "_BASE_URL" }

// Of returns a kind.
func Of(kind string) (p Provider, ok bool) {
	for _, p := range All {
		if p.Kind == kind {
			return p, true
		}
	}
	return Provider{}, false
}

// Kinds lists all kinds, each followed by suffix.
func Kinds(suffix string) string {
	var all []string
	for _, p := range All {
		all = append(all, p.Kind+suffix)
	}
	return strings.Join(all, ", ")
}

// DialectOf returns the dialect of a provider by its name in a config, or nil for
// one that calls no API. A provider of another name has chat completions.
func DialectOf(name string) *schema.Dialect {
	if p, ok := Of(name); ok {
		return p.Dialect
	}
	if name == "scripted" || name == "recorded" {
		return nil
	}
	return schema.Chat
}
