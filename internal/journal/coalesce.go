package journal

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// togetherMax is how many events a caller may read together with what others
// read. Who reads more would keep them waiting.
const togetherMax = 8

// togetherWait is how long the next ones wait for an answer to those before: one
// that is lost on the way must not hold up others.
const togetherWait = 100 * time.Millisecond

// together gathers the direct reads of callers that want a few events each. Those
// that come before the first answer to one that is out go out with each other
// then: what a request costs beside its messages (a deadline, a wait) is paid
// once for all. While none is out nobody waits.
type readCoalescer struct {
	mu      sync.Mutex
	out     bool       // a request is out that has no answer yet
	waiting []*fewRead // for the next one
}

// fewRead is what one caller reads.
type fewRead struct {
	seqs  []uint64
	found []stored      // at the places of seqs; zero: it did not come
	left  int           // that did not come yet
	done  chan struct{} // closed when no more will come
}

// directFew returns what a replica has at a few sequences, at their places. What
// it does not have, and what did not come for whatever reason, is zero.
func (j *Journal) directFew(ctx context.Context, seqs []uint64) []stored {
	if len(seqs) == 0 {
		return nil
	}
	r := &fewRead{seqs: seqs, found: make([]stored, len(seqs)), left: len(seqs), done: make(chan struct{})}
	t := &j.coalescer
	t.mu.Lock()
	if !t.out {
		t.out = true
		t.mu.Unlock()
		j.readTogether(ctx, []*fewRead{r})
		return r.found
	}
	t.waiting = append(t.waiting, r)
	t.mu.Unlock()
	select {
	case <-r.done:
		return r.found
	case <-ctx.Done(): // somebody may still be writing to what r found
		return make([]stored, len(seqs))
	}
}

// readNext sends those that wait as the next request.
func (j *Journal) readNext() {
	t := &j.coalescer
	t.mu.Lock()
	defer t.mu.Unlock()
	n := min(len(t.waiting), eventsInFlight/togetherMax)
	if t.out = n > 0; t.out {
		group := t.waiting[:n:n]
		t.waiting = t.waiting[n:]
		go j.readTogether(context.Background(), group) // each of them looks at its own context
	}
}

// readTogether reads for a group of callers, and lets the next one go when there
// is an answer, which is when the server is done with most of them.
func (j *Journal) readTogether(ctx context.Context, group []*fewRead) {
	type place struct {
		of *fewRead
		at int
	}
	places := make([]place, 0, len(group))
	for _, r := range group {
		for i := range r.seqs {
			places = append(places, place{r, i})
		}
	}
	next := sync.OnceFunc(j.readNext)
	defer time.AfterFunc(togetherWait, next).Stop()
	body := func(room []byte, i int) []byte { return appendSeq(room, places[i].of.seqs[places[i].at]) }
	err := j.directEach(ctx, j.names.LogStream(), len(places), body, func(i int, msg *nats.Msg) error {
		next()
		p := places[i]
		if p.of.left == 0 {
			return nil // an answer came twice, and its reader has gone on
		}
		if m, end, err := parseDirect(msg); err == nil && !end {
			p.of.found[p.at] = m
		}
		if p.of.left--; p.of.left == 0 {
			close(p.of.done)
		}
		return nil
	})
	if err != nil {
		j.conn.Log.Debug("direct_read_failed", "error", err.Error())
	}
	next()
	for _, r := range group {
		if r.left > 0 {
			close(r.done)
		}
	}
}
