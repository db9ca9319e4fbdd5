// Package openai asks servers that speak the chat completions protocol, with
// OpenAI's own client library.
//
// # Path
//
// [Model.Generate] builds the request (request.go), sends it, and reads the
// answer, a stream or one piece, whichever the server sends (answer.go). What
// goes wrong is given one of the codes of package llm (fault.go), and is tried
// again here if that may help (retry.go).
//
// # Laws
//
//   - Every id that is sent is ours: the name of a call's effect. Ids that the
//     server gave are data.
//   - A result is an answer only if the server said how it ended; a stream that
//     breaks off before is a failure.
//   - Failures that may pass (408, 409, 429, most of 5xx, a lost connection) are
//     tried again until the context's deadline, after the time that the server
//     asks for. If that time is beyond the deadline, the failure is returned at
//     once.
//   - Words are streamed of the first response that has any; a later try comes
//     whole in the answer, so that nobody reads two beginnings.
//   - The key is in no error and in no log.
//
// # What is sent
//
// The members of params are sent as they are, but for those that the protocol's
// other parts set: model, messages, tools, tool_choice, stream and n are
// refused. tools are made once for a toolset and kept by the bridge, as they are
// sent. stream_options asks for the usage unless params has one. Opaque
// items are not used: this protocol has none.
//
// # Limits
//
// limits.go has the limits of an answer.
//
// # Testing
//
// Tests speak the protocol from an httptest server, byte by byte, and compare
// requests with testdata/*.json.
package openai
