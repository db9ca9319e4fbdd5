package anthropic

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm"
	"github.com/refold/refold/internal/llm/endpoint"
)

// DefaultBaseURL is asked when the config names no other.
const DefaultBaseURL = "https://api.anthropic.com"

// Model asks one server. It may be used from several goroutines at once.
type Model struct {
	endpoint *endpoint.Endpoint
	messages anthropic.MessageService
	of       string // whose items are ours
}

var _ executor.Model = (*Model)(nil)

// New returns a model, or what is wrong with the config. Its base URL is that
// of the server, up to and without /v1/messages. It connects to nobody yet.
func New(c endpoint.Config, log *slog.Logger) (*Model, error) {
	e, err := endpoint.New(c, DefaultBaseURL, log)
	if err != nil {
		return nil, fmt.Errorf("anthropic: %w", err)
	}
	// The service is made by itself, since a client of the library would read the
	// environment. Its traces may hold what was said, so there are none.
	options := []option.RequestOption{
		option.WithBaseURL(strings.TrimSuffix(strings.TrimSuffix(e.BaseURL(), "/"), "/v1") + "/"),
		option.WithHTTPClient(e.Client()), option.WithMaxRetries(0), option.WithoutOpenTelemetry(),
	}
	if c.Key != "" {
		options = append(options, option.WithAPIKey(c.Key))
	}
	return &Model{endpoint: e, messages: anthropic.NewMessageService(options...), of: "anthropic " + e.Host()}, nil
}

// Generate asks the server, and again if that may help. See package endpoint
// for what is streamed, and package llm for the codes of failures. When ctx is
// over, it returns ctx's error.
func (m *Model) Generate(ctx context.Context, req executor.Request, delta func(text string)) (executor.Answer, error) {
	return m.endpoint.GenerateThoughtful(ctx, &req, delta, endpoint.Thoughtful{
		Of: m.of, Ways: waysOf(req.Params), Make: func(thoughts llm.Thoughts) (endpoint.Asking, error) {
			body, err := m.newParams(&req, thoughts)
			return func(ctx context.Context, delta func(text string)) (executor.Answer, *endpoint.Failure) {
				return m.ask(ctx, body, thoughts, delta)
			}, err
		},
	})
}

// failed makes a failure of an error of the client library's.
func (m *Model) failed(err error) *endpoint.Failure {
	var said *anthropic.Error // in a stream; statuses are the endpoint's
	if errors.As(err, &said) {
		return m.endpoint.FailureOf(endpoint.ParseServerError([]byte(said.RawJSON())))
	}
	return m.endpoint.Failed(err)
}
