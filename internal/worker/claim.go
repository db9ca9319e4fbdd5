package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// next is what becomes of an execution after its claim was looked at.
type next int

const (
	nextStart     next = iota // the claim is ours: start, if there is still time
	nextAck                   // it is settled or withdrawn: nothing is left to say
	nextGiveBack              // not now: offer it again after a delay
	nextSettle                // it ends here, with an outcome and without a start
	nextHandedOff             // another goroutine has brought it to its end
)

// decision is a next with what it needs.
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

// claim stores the claim of an execution, or finds out what the one that stands
// means. Whoever stores a claim first decides; delivery counts decide nothing.
// Claims are numbered from 1, and a bridge looks at them in this order. What it
// does about claim n depends on the claim that stands there:
//
//	stands                       tool call                     model turn
//	none                         store ours, start             store ours, start
//	none, past start_by          store withdrawn, settle       store withdrawn, settle
//	of other bytes               go on with n+1                go on with n+1
//	withdrawn                    ack                           ack
//	withdrawn, past start_by     settle                        settle
//	ours                         start                         start; n+1 if we may have been taken for gone
//	another's, which is alive    give back                     give back
//	another's, which is gone     settle outcome_unknown        n+1 if it is open and not settled, else ack
//	unreadable                   as another's, which is gone   as another's, which is gone
//
// A claim is of other bytes if its hash is not that of this effect's payload: a
// server that lost the unsynced end of its streams kept it, or was sent it again,
// and the session then asked for something else under the same name. A claim
// without a hash holds for any bytes. For the same bytes a claim stands, so that
// no call runs twice and no turn is paid for twice.
//
// A call that ran here under a claim of ours does not come to this table again: the
// table of executions knows it (settledEarlier).
//
// during, unless it is nil, is called while the first claim is under way, unless f
// is late. The answer is looked at after both.
func (w *Worker) claim(ctx context.Context, f *execution, during func()) decision {
	for n := 1; n <= claimsMax; n++ {
		late := f.late(w.now())
		wanted := Claim{By: w.instance, Hash: f.hash}
		if late {
			// Nothing is started past start_by. Withdrawn first, so that no
			// other bridge with a slower clock starts it either.
			wanted = Claim{Withdrawn: true, Hash: f.hash}
		}
		name := subjects.ClaimName{EffectName: f.name, N: n}
		f.asks(n, w.detector)
		answer := w.wire.BeginClaim(ctx, name, wanted)
		if during != nil && n == 1 && !late {
			during()
		}
		stands, won, err := answer()
		if err != nil {
			if times, ok := w.limiter.allow("claim_not_answered", w.now()); ok {
				w.about(f).Warn("claim_not_answered", "error", err.Error(), "times", times)
			}
			return giveBack(troubleDelay, "claim not answered")
		}
		if stands.Hash != "" && stands.Hash != f.hash {
			f.answered(n, false)
			w.about(f).Warn("claim_of_other_bytes", "claim", n, "note", "it is of an effect of this name that the server lost: it is passed over")
			continue
		}
		if stands.By != w.instance {
			f.answered(n, false)
		}
		w.countClaim(n, won, stands)
		switch {
		case late && stands.Withdrawn:
			return settleAs(tooLate(&f.effect, w.now()))
		case stands.By == w.instance:
			if r, ours := w.holds(ctx, f, n); ours {
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
	}
	return giveBack(heldDelay, "too many claims")
}

// countClaim counts what the nth claim of an effect came to. Those that another
// bridge has are counted as conflicts.
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

// holds says what becomes of f under a claim of ours: stored just now, or by an
// earlier try whose answer was lost; the table would know if it had been settled
// here. ours is false if the next claim is needed.
func (w *Worker) holds(ctx context.Context, f *execution, n int) (r decision, ours bool) {
	if f.call != nil {
		return decision{next: nextStart}, true
	}
	if n > 1 && n > f.claims.passed {
		// The former holder may have been cut off, not gone, and may have settled the
		// turn between the first look and our claim. If the log does not answer, the
		// turn starts: the claim is ours.
		if last, err := w.wire.LastModelEvent(ctx, f.name.Session); err == nil && settles(last, f.name.Effect) {
			return ack("settled by its former holder"), true
		}
	}
	// The last look before the start: while we did not know that we had won,
	// another bridge may have found us gone and gone on with the next claim.
	switch heard, now := w.detector.heardWithoutGap(f.claims.gaps); {
	case !now:
		return giveBack(aliveEvery, "nobody hears this bridge"), true
	case heard && n > f.claims.passed:
		return decision{next: nextStart}, true
	default:
		f.answered(n, !heard)
	}
	if r := w.takeOver(ctx, f); r.next != nextStart {
		return r, true
	}
	return decision{}, false
}

// onConflict applies the rules for a conflict with another's claim. nextStart means
// that the next claim may be tried.
func (w *Worker) onConflict(ctx context.Context, f *execution, stands Claim) decision {
	switch state, wait := w.detector.ask(stands.By); state {
	case alive:
		return giveBack(heldDelay, "another bridge holds it")
	case unknown:
		return giveBack(max(wait, aliveEvery), "its holder is not heard yet")
	}
	w.about(f).Warn("holder_gone", "holder", stands.By)
	if f.call != nil {
		return settleAs(outcomeUnknown("the bridge that ran this call is gone: it may have taken effect", outcome{}))
	}
	return w.takeOver(ctx, f)
}

// settledEarlier finds out whether the log has kept the settlement of an effect
// that was settled here, and that another connection delivers: the server may have
// lost it. Then a turn of a model is claimed again, and what may run twice runs.
// nextStart: go on with it.
func (w *Worker) settledEarlier(ctx context.Context, f *execution) decision {
	at := f.settled
	if at.seq > 0 {
		switch events, err := w.wire.Events(ctx, f.name.Session, []uint64{at.seq}); {
		case err == nil && settles(events[0], f.name.Effect):
			f.claims.asked = at.claim
			return ack("settled before")
		case err != nil && !errors.Is(err, natsio.ErrNotFound):
			return giveBack(troubleDelay, "settlement not looked at")
		}
		w.about(f).Warn("settlement_lost", "seq", at.seq)
	}
	f.settled = settledAt{}
	f.claims = claimState{passed: at.claim}
	if f.call != nil && at.claim > 0 {
		return settleAs(outcomeUnknown("it ran, and the server lost what it came to", outcome{}))
	}
	return decision{next: nextStart}
}

// takeOver finds out whether a model turn whose holder is gone is still wanted:
// nextStart, and the next claim may be tried.
func (w *Worker) takeOver(ctx context.Context, f *execution) decision {
	sid, name := f.name.Session, f.name.Effect
	switch last, err := w.wire.LastModelEvent(ctx, sid); {
	case errors.Is(err, natsio.ErrNotFound):
	case err != nil:
		if times, ok := w.limiter.allow("last_settlement_not_read", w.now()); ok {
			w.about(f).Warn("last_settlement_not_read", "error", err.Error(), "times", times)
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

// stillWanted looks whether a retry-safe call that has waited for a while is
// still open: its run may have been cancelled since, and no claim says so. Without an
// answer the call starts, since a further start does no harm.
func (w *Worker) stillWanted(ctx context.Context, f *execution) decision {
	view, err := w.wire.View(ctx, f.name.Session)
	if err == nil && view.Clock > f.call.At && !isOpen(view, f.name.Effect) { // a view of that very moment may be from just before
		return ack("not open")
	}
	return decision{next: nextStart}
}

// claimState is what this process does not know of its claims of a model turn. While
// nobody hears us, another bridge may find us gone, and go on with the next claim:
// ours is worth nothing then, and it would be a second start to trust it.
type claimState struct {
	passed int // the last claim of ours that others may have passed over; 0: none
	asked  int // the claim that was asked for, and not answered yet or ours; 0: none
	gaps   int // those that the failure detector had seen when it was asked for first
}

// asks notes that the claim n is asked for, for the first time or again: what
// counts is the first time, since that one may have been stored. Those before the
// one that is asked for are known, and asked for only on the way to it.
func (f *execution) asks(n int, h *failureDetector) {
	if gaps := h.look(); f.claims.asked < n {
		f.claims.asked, f.claims.gaps = n, gaps
	}
}

// answered notes that the claim n, if it is the one that was asked for, is not
// ours, or worth nothing: passed says that others may have passed it over. One
// that is ours is doubted until what it is for is settled, since it may be given
// back before it starts.
func (f *execution) answered(n int, passed bool) {
	if n != f.claims.asked {
		return
	}
	if passed {
		f.claims.passed = n
	}
	f.claims.asked, f.claims.gaps = 0, 0
}

// liveness is what is known of the process that holds a claim.
type liveness int

const (
	unknown liveness = iota // we have not listened for long enough to say
	alive
	gone
)

// failureDetector tells which processes are alive. A process counts as listening only
// while it hears its own heartbeats, which take the same way through the server as
// all others. So a broken connection, or a process that stood still, never looks
// like the death of another. Its clock is the monotonic one of time.Now, which nobody sets.
type failureDetector struct {
	self string
	wire Transport

	mu    sync.Mutex
	since time.Time // we have been listening without a gap since then
	own   time.Time // our own heartbeat was heard last then, or this process began
	first bool      // it was heard once
	gap   bool      // there was one that watch has not told of
	gaps  int       // that were longer than aliveGapMax
}

func newFailureDetector(self string, w Transport) *failureDetector {
	return &failureDetector{self: self, wire: w, own: time.Now()}
}

// watch looks for our own heartbeats until ctx ends. After a gap it calls
// broken: the server may have been away.
func (h *failureDetector) watch(ctx context.Context, broken func()) {
	for pause(ctx.Done(), aliveEvery) {
		if h.look(); h.tookGap() {
			broken()
		}
	}
}

// look notes our own latest heartbeat, and a gap before it. It returns how many gaps
// there were. To look late makes a gap where there was none, which does no harm.
func (h *failureDetector) look() (gaps int) {
	at, ok := h.wire.Heard(h.self)
	h.mu.Lock()
	defer h.mu.Unlock()
	if !ok || !at.After(h.own) {
		return h.gaps
	}
	if at.Sub(h.own) > aliveGapMax {
		h.gaps++
		h.first = false
	}
	if !h.first {
		h.since, h.gap, h.first = at, true, true
	}
	h.own = at
	return h.gaps
}

// tookGap reports a gap once.
func (h *failureDetector) tookGap() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	gap := h.gap
	h.gap = false
	return gap
}

// heardWithoutGap reports whether we were heard without a gap since there were so
// many, so that nobody found us gone, and whether we are heard now.
func (h *failureDetector) heardWithoutGap(gaps int) (heard, now bool) {
	heard = h.look() == gaps
	h.mu.Lock()
	defer h.mu.Unlock()
	return heard, time.Since(h.own) <= aliveGapMax
}

// ask tells of an instance whether it lives. While that is unheard, wait is
// when to ask again.
func (h *failureDetector) ask(instance string) (state liveness, wait time.Duration) {
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
