package gemini

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"google.golang.org/genai"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm"
	"github.com/refold/refold/internal/llm/endpoint"
	"github.com/refold/refold/internal/llm/schema"
)

// noKey is sent if there is no key: otherwise the library would read the
// environment.
const noKey = "none"

// Model calls one server. It is safe for concurrent use.
type Model struct {
	endpoint *endpoint.Endpoint
	client   *genai.Client
	of       string // the owner of the server's signatures
}

var _ executor.Model = (*Model)(nil)

// New returns a model, or the config's problems. The base URL ends before
// /v1beta. New does not connect.
func New(c endpoint.Config, log *slog.Logger) (*Model, error) {
	e, err := endpoint.New(c, log)
	if err != nil {
		return nil, fmt.Errorf("gemini: %w", err)
	}
	// Every field is set, so that the library does not read the environment.
	client, err := genai.NewClient(context.Background(), &genai.ClientConfig{
		APIKey: cmp.Or(c.Key, noKey), Backend: genai.BackendGeminiAPI, HTTPClient: e.Client(),
		HTTPOptions: genai.HTTPOptions{BaseURL: e.BaseURL(), APIVersion: "v1beta"},
	})
	if err != nil { // the library's error may contain the key
		return nil, errors.New("gemini: the client library does not take the config")
	}
	return &Model{endpoint: e, client: client, of: "gemini " + e.Host()}, nil
}

// Generate calls the server, and retries if that may help. See package endpoint
// for what is streamed, and package llm for the codes of failures. It returns
// ctx's error if ctx is over.
func (m *Model) Generate(ctx context.Context, req executor.Request, delta func(text string)) (executor.Answer, error) {
	req, tools := schema.Gemini.Adapt(req, true)
	req = llm.Sendable(req)
	config, err := newConfig(&req)
	if err != nil {
		return executor.Answer{}, err
	}
	answer, err := m.endpoint.GenerateThoughtful(ctx, &req, delta, endpoint.Thoughtful{
		Of: m.of, Ways: []llm.Thoughts{llm.ThoughtsSent, llm.ThoughtsDropped, llm.ThoughtsLeftOut},
		Make: func(thoughts llm.Thoughts) (endpoint.Attempt, error) {
			contents := m.newContents(accepts.Fit(req.Messages), thoughts)
			return func(ctx context.Context, delta func(text string)) (executor.Answer, *endpoint.Failure) {
				own := *config // the library sets defaults in it
				return m.ask(ctx, req.Model, contents, &own, delta)
			}, nil
		},
	})
	return tools.Answer(answer), err
}
