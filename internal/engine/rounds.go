package engine

import (
	"context"
	"sync"
	"time"

	"github.com/refold/refold/internal/journal"
)

// rounds is the progress of work that stores outputs in rounds of retries.
type rounds struct {
	began  time.Time         // when the first round began
	stored successes         // of the latest round
	failed bool              // the latest round left outputs unstored: another one follows
	err    error             // of a stream that did not answer after a failed round
	newest [3]journal.Newest // messages of the streams after the latest failed round
	former [3]journal.Newest // the same after the failed round before
	took   [4]bool           // the streams that took a probe after it
	hung   bool              // a try has not returned in time
}

// ended takes the result of a round, in which outputs of some sessions were not stored.
// If these are of one session, the evidence that others succeed is a probe: the lane may
// take no events.
func (r *rounds) ended(ctx context.Context, h *Host, failed bool, of []*outputs) {
	if r.failed = failed; !failed {
		return
	}
	r.former, r.took = r.newest, [4]bool{}
	r.newest, r.err = h.answer(ctx)
	stuck := map[*actor]bool{}
	for _, o := range of {
		if o.trouble != nil {
			stuck[o.actor] = true
		}
	}
	if r.err == nil && len(stuck) == 1 {
		r.took = h.probe(ctx)
	}
}

// probe stores a message of no session in each stream, and reports which took it.
func (h *Host) probe(ctx context.Context) (took [4]bool) {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	for i, err := range h.world.Probe(ctx) {
		took[i] = err == nil
	}
	return took
}

// begin is send for the first try: it does not wait, and passes the errors to then.
func (r *rounds) begin(ctx context.Context, o outside, all []journal.Output, then func(errs []error)) {
	r.stored = successes{}
	if len(all) == 0 {
		then(nil)
		return
	}
	within, cancel := context.WithTimeout(ctx, stalledAfter)
	began := time.Now()
	o.host.world.BeginStore(within, all, func(errs []error) {
		r.hung = within.Err() != nil
		cancel()
		o.host.meters.stored(len(all), time.Since(began), errs)
		then(errs)
	})
}

// send stores outputs together, for at most stalledAfter. If that was too short once, a
// session may hang that the others need not wait for: then it stores those of each
// session apart, for at most a round.
func (r *rounds) send(ctx context.Context, o outside, all []journal.Output) []error {
	limit := stalledAfter
	if r.hung {
		limit = o.host.roundFor
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if !r.hung {
		errs := o.send(within, all)
		r.hung = within.Err() != nil
		return errs
	}
	at := map[string][]int{}
	for i := range all {
		at[all[i].Session] = append(at[all[i].Session], i)
	}
	errs := make([]error, len(all))
	var sessions sync.WaitGroup
	for _, places := range at {
		sessions.Go(func() {
			var own []journal.Output
			for _, i := range places {
				own = append(own, all[i])
			}
			for n, err := range o.send(within, own) {
				errs[places[n]] = err
			}
		})
	}
	sessions.Wait()
	return errs
}
