// Package anthropic calls servers of Anthropic's Messages API, with Anthropic's
// own client library.
//
// # Path
//
// [Model.Generate] builds the request (request.go), sends it through an
// endpoint, which retries temporary failures, and reads the answer's events
// (answer.go).
//
// # Laws
//
//   - Every id that is sent is ours: the name of a call's effect. Ids that the
//     server gave are data.
//   - The model's reasoning is sent back to the server that made it, byte for
//     byte and in its place, and to no other.
//   - A response is an answer only if the server sent how it ended.
//
// # What is sent
//
// The members of params are sent as they are, but for those that other parts of
// the config set: messages, model, stream, system, tool_choice and tools are
// refused. The API wants max_tokens; without one in params it is 8,192. It is
// no more than the run's budgets leave, but more than thinking.budget_tokens of
// params, below which the API refuses it. Everything between two turns of the
// model is one message of the user: results first, then text. Arguments that
// are no object, which the API does not take, are put into one.
//
// Cache marks stand where the previous request ended, at the end, and at the
// end of the system text or the tools (cache.go). Without them, a request
// begins with all of the previous one.
//
// # Limits
//
// Package endpoint has the limits of an answer, limits.go the others.
package anthropic
