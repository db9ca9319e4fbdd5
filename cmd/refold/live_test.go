package main

// What is printed of deltas: the words of one run, once, whatever is missed,
// begun again, or said by another run.

import (
	"strings"
	"testing"

	"github.com/refold/refold/client"
)

func TestLive(t *testing.T) {
	t.Parallel()
	d := func(effect, start string, n uint64, text string) client.Delta {
		return client.Delta{Effect: effect, Start: start, N: n, Text: text}
	}
	for _, c := range []struct {
		name   string
		early  []client.Delta // before the run is known to be 2
		deltas []client.Delta
		answer string
		want   string
	}{
		{"nothing", nil, nil, "", ""},
		{"no deltas", nil, nil, "hello", "hello\n"},
		{"as it came", nil, []client.Delta{d("r2t1", "A", 0, "hel"), d("r2t1", "A", 1, "lo")}, "hello", "hello\n"},
		{"before the run is known", []client.Delta{d("r2t1", "A", 0, "hel")}, []client.Delta{d("r2t1", "A", 1, "lo")}, "hello", "hello\n"},
		{
			"of other runs", []client.Delta{d("r1t1", "A", 0, "other"), d("r2t1", "B", 0, "he")},
			[]client.Delta{d("r1t1", "A", 1, "other"), d("r2t1", "B", 1, "llo"), d("r22t1", "C", 0, "other")}, "hello", "hello\n",
		},
		{"one is missed", nil, []client.Delta{d("r2t1", "A", 0, "h"), d("r2t1", "A", 2, "llo")}, "hello", "h\nhello\n"},
		{"the first is missed", nil, []client.Delta{d("r2t1", "A", 1, "ello")}, "hello", "hello\n"},
		{"a second start", nil, []client.Delta{d("r2t1", "A", 0, "hel"), d("r2t1", "B", 0, "hello")}, "hello", "hel\nhello\n"},
		{
			"two starts at once", nil,
			[]client.Delta{d("r2t1", "A", 0, "h"), d("r2t1", "B", 0, "he"), d("r2t1", "A", 1, "ello"), d("r2t1", "B", 1, "llo")}, "hello", "h\nhello\n",
		},
		{"two turns", nil, []client.Delta{d("r2t1", "A", 0, "I look."), d("r2t2", "B", 0, "There."), d("r2t2", "B", 1, "\n")}, "There.\n", "I look.\nThere.\n"},
		{
			"an attempt that failed says more", nil,
			[]client.Delta{d("r2t1", "A", 0, "hel"), d("r2t1a2", "B", 0, "hel"), d("r2t1", "A", 1, "lo"), d("r2t1a2", "B", 1, "lo")}, "hello", "hel\nhello\n",
		},
		{"the answer was of another turn", nil, []client.Delta{d("r2t1", "A", 0, "I look.\n")}, "There.", "I look.\nThere.\n"},
		{"without an answer", nil, []client.Delta{d("r2t1", "A", 0, "I fai")}, "", "I fai\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			l := &live{out: &out}
			for _, delta := range c.early {
				l.delta(delta)
			}
			if out.Len() > 0 {
				t.Errorf("before the run is known: %q", out.String())
			}
			l.of(2)
			for _, delta := range c.deltas {
				l.delta(delta)
			}
			l.end(c.answer)
			l.delta(d("r2t3", "Z", 0, "late"))
			if got := out.String(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestLiveStopsCleanly(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	l := &live{out: &out}
	for range 2 * earlyMax {
		l.delta(client.Delta{Effect: "r7t1", Start: "A"})
	}
	if len(l.early) > earlyMax {
		t.Errorf("%d deltas are held", len(l.early))
	}
	l.of(1)
	l.delta(client.Delta{Effect: "r1t1", Start: "A", Text: "hel"})
	l.stop()
	l.delta(client.Delta{Effect: "r1t1", Start: "A", N: 1, Text: "lo"})
	if got, want := out.String(), "hel\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
