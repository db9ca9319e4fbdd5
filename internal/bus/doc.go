// Package bus connects the five packages that know NATS over one connection: natsio,
// streams, journal, delivery and presence. It adds nothing to them. Their docs say what
// they promise.
//
// Its contract tests run against servers inside the test (package bustest): one, and a
// cluster of three where that behaves differently. Package testbus connects to them.
package bus
