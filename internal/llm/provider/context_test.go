package provider_test

import (
	"testing"

	"github.com/refold/refold/internal/llm/provider"
)

func TestContextTokens(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]int64{
		"gpt-5":                      272_000,
		"gpt-5-mini":                 272_000,
		"gpt-5.2-codex":              272_000,
		"gpt-5-chat-latest":          111_616,
		"openai/gpt-4.1-mini":        1_014_808,
		"gpt-4o-2024-11-20":          111_616,
		"o3":                         100_000,
		"claude-sonnet-4-5-20250929": 168_000,
		"claude-opus-4-1@20250805":   168_000,
		"us.anthropic.claude-haiku-4-5-20251001-v1:0": 168_000,
		"google/gemini-2.5-flash-lite":                1_048_576,
		"gemini-3-pro-preview":                        1_048_576,
		"gpt-50":                                      0,
		"gpt-4":                                       0,
		"o10":                                         0,
		"o3x":                                         0,
		"not-claude-3":                                0,
		"llama3.1":                                    0,
		"scripted":                                    0,
		"":                                            0,
	} {
		if got := provider.ContextTokens(model); got != want {
			t.Errorf("%s: got %d tokens, want %d", model, got, want)
		}
	}
}
