package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

type next int

const (
	nextStart     next = iota // the claim is ours: start, if there is still time
	nextAck                   // settled or withdrawn: it needs no settlement from us
	nextGiveBack              // not now: deliver it again after a delay
	nextSettle                // settle it with an outcome, without a start
	nextHandedOff             // another goroutine has finished it
)

// decision is a next with its parameters.
type decision struct {
	next    next
	delay   time.Duration // nextGiveBack
	outcome outcome       // nextSettle
	why     string        // nextAck and nextGiveBack; for the log
}

func giveBack(delay time.Duration, why string) decision {
	return decision{next: nextGiveBack, delay: delay, why: why}
}

func ack(why string) decision { return decision{next: nextAck, why: why} }

func settleAs(o outcome) decision { return decision{next: nextSettle, outcome: o} }

// claim stores the claim of an execution, or decides what follows from the stored
// one. The first claim stored is valid; delivery counts decide nothing. Claims
// are numbered from 1, and a bridge tries them in this order. What it does about
// claim n depends on the claim stored there:
//
//	stored                       tool call                     model turn
//	none                         store ours, start             store ours, start
//	none, past start_by          store withdrawn, settle       store withdrawn, settle
//	of other bytes               go on with n+1                go on with n+1
//	withdrawn                    ack                           ack
//	withdrawn, past start_by     settle                        settle
//	ours                         start                         start; n+1 if others may have considered us gone
//	another's, which is alive    give back                     give back
//	another's, which is gone     settle outcome_unknown        n+1 if it is open and not settled, else ack
//	unreadable                   as another's, which is gone   as another's, which is gone
//
// A claim is of other bytes if its hash is not that of this effect's payload: a
// server that lost the unsynced end of its streams kept the claim, or received it
// again, and the session then published another effect under the same name. A
// claim without a hash is valid for any bytes. For the same bytes a claim stays
// valid, so that no call runs twice and no turn is paid for twice.
//
// A call that ran here under a claim of ours does not get here again: the table of
// executions knows it (settledEarlier).
//
// claim calls during, unless it is nil or f is late, while the first claim is in
// progress, and then waits for the reply.
func (w *Worker) claim(ctx context.Context, f *execution, during func()) decision {
	died := deaths{unnamed: f.safe()}
	for n := 1; n <= journal.ClaimsMax; n++ {
		late := f.late(w.now())
		if late && f.safe() {
			return decision{next: nextStart} // it is only settled
		}
		if !late {
			if r := w.isolate(f, died.count()); r.next != nextStart {
				return r
			}
		}
		wanted := Claim{By: w.instance, Hash: f.hash}
		if late {
			// Nothing starts after start_by. The withdrawal also keeps another
			// bridge, whose clock is slower, from starting it.
			wanted = Claim{Withdrawn: true, Hash: f.hash}
		}
		name := subjects.ClaimName{EffectName: f.name, N: n}
		f.claimRequested(n, w.detector)
		answer := w.wire.BeginClaim(ctx, name, wanted)
		if during != nil && n == 1 && !late {
			during()
		}
		stands, won, err := answer()
		if err != nil {
			if times, ok := w.limiter.allow("claim_not_answered", w.now()); ok {
				w.logFor(f).Warn("claim_not_answered", "error", err.Error(), "times", times)
			}
			return giveBack(troubleDelay, "claim not answered")
		}
		if !journal.ClaimBody(stands).Concerns(f.hash) {
			f.claimNotOurs(n, false)
			w.logFor(f).Warn("claim_of_other_bytes", "claim", n, "note", "the claim is of another effect of this name, which the server lost: it is skipped")
			continue
		}
		if stands.By != w.instance {
			f.claimNotOurs(n, false)
		}
		w.countClaim(n, won, stands)
		switch {
		case late && stands.Withdrawn:
			return settleAs(tooLate(f.effect, w.now()))
		case stands.Released:
			died.released(stands.By)
			continue
		case stands.By == w.instance:
			r, ours := w.underOurClaim(ctx, f, n)
			if ours && r.next == nextStart && died.count() >= f.deathsMax() {
				return settleAs(w.bridgeLost(f, &died))
			}
			if ours {
				return r
			}
			continue
		case stands.Withdrawn:
			return ack("withdrawn")
		}
		w.stats.Conflicts.Add(1)
		if r := w.onConflict(ctx, f, stands); r.next != nextStart {
			return r
		}
		died.add(stands.By)
	}
	return giveBack(heldDelay, "too many claims")
}

