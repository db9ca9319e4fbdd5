// Package endpoint reaches a provider's server over HTTP: what all providers do
// alike is done here once, whichever client library makes their requests.
//
// # Path
//
// A provider's package makes an [Endpoint] of a [Config], gives its library the
// endpoint's HTTP client, and asks within [Endpoint.Generate], which asks again
// if that may help (retry.go). The client turns refusals, stalled streams and
// what is no answer at all into errors (transport.go), and [Endpoint.Failed]
// gives these the codes of package llm (fault.go).
//
// # Laws
//
//   - Libraries retry nothing and read no environment.
//   - Failures that may pass (408, 409, 429, most of 5xx, a lost connection) are
//     tried again until the context's deadline, after the time that the server
//     asks for. If that time is beyond the deadline, the failure is returned at
//     once.
//   - An answer that broke off may have been paid for. It is asked for once more,
//     and if that breaks off too, the failure is final.
//   - Words are streamed of every try. Before a second one speaks, those who
//     watch are told that it begins anew; where nobody can tell them, it comes
//     whole in the answer, so that nobody reads two beginnings.
//   - A refusal of earlier thoughts is no failure: the request is changed and made
//     again at once (thoughts.go), and the answer says so for later turns.
//   - A key goes to the server that the config names, and to no other: redirects
//     are not followed. It is in no error and in no log, also if the server
//     repeats it.
//
// # Limits
//
// limits.go has them. The idle time-out of a stream is in the config.
//
// # Testing
//
// The tests here speak HTTP from an httptest server; internal/llm/conformance
// holds every provider to the same table.
package endpoint
