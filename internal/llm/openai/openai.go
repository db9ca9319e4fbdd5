package openai

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/refold/refold/bridge"
)

// DefaultBaseURL is asked when the config names no other.
const DefaultBaseURL = "https://api.openai.com/v1"

// Config says whom to ask. The zero value asks OpenAI without a key.
type Config struct {
	BaseURL string // of the API, up to and without /chat/completions; empty: DefaultBaseURL
	Key     string // sent as a bearer token; empty: none is sent
	Whole   bool   // don't ask for a stream: for servers that have none

	Client *http.Client // nil: one of its own
}

// Validate reports every problem of the config. It names no key.
func (c Config) Validate() error {
	var problems []error
	if u, err := url.Parse(c.BaseURL); err != nil {
		problems = append(problems, errors.New("base URL: is no URL: give it as https://host/v1"))
	} else if c.BaseURL != "" {
		switch {
		case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			problems = append(problems, errors.New("base URL: give it as https://host/v1"))
		case u.User != nil || u.RawQuery != "" || u.Fragment != "":
			problems = append(problems, errors.New("base URL: user, query and fragment are not sent: leave them out; the key has its own option"))
		}
	}
	for _, r := range c.Key {
		if r <= ' ' || r >= 0x7f {
			problems = append(problems, errors.New("key: has a character that no key has: was it copied with its line end?"))
			break
		}
	}
	return errors.Join(problems...)
}

// Model asks one server. It may be used from several goroutines at once.
type Model struct {
	completions openai.ChatCompletionService
	host        string // for people
	key         string // to keep it out of what is said
	whole       bool
	log         *slog.Logger
	wait        func(ctx context.Context, d time.Duration) error
}

var _ bridge.Model = (*Model)(nil)

// New returns a model, or what is wrong with the config. It connects to
// nobody yet.
func New(c Config, log *slog.Logger) (*Model, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("openai: %w", err)
	}
	base := c.BaseURL
	if base == "" {
		base = DefaultBaseURL
	}
	u, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("openai: %w", err)
	}
	client := c.Client
	if client == nil {
		client = &http.Client{}
	}
	// The service is made by itself, since a client of the library would read
	// the environment.
	options := []option.RequestOption{
		option.WithBaseURL(base), option.WithHTTPClient(client), option.WithMaxRetries(0), option.WithMiddleware(refuse),
	}
	if c.Key != "" {
		options = append(options, option.WithAPIKey(c.Key))
	}
	return &Model{
		completions: openai.NewChatCompletionService(options...), host: u.Host, key: c.Key, whole: c.Whole, log: log, wait: wait,
	}, nil
}

// Generate asks the server, and again if that may help. See the package's laws
// for what is streamed, and package llm for the codes of failures. When ctx is
// over, it returns ctx's error.
func (m *Model) Generate(ctx context.Context, req bridge.Request, delta func(text string)) (bridge.Answer, error) {
	body, err := newParams(&req)
	if err != nil {
		return bridge.Answer{}, err
	}
	for try := 0; ; try++ {
		streamed := false
		answer, failed := m.ask(ctx, body, func(text string) {
			streamed = true
			delta(text)
		})
		if failed == nil {
			return answer, nil
		}
		if err := ctx.Err(); err != nil {
			return bridge.Answer{}, err
		}
		pause, again := failed.again(ctx, try)
		if !again {
			return bridge.Answer{}, failed.err
		}
		m.log.WarnContext(ctx, "generation is asked again", "session", req.Session, "effect", req.Effect,
			"code", failed.err.Code, "detail", failed.err.Detail, "wait_ms", pause.Milliseconds())
		if err := m.wait(ctx, pause); err != nil {
			return bridge.Answer{}, err
		}
		if streamed {
			delta = func(string) {}
		}
	}
}
