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
)

// DefaultBaseURL is asked when the config names no other.
const DefaultBaseURL = "https://generativelanguage.googleapis.com"

// noKey is sent when there is none: the library would look for one in the
// environment.
const noKey = "none"

// Model asks one server. It may be used from several goroutines at once.
type Model struct {
	endpoint *endpoint.Endpoint
	client   *genai.Client
	of       string // whose signatures are ours
}

var _ executor.Model = (*Model)(nil)

// New returns a model, or what is wrong with the config. Its base URL is that
// of the server, up to and without /v1beta. It connects to nobody yet.
func New(c endpoint.Config, log *slog.Logger) (*Model, error) {
	e, err := endpoint.New(c, DefaultBaseURL, log)
	if err != nil {
		return nil, fmt.Errorf("gemini: %w", err)
	}
	// All is said, so that nothing is taken from the environment.
	client, err := genai.NewClient(context.Background(), &genai.ClientConfig{
		APIKey: cmp.Or(c.Key, noKey), Backend: genai.BackendGeminiAPI, HTTPClient: e.Client(),
		HTTPOptions: genai.HTTPOptions{BaseURL: e.BaseURL(), APIVersion: "v1beta"},
	})
	if err != nil { // the library's words may hold the key
		return nil, errors.New("gemini: the client library does not take the config")
	}
	return &Model{endpoint: e, client: client, of: "gemini " + e.Host()}, nil
}

// Generate asks the server, and again if that may help. See package endpoint
// for what is streamed, and package llm for the codes of failures. When ctx is
// over, it returns ctx's error.
func (m *Model) Generate(ctx context.Context, req executor.Request, delta func(text string)) (executor.Answer, error) {
	config, err := newConfig(&req)
	if err != nil {
		return executor.Answer{}, err
	}
	return m.endpoint.GenerateThoughtful(ctx, &req, delta, endpoint.Thoughtful{
		Of: m.of, Ways: []llm.Thoughts{llm.ThoughtsSent, llm.ThoughtsDropped, llm.ThoughtsLeftOut},
		Make: func(thoughts llm.Thoughts) (endpoint.Asking, error) {
			contents := m.newContents(req.Messages, thoughts)
			return func(ctx context.Context, delta func(text string)) (executor.Answer, *endpoint.Failure) {
				own := *config // the library sets defaults in it
				return m.ask(ctx, req.Model, contents, &own, delta)
			}, nil
		},
	})
}

// failed makes a failure of an error of the client library's.
func (m *Model) failed(err error) *endpoint.Failure {
	var said genai.APIError // in a stream; statuses are the endpoint's
	if errors.As(err, &said) {
		return m.endpoint.FailureOf(endpoint.ServerError{Status: said.Code, Kind: said.Status, Message: said.Message}.WithDetails(said.Details))
	}
	return m.endpoint.Failed(err)
}
