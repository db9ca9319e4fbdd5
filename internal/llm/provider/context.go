package provider

import "strings"

// answerTokens is kept free for an answer where input and answer share one limit. A
// window is shortened at 80% of what is left, so that longer answers have room, too.
const answerTokens = 32_000

// contexts are the tokens of input that models accept, by the beginnings of their names;
// the first row that fits counts. The figures are those of the providers' pages of
// models, of 2026: https://platform.openai.com/docs/models,
// https://docs.claude.com/en/docs/about-claude/models/overview and
// https://ai.google.dev/gemini-api/docs/models. A row is the least that all models of
// its names accept without a special header: too small a figure shortens a window early,
// and with too large a one each turn is refused first.
//
// Models that people serve themselves have no row. Their server decides how much they
// accept, and it is often far less than the model could: Ollama gives a model 4,096
// tokens unless OLLAMA_CONTEXT_LENGTH says otherwise, and cuts what is longer silently;
// vLLM has --max-model-len, llama.cpp --ctx-size.
var contexts = []struct {
	name   string
	tokens int64
}{
	{"gpt-5-chat", 128_000 - 16_384}, // less the longest answer, as in the other rows of OpenAI
	{"gpt-5-pro", 400_000 - 272_000},
	{"gpt-5", 400_000 - 128_000},
	{"gpt-4.1", 1_047_576 - 32_768},
	{"gpt-4o", 128_000 - 16_384},
	{"o1", 200_000 - 100_000},
	{"o3", 200_000 - 100_000},
	{"o4-mini", 200_000 - 100_000},
	{"claude-", 200_000 - answerTokens},
	{"gemini-2.0-flash", 1_048_576}, // the limit of input alone, as in the rows below
	{"gemini-2.5-", 1_048_576},
	{"gemini-3", 1_048_576},
}

// ContextTokens returns how many tokens of input a model accepts, 0 if that is not known.
// A name may begin with the names of those who offer the model: openai/gpt-5,
// us.anthropic.claude-sonnet-4-5.
func ContextTokens(model string) int64 {
	model = model[strings.LastIndexByte(model, '/')+1:]
	if at := strings.Index(model, "claude-"); at > 0 && model[at-1] == '.' {
		model = model[at:]
	}
	for _, row := range contexts {
		if rest, ok := strings.CutPrefix(model, row.name); ok && !goesOn(row.name, rest) {
			return row.tokens
		}
	}
	return 0
}

// goesOn reports whether the last part of a name continues, so that it is another one:
// o10, gpt-50.
func goesOn(name, rest string) bool {
	return !strings.HasSuffix(name, "-") && rest != "" && !strings.ContainsAny(rest[:1], "-.@:")
}
