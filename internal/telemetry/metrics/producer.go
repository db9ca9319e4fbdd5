// Package metrics exports the metrics of package meter: to Prometheus on
// request, and to an OpenTelemetry collector at intervals. It also measures
// bridges.
//
// The hot paths never call OpenTelemetry's SDK. A Producer reads the registry
// when a reader of the SDK collects.
package metrics

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/refold/refold/internal/meter"
	"github.com/refold/refold/internal/telemetry/traces"
)

const scope = "github.com/refold/refold"

// Producer passes the metrics of a registry to readers of OpenTelemetry's SDK.
type Producer struct{ registry *meter.Registry }

// NewProducer returns a producer of a registry's metrics.
func NewProducer(r *meter.Registry) *Producer { return &Producer{r} }

// Produce returns the current values of the registry.
func (p *Producer) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	started, now := p.registry.Started(), time.Now()
	all := metricdata.ScopeMetrics{Scope: instrumentation.Scope{Name: scope}}
	for _, m := range p.registry.Collect() {
		all.Metrics = append(all.Metrics, metricdata.Metrics{
			Name: m.Desc.Name, Description: m.Desc.Help, Unit: m.Desc.Unit, Data: dataOf(m, started, now),
		})
	}
	return []metricdata.ScopeMetrics{all}, nil
}

func dataOf(m meter.Metric, started, now time.Time) metricdata.Aggregation {
	if m.Desc.Kind == meter.KindHistogram {
		points := make([]metricdata.HistogramDataPoint[float64], len(m.Points))
		for i, p := range m.Points {
			points[i] = metricdata.HistogramDataPoint[float64]{
				Attributes: attributes(m.Desc, p), StartTime: started, Time: now,
				Count: p.Dist.Count, Sum: p.Dist.Sum, Bounds: m.Desc.Bounds, BucketCounts: p.Dist.Buckets,
				Exemplars: exemplars(p.Dist.Exemplar),
			}
		}
		return metricdata.Histogram[float64]{DataPoints: points, Temporality: metricdata.CumulativeTemporality}
	}
	points := make([]metricdata.DataPoint[float64], len(m.Points))
	for i, p := range m.Points {
		points[i] = metricdata.DataPoint[float64]{Attributes: attributes(m.Desc, p), StartTime: started, Time: now, Value: p.Value}
	}
	if m.Desc.Kind == meter.KindCounter {
		return metricdata.Sum[float64]{DataPoints: points, Temporality: metricdata.CumulativeTemporality, IsMonotonic: true}
	}
	for i := range points {
		points[i].StartTime = time.Time{}
	}
	return metricdata.Gauge[float64]{DataPoints: points}
}

func exemplars(e *meter.Exemplar) []metricdata.Exemplar[float64] {
	if e == nil {
		return nil
	}
	at, ok := traces.ParseTraceparent(e.Traceparent)
	if !ok {
		return nil
	}
	return []metricdata.Exemplar[float64]{{Value: e.Value, Time: e.At, TraceID: at.Trace[:], SpanID: at.Span[:]}}
}

func attributes(d *meter.Desc, p meter.Point) attribute.Set {
	all := make([]attribute.KeyValue, 0, len(d.Labels))
	for i, name := range d.Labels {
		if p.Labels[i] != "" {
			all = append(all, attribute.String(name, p.Labels[i]))
		}
	}
	return attribute.NewSet(slices.Clip(all)...)
}
