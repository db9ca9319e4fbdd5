package main

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/llm/endpoint"
	"github.com/refold/refold/internal/llm/provider"
)

// TestKeyGoesToItsOwnServer: a key goes to its own server, and to no other.
func TestKeyGoesToItsOwnServer(t *testing.T) {
	t.Parallel()
	own := write(t, "own", "of-own\n")
	env := settings.Environment{"OPENAI_API_KEY": "of-openai", "ANTHROPIC_API_KEY": "of-anthropic", "GEMINI_API_KEY": "of-gemini", "GEMINI_BASE_URL": "http://d"}
	for _, c := range []struct {
		model string
		files map[string]string // --key-file
		want  endpoint.Config
	}{
		{"openai", nil, endpoint.Config{Key: "of-openai", BaseURL: "https://api.openai.com/v1"}},
		{"openai-chat", nil, endpoint.Config{Key: "of-openai", BaseURL: "https://api.openai.com/v1"}},
		{"openai", map[string]string{"openai": own}, endpoint.Config{Key: "of-own", BaseURL: "https://api.openai.com/v1"}},
		{"anthropic", map[string]string{"openai": own}, endpoint.Config{Key: "of-anthropic", BaseURL: "https://api.anthropic.com"}},
		{"anthropic:http://c", map[string]string{"anthropic": own}, endpoint.Config{Key: "of-own", BaseURL: "http://c"}},
		{"google=gemini", nil, endpoint.Config{Key: "of-gemini", BaseURL: "http://d"}},
		{"ollama=openai-chat:http://b/v1", map[string]string{"openai-chat": own}, endpoint.Config{BaseURL: "http://b/v1"}},
		{"vllm=openai-chat:http://b/v1", map[string]string{"vllm": own}, endpoint.Config{BaseURL: "http://b/v1", Key: "of-own"}},
	} {
		of := parseOffer(c.model)
		p, _ := provider.Of(of.kind)
		got, err := modelConfig(p, of, &flags{KeyFiles: c.files}, env)
		if err != nil || got.Key != c.want.Key || got.BaseURL != c.want.BaseURL {
			t.Errorf("%s: key %q at %q (%v), want %q at %q", c.model, got.Key, got.BaseURL, err, c.want.Key, c.want.BaseURL)
		}
	}
}

// TestEveryProviderHasAConstructor, which opens it at its own server.
func TestEveryProviderHasAConstructor(t *testing.T) {
	t.Parallel()
	for _, p := range provider.All {
		env := settings.Environment{p.KeyVariable(): "k"}
		if _, err := openModel(parseOffer(p.Kind), &flags{}, env, slog.New(slog.DiscardHandler)); constructors[p.Kind] == nil || err != nil {
			t.Errorf("%s: %v", p.Kind, err)
		}
	}
	if len(constructors) != len(provider.All) {
		t.Errorf("%d constructors of %d providers", len(constructors), len(provider.All))
	}
}

// TestMissingKeyEndsTheStart where the provider requires one, and nowhere else.
func TestMissingKeyEndsTheStart(t *testing.T) {
	t.Parallel()
	key := write(t, "key", "k")
	for _, c := range []struct {
		model string
		flags flags
		env   settings.Environment
		want  string // "": it starts
	}{
		{model: "openai", want: "no key: set OPENAI_API_KEY, or name its file with --key-file openai=FILE"},
		{model: "chat=openai-chat", want: "no key: set OPENAI_API_KEY"},
		{model: "anthropic", env: settings.Environment{"OPENAI_API_KEY": "k"}, want: "no key: set ANTHROPIC_API_KEY, or name its file with --key-file anthropic=FILE"},
		{model: "gemini", want: "no key: set GEMINI_API_KEY"},
		{model: "openai", env: settings.Environment{"OPENAI_BASE_URL": "https://api.openai.com/v1"}, want: "no key: set OPENAI_API_KEY"}, // as docker-compose.yml sets it
		{model: "openai", env: settings.Environment{"OPENAI_API_KEY": "k"}},
		{model: "google=gemini", flags: flags{KeyFiles: map[string]string{"google": key}}},
		{model: "openai", flags: flags{KeyFiles: map[string]string{"openai": key}}},
		{model: "openai", env: settings.Environment{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}},
		{model: "local=openai-chat:http://127.0.0.1:1/v1"},
	} {
		c.flags.ModelIdle = time.Minute
		_, err := openModel(parseOffer(c.model), &c.flags, c.env, slog.New(slog.DiscardHandler))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %v: got %v, want %q", c.model, c.env, err, c.want)
		}
	}
}
