package dashboards_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/refold/refold/internal/meter"
)

// legend names the series of a query by its labels.
func legend(by string) string {
	if by == "" {
		return "all"
	}
	var names []string
	for label := range strings.SplitSeq(by, ", ") {
		names = append(names, "{{"+label+"}}")
	}
	return strings.Join(names, " ")
}

// Grafana returns the dashboard as Grafana imports it.
func (d Dashboard) Grafana() []byte {
	type object = map[string]any
	source := object{"type": "prometheus", "uid": "${source}"}
	var panels []any
	for i, p := range d.Panels {
		var targets []any
		for n, q := range p.Queries {
			targets = append(targets, object{"refId": string(rune('A' + n)), "expr": q.Expr, "legendFormat": q.Legend, "datasource": source})
		}
		panels = append(panels, object{
			"id": i + 1, "type": "timeseries", "title": p.Title, "datasource": source, "targets": targets,
			"gridPos":     object{"h": 8, "w": 12, "x": 12 * (i % 2), "y": 8 * (i / 2)},
			"fieldConfig": object{"defaults": object{"unit": p.Unit, "min": 0}, "overrides": []any{}},
		})
	}
	text, err := json.MarshalIndent(object{
		"uid": "refold-" + d.Name, "title": d.Title, "tags": []string{"refold"}, "schemaVersion": 39, "refresh": "30s",
		"time": object{"from": "now-3h", "to": "now"}, "panels": panels,
		"templating": object{"list": []any{object{"name": "source", "type": "datasource", "query": "prometheus", "label": "Prometheus"}}},
	}, "", "  ")
	if err != nil {
		panic("dashboards: " + err.Error()) // these types encode
	}
	return append(text, '\n')
}

// Rules returns the alerts as Prometheus reads them.
func Rules() []byte {
	var b strings.Builder
	b.WriteString("# Written by go generate ./internal/telemetry/dashboards.\ngroups:\n  - name: refold\n    rules:\n")
	for _, a := range Alerts {
		fmt.Fprintf(&b, "      - alert: %s\n        expr: %s\n        for: %s\n        labels:\n          severity: %s\n        annotations:\n          summary: %s\n          do: %s\n",
			a.Name, strconv.Quote(a.Expr), a.For, a.Severity, strconv.Quote(a.Summary), strconv.Quote(a.Do))
	}
	return []byte(b.String())
}

// Queries returns all queries of dashboards and alerts.
func Queries() (all []string) {
	for _, d := range All {
		for _, p := range d.Panels {
			for _, q := range p.Queries {
				all = append(all, q.Expr)
			}
		}
	}
	for _, a := range Alerts {
		all = append(all, a.Expr)
	}
	return all
}

// Table returns the metrics as a table in Markdown.
func Table(all []*meter.Desc) string {
	var b strings.Builder
	b.WriteString("| metric | in Prometheus | kind, unit | labels | what |\n|---|---|---|---|---|\n")
	for _, d := range all {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s, %s | %s | %s |\n", d.Name, d.Prometheus(), d.Kind, d.Unit, labelsOf(d), strings.ReplaceAll(d.Help, "|", "\\|"))
	}
	return b.String()
}

// labelsOf lists the labels of a metric, with the limits of their sets.
func labelsOf(d *meter.Desc) string {
	var all []string
	for _, set := range d.Sets {
		size := strconv.Itoa(len(set.Values()))
		if n := set.Limit(); n > 0 {
			size = "up to " + strconv.Itoa(n)
		}
		all = append(all, "`"+strings.Join(set.Names(), "`, `")+"` ("+size+")")
	}
	if d.Sets == nil {
		for _, name := range d.Labels {
			all = append(all, "`"+name+"`")
		}
	}
	return strings.Join(all, "; ")
}

// AlertTable returns the alerts as a table in Markdown.
func AlertTable() string {
	var b strings.Builder
	b.WriteString("| alert | after | severity | what to do |\n|---|---|---|---|\n")
	for _, a := range Alerts {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", a.Name, a.For, a.Severity, a.Do)
	}
	return b.String()
}
