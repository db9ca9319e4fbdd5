package journal

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/refold/refold/internal/natsio"
)

// What many callers read while an answer is awaited goes out as one request.
func TestFewEventsAreReadTogether(t *testing.T) {
	t.Parallel()
	const callers = 20
	var has []uint64
	for seq := range uint64(callers) {
		has = append(has, 2*seq+1) // the log lacks every other one
	}
	b, r := playReplica(t, has)
	b.coalescer.out = true
	var reading sync.WaitGroup
	for i := range uint64(callers) {
		reading.Go(func() {
			seqs := []uint64{2*i + 1, 2*(callers-i) - 1}
			events, err := b.EventsAt(t.Context(), seqs)
			if err != nil || len(events) != 2 || events[0].Seq != seqs[0] || events[1].Seq != seqs[1] {
				t.Errorf("events %v: got %+v %v", seqs, events, err)
			}
		})
	}
	reading.Go(func() {
		if events, err := b.EventsAt(t.Context(), []uint64{1, 2}); !errors.Is(err, natsio.ErrNotFound) {
			t.Errorf("an event that the log lacks: got %+v %v, want natsio.ErrNotFound", events, err)
		}
	})
	for waiting := 0; waiting <= callers; runtime.Gosched() {
		b.coalescer.mu.Lock()
		waiting = len(b.coalescer.waiting)
		b.coalescer.mu.Unlock()
	}
	b.readNext()
	reading.Wait()
	if len(r.replies) != 1 || r.leader != 1 {
		t.Errorf("%d waits for answers, %d questions to the leader, want 1 and 1: what the log lacks", len(r.replies), r.leader)
	}
}

// An answer that is lost holds up who waits for it, and nobody else.
func TestLostAnswerHoldsUpOne(t *testing.T) {
	t.Parallel()
	b, r := playReplica(t, []uint64{1, 2})
	asked := make(chan struct{})
	r.drop = func(seq uint64) bool {
		if seq == 1 {
			close(asked)
		}
		return seq == 1
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first := make(chan error, 1)
	go func() {
		_, err := b.EventsAt(ctx, []uint64{1})
		first <- err
	}()
	<-asked
	if events, err := b.EventsAt(t.Context(), []uint64{2}); err != nil || events[0].Seq != 2 {
		t.Errorf("got %+v %v", events, err)
	}
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("who waits for the lost answer: got %v, want that it waited until it was told to end", err)
	}
}
