// Package endpoint calls a provider's server over HTTP. It does what all
// providers have in common, whichever client library makes their requests.
//
// # Path
//
// A provider's package makes an [Endpoint] from a [Config], gives its library
// the endpoint's HTTP client, and makes its request within [Endpoint.Generate],
// which retries if that may help (retry.go). The client turns refusals and
// stalled streams into errors (transport.go), and the body of an answer, whatever
// its form, into events of one form and the errors among them (events.go,
// split.go). [Endpoint.Failed] maps errors to the codes of package llm (fault.go,
// servererror.go, toolong.go).
//
// # Laws
//
//   - Libraries retry nothing and read no environment.
//   - Temporary failures (408, 409, 429, 499, most of 5xx, a lost connection) are
//     retried until the context's deadline, each after the time that the server
//     requests. If that time is beyond the deadline, the failure is returned at
//     once.
//   - An answer is read in every known form, or refused with a sentence. One
//     that is complete is never requested again.
//   - An answer that broke off may have been paid for. It is requested once
//     more, and if that breaks off too, the failure is final.
//   - Every attempt streams its text. Before a second one does, readers are
//     notified that the text begins again. Where that is impossible, its text
//     arrives only with the answer, so that nobody reads two beginnings.
//   - A refusal of earlier thoughts is not a failure: the request is changed and
//     sent again at once (thoughts.go), and the answer records it for later turns.
//   - A key is sent only to the server that the config names: redirects are not
//     followed. It is in no error and in no log, even if the server repeats it.
//
// # Limits
//
// limits.go has them. The idle timeout of a stream is in the config.
//
// # Testing
//
// The tests here speak HTTP with an httptest server; internal/llm/conformance
// tests every provider against one table.
package endpoint
