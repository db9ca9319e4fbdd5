package meter

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Kind is the kind of a metric.
type Kind string

// The kinds of metrics.
const (
	KindCounter   Kind = "counter"
	KindGauge     Kind = "gauge"
	KindHistogram Kind = "histogram"
)

// Desc describes a metric.
type Desc struct {
	Name   string // refold.run.duration
	Kind   Kind
	Unit   string // as in OpenTelemetry: s, By, 1, {event}
	Help   string
	Labels []string
	Sets   []*Label  // the sets of the labels; nil for a metric that a function reads
	Bounds []float64 // of a histogram: upper bounds of its buckets
}

// units are the suffixes of Prometheus names, by unit. Others have none.
var units = map[string]string{"s": "seconds", "By": "bytes"}

// Prometheus returns the name of the metric in Prometheus, without the suffixes
// of a histogram's parts.
func (d *Desc) Prometheus() string {
	name := strings.NewReplacer(".", "_", "-", "_").Replace(d.Name)
	if suffix := units[d.Unit]; suffix != "" && !strings.HasSuffix(name, "_"+suffix) {
		name += "_" + suffix
	}
	if d.Unit == "1" && d.Kind == KindGauge {
		name += "_ratio"
	}
	if d.Kind == KindCounter {
		name += "_total"
	}
	return name
}

// Point is the value of one series.
type Point struct {
	Labels []string // values, in the order of Desc.Labels
	Value  float64  // of a counter or a gauge
	Dist   *Dist    // of a histogram
}

// Dist is the value of one series of a histogram.
type Dist struct {
	Count   uint64
	Sum     float64
	Buckets []uint64 // one more than bounds; not cumulative
	// Exemplar is the latest value of a traced run; nil: none.
	Exemplar *Exemplar
}

// Exemplar is a value of a histogram, and its span.
type Exemplar struct {
	Value       float64
	At          time.Time
	Traceparent string // well-formed, of version 00
}

// Metric is a metric with its series.
type Metric struct {
	Desc   *Desc
	Points []Point
}

type metric interface {
	desc() *Desc
	collect() []Point
}

// Registry holds the metrics of one daemon. It is safe for concurrent use.
type Registry struct {
	started time.Time

	mu      sync.Mutex
	metrics []metric
}

// New returns an empty registry.
func New() *Registry { return &Registry{started: time.Now()} }

// Started returns when the registry was created, and so when its counters began.
func (r *Registry) Started() time.Time { return r.started }

// add registers a metric. It panics if the name is taken.
func (r *Registry) add(m metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(r.metrics, func(other metric) bool { return other.desc().Name == m.desc().Name }) {
		panic(fmt.Sprintf("meter: %s is registered twice", m.desc().Name))
	}
	r.metrics = append(r.metrics, m)
}

func (r *Registry) all() []metric {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(slices.Values(r.metrics), func(a, b metric) int { return strings.Compare(a.desc().Name, b.desc().Name) })
}

// Describe returns the descriptions of the registry's metrics, by name.
func (r *Registry) Describe() []*Desc {
	var all []*Desc
	for _, m := range r.all() {
		all = append(all, m.desc())
	}
	return all
}

// Collect returns the metrics with at least one series, by name.
func (r *Registry) Collect() []Metric {
	var all []Metric
	for _, m := range r.all() {
		if points := m.collect(); len(points) > 0 {
			all = append(all, Metric{m.desc(), points})
		}
	}
	return all
}

// family is the common part of counters, gauges and histograms.
type family struct {
	of    Desc
	sizes []int // of the labels' sets
}

func newFamily(kind Kind, name, unit, help string, sets []*Label) family {
	f := family{of: Desc{Name: name, Kind: kind, Unit: unit, Help: help, Sets: sets}}
	for _, l := range sets {
		f.of.Labels = append(f.of.Labels, l.names...)
		f.sizes = append(f.sizes, l.size())
	}
	return f
}

func (f *family) size() int {
	n := 1
	for _, size := range f.sizes {
		n *= size
	}
	return n
}

func (f *family) desc() *Desc { return &f.of }

// cell returns the index of the series with some values of the labels, in their
// order. Further values are ignored.
func (f *family) cell(of []string) int {
	n := 0
	for i, set := range f.of.Sets {
		n = n*f.sizes[i] + set.index(of[:len(set.names)])
		of = of[len(set.names):]
	}
	return n
}

func (f *family) labels(cell int) []string {
	at := make([]int, len(f.sizes))
	for i := len(f.sizes) - 1; i >= 0; i-- {
		at[i] = cell % f.sizes[i]
		cell /= f.sizes[i]
	}
	var values []string
	for i, index := range at {
		values = append(values, f.of.Sets[i].at(index)...)
	}
	return values
}
