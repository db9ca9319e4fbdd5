package meter

import (
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// Counter only grows.
type Counter struct {
	family
	cells []atomic.Int64
}

// Counter registers a counter with the labels of some sets.
func (r *Registry) Counter(name, unit, help string, sets ...*Label) *Counter {
	if r == nil {
		return nil
	}
	c := &Counter{family: newFamily(KindCounter, name, unit, help, sets)}
	c.cells = make([]atomic.Int64, c.size())
	r.add(c)
	return c
}

// Add raises the counter of the series with these values of the labels, in their
// order, by n, which must not be negative. A nil counter counts nothing.
func (c *Counter) Add(n int64, of ...string) {
	if c != nil {
		c.cells[c.cell(of)].Add(n)
	}
}

// Value returns the count of the series with these values.
func (c *Counter) Value(of ...string) int64 { return c.cells[c.cell(of)].Load() }

func (c *Counter) collect() []Point {
	var points []Point
	for i := range c.cells {
		if n := c.cells[i].Load(); n > 0 || len(c.sizes) == 0 {
			points = append(points, Point{Labels: c.labels(i), Value: float64(n)})
		}
	}
	return points
}

// Gauge is a value that goes up and down.
type Gauge struct {
	family
	cells []atomic.Uint64 // bits of a float64
}

// unset is the bits of a gauge without a value: a NaN that no computation produces.
const unset = 0x7ff8_0000_dead_beef

// Gauge registers a gauge with the labels of some sets.
func (r *Registry) Gauge(name, unit, help string, sets ...*Label) *Gauge {
	if r == nil {
		return nil
	}
	g := &Gauge{family: newFamily(KindGauge, name, unit, help, sets)}
	g.cells = make([]atomic.Uint64, g.size())
	g.Clear()
	r.add(g)
	return g
}

// Set sets the value of the series with these values of the labels. A nil gauge
// ignores it.
func (g *Gauge) Set(v float64, of ...string) {
	if g != nil {
		g.cells[g.cell(of)].Store(math.Float64bits(v))
	}
}

// Clear removes all values, when they are no longer known.
func (g *Gauge) Clear() {
	if g == nil {
		return
	}
	for i := range g.cells {
		g.cells[i].Store(unset)
	}
}

func (g *Gauge) collect() []Point {
	var points []Point
	for i := range g.cells {
		if bits := g.cells[i].Load(); bits != unset {
			points = append(points, Point{Labels: g.labels(i), Value: math.Float64frombits(bits)})
		}
	}
	return points
}

// Histogram counts values by buckets.
type Histogram struct {
	family
	cells []atomic.Pointer[distribution]
}

type distribution struct {
	sum     atomic.Uint64 // bits of a float64
	buckets []atomic.Uint64
	traced  atomic.Pointer[Exemplar] // the latest value of a traced run
}

// Histogram registers a histogram with the labels of some sets. bounds are the
// upper bounds of its buckets, in ascending order.
func (r *Registry) Histogram(name, unit, help string, bounds []float64, sets ...*Label) *Histogram {
	if r == nil {
		return nil
	}
	h := &Histogram{family: newFamily(KindHistogram, name, unit, help, sets)}
	h.of.Bounds = bounds
	h.cells = make([]atomic.Pointer[distribution], h.size())
	r.add(h)
	return h
}

// Record records a value. A nil histogram ignores it.
func (h *Histogram) Record(v float64, of ...string) { h.RecordTraced(v, "", of...) }

// RecordTraced records a value that belongs to the span of a traceparent, and
// keeps it as the exemplar of its series. An empty traceparent is none.
func (h *Histogram) RecordTraced(v float64, traceparent string, of ...string) {
	if h == nil {
		return
	}
	cell := &h.cells[h.cell(of)]
	d := cell.Load()
	if d == nil {
		d = &distribution{buckets: make([]atomic.Uint64, len(h.of.Bounds)+1)}
		if !cell.CompareAndSwap(nil, d) {
			d = cell.Load()
		}
	}
	if traceparent != "" {
		d.traced.Store(&Exemplar{Value: v, At: time.Now(), Traceparent: traceparent})
	}
	bucket := 0
	for bucket < len(h.of.Bounds) && v > h.of.Bounds[bucket] {
		bucket++
	}
	d.buckets[bucket].Add(1)
	for {
		old := d.sum.Load()
		if d.sum.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+v)) {
			return
		}
	}
}

func (h *Histogram) collect() []Point {
	var points []Point
	for i := range h.cells {
		d := h.cells[i].Load()
		if d == nil {
			continue
		}
		dist := &Dist{Sum: math.Float64frombits(d.sum.Load()), Buckets: make([]uint64, len(d.buckets)), Exemplar: d.traced.Load()}
		for n := range d.buckets {
			dist.Buckets[n] = d.buckets[n].Load()
			dist.Count += dist.Buckets[n]
		}
		points = append(points, Point{Labels: h.labels(i), Dist: dist})
	}
	return points
}

// read is a metric whose values a function returns when it is collected.
type read struct {
	of   Desc
	from func(yield func(v float64, labels ...string))
}

// Read registers a counter or a gauge whose series a function yields when the
// registry is collected. The function must bound their number.
func (r *Registry) Read(kind Kind, name, unit, help string, labels []string, from func(yield func(v float64, labels ...string))) {
	if r != nil {
		r.add(&read{of: Desc{Name: name, Kind: kind, Unit: unit, Help: help, Labels: labels}, from: from})
	}
}

func (m *read) desc() *Desc { return &m.of }

func (m *read) collect() []Point {
	var points []Point
	m.from(func(v float64, labels ...string) {
		points = append(points, Point{Labels: slices.Clone(labels), Value: v})
	})
	return points
}
