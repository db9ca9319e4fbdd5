// Package llm holds what model providers have in common; each provider is a
// package below it.
//
//   - scripted: answers as a YAML file says, if shown what the file expects.
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
// A bridge fills in a executor.Request from the log and calls Generate of the
// provider that the effect names. The provider streams text through delta
// ([Stream], for those that know their text beforehand) and returns a
// executor.Answer, or a *executor.Error made by [Fail], whose code ends the run.
//
// # Laws
//
//   - A provider keeps nothing between two generations: its answer depends on
//     the request alone. A bridge may be killed at any point, and the effect
//     started again elsewhere.
//   - A provider's fault has one of the codes of codes.go. The detail says what
//     to do, holds at most session.DetailBytesMax bytes, and no key.
//   - Calls are known by their position. A provider's own ids are data.
//   - In the provider's own order and without cache marks, a request begins with
//     all of the session's request before, byte for byte, unless the model, the
//     tools, the system text or the form of the answer changed, or the provider
//     refused earlier thoughts: TestPrefixIsStable in conformance.
package llm