// countClaim counts the result of the nth claim of an effect. Claims of other
// bridges are counted as conflicts.
func (w *Worker) countClaim(n int, won bool, stands Claim) {
	switch {
	case stands.Withdrawn:
		w.stats.Withdrawn.Add(1)
	case won && n > 1:
		w.stats.TakenOver.Add(1)
	case won:
		w.stats.Won.Add(1)
	}
}

// underOurClaim decides what follows from a claim of ours, stored just now or by
// an earlier try whose reply was lost; had f been settled here, the table of
// executions would know. ours is false if the next claim is needed.
func (w *Worker) underOurClaim(ctx context.Context, f *execution, n int) (r decision, ours bool) {
	switch {
	case f.call != nil:
		return w.afterSilence(ctx, f), true
	case f.generation == nil:
		return decision{next: nextStart}, true
	}
	if n > 1 && n > f.claims.passed {
		// The former holder may have been cut off, not gone, and may have settled
		// the turn between takeOver and our claim. If the log can't be read, the
		// turn starts: the claim is ours.
		if last, err := w.wire.LastModelEvent(ctx, f.name.Session); err == nil && settles(last, f.name.Effect) {
			return ack("settled by its former holder"), true
		}
	}
	// The last check before the start: before we knew that we had won, another
	// bridge may have considered us gone and stored the next claim.
	switch heard, now := w.detector.heardWithoutGap(f.claims.gaps); {
	case !now:
		return giveBack(aliveEvery, "nobody hears this bridge"), true
	case heard && n > f.claims.passed:
		return decision{next: nextStart}, true
	default:
		f.claimNotOurs(n, !heard)
	}
	if r := w.takeOver(ctx, f); r.next != nextStart {
		return r, true
	}
	return decision{}, false
}

// onConflict applies the rules for a claim of another bridge. nextStart means that
// the next claim may be tried.
func (w *Worker) onConflict(ctx context.Context, f *execution, stands Claim) decision {
	switch state, wait := w.detector.stateOf(stands.By); state {
	case alive:
		return giveBack(heldDelay, "another bridge holds it")
	case unknown:
		return giveBack(max(wait, aliveEvery), "its holder is not heard yet")
	}
	w.logFor(f).Warn("holder_gone", "holder", stands.By)
	if f.safe() {
		return decision{next: nextStart}
	}
	if f.call != nil {
		return settleAs(outcomeUnknown("the bridge that ran this call is gone: it may have taken effect", outcome{}))
	}
	return w.takeOver(ctx, f)
}

// settledEarlier checks whether the log still has the settlement of an effect
// that was settled here over an earlier connection: the server may have lost it.
// If so, it returns nextStart for a model turn, which is claimed again, and for
// an effect that may run twice.
func (w *Worker) settledEarlier(ctx context.Context, f *execution) decision {
	at := f.settled
	if at.seq > 0 {
		switch events, err := w.wire.Events(ctx, f.name.Session, []uint64{at.seq}); {
		case err == nil && settles(events[0], f.name.Effect):
			f.claims.asked = at.claim
			return ack("settled before")
		case err != nil && !errors.Is(err, natsio.ErrNotFound):
			return giveBack(troubleDelay, "settlement not read")
		}
		w.logFor(f).Warn("settlement_lost", "seq", at.seq)
	}
	f.settled = settledAt{}
	f.claims = claimState{passed: at.claim}
	if f.unsafe() && at.claim > 0 {
		return settleAs(outcomeUnknown("it ran, and the server lost what it came to", outcome{}))
	}
	return decision{next: nextStart}
}

// takeOver checks whether a model turn whose holder is gone is still open.
// nextStart means that the next claim may be tried.
func (w *Worker) takeOver(ctx context.Context, f *execution) decision {
	sid, name := f.name.Session, f.name.Effect
	switch last, err := w.wire.LastModelEvent(ctx, sid); {
	case errors.Is(err, natsio.ErrNotFound):
	case err != nil:
		if times, ok := w.limiter.allow("last_settlement_not_read", w.now()); ok {
			w.logFor(f).Warn("last_settlement_not_read", "error", err.Error(), "times", times)
		}
		return giveBack(troubleDelay, "last settlement not read")
	case settles(last, name):
		return ack("settled by its holder")
	}
	view, err := w.wire.View(ctx, sid)
	switch {
	case err != nil:
		return giveBack(troubleDelay, "no view")
	case view.Seq < seqLeast(f.generation), view.Clock < f.generation.At:
		return giveBack(troubleDelay, "the view is older than the effect")
	case !isOpen(view, name):
		return ack("not open")
	}
	return decision{next: nextStart}
}

