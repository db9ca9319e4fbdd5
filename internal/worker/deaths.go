package worker

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/subjects"
)

const codeBridgeLost = "bridge_lost"

// deaths are the processes that died while they ran an effect, as its claims show.
//
// The first start of an effect that is safe has no claim, since it costs no
// message. If the effect is delivered again, the process of its first delivery
// counts as dead, unless that has released the effect.
type deaths struct {
	unnamed bool     // that of the first delivery
	of      []string // instances
}

func (d *deaths) count() int {
	if d.unnamed {
		return len(d.of) + 1
	}
	return len(d.of)
}

// add counts an instance, once: it may have stored several claims.
func (d *deaths) add(instance string) {
	if !slices.Contains(d.of, instance) {
		d.of = append(d.of, instance)
	}
}

// released records that an instance gave the effect back in order. Without a claim
// of its own it is the process of the first delivery.
func (d *deaths) released(instance string) {
	if i := slices.Index(d.of, instance); i >= 0 {
		d.of = slices.Delete(d.of, i, i+1)
	} else {
		d.unnamed = false
	}
}

// deathsMax returns the number of deaths after which f is not started again. It is
// two at least: an effect may have run beside the one that its first process died
// of.
func (f *execution) deathsMax() int {
	if of, ok := f.served.Executor.(interface{ Tries(toolID string) int }); ok && f.call != nil {
		return max(deathsLeast, cmp.Or(of.Tries(f.call.ToolID), deathsDefault))
	}
	return deathsDefault
}

// bridgeLost is the outcome of an effect that too many processes died of.
func (w *Worker) bridgeLost(f *execution, d *deaths) outcome {
	w.logFor(f).Error(codeBridgeLost, "deaths", d.count(), "instances", d.of)
	if f.call != nil {
		return failed(codeBridgeLost, fmt.Sprintf("the program that runs this tool died %d times while it ran this call. The call probably caused that: do not repeat it as it is, ask for less or use another way", d.count()))
	}
	return failed(codeBridgeLost, fmt.Sprintf("%d bridges died while they ran it: it probably caused that, and is not started again", d.count()))
}

// claimAgain claims an effect that is safe, if it was delivered before. Such a claim
// counts its starts. It keeps others from starting the effect only while its holder
// lives.
func (w *Worker) claimAgain(f *execution) decision {
	if !f.safe() || f.answer == nil || !f.answer.Again() || f.served.lost || f.late(w.now()) {
		return decision{next: nextStart}
	}
	f.hash = codec.Sum(f.answer.Payload()).String()
	return w.claim(f.life.grace, f, nil)
}

// release stores that f is given back in order, after it may have started: then the
// end of this process is no death by f. If that fails, it counts as one.
func (w *Worker) release(f *execution) {
	if f.life.Drain.Err() == nil || f.served.lost {
		return
	}
	if first := f.safe() && !f.answer.Again(); !first && (f.unsafe() || f.claims.asked == 0) {
		return
	}
	ctx, cancel := context.WithTimeout(f.life.Last, releaseWait)
	defer cancel()
	released := Claim{By: w.instance, Hash: codec.Sum(f.answer.Payload()).String(), Released: true}
	for n := f.claims.asked + 1; n <= journal.ClaimsMax; n++ {
		stands, _, err := w.wire.BeginClaim(ctx, subjects.ClaimName{EffectName: f.name, N: n}, released)()
		if err != nil || stands == released {
			return
		}
	}
}

// isolate waits until f, of which so many processes died, may run beside the other
// effects of this process. nextStart means that it may.
func (w *Worker) isolate(f *execution, deaths int) decision {
	kind := harmless
	switch {
	case f.unsafe():
		kind = fragile
	case deaths >= min(deathsLeast, f.deathsMax()-1):
		kind = killer
	case deaths > 0:
		kind = suspect
	}
	if f.isolated == kind+1 {
		return decision{next: nextStart}
	}
	f.isolated = kind + 1
	given := w.neighbours.enter(&f.place, kind)
	if given == nil {
		return decision{next: nextStart}
	}
	ctx, cancel := context.WithCancelCause(f.life.Drain)
	defer cancel(nil)
	timer := time.NewTimer(isolateWaitMax)
	defer timer.Stop()
	if !f.setStop(cancel) {
		select {
		case <-given:
			return decision{next: nextStart}
		case <-ctx.Done():
		case <-timer.C:
		}
	}
	w.neighbours.leave(&f.place)
	switch {
	case f.isWithdrawn():
		return ack("withdrawn")
	case ctx.Err() != nil:
		return giveBack(stoppingDelay, "this bridge is stopping")
	case kind == killer:
		return giveBack(untilLate(f, w.now(), isolateDelay), "it runs alone, and other effects don't end")
	}
	return giveBack(untilLate(f, w.now(), heldDelay), "it does not run beside the effects in progress")
}
