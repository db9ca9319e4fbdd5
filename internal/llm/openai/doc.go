// Package openai calls servers of OpenAI's APIs, with OpenAI's own client
// library: OpenAI itself for responses, and any server for chat completions.
//
// # Path
//
// [Model.Generate] builds the request (responses.go, or request.go for chat
// completions), sends it through an endpoint, which retries temporary failures,
// and reads the answer, a stream or one piece, whichever the server sends
// (response_answer.go, answer.go).
//
// # Laws
//
//   - Every id of a call that is sent is ours: the name of its effect. Ids that
//     the server gave are data.
//   - The model's reasoning is sent back to the server that made it, byte for
//     byte, with the ids that pair it with its output, and to no other. In chat
//     completions it is reasoning_content, reasoning_details and a call's
//     extra_content, which servers other than OpenAI's have (thought.go).
//   - A response is an answer only if the server sent how it ended; a stream
//     that breaks off before is a failure.
//
// # What is sent
//
// The members of params are sent as they are, but for those that the protocol's
// other parts set: model, messages or input, tools, tool_choice, stream and n
// are refused, and so is what would make a server keep the conversation. tools
// are made once for a toolset and kept by the bridge, as they are sent. In chat
// completions stream_options requests the usage unless params has one. OpenAI
// stores nothing unless params.store says so. Encrypted reasoning is requested
// if the model's name is that of a reasoning model.
//
// OpenAI gets a prompt_cache_key and a cache retention (cache.go). In masked
// mode all tools are defined and tool_choice lists those that may be called.
// Other servers of chat completions support neither: they get only the tools
// that may be called.
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
