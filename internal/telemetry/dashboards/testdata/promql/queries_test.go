// Package promql parses the queries of the dashboards and the alerts with
// Prometheus's own parser. It is a module of its own, so that Refold does not
// depend on that parser.
package promql

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
)

// The test of the parent package writes the queries, one a line.
func TestQueriesParse(t *testing.T) {
	t.Parallel()
	f, err := os.Open("queries.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n, prometheus := 0, parser.NewParser(parser.Options{})
	for lines := bufio.NewScanner(f); lines.Scan(); n++ {
		query := strings.ReplaceAll(lines.Text(), "$__rate_interval", "5m")
		if _, err := prometheus.ParseExpr(query); err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
	if n < 20 {
		t.Errorf("read %d queries: want those of all dashboards", n)
	}
	if _, err := prometheus.ParseExpr("sum by ("); err == nil {
		t.Error("the parser takes what is no query")
	}
}
