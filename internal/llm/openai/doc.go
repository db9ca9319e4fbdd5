// Package openai calls servers of OpenAI's APIs, with OpenAI's own client
// library: OpenAI itself for responses, and any server for chat completions.
//
// # Path
//
// [Model.Generate] builds the request (responses.go, or request.go for chat
// completions), sends it through an endpoint, which retries temporary failures,
// and reads the answer, a stream or one piece, whichever the server sends
// (response_answer.go; answer.go and calls.go).
//
// # Laws
//
//   - Every call id that is sent is ours, from llm.CallID. The server's ids are
//     data.
//   - To servers other than OpenAI's, roles alternate in chat completions, and no
//     user's message follows a result (conversation.go). Nothing that was sent
//     before changes.
//   - The model's reasoning is sent back only to the server that made it, byte
//     for byte, with the ids that pair it with its output. In chat completions
//     it is reasoning_content, reasoning_details and a call's extra_content,
//     which servers other than OpenAI's have (thought.go).
//   - A response is an answer only if the server sent its end: why it ended, the
//     mark at the end, or only whole items. A stream that breaks off before is a
//     failure.
//
// # What is sent
//
// The members of params are sent as they are, except for those that other parts
// of the protocol set: model, messages or input, tools, tool_choice, stream and
// n are refused, and so is every member that makes a server keep the
// conversation. tools are rendered once for a toolset, and the bridge keeps the
// rendered bytes. In chat completions stream_options requests the usage unless
// params has one. OpenAI stores nothing unless params.store says so. Encrypted
// reasoning is requested if the model's name is that of a reasoning model. A member
// that the client adds by itself and the server refuses is left out from then on
// (refused.go).
//
// OpenAI gets a prompt_cache_key and a cache retention (cache.go). In masked
// mode all tools are defined and tool_choice lists those that may be called.
// Other servers of chat completions support neither: they get only the tools
// that may be called.
//
// The run's remaining budget bounds max_output_tokens. In chat completions it
// bounds max_tokens or max_completion_tokens, whichever params have, or
// max_completion_tokens if they have neither. OpenAI refuses fewer than 16 for
// a response, so at least 16 are sent.
//
// # Limits
//
// limits.go has the limits of an answer.
//
// # Testing
//
// Tests speak the protocol with an httptest server, byte by byte, and compare
// requests with testdata/*.json; internal/llm/conformance tests both APIs
// against the common table.
package openai