// stillWanted checks whether a retry-safe call that has waited for a while is
// still open: its run may have been cancelled, and it has no claim that would say
// so. If no view arrives, the call starts, since another start does no harm.
func (w *Worker) stillWanted(ctx context.Context, f *execution) decision {
	view, err := w.wire.View(ctx, f.name.Session)
	if err == nil && view.Clock > f.call.At && !isOpen(view, f.name.Effect) { // a view of the same millisecond may precede it
		return ack("not open")
	}
	return decision{next: nextStart}
}

// claimState records which of our claims of a model turn may have been
// superseded. If our heartbeats don't arrive, another bridge may consider us gone
// and store the next claim: a start under ours would then be a second start.
type claimState struct {
	passed int // our last claim that others may have superseded; 0: none
	asked  int // the latest claim requested, while it is unanswered or ours; 0: none
	gaps   int // gaps that the failure detector had counted at its first request
}

// claimRequested records a request for claim n. The first request of the latest
// claim counts, since that one may have been stored. Earlier claims are known,
// and are only requested again on the way to it.
func (f *execution) claimRequested(n int, h *failureDetector) {
	if gaps := h.look(); f.claims.asked < n {
		f.claims.asked, f.claims.gaps = n, gaps
	}
}

// claimNotOurs records that claim n, if it is the latest requested, is not ours
// or has no value: passed says that others may have superseded it. A claim of
// ours stays in doubt until the turn is settled, since the turn may be given back
// before it starts.
func (f *execution) claimNotOurs(n int, passed bool) {
	if n != f.claims.asked {
		return
	}
	if passed {
		f.claims.passed = n
	}
	f.claims.asked, f.claims.gaps = 0, 0
}

type liveness int

const (
	unknown liveness = iota // we have not listened for long enough
	alive
	gone
)

// failureDetector reports which processes are alive. A process counts as
// listening only while it receives its own heartbeats, which take the same path
// through the server as all others. So a broken connection, or a stalled process,
// never looks like the death of another.
type failureDetector struct {
	self string
	wire Transport

	mu    sync.Mutex
	since time.Time // start of the listening without a gap
	own   time.Time // our last own heartbeat, or the start of this process
	first bool      // a heartbeat of ours has arrived since the last gap
	gap   bool      // a gap that watch has not reported
	gaps  int       // gaps longer than aliveGapMax
}

func newFailureDetector(self string, w Transport) *failureDetector {
	return &failureDetector{self: self, wire: w, own: time.Now()}
}

// watch checks our own heartbeats until ctx ends. After a gap it calls broken: the
// server may have restarted.
func (h *failureDetector) watch(ctx context.Context, broken func()) {
	for pause(ctx.Done(), aliveEvery) {
		if h.look(); h.takeGap() {
			broken()
		}
	}
}

// look records our own latest heartbeat, and a gap before it, and returns the
// number of gaps. A late call counts a gap where there was none, which does no
// harm.
func (h *failureDetector) look() (gaps int) {
	at, ok := h.wire.Heard(h.self)
	h.mu.Lock()
	defer h.mu.Unlock()
	if !ok || !at.After(h.own) {
		return h.gaps
	}
	if silentFor(h.own, at) > aliveGapMax {
		h.gaps++
		h.first = false
	}
	if !h.first {
		h.since, h.gap, h.first = at, true, true
	}
	h.own = at
	return h.gaps
}

// takeGap reports each gap once.
func (h *failureDetector) takeGap() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	gap := h.gap
	h.gap = false
	return gap
}

// heardWithoutGap reports whether our heartbeats arrived without a gap since the
// count was gaps, so that no bridge considers us gone, and whether they arrive
// now.
func (h *failureDetector) heardWithoutGap(gaps int) (heard, now bool) {
	heard = h.look() == gaps
	h.mu.Lock()
	defer h.mu.Unlock()
	return heard, silentFor(h.own, time.Now()) <= aliveGapMax
}

// stateOf returns whether an instance is alive. If that is unknown, wait is the
// time until the next check.
func (h *failureDetector) stateOf(instance string) (state liveness, wait time.Duration) {
	h.look()
	heard, _ := h.wire.Heard(instance)
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case instance == h.self, now.Sub(heard) < holderGone:
		return alive, 0
	case !h.first, now.Sub(h.own) > aliveGapMax:
		return unknown, holderGone
	case now.Sub(h.since) < holderGone:
		return unknown, holderGone - now.Sub(h.since)
	}
	return gone, 0
}
