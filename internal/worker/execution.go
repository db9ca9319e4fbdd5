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
)

// execution is one effect that this process has in hand: it is being claimed, or it
// runs, or its settlement is being stored.
type execution struct {
	effect
	digest  digest     // of its name
	claims  claimState // of a model turn
	settled settledAt  // as an earlier connection had it; zero: it was not settled here

	life   *Lifetimes
	served *Target
	answer Delivery  // nil: nobody waits for one
	began  time.Time // when it had its slots

	admitted admission

	started time.Time    // the latest time
	secrets *callSecrets // of a call that is about to start; nil: none
	told    *feedback    // of the generation's latest start

	observed *observed         // the start that the observer has not heard the end of; nil: none
	asked    *executor.Request // of a generation: what the model is shown
	sampled  bool              // its run is traced

	// resume takes a decision that the goroutine which began with the execution does
	// not come to; nil: the worker lands it.
	resume func(decision)

	mu        sync.Mutex
	withdrawn bool
	replaced  bool                    // the server lost this effect, and another has its name
	stop      context.CancelCauseFunc // ends what runs, or waits; nil: nothing did
}

// executions knows the executions of this process, and what it settled. The server
// forgets acks and delivery counts, so an effect may be delivered again long
// after it was settled; its claim would still say that it is ours to start.
// What is settled, and which claims are doubted, is kept until it could not
// start anyway, being late.
//
// A server that lost the unsynced end of its streams may deliver another effect
// under the name of one that was here. So what is kept is known by name and bytes.
type executions struct {
	mu      sync.Mutex
	byName  map[digest]*execution
	settled map[int64]*settledCache // by the minute of start_by
	swept   int64                   // the minute when settled was swept
}

// settledCache is what is kept of effects that were here, by name and bytes.
type settledCache struct {
	settled map[digest]settledAt
	claims  map[digest]claimState // of those that are not settled
}

// settledAt is where the settlement of an effect was in the log.
type settledAt struct {
	seq         uint64 // 0: this process stored none
	incarnation uint64 // of the connection that delivered the effect
	claim       int    // the last claim of ours; 0: none
}

// digest stands for an effect's name, in this process: two names with one digest
// are as likely as two equal ULIDs.
type digest [2]uint64

var digestSeeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func digestOf(of []byte) digest {
	return digest{maphash.Bytes(digestSeeds[0], of), maphash.Bytes(digestSeeds[1], of)}
}

// named returns the digest of an effect's name.
func named(sid, effect string) digest {
	var room [128]byte // of the stack
	return digestOf(append(append(append(room[:0], sid...), '.'), effect...))
}

func newExecutions() *executions {
	return &executions{byName: make(map[digest]*execution), settled: make(map[int64]*settledCache)}
}

// entryState is what the table knew of an effect that is delivered.
type entryState int

const (
	entryNew      entryState = iota // it is ours from now on
	entryBusy                       // it is in hand already
	entryReplaces                   // one of its name and of other bytes was in hand, and was stopped
	entrySettled                    // it was settled here, over this connection
)

// enter takes an effect in. Only if it is entryNew there is an execution, and
// leave must be called in the end.
func (t *executions) enter(e effect) (*execution, entryState) {
	digest := named(e.name.Session, e.name.Effect)
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
		at, ok := was.settled[f.keptAs()]
		if ok && at.incarnation == e.incarnation {
			return nil, entrySettled
		}
		f.settled, f.claims = at, was.claims[f.keptAs()]
	}
	t.byName[digest] = f
	return f, entryNew
}

// keptAs returns what f is kept under: its name and its bytes.
func (f *execution) keptAs() digest {
	return digest{f.digest[0] ^ f.bytes[0], f.digest[1] ^ f.bytes[1]}
}

// leave ends an execution. settled says that nothing is left to say about it.
func (t *executions) leave(f *execution, settled bool, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byName, f.digest)
	if settled || f.claims != (claimState{}) {
		minute, as := minuteOf(f.startBy), f.keptAs()
		if t.settled[minute] == nil {
			t.settled[minute] = &settledCache{settled: make(map[digest]settledAt), claims: make(map[digest]claimState)}
		}
		if kept := t.settled[minute]; settled {
			kept.settled[as] = settledAt{seq: f.settled.seq, incarnation: f.incarnation, claim: f.claims.asked}
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

// withdraw stops an effect of a session, if it is here.
func (t *executions) withdraw(sid, name string) {
	t.mu.Lock()
	f := t.byName[named(sid, name)]
	t.mu.Unlock()
	if f == nil {
		return
	}
	f.end(errWithdrawn, false)
}

// end ends what runs of f. Replaced says that nothing it comes to is said: the
// session would take it for the settlement of the effect that has its name now.
func (f *execution) end(cause error, replaced bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replaced = f.replaced || replaced
	f.withdrawn = f.withdrawn || errors.Is(cause, errWithdrawn)
	if f.stop != nil {
		f.stop(cause)
	}
}

// Cancelled stops what is in progress here of the effects that a session withdrew.
func (w *Worker) Cancelled(sid string, payload []byte) {
	var said struct {
		Effects []string `json:"effects"`
	}
	if err := json.Unmarshal(payload, &said); err != nil {
		w.log.Warn("cancellation_unreadable", "session", sid, "error", err.Error())
		return
	}
	for _, name := range said.Effects {
		w.executions.withdraw(sid, name)
	}
}

// endAll ends what runs of all executions.
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

// startUnder gives f what a withdrawal is to end. It reports whether f was
// withdrawn before.
func (f *execution) startUnder(stop context.CancelCauseFunc) (withdrawn bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stop = stop
	return f.withdrawn
}
