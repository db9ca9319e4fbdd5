// Package meter holds the metrics of a process: counters, gauges and histograms
// as arrays of atomics, which a program updates on its hot paths and an exporter
// reads now and then.
//
// # Path
//
// A Registry is made once for each daemon. The packages that measure something
// register their metrics with it and keep what it returns. An exporter calls
// Registry.Collect, and Registry.Describe lists all metrics without their values.
//
// # Laws
//
//   - A label has a closed set of values, or a limit. A value that is not in the
//     set, or comes when the limit is reached, counts as "other". So the number of
//     series is bounded when the program is built.
//   - Raising a counter takes no lock and allocates nothing.
//   - A nil metric counts nothing: a program without a registry has no branches.
//
// # Names
//
// Names are those of OpenTelemetry, with dots, and without the unit. Prometheus
// names are derived from them (Desc.Prometheus).
package meter
