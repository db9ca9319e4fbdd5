package main

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/llm/endpoint"
)

// TestKeyGoesToItsOwnServer: a key goes to its own server, and to no other.
func TestKeyGoesToItsOwnServer(t *testing.T) {
	t.Parallel()
	own, theirs := write(t, "own", "of-own\n"), write(t, "theirs", "of-provider\n")
	env := settings.Environment{"OPENAI_API_KEY": "of-openai", "ANTHROPIC_API_KEY": "of-anthropic", "GEMINI_API_KEY": "of-gemini"}
	for _, c := range []struct {
		model string
		flags flags
		want  endpoint.Config
	}{
		{"openai", flags{}, endpoint.Config{Key: "of-openai"}},
		{"openai-chat", flags{OpenAIBaseURL: "http://a/v1"}, endpoint.Config{Key: "of-openai", BaseURL: "http://a/v1"}},
		{"openai", flags{OpenAIKeyFile: theirs}, endpoint.Config{Key: "of-provider"}},
		{"openai", flags{OpenAIKeyFile: theirs, KeyFiles: map[string]string{"openai": own}}, endpoint.Config{Key: "of-own"}},
		{"anthropic", flags{OpenAIKeyFile: theirs}, endpoint.Config{Key: "of-anthropic"}},
		{"anthropic", flags{AnthropicKeyFile: theirs, AnthropicBaseURL: "http://c"}, endpoint.Config{Key: "of-provider", BaseURL: "http://c"}},
		{"google=gemini", flags{GeminiBaseURL: "http://d"}, endpoint.Config{Key: "of-gemini", BaseURL: "http://d"}},
		{"gemini", flags{GeminiKeyFile: theirs}, endpoint.Config{Key: "of-provider"}},
		{"ollama=openai-chat:http://b/v1", flags{OpenAIKeyFile: theirs, OpenAIBaseURL: "http://a/v1"}, endpoint.Config{BaseURL: "http://b/v1"}},
		{"vllm=openai-chat:http://b/v1", flags{KeyFiles: map[string]string{"vllm": own}}, endpoint.Config{BaseURL: "http://b/v1", Key: "of-own"}},
	} {
		of := parseOffer(c.model)
		got, err := providers()[of.kind].config(of, &c.flags, env)
		if err != nil || got.Key != c.want.Key || got.BaseURL != c.want.BaseURL {
			t.Errorf("%s: key %q at %q (%v), want %q at %q", c.model, got.Key, got.BaseURL, err, c.want.Key, c.want.BaseURL)
		}
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
		{model: "openai", want: "no key: set OPENAI_API_KEY, or name its file with --openai-key-file"},
		{model: "chat=openai-chat", want: "no key: set OPENAI_API_KEY"},
		{model: "anthropic", env: settings.Environment{"OPENAI_API_KEY": "k"}, want: "no key: set ANTHROPIC_API_KEY, or name its file with --anthropic-key-file"},
		{model: "gemini", want: "no key: set GEMINI_API_KEY"},
		{model: "openai", flags: flags{OpenAIBaseURL: "https://api.openai.com/v1"}, want: "no key: set OPENAI_API_KEY"}, // as docker-compose.yml sets it
		{model: "openai", env: settings.Environment{"OPENAI_API_KEY": "k"}},
		{model: "gemini", flags: flags{GeminiKeyFile: key}},
		{model: "openai", flags: flags{KeyFiles: map[string]string{"openai": key}}},
		{model: "openai", flags: flags{OpenAIBaseURL: "http://127.0.0.1:1/v1"}},
		{model: "local=openai-chat:http://127.0.0.1:1/v1"},
	} {
		c.flags.ModelIdle = time.Minute
		_, err := openModel(parseOffer(c.model), &c.flags, c.env, slog.New(slog.DiscardHandler))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %v: got %v, want %q", c.model, c.env, err, c.want)
		}
	}
}
