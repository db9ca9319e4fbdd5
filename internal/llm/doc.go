// Package llm holds what model providers have in common; each provider is a
// package below it.
//
//   - scripted: says what a YAML file says, if it is shown what the file expects.
//   - recorded: says what a recorded conversation says, and its executor answers
//     the calls with the recorded results.
//   - openai, anthropic, gemini: ask servers that speak these providers' APIs,
//     through package endpoint, which tries again what may pass.
//
// strict has the APIs' rules of a conversation, and conformance holds the
// providers to them; both are of tests.
//
// # Path
//
// A bridge fills in a bridge.Request from the log and calls Generate of the
// provider that the effect names. The provider streams words through delta
// ([Stream], for those that know their text beforehand) and returns a
// bridge.Answer, or a *bridge.Error made by [Fail], whose code ends the run.
//
// # Laws
//
//   - A provider keeps nothing between two generations: what it says follows
//     from the request alone. A bridge may be killed at any point, and the
//     effect started again elsewhere.
//   - A provider's fault has one of the codes of codes.go. The detail says what
//     to do, holds at most session.DetailBytesMax bytes, and no key.
//   - Calls are known by their position. A provider's own ids are data.
//   - In the provider's own order and without cache marks, a request begins with
//     all of the session's request before, byte for byte, unless the model, the
//     tools, the system text or the form of the answer changed, or the provider
//     refused earlier thoughts: TestPrefixIsStable in conformance.
package llm
