package delivery

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Lanes are given back to a server that is slow to reset them.

// givenBack is such a server for one lane.
type givenBack struct {
	*slowReset
	stands   LaneInfo
	fails    error         // of a reset
	one      chan struct{} // is taken while a lane is reset
	beside   bool          // another one was
	asked    int           // for resets
	unpinned int
}

func (g *givenBack) Info(context.Context) (LaneInfo, error) { return g.stands, nil }

func (g *givenBack) Reset(ctx context.Context) (uint64, error) {
	g.asked++
	if g.fails != nil {
		return 0, g.fails
	}
	select {
	case g.one <- struct{}{}:
		defer func() { <-g.one }()
	default:
		g.beside = true
	}
	return g.slowReset.Reset(ctx)
}

func (g *givenBack) Unpin(ctx context.Context) error {
	g.unpinned++
	return ctx.Err()
}

// giveAllBack gives lanes back concurrently.
func giveAllBack(t *testing.T, takes time.Duration, each ...*givenBack) {
	lanes, servers := slowLanes(len(each), 2*time.Second, takes)
	one := make(chan struct{}, 1)
	var giving sync.WaitGroup
	for i, l := range lanes {
		each[i].slowReset, each[i].one = servers[i], one
		l.server = each[i]
		giving.Go(func() {
			l.giveBack(t.Context(), &epoch{lane: l, pin: slowPin, log: l.log, window: newWindow(func(string) {}), inbox: &inbox{stop: func() {}}})
		})
	}
	giving.Wait()
}

// Eight lanes are given back at once, each with unacked events, and the resets together
// take longer than the timeout of one. All lanes are unpinned, and no two resets overlap.
func TestSlowResetsDoNotPreventUnpin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var each []*givenBack
		for range 8 {
			each = append(each, &givenBack{stands: LaneInfo{Pin: slowPin, Unacked: 1}})
		}
		giveAllBack(t, 300*time.Millisecond, each...)
		for i, g := range each {
			if g.unpinned != 1 {
				t.Errorf("lane %d: unpinned %d times, want once", i, g.unpinned)
			}
			if g.beside {
				t.Errorf("lane %d was reset beside another", i)
			}
		}
	})
}

// The lane is unpinned whether or not there is a reset, and whatever its outcome.
func TestLaneIsGivenBackDuringReset(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name             string
		stands           LaneInfo
		fails            error
		resets, unpinned int
	}{
		{"with something unacked", LaneInfo{Pin: slowPin, Unacked: 1}, nil, 1, 1},
		{"with nothing unacked", LaneInfo{Pin: slowPin}, nil, 0, 1},
		{"with a reset that fails", LaneInfo{Pin: slowPin, Unacked: 1}, errors.New("no"), 1, 1},
		{"with no pin any more", LaneInfo{Unacked: 1}, nil, 1, 1},
		{"that is another's", LaneInfo{Pin: "another", Unacked: 1}, nil, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := &givenBack{stands: test.stands, fails: test.fails}
				giveAllBack(t, time.Second, g)
				if g.asked != test.resets || g.unpinned != test.unpinned {
					t.Errorf("got %d resets and %d times unpinned, want %d and %d", g.asked, g.unpinned, test.resets, test.unpinned)
				}
			})
		})
	}
}
