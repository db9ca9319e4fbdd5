// Package openai asks servers that speak OpenAI's APIs, with OpenAI's own client
// library: OpenAI itself for responses, and any server for chat completions.
//
// # Path
//
// [Model.Generate] builds the request (responses.go, or request.go for chat
// completions), sends it through an endpoint, which tries again what may pass,
// and reads the answer, a stream or one piece, whichever the server sends
// (response_answer.go, answer.go).
//
// # Laws
//
//   - Every id of a call that is sent is ours: the name of its effect. Ids that
//     the server gave are data.
//   - What the model thought is sent back to the server that said it, byte for
//     byte, with the ids that pair it with what came of it, and to no other. Of
//     chat completions it is reasoning_content, reasoning_details and a call's
//     extra_content, which servers other than OpenAI's have (thought.go).
//   - A result is an answer only if the server said how it ended; a stream that
//     breaks off before is a failure.
//
// # What is sent
//
// The members of params are sent as they are, but for those that the protocol's
// other parts set: model, messages or input, tools, tool_choice, stream and n
// are refused, and so is what would make a server keep the conversation. tools
// are made once for a toolset and kept by the bridge, as they are sent. Of chat
// completions stream_options asks for the usage unless params has one. Nothing
// is stored by OpenAI unless params.store says so, and what a model thought is
// asked for, encrypted, if its name says that it thinks.
//
// OpenAI is told a prompt_cache_key, and for how long to keep what is cached
// (cache.go). In masked mode all tools are defined and tool_choice says which of
// them may be called. Servers of chat completions other than OpenAI's know
// neither: they are told nothing, and sent the tools that may be called.
//
// What the run's budgets leave for the answer bounds max_output_tokens, and of
// chat completions max_tokens or max_completion_tokens, whichever params have;
// max_completion_tokens if they have neither. OpenAI refuses fewer than 16 for a
// response, so that many are asked for then.
//
// # Limits
//
// limits.go has the limits of an answer.
//
// # Testing
//
// Tests speak the protocol from an httptest server, byte by byte, and compare
// requests with testdata/*.json; internal/llm/conformance holds both APIs to the
// table of all.
package openai
