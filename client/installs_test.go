package client_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/bus/testbus"
)

// With 200 faulty install records before the sessions, a replay of all sessions,
// or of one, requests no more of them from the log's leader after the first time.
func TestFaultyInstallRecordsAreReadOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	requested := testbus.LeaderReads(w.ctx, t, w.node, func(ctx context.Context, seq uint64) error {
		_, err := w.Event(ctx, seq)
		return err
	})
	requests := func(do func()) int {
		before := requested()
		do()
		return requested() - before
	}
	all := func(want int) func() {
		return func() {
			n := 0
			_, err := w.Verify(w.ctx, client.VerifyOptions{Each: func(*client.Replayed) error { n++; return nil }})
			if err != nil || n != want {
				t.Fatalf("replay of all: %d sessions (%v), want %d", n, err, want)
			}
		}
	}
	const sessions, faulty = 10, 200
	begin := func(name string) {
		for i := range sessions {
			w.ask(fmt.Sprintf("%s%d", name, i), "hi")
		}
	}
	begin("before")
	most := requests(all(sessions))
	one := requests(func() { w.replay("before1", 0) })
	for i := range faulty {
		if _, _, err := w.bus.PublishInstall(w.ctx, fmt.Appendf(nil, `{"v":1,"rules":1,"fault":%d}`, i), false); err != nil {
			t.Fatal(err)
		}
	}
	begin("after")
	// A session before the newest record has one request more, and a direct one.
	most = 2*most + 2*sessions
	if got := requests(all(2 * sessions)); got > most+2*faulty {
		t.Errorf("the first replay of all asks the leader %d times, want each of %d faulty records once", got, faulty)
	}
	if got := requests(all(2 * sessions)); got > most {
		t.Errorf("the second replay of all asks the leader %d times, want %d at most", got, most)
	}
	if got := requests(func() { w.replay("after1", 0) }); got != one {
		t.Errorf("a replay of one asks the leader %d times, without faulty records %d", got, one)
	}
}
