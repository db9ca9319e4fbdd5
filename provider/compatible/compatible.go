// Package compatible makes references to models of any server with OpenAI's chat
// completions API, such as Ollama or vLLM.
package compatible

import (
	"log/slog"

	"github.com/refold/refold"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm/endpoint"
	"github.com/refold/refold/internal/llm/openai"
	"github.com/refold/refold/provider"
)

// Model returns a reference to a model of the server at an address, such as
// http://127.0.0.1:11434/v1. No key is sent without the option Key or KeyFile.
//
// Its turns go to all processes that serve the provider openai-chat: a server of which
// only this process knows the address needs a name of its own, as in
// compatible.Model(url, name).As("local").
func Model(baseURL, name string, o ...provider.Option) refold.ModelRef {
	return provider.Ref("openai-chat", name, New, append([]provider.Option{provider.BaseURL(baseURL)}, o...)...)
}

// New returns what executes turns on a server, for a bridge of one's own.
func New(at provider.Server) (executor.Model, error) {
	c := endpoint.Config{BaseURL: at.BaseURL, Key: at.Key}
	return openai.New(openai.Config{Config: c, Chat: true}, slog.New(slog.DiscardHandler))
}
