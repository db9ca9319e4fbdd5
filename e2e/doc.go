// Package e2e tests Refold from the outside: real processes, a real NATS
// server on disk, files and ledgers that survive them. It imports no internal
// package; what it knows of Refold is what any program can know.
//
// The test binary runs itself again as a NATS server where the server has to
// be killed. Every process is ended by its id.
package e2e
