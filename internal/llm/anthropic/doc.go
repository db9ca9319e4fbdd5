// Package anthropic calls servers of Anthropic's Messages API, with Anthropic's
// own client library.
//
// # Path
//
// [Model.Generate] builds the request (request.go), sends it through an endpoint,
// which retries temporary failures, and reads the answer's events (answer.go).
//
// # Laws
//
//   - Every id that is sent is ours: the name of a call's effect. The server's
//     ids are data.
//   - The model's reasoning is sent back only to the server that made it, byte
//     for byte and in its place.
//   - A response is an answer only if the server sent why it ended, or the event
//     that ends it.
//
// # What is sent
//
// The members of params are sent as they are, except for those that other parts
// of the config set: messages, model, stream, system, tool_choice and tools are
// refused. The API requires max_tokens; without one in params it is 8,192. It
// is bounded by the run's remaining budget, but stays above
// thinking.budget_tokens of params, below which the API refuses it. Everything
// between two turns of the model is one user message: results first, then text.
// Arguments that are not an object, which the API refuses, are put into one.
//
// Cache marks stand at the end of the previous request, at the end, and at the
// end of the system text or the tools (cache.go). Without them, a request
// begins with the whole previous one.
//
// # Limits
//
// Package endpoint has the limits of an answer, limits.go the others.
package anthropic
