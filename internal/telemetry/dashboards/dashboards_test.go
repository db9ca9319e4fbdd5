package dashboards_test

// The files match the tables; queries name existing metrics and labels; and each
// metric is on a dashboard, or needs none.

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/internal/meter"
	"github.com/refold/refold/internal/retain"
	"github.com/refold/refold/internal/telemetry/metrics"
	"github.com/refold/refold/internal/webhook"
)

var rewrite = flag.Bool("rewrite", false, "write the files instead of comparing them")

// deploy is where the files are.
const deploy, docs = "../../../deploy", "../../../docs/observability.md"

// described returns all metrics that a process may have, by name.
func described() []*meter.Desc {
	all := meter.New()
	metrics.Resource{}.Register(all)
	engine.Register(all, 0)
	webhook.Register(all)
	retain.Register(all)
	metrics.NewBridge(all, "")
	newer := meter.New()
	metrics.NewBridge(newer, "gen_ai_latest_experimental")
	list := all.Describe()
	for _, d := range newer.Describe() {
		if strings.HasPrefix(d.Name, "gen_ai.") {
			list = append(list, d)
		}
	}
	slices.SortFunc(list, func(a, b *meter.Desc) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// between replaces the text between two comments.
func between(t *testing.T, text, what, table string) string {
	t.Helper()
	begin, end := "<!-- "+what+" -->\n", "<!-- end of "+what+" -->"
	at, to := strings.Index(text, begin), strings.Index(text, end)
	if at < 0 || to < at {
		t.Fatalf("%s has no %q and %q", docs, begin, end)
	}
	return text[:at+len(begin)] + "\n" + table + "\n" + text[to:]
}

func TestFilesAreCurrent(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	document := between(t, string(text), "metrics", Table(described()))
	document = between(t, document, "alerts", AlertTable())
	files := map[string][]byte{
		filepath.Join(deploy, "prometheus", "alerts.yaml"): Rules(),
		docs: []byte(document),
		filepath.Join("testdata", "promql", "queries.txt"): []byte(strings.Join(Queries(), "\n") + "\n"),
	}
	for _, d := range All {
		files[filepath.Join(deploy, "grafana", d.Name+".json")] = d.Grafana()
	}
	for path, want := range files {
		if *rewrite {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Error(err)
			}
			continue
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the tables say (%v): run go generate ./internal/telemetry/dashboards", path, err)
		}
	}
}

// name is a metric in a query; matcher a label in one.
var (
	name    = regexp.MustCompile(`\b(?:refold|gen_ai_client)_[a-z_]+\b`)
	matcher = regexp.MustCompile(`([a-z_]+)(?:=~|!=|!~|=)"`)
	grouped = regexp.MustCompile(`by \(([a-z_, ]+)\)`)
)

// seriesOf returns the metrics by the names of their series in Prometheus.
func seriesOf(all []*meter.Desc) map[string]*meter.Desc {
	series := map[string]*meter.Desc{}
	for _, d := range all {
		base := d.Prometheus()
		if d.Kind == meter.KindHistogram {
			for _, part := range []string{"_bucket", "_sum", "_count"} {
				series[base+part] = d
			}
			continue
		}
		series[base] = d
	}
	return series
}

func TestQueriesNameWhatExists(t *testing.T) {
	t.Parallel()
	for _, query := range Queries() {
		for _, complaint := range complaints(query, seriesOf(described())) {
			t.Errorf("%s: %s", query, complaint)
		}
	}
	for _, query := range []string{"sum(refold_nothing)", "sum by (session) (refold_runs_total)", `refold_runs_total{user="x"}`, "sum(rate(refold_run_duration_seconds[5m]))"} {
		if len(complaints(query, seriesOf(described()))) == 0 {
			t.Errorf("%s: nothing is complained of", query)
		}
	}
}

func complaints(query string, series map[string]*meter.Desc) (all []string) {
	labels := []string{"le", "instance", "job"} // which Prometheus adds
	names := name.FindAllString(query, -1)
	for _, n := range names {
		d := series[n]
		if d == nil {
			all = append(all, "no metric "+n)
			continue
		}
		for _, label := range d.Labels {
			labels = append(labels, strings.ReplaceAll(label, ".", "_"))
		}
	}
	var used []string
	for _, m := range matcher.FindAllStringSubmatch(query, -1) {
		used = append(used, m[1])
	}
	for _, m := range grouped.FindAllStringSubmatch(query, -1) {
		used = append(used, strings.Split(m[1], ", ")...)
	}
	for _, label := range used {
		if !slices.Contains(labels, label) {
			all = append(all, "no label "+label)
		}
	}
	return all
}

func TestEveryMetricIsShown(t *testing.T) {
	t.Parallel()
	all, queries := described(), strings.Join(Queries(), "\n")
	shown := map[string]bool{}
	series := seriesOf(all)
	for _, n := range name.FindAllString(queries, -1) {
		if d := series[n]; d != nil {
			shown[d.Name] = true
		}
	}
	known := map[string]bool{}
	for _, d := range all {
		known[d.Name] = true
		if _, unshown := Unshown[d.Name]; shown[d.Name] == unshown {
			t.Errorf("%s: on a dashboard: %v, in the list of those that need none: %v", d.Name, shown[d.Name], unshown)
		}
	}
	for n := range Unshown {
		if !known[n] {
			t.Errorf("%s needs no dashboard, and does not exist", n)
		}
	}
}

// If Prometheus is installed, its own tool checks the rules.
func TestPromtoolTakesTheRules(t *testing.T) {
	t.Parallel()
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Log("promtool is not installed: the rules are parsed by make promql alone")
		return
	}
	rules := filepath.Join(deploy, "prometheus", "alerts.yaml")
	if out, err := exec.CommandContext(t.Context(), tool, "check", "rules", rules).CombinedOutput(); err != nil {
		t.Errorf("promtool check rules %s: %v\n%s", rules, err, out)
	}
}
