// Package dashboards holds the dashboards and the alerts of Refold as Go tables, in
// its tests, and writes them for Grafana and Prometheus: deploy/grafana and
// deploy/prometheus. Run go generate after a change; a test compares the files
// with the tables, and the queries with the metrics that exist.
package dashboards

//go:generate go test -run ^TestFilesAreCurrent$ -args -rewrite
