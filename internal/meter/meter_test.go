package meter

// The values, series and costs of metrics.

import (
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCounterCountsEachSeries(t *testing.T) {
	t.Parallel()
	r := New()
	kind, tool := Closed("kind", "a", "b"), Open(2, "tool")
	c := r.Counter("refold.calls", "{call}", "Calls.", kind, tool)
	for _, v := range []struct{ kind, tool string }{{"a", "shell"}, {"a", "shell"}, {"b", "read"}, {"c", "third"}, {"a", "fourth"}} {
		c.Add(1, v.kind, v.tool)
	}
	got := r.Collect()
	if len(got) != 1 {
		t.Fatalf("got %d metrics, want 1", len(got))
	}
	want := []Point{
		{Labels: []string{"a", "shell"}, Value: 2}, {Labels: []string{"a", "other"}, Value: 1},
		{Labels: []string{"b", "read"}, Value: 1}, {Labels: []string{"other", "other"}, Value: 1},
	}
	if diff := cmp.Diff(want, got[0].Points); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
}

func TestLabelsThatBelongTogetherShareALimit(t *testing.T) {
	t.Parallel()
	r := New()
	target := Open(2, "class", "target")
	g := r.Gauge("refold.effects.waiting", "{effect}", "Effects.", target)
	for i, of := range []string{"host", "mail", "host", "third"} {
		g.Set(float64(i), "tool", of)
	}
	want := []Point{{Labels: []string{"tool", "host"}, Value: 2}, {Labels: []string{"tool", "mail"}, Value: 1}, {Labels: []string{"other", "other"}, Value: 3}}
	if diff := cmp.Diff(want, r.Collect()[0].Points); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
	g.Clear()
	if got := r.Collect(); len(got) != 0 {
		t.Errorf("after Clear: got %v, want nothing", got)
	}
}

func TestHistogramCountsByBucket(t *testing.T) {
	t.Parallel()
	r := New()
	h := r.Histogram("refold.run.duration", "s", "Runs.", []float64{1, 10})
	for _, v := range []float64{0.5, 1, 2, 100} {
		h.Record(v)
	}
	want := []Point{{Dist: &Dist{Count: 4, Sum: 103.5, Buckets: []uint64{2, 1, 1}}}}
	if diff := cmp.Diff(want, r.Collect()[0].Points); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
}

func TestNilMetricsCountNothing(t *testing.T) {
	t.Parallel()
	var r *Registry
	r.Counter("a", "", "").Add(1)
	r.Gauge("b", "", "").Set(1)
	r.Histogram("c", "", "", nil).Record(1)
	r.Read(KindGauge, "d", "", "", nil, nil)
}

func TestPrometheusNamesHaveUnitsAsSuffixes(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]Desc{
		"refold_runs_total":                        {Name: "refold.runs", Kind: KindCounter, Unit: "{run}"},
		"refold_run_duration_seconds":              {Name: "refold.run.duration", Kind: KindHistogram, Unit: "s"},
		"refold_sessions_bytes":                    {Name: "refold.sessions.bytes", Kind: KindGauge, Unit: "By"},
		"refold_lane_owned_ratio":                  {Name: "refold.lane.owned", Kind: KindGauge, Unit: "1"},
		"gen_ai_client_operation_duration_seconds": {Name: "gen_ai.client.operation.duration", Kind: KindHistogram, Unit: "s"},
		"refold_run_turns":                         {Name: "refold.run.turns", Kind: KindHistogram, Unit: "1"},
	} {
		if got := d.Prometheus(); got != want {
			t.Errorf("%s: got %s, want %s", d.Name, got, want)
		}
	}
}

// Values that clients choose stay short and printable.
func TestOpenLabelCutsHostileValues(t *testing.T) {
	t.Parallel()
	l := Open(4, "model")
	long := strings.Repeat("x", 1<<20)
	if a, b := l.index([]string{long}), l.index([]string{long + "y"}); a != b {
		t.Errorf("two long values: places %d and %d, want one", a, b)
	}
	l.index([]string{"\xff\xfe"})
	for _, v := range l.Values() {
		if len(v[0]) > labelBytesMax || !strings.HasPrefix(v[0], "x") && v[0] != "?" {
			t.Errorf("value %.20q of %d bytes", v[0], len(v[0]))
		}
	}
}

func TestConcurrentUseLosesNoCount(t *testing.T) {
	t.Parallel()
	r := New()
	l := Open(8, "tool")
	c, h := r.Counter("a", "", "", l), r.Histogram("b", "s", "", []float64{1}, l)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 1000 {
				tool := strconv.Itoa(i % 16)
				c.Add(1, tool)
				h.Record(1, tool)
				if i%100 == 0 {
					r.Collect()
				}
			}
		})
	}
	all.Wait()
	count, sum := 0.0, 0.0
	for _, m := range r.Collect() {
		for _, p := range m.Points {
			count += p.Value
			if p.Dist != nil {
				sum += p.Dist.Sum
			}
		}
	}
	if count != 8000 || sum != 8000 {
		t.Errorf("got %v counts and a sum of %v, want 8000 of each", count, sum)
	}
}

func BenchmarkCounter(b *testing.B) {
	l := Closed("kind", "a", "b")
	c := New().Counter("a", "", "", l)
	b.ReportAllocs()
	for b.Loop() {
		c.Add(1, "b")
	}
}

func BenchmarkHistogram(b *testing.B) {
	h := New().Histogram("a", "s", "", []float64{.005, .01, .05, .1, .5, 1, 5, 10, 60, 600})
	b.ReportAllocs()
	for b.Loop() {
		h.Record(3)
	}
}

func BenchmarkOpenLabel(b *testing.B) {
	c := New().Counter("a", "", "", Open(64, "class", "target"))
	b.ReportAllocs()
	for b.Loop() {
		c.Add(1, "tool", "host")
	}
}
