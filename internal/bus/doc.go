// Package bus combines the five packages that know NATS over one connection: natsio,
// streams, journal, delivery and presence. It adds nothing to them, and their docs have
// the guarantees.
//
// Contract tests run against servers inside the test (package bustest): a single server,
// and a cluster of three where that behaves differently. Package testbus connects to them.
package bus
