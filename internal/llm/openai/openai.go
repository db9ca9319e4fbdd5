package openai

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm"
	"github.com/refold/refold/internal/llm/endpoint"
)

// openaiHost is OpenAI's own server. Other servers of chat completions may
// refuse unknown members.
const openaiHost = "api.openai.com"

// Config names a server and its API. The API is responses, unless Chat is
// set. A base URL ends before /chat/completions or /responses.
type Config struct {
	endpoint.Config
	Chat  bool // use chat completions, which servers other than OpenAI's have
	Whole bool // request no stream: for servers without streaming
}

// Model calls one server. It is safe for concurrent use.
type Model struct {
	endpoint    *endpoint.Endpoint
	completions openai.ChatCompletionService
	responses   responses.ResponseService
	chat, whole bool
	openai      bool   // the server supports OpenAI's extensions
	of          string // the owner of the server's items
	log         *slog.Logger
}

var _ executor.Model = (*Model)(nil)

// New returns a model, or the config's problems. It does not connect.
func New(c Config, log *slog.Logger) (*Model, error) {
	if c.Whole && c.FirstByte == 0 {
		c.FirstByte = -1 // it comes with the last one
	}
	e, err := endpoint.New(c.Config, log)
	if err != nil {
		return nil, fmt.Errorf("openai: %w", err)
	}
	// The services are made one by one, since a client of the library would read the
	// environment.
	options := []option.RequestOption{
		option.WithBaseURL(strings.TrimSuffix(e.BaseURL(), "/") + "/"), option.WithHTTPClient(e.Client()), option.WithMaxRetries(0),
	}
	if c.Key != "" {
		options = append(options, option.WithAPIKey(c.Key))
	}
	of := "openai " + e.Host()
	if c.Chat { // the items of the two APIs differ
		of = "openai-chat " + e.Host()
	}
	return &Model{
		endpoint: e, completions: openai.NewChatCompletionService(options...), responses: responses.NewResponseService(options...),
		chat: c.Chat, whole: c.Whole, openai: !c.Chat || e.Host() == openaiHost, of: of, log: log,
	}, nil
}

// Generate calls the server, and retries if that may help. See package endpoint
// for what is streamed, and package llm for the codes of failures. It returns
// ctx's error if ctx is over.
func (m *Model) Generate(ctx context.Context, req executor.Request, delta func(text string)) (executor.Answer, error) {
	req, tools := m.dialect().Adapt(req, m.openai)
	req = llm.Sendable(req)
	answer, err := m.endpoint.GenerateThoughtful(ctx, &req, delta, endpoint.Thoughtful{
		Of: m.of, Ways: m.ways(),
		Make: func(thoughts llm.Thoughts) (endpoint.Attempt, error) { return m.prepare(&req, thoughts) },
	})
	return tools.Answer(answer), err
}

// ways are the ways in which thoughts can be sent. Servers of chat completions other
// than OpenAI's may require one in every turn.
func (m *Model) ways() []llm.Thoughts {
	if m.openai {
		return []llm.Thoughts{llm.ThoughtsSent, llm.ThoughtsLeftOut}
	}
	return []llm.Thoughts{llm.ThoughtsSent, llm.ThoughtsLeftOut, llm.ThoughtsFilled}
}

// prepare builds the request. Its error is a fault of the run's config.
func (m *Model) prepare(req *executor.Request, thoughts llm.Thoughts) (endpoint.Attempt, error) {
	return m.attempt(req, func(without []string) (endpoint.Attempt, error) {
		if m.chat {
			body, err := m.newParams(req, thoughts, without)
			return func(ctx context.Context, delta func(text string)) (executor.Answer, *endpoint.Failure) {
				return m.ask(ctx, body, delta)
			}, err
		}
		body, err := m.newResponse(req, thoughts, without)
		return func(ctx context.Context, delta func(text string)) (executor.Answer, *endpoint.Failure) {
			return m.respond(ctx, body, delta)
		}, err
	})
}
