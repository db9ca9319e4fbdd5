package worker

import (
	"context"
	"encoding/json"
	"errors"
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/presence"
)

// execution is one effect in progress in this process: it is being claimed, it
// runs, or its settlement is being stored.
type execution struct {
	*effect
	digest  digest     // of its name
	claims  claimState // of a model turn
	settled settledAt  // as an earlier connection had it; zero: it was not settled here

	life   *Lifetimes
	served *Target
	answer Delivery  // nil in a rehearsal
	began  time.Time // when it had its slots

	admitted admission
	place    place     // among the effects that run in this process
	isolated neighbour // one more than what it entered as; 0: it has not

	started  time.Time    // of the latest start
	secrets  *callSecrets // of a call that is about to start; nil: none
	feedback *feedback    // of the generation's latest start

	observed    *observed         // the latest start, for the observer; nil: none
	request     *executor.Request // of a generation: what the model is shown
	traceparent string            // empty: its run is not traced

	// resume receives the decision if another goroutine than the first makes it;
	// nil: the worker finishes the execution itself.
	resume func(decision)

	mu        sync.Mutex
	withdrawn bool
	replaced  bool                    // the server lost this effect, and another has its name
	stop      context.CancelCauseFunc // ends the executor or the wait; nil: neither began
}

// executions holds the executions of this process, and the effects that it
// settled. The server loses acks and delivery counts, so an effect may be
// delivered again long after it was settled; its claim would still let us start
// it. Settled effects, and claims in doubt, are kept until the effect is too late
// to start.
//
// A server that lost the unsynced end of its streams may deliver another effect
// under the name of an earlier one. So entries are kept by name and bytes.
type executions struct {
	mu      sync.Mutex
	byName  map[digest]*execution
	settled map[int64]*settledCache // by the minute of start_by
	swept   int64                   // the minute of the last sweep of settled
}

// settledCache keeps settlements and claims of past executions, by name and bytes.
type settledCache struct {
	settled map[digest]settledAt
	claims  map[digest]claimState // of those that are not settled
}

// settledAt is where the settlement of an effect was in the log.
type settledAt struct {
	seq         uint64 // 0: this process stored none
	incarnation uint64 // of the connection that delivered the effect
	claim       int    // the last claim of ours, also one that others may have superseded; 0: none
}

// digest identifies an effect's name or payload in this process: a collision is as
// likely as two equal ULIDs.
type digest [2]uint64

var digestSeeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func digestOf(of []byte) digest {
	return digest{maphash.Bytes(digestSeeds[0], of), maphash.Bytes(digestSeeds[1], of)}
}

func nameDigest(sid, effect string) digest {
	var room [128]byte // on the stack
	return digestOf(append(append(append(room[:0], sid...), '.'), effect...))
}

func newExecutions() *executions {
	return &executions{byName: make(map[digest]*execution), settled: make(map[int64]*settledCache)}
}

// entryState is what the table knew of a delivered effect.
type entryState int

const (
	entryNew      entryState = iota // it was not in the table
	entryBusy                       // it is in progress
	entryReplaces                   // an effect of its name and other bytes was in progress: it is stopped
	entrySettled                    // it was settled here, over this connection
)

// enter adds an effect. It returns an execution only with entryNew, and the caller
// must then call leave in the end.
func (t *executions) enter(e *effect) (*execution, entryState) {
	digest := nameDigest(e.name.Session, e.name.Effect)
	t.mu.Lock()
	defer t.mu.Unlock()
	if other, ok := t.byName[digest]; ok {
		if other.bytes == e.bytes {
			return nil, entryBusy
		}
		other.end(errWithdrawn, true)
		return nil, entryReplaces
	}
	f := &execution{effect: e, digest: digest}
	if was := t.settled[minuteOf(e.startBy)]; was != nil {
		at, ok := was.settled[f.cacheKey()]
		if ok && at.incarnation == e.incarnation {
			return nil, entrySettled
		}
		f.settled, f.claims = at, was.claims[f.cacheKey()]
	}
	t.byName[digest] = f
	return f, entryNew
}

// cacheKey returns the key of f in a settledCache: its name and its bytes.
func (f *execution) cacheKey() digest {
	return digest{f.digest[0] ^ f.bytes[0], f.digest[1] ^ f.bytes[1]}
}

// leave removes an execution. settled says that it needs no settlement any more.
func (t *executions) leave(f *execution, settled bool, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byName, f.digest)
	if settled || f.claims != (claimState{}) {
		minute, as := minuteOf(f.startBy), f.cacheKey()
		if t.settled[minute] == nil {
			t.settled[minute] = &settledCache{settled: make(map[digest]settledAt), claims: make(map[digest]claimState)}
		}
		if kept := t.settled[minute]; settled {
			kept.settled[as] = settledAt{seq: f.settled.seq, incarnation: f.incarnation, claim: max(f.claims.asked, f.claims.passed)}
			delete(kept.claims, as)
		} else {
			kept.claims[as] = f.claims
		}
	}
	if minute := minuteOf(now); minute != t.swept {
		t.swept = minute
		for of := range t.settled {
			if of < minuteOf(now.Add(-settledKept)) {
				delete(t.settled, of)
			}
		}
	}
}

func minuteOf(at time.Time) int64 { return at.Unix() / 60 }

// withdraw stops an effect of a session, if it is in progress.
func (t *executions) withdraw(sid, name string) {
	t.mu.Lock()
	f := t.byName[nameDigest(sid, name)]
	t.mu.Unlock()
	if f == nil {
		return
	}
	f.end(errWithdrawn, false)
}

// end stops f. replaced suppresses its settlement: the session would take it for
// the settlement of the effect that has its name now.
func (f *execution) end(cause error, replaced bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replaced = f.replaced || replaced
	f.withdrawn = f.withdrawn || errors.Is(cause, errWithdrawn)
	if f.stop != nil {
		f.stop(cause)
	}
}

// Cancelled stops the effects that a session withdrew, as far as they are in
// progress.
func (w *Worker) Cancelled(sid string, payload []byte) {
	var body presence.Cancel
	if err := json.Unmarshal(payload, &body); err != nil {
		w.log.Warn("cancellation_unreadable", "session", sid, "error", err.Error())
		return
	}
	for _, name := range body.Effects {
		w.executions.withdraw(sid, name)
	}
}

func (t *executions) endAll(cause error) {
	t.mu.Lock()
	all := slices.Collect(maps.Values(t.byName))
	t.mu.Unlock()
	for _, f := range all {
		f.end(cause, false)
	}
}

func (f *execution) isReplaced() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.replaced
}

func (f *execution) isWithdrawn() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.withdrawn
}

// setStop sets what a withdrawal calls. It reports whether f is already withdrawn.
func (f *execution) setStop(stop context.CancelCauseFunc) (withdrawn bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stop = stop
	return f.withdrawn
}
