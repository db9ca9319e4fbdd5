// Package gemini makes references to models of Google Gemini.
package gemini

import (
	"log/slog"

	"github.com/refold/refold"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm/endpoint"
	"github.com/refold/refold/internal/llm/gemini"
	"github.com/refold/refold/provider"
)

// Model returns a reference to a model, such as gemini-2.5-flash. Without the options
// Key and BaseURL it takes GEMINI_API_KEY and GEMINI_BASE_URL.
func Model(name string, o ...provider.Option) refold.ModelRef {
	return provider.Ref("gemini", name, New, o...)
}

// New returns what executes turns on a server, for a bridge of one's own.
func New(at provider.Server) (executor.Model, error) {
	c := endpoint.Config{BaseURL: at.BaseURL, Key: at.Key}
	return gemini.New(c, slog.New(slog.DiscardHandler))
}
