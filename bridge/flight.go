package bridge

import (
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/refold/refold/internal/fault"
)

// flight is one effect that this process carries: it is being claimed, or it
// runs, or its settlement is being stored.
type flight struct {
	effect
	digest digest // of its name
	doubt  doubt  // of a model turn

	life   *lifetimes
	served *served
	answer delivery  // nil: nobody waits for one
	began  time.Time // being carried

	started time.Time    // the latest time
	secrets *callSecrets // that its call was given; nil: none
	told    *starting    // by the generation's latest start; nil: nobody asks
	// onward takes a ruling that the goroutine which began with the flight does
	// not come to; nil: the worker lands it.
	onward func(ruling)

	mu        sync.Mutex
	withdrawn bool
	stop      ender // what runs, or waits; nil: nothing did
}

// ender is what a withdrawal, or the end of this process, ends.
type ender interface{ end(cause error) }

// table knows the flights of this process, and what it settled. The server
// forgets acks and delivery counts, so an effect may be delivered again long
// after it was settled; its claim would still say that it is ours to start.
// What is settled, and which claims are doubted, is kept until it could not
// start anyway, being late.
type table struct {
	mu      sync.Mutex
	flights map[digest]*flight
	kept    map[int64]*past // by the minute of start_by
	swept   int64           // the minute when kept was swept
}

// past is what is kept of effects that were here.
type past struct {
	settled map[digest]struct{}
	doubts  map[digest]doubt // of those that are not settled
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

func newTable() *table {
	return &table{flights: make(map[digest]*flight), kept: make(map[int64]*past)}
}

// entry is what the table knew of an effect that is delivered.
type entry int

const (
	entryNew     entry = iota // it is ours to carry from now on
	entryBusy                 // it is carried already
	entrySettled              // it was settled here
)

// enter takes an effect in. Only if it is entryNew there is a flight, and
// leave must be called in the end.
func (t *table) enter(e effect) (*flight, entry) {
	digest := named(e.name.Session, e.name.Effect)
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.flights[digest]; ok {
		return nil, entryBusy
	}
	f := &flight{effect: e, digest: digest}
	if was := t.kept[minuteOf(e.startBy)]; was != nil {
		if _, ok := was.settled[digest]; ok && !fault.On(fault.SettledForgotten) {
			return nil, entrySettled
		}
		f.doubt = was.doubts[digest]
	}
	t.flights[digest] = f
	return f, entryNew
}

// leave ends a flight. settled says that nothing is left to say about it.
func (t *table) leave(f *flight, settled bool, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.flights, f.digest)
	if settled || f.doubt != (doubt{}) {
		t.keep(f, settled)
	}
	if minute := minuteOf(now); minute != t.swept {
		t.swept = minute
		for of := range t.kept {
			if of < minuteOf(now.Add(-settledKept)) {
				delete(t.kept, of)
			}
		}
	}
}

// keep keeps what is to be known when f is delivered again. The lock is held.
func (t *table) keep(f *flight, settled bool) {
	minute := minuteOf(f.startBy)
	if t.kept[minute] == nil {
		t.kept[minute] = &past{settled: make(map[digest]struct{}), doubts: make(map[digest]doubt)}
	}
	if settled {
		t.kept[minute].settled[f.digest] = struct{}{}
		delete(t.kept[minute].doubts, f.digest)
		return
	}
	t.kept[minute].doubts[f.digest] = f.doubt
}

func minuteOf(at time.Time) int64 { return at.Unix() / 60 }

// withdraw stops an effect of a session, if it is here.
func (t *table) withdraw(sid, name string) {
	t.mu.Lock()
	f := t.flights[named(sid, name)]
	t.mu.Unlock()
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.withdrawn = true
	if f.stop != nil {
		f.stop.end(errWithdrawn)
	}
}

// endAll ends what runs of all flights.
func (t *table) endAll(cause error) {
	t.mu.Lock()
	all := slices.Collect(maps.Values(t.flights))
	t.mu.Unlock()
	for _, f := range all {
		f.mu.Lock()
		if f.stop != nil {
			f.stop.end(cause)
		}
		f.mu.Unlock()
	}
}

func (f *flight) isWithdrawn() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.withdrawn
}

// startUnder gives f what a withdrawal is to end. It reports whether f was
// withdrawn before.
func (f *flight) startUnder(stop ender) (withdrawn bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stop = stop
	return f.withdrawn
}
