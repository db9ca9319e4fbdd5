// Package meter holds the metrics of a process: counters, gauges and histograms
// as arrays of atomics, which a program updates on its hot paths and an exporter
// reads at intervals.
//
// # Path
//
// Each daemon has one Registry. Packages register their metrics with it and keep
// the results. An exporter calls Registry.Collect, and Registry.Describe lists
// all metrics without their values.
//
// # Laws
//
//   - A label has a closed set of values, or a limit. A value outside the set, or
//     beyond the limit, counts as "other". So the number of series is bounded when
//     the program is built.
//   - Raising a counter takes no lock and allocates nothing.
//   - A nil metric counts nothing: a program without a registry needs no branches.
//
// # Names
//
// Names are those of OpenTelemetry, with dots, and without the unit. Prometheus
// names are derived from them (Desc.Prometheus).
package meter
