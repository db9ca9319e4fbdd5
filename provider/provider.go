// Package provider has what the packages below it share: each makes references to the
// models of one provider, as in openai.Model("gpt-4.1").
//
// A reference takes the key and the address from its options, else from the
// environment, when it is made: OPENAI_API_KEY and OPENAI_BASE_URL, and so on. A
// program links the libraries of those providers that it imports, and no others.
package provider

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/refold/refold"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/llm/provider"
)

// Option is an option of a reference to a model.
type Option func(*settings)

type settings struct {
	key, keyFile, baseURL string
	serve                 []bridge.ServeOption
}

// Key is the key, in place of the environment's.
func Key(key string) Option { return func(s *settings) { s.key = key } }

// KeyFile is the path of a file that holds the key.
func KeyFile(path string) Option { return func(s *settings) { s.keyFile = path } }

// BaseURL is the address of the server, such as https://host/v1. A server that is not
// the provider's gets no key from the environment.
func BaseURL(url string) Option { return func(s *settings) { s.baseURL = url } }

// Limit limits this process to n requests in each per: see bridge.Limit. It holds for
// all models of the provider together.
func Limit(n int, per time.Duration) Option {
	return func(s *settings) { s.serve = append(s.serve, bridge.Limit("", bridge.Rate{N: n, Per: per})) }
}

// Server is where a model is, and the key to it.
type Server struct {
	BaseURL string
	Key     string // empty: none is sent
}

// Ref returns a reference to a model of a kind of provider, whose server open is given.
// The packages below use it. Problems of the options are errors of the reference's
// Open, so that Runtime.Agent reports them.
func Ref(kind, model string, open func(Server) (executor.Model, error), o ...Option) refold.ModelRef {
	var s settings
	for _, option := range o {
		if option != nil {
			option(&s)
		}
	}
	at, err := s.server(kind)
	return refold.ModelRef{
		Provider: kind, Model: model, Tokens: provider.ContextTokens(model), Serve: s.serve,
		Account: codec.Sum([]byte(at.BaseURL + "\x00" + at.Key)).String(),
		Open: func() (executor.Model, error) {
			if err != nil {
				return nil, err
			}
			return open(at)
		},
	}
}

func (s settings) server(kind string) (at Server, err error) {
	p, ok := provider.Of(kind)
	if !ok {
		return at, fmt.Errorf("no such provider: %s", provider.Kinds(""))
	}
	env := os.Getenv //nolint:forbidigo // programs expect the provider's own variables
	at = Server(p.Server(env, s.baseURL))
	at.Key = cmp.Or(s.key, at.Key)
	if s.keyFile != "" {
		if s.key != "" {
			return at, errors.New("a key and a file of a key: give one of them")
		}
		if at.Key, err = provider.ReadKey(s.keyFile); err != nil {
			return at, fmt.Errorf("key file: %w", err)
		}
	}
	if p.LacksKey(provider.Server(at)) {
		return at, fmt.Errorf("no key: set %s, or give the option Key or KeyFile; %s refuses requests without one", p.KeyVariable(), p.BaseURL)
	}
	return at, nil
}
