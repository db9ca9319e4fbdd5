package metrics

import (
	"strings"
	"sync/atomic"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/meter"
	"github.com/refold/refold/subjects"
)

// Limits of labels.
const (
	modelsMax  = 64
	failingMax = 96 // models, and models with an error
)

func classes() (names []string) {
	for _, c := range subjects.Classes() {
		names = append(names, string(c))
	}
	return names
}

// OptInVariable is the environment variable that selects a set of names.
const OptInVariable = "OTEL_SEMCONV_STABILITY_OPT_IN"

// Latest reports whether a value of OTEL_SEMCONV_STABILITY_OPT_IN selects the
// newer GenAI names.
func Latest(optIn string) bool { return strings.Contains(optIn, "gen_ai_latest_experimental") }

// Bridge measures a bridge: it is the bridge's observer, and reads its stats.
type Bridge struct {
	stats       atomic.Pointer[func() bridge.Stats]
	duration    *meter.Histogram
	generations generations
}

// executeBounds are bounds of the time that an executor takes, in seconds.
var executeBounds = []float64{.001, .005, .025, .1, .5, 1, 2.5, 5, 10, 30, 120, 600}

// NewBridge registers the metrics of a bridge. optIn is the value of
// OTEL_SEMCONV_STABILITY_OPT_IN.
func NewBridge(r *meter.Registry, optIn string) *Bridge {
	b := &Bridge{duration: r.Histogram("refold.bridge.execute.duration", "s", "Time that a model, a tool, a step hook or a workspace reader took.", executeBounds,
		meter.Closed("class", classes()...), meter.Closed("outcome", "succeeded", "failed", "cancelled", "outcome_unknown", "given_back"))}
	if Latest(optIn) {
		b.generations = newLatest(r)
	} else {
		b.generations = newV141(r)
	}
	b.targets(r)
	b.counts(r)
	return b
}

// Reads sets the function that returns the stats to read when metrics are
// collected.
func (b *Bridge) Reads(stats func() bridge.Stats) { b.stats.Store(&stats) }

func (b *Bridge) now() bridge.Stats {
	if stats := b.stats.Load(); stats != nil {
		return (*stats)()
	}
	return bridge.Stats{}
}

// targets registers the metrics of each target. A bridge's flags determine how many
// targets there are.
func (b *Bridge) targets(r *meter.Registry) {
	each := func(kind meter.Kind, name, unit, help string, value func(bridge.TargetStats) float64) {
		r.Read(kind, name, unit, help, []string{"target"}, func(yield func(float64, ...string)) {
			for target, s := range b.now().Targets {
				yield(value(s), target)
			}
		})
	}
	each(meter.KindGauge, "refold.bridge.in_flight", "{effect}", "Effects that the bridge carries out now.", func(s bridge.TargetStats) float64 { return float64(s.InFlight) })
	each(meter.KindGauge, "refold.bridge.slots", "{effect}", "Effects that the bridge may carry out at once.", func(s bridge.TargetStats) float64 { return float64(s.Slots) })
	each(meter.KindCounter, "refold.bridge.retried", "{attempt}", "Further tries of generations.", func(s bridge.TargetStats) float64 { return float64(s.Retried) })
	each(meter.KindCounter, "refold.bridge.given_back", "{effect}", "Effects that were given back, to be offered again.", func(s bridge.TargetStats) float64 { return float64(s.GivenBack) })
	each(meter.KindGauge, "refold.bridge.open_breaker", "{breaker}", "1 while nothing is started because the provider fails.", func(s bridge.TargetStats) float64 {
		if s.Breaker == "open" {
			return 1
		}
		return 0
	})
	each(meter.KindGauge, "refold.bridge.troubles", "{trouble}", "What the target's executor says is wrong now.", func(s bridge.TargetStats) float64 { return float64(len(s.Troubles)) })
}

func (b *Bridge) counts(r *meter.Registry) {
	r.Read(meter.KindCounter, "refold.bridge.settled", "{effect}", "Settlements that are stored.", nil, func(yield func(float64, ...string)) {
		yield(float64(b.now().Settled))
	})
	r.Read(meter.KindGauge, "refold.bridge.clock.ahead", "s", "How far this machine's clock is ahead of the server's; negative: behind.", nil, func(yield func(float64, ...string)) {
		if ahead := b.now().ClockAheadMS; ahead != nil {
			yield(float64(*ahead) / 1000)
		}
	})
	r.Read(meter.KindCounter, "refold.bridge.deltas", "{delta}", "Pieces of streamed text that were published.", nil, func(yield func(float64, ...string)) {
		yield(float64(b.now().Deltas))
	})
	r.Read(meter.KindCounter, "refold.claims", "{claim}", "Claims that the bridge tried to store.", []string{"outcome"}, func(yield func(float64, ...string)) {
		c := b.now().Claims
		yield(float64(c.Won), "won")
		yield(float64(c.Lost), "lost")
		yield(float64(c.TakenOver), "taken_over")
		yield(float64(c.Withdrawn), "withdrawn")
	})
	r.Read(meter.KindCounter, "refold.bridge.cache", "{read}", "Reads that went through a cache.", []string{"cache", "outcome"}, func(yield func(float64, ...string)) {
		s := b.now()
		for _, c := range []struct {
			name string
			bridge.CacheStats
		}{{"rendered", s.Rendered}, {"descriptors", s.Descriptors}, {"prompts", s.Prompts}, {"events", s.Events}} {
			yield(float64(c.Hits), c.name, "hit")
			yield(float64(c.Misses), c.name, "miss")
		}
	})
}

// Started implements executor.Observer. It measures nothing.
func (b *Bridge) Started(executor.Start) string { return "" }

// Ended measures a start that has ended.
func (b *Bridge) Ended(s executor.Start, e executor.End) {
	status := e.Status
	if status == "" {
		status = "given_back"
	}
	seconds := max(0, e.At.Sub(s.At).Seconds())
	b.duration.Record(seconds, s.Class, status)
	if s.Class != "llm" || status == "given_back" {
		return
	}
	first := 0.0
	if !e.FirstText.IsZero() {
		first = max(0, e.FirstText.Sub(s.At).Seconds())
	}
	b.generations.ended(generation{s.Target, s.Model}, e.Code, seconds, first, e.Usage)
}
