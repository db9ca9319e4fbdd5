// Package llm holds what model providers have in common; each provider is a
// package below it.
//
//   - scripted: answers as a YAML file says, if the request is as the file expects.
//   - recorded: answers as a recorded conversation did; its executor returns
//     the recorded results.
//   - openai, anthropic, gemini: call servers of these providers' APIs through
//     package endpoint, which retries temporary failures.
//
// strict has the APIs' rules for a conversation, and conformance checks the
// providers against them; both are for tests.
//
// # Path
//
// A bridge fills in an executor.Request from the log and calls Generate of the
// provider that the effect names. The provider streams text through delta (with
// [Stream], if it has the whole text beforehand) and returns an executor.Answer, or
// an *executor.Error made by [Fail], whose code ends the run.
//
// # Laws
//
//   - A provider keeps nothing between two generations, but for optional members
//     of requests that a server refused: its answer depends on the request alone. A bridge may be killed at any point, and another one
//     starts the effect again.
//   - A provider's failure has one of the codes of codes.go. The detail says what
//     to do, has at most session.DetailBytesMax bytes, and contains no key.
//   - Calls are identified by their position. A provider's own ids are data.
//   - Whatever a transcript holds, each client sends it in a form that the
//     strictest server of its API accepts ([Sendable], [Object], [CallID]). What a
//     message becomes does not depend on later ones:
//     TestSessionsStaySendable in conformance.
//   - In the provider's own order and without cache marks, a request begins
//     with the session's whole previous request, byte for byte, unless the
//     model, the tools, the system text or the form of the answer changed, or
//     the provider refused earlier thoughts: TestPrefixIsStable in conformance.
package llm
