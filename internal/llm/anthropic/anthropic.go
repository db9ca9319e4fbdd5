package anthropic

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm"
	"github.com/refold/refold/internal/llm/endpoint"
	"github.com/refold/refold/internal/llm/schema"
)

// Model calls one server. It is safe for concurrent use.
type Model struct {
	endpoint *endpoint.Endpoint
	messages anthropic.MessageService
	of       string // the owner of the server's items
}

var _ executor.Model = (*Model)(nil)

// New returns a model, or the config's problems. The base URL ends before
// /v1/messages. New does not connect.
func New(c endpoint.Config, log *slog.Logger) (*Model, error) {
	e, err := endpoint.New(c, log)
	if err != nil {
		return nil, fmt.Errorf("anthropic: %w", err)
	}
	// The service is made directly, since a client of the library would read the
	// environment. It has no traces: they may contain the conversation.
	options := []option.RequestOption{
		option.WithBaseURL(strings.TrimSuffix(strings.TrimSuffix(e.BaseURL(), "/"), "/v1") + "/"),
		option.WithHTTPClient(e.Client()), option.WithMaxRetries(0), option.WithoutOpenTelemetry(),
	}
	if c.Key != "" {
		options = append(options, option.WithAPIKey(c.Key))
	}
	return &Model{endpoint: e, messages: anthropic.NewMessageService(options...), of: "anthropic " + e.Host()}, nil
}

// Generate calls the server, and retries if that may help. See package endpoint
// for what is streamed, and package llm for the codes of failures. It returns
// ctx's error if ctx is over.
func (m *Model) Generate(ctx context.Context, req executor.Request, delta func(text string)) (executor.Answer, error) {
	req, tools := schema.Anthropic.Adapt(req, false)
	req = llm.Sendable(req)
	answer, err := m.endpoint.GenerateThoughtful(ctx, &req, delta, endpoint.Thoughtful{
		Of: m.of, Ways: waysOf(req.Params), Make: func(thoughts llm.Thoughts) (endpoint.Attempt, error) {
			body, err := m.newParams(&req, thoughts)
			return func(ctx context.Context, delta func(text string)) (executor.Answer, *endpoint.Failure) {
				return m.ask(ctx, body, thoughts, delta)
			}, err
		},
	})
	return tools.Answer(answer), err
}
