// Package openai makes references to models of OpenAI, by its Responses API.
package openai

import (
	"log/slog"

	"github.com/refold/refold"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm/endpoint"
	"github.com/refold/refold/internal/llm/openai"
	"github.com/refold/refold/provider"
)

// Model returns a reference to a model, such as gpt-4.1. Without the options Key and
// BaseURL it takes OPENAI_API_KEY and OPENAI_BASE_URL.
func Model(name string, o ...provider.Option) refold.ModelRef {
	return provider.Ref("openai", name, New, o...)
}

// New returns what executes turns on a server, for a bridge of one's own.
func New(at provider.Server) (executor.Model, error) {
	c := endpoint.Config{BaseURL: at.BaseURL, Key: at.Key}
	return openai.New(openai.Config{Config: c}, slog.New(slog.DiscardHandler))
}
