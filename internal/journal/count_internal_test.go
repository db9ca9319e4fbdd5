package journal

import (
	"context"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
)

func seqsOf(t *testing.T, events iter.Seq2[session.Event, error]) (got []uint64) {
	t.Helper()
	for e, err := range events {
		bustest.OK(t, err)
		got = append(got, e.Seq)
	}
	return got
}

// As many are asked for as there are to be, and nothing behind them.
func TestReadNextAsksForNoMore(t *testing.T) {
	t.Parallel()
	b, r := playReplica(t, []uint64{3, 5, 8, 13, 21})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, c := range []struct {
		from, to, n, behind uint64
		want                []uint64
		asked               int
	}{
		{from: 4, to: 21, n: 2, behind: 99, want: []uint64{5, 8}, asked: 2},
		{from: 4, to: 21, n: 0, behind: 99},
		{from: 4, to: 12, n: 9, behind: 99, want: []uint64{5, 8}, asked: 3},
		{from: 4, to: 21, n: 9, behind: 99, want: []uint64{5, 8, 13, 21}, asked: 4},
		{from: 4, to: 21, n: 3, behind: 8, want: []uint64{5, 8}, asked: 3},
	} {
		r.mu.Lock()
		r.behind, r.direct = c.behind, 0
		r.mu.Unlock()
		got := seqsOf(t, b.ReadNext(ctx, "s1", c.from, c.to, c.n))
		if !slices.Equal(got, c.want) || r.direct != c.asked {
			t.Errorf("%+v: got %v by %d requests", c, got, r.direct)
		}
	}
}

func TestParseCount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, answer string
		have, want   uint64
		fails        bool
	}{
		{name: "two doors", answer: `{"state":{"messages":9,"last_seq":9,"subjects":{"a":3,"b":4}}}`, have: 9, want: 7},
		{name: "none of the session", answer: `{"state":{"messages":9,"last_seq":9}}`, have: 9},
		{name: "it lost one", answer: `{"state":{"messages":8,"last_seq":9,"subjects":{"a":3}}}`, have: 9},
		{name: "it is behind", answer: `{"state":{"messages":9,"last_seq":9,"subjects":{"a":3}}}`, have: 10},
		{name: "an error", answer: `{"error":{"code":404,"err_code":10059}}`, fails: true},
		{name: "no JSON", answer: `x`, fails: true},
	} {
		got, err := parseCount([]byte(c.answer), c.have)
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("%s: got %d %v, want %d", c.name, got, err, c.want)
		}
	}
}
