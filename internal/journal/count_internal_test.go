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

// ReadNext sends n requests, and searches no further.
func TestReadNextRequestsNoMoreThanN(t *testing.T) {
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
