// Package anthropic makes references to models of Anthropic.
package anthropic

import (
	"log/slog"

	"github.com/refold/refold"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm/anthropic"
	"github.com/refold/refold/internal/llm/endpoint"
	"github.com/refold/refold/provider"
)

// Model returns a reference to a model, such as claude-sonnet-4-5. Without the options
// Key and BaseURL it takes ANTHROPIC_API_KEY and ANTHROPIC_BASE_URL.
func Model(name string, o ...provider.Option) refold.ModelRef {
	return provider.Ref("anthropic", name, New, o...)
}

// New returns what executes turns on a server, for a bridge of one's own.
func New(at provider.Server) (executor.Model, error) {
	c := endpoint.Config{BaseURL: at.BaseURL, Key: at.Key}
	return anthropic.New(c, slog.New(slog.DiscardHandler))
}
