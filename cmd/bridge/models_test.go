package main

import (
	"testing"

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
