// Package dashboards holds the dashboards and alerts of Refold as Go tables in
// its tests, which write them for Grafana and Prometheus: deploy/grafana and
// deploy/prometheus. Run go generate after a change; a test compares the files
// with the tables, and the queries with the existing metrics.
package dashboards

//go:generate go test -run ^TestFilesAreCurrent$ -args -rewrite
