// Package bustest starts NATS servers inside a test: one (Server), or a
// cluster (Cluster). They listen on loopback, keep JetStream in the test's
// temporary directory with sync_interval "always", and end with the test.
//
// It does not import bus, so that internal tests of the packages below bus can use it.
package bustest
