package bridge

import (
	"context"
	"sync"
	"time"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/fault"
)

// flight is one effect that this process carries: it is being claimed, or it
// runs, or its settlement is being stored.
type flight struct {
	effect
	digest digest // of its key

	// doubted is the last claim of ours that others may have passed over, of a
	// model turn; 0: none.
	doubted int

	mu        sync.Mutex
	withdrawn bool
	stop      context.CancelCauseFunc // ends the executor's context; nil when none runs
}

// table knows the flights of this process, and what it settled. The server
// forgets acks and delivery counts, so an effect may be delivered again long
// after it was settled; its claim would still say that it is ours to start.
// What is settled, and which claims are doubted, is kept until it could not
// start anyway, being late.
type table struct {
	mu      sync.Mutex
	flights map[string]*flight
	kept    map[int64]map[digest]int // by the minute of start_by; a claim that is doubted, or settledMark
	swept   int64                    // the minute when kept was swept
}

// settledMark is kept of what was settled here.
const settledMark = -1

// digest stands for an effect's key.
type digest [16]byte

func digestOf(key string) (d digest) {
	sum := codec.Sum([]byte(key))
	copy(d[:], sum[:])
	return d
}

func newTable() *table {
	return &table{flights: make(map[string]*flight), kept: make(map[int64]map[digest]int)}
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
	key := e.key()
	digest := digestOf(key)
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.flights[key]; ok {
		return nil, entryBusy
	}
	doubted := t.kept[minuteOf(e.startBy)][digest]
	if doubted == settledMark && !fault.On(fault.SettledForgotten) {
		return nil, entrySettled
	}
	f := &flight{effect: e, digest: digest, doubted: doubted}
	t.flights[key] = f
	return f, entryNew
}

// leave ends a flight. settled says that nothing is left to say about it.
func (t *table) leave(f *flight, settled bool, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.flights, f.key())
	keep := f.doubted
	if settled {
		keep = settledMark
	}
	if keep != 0 {
		minute := minuteOf(f.startBy)
		if t.kept[minute] == nil {
			t.kept[minute] = make(map[digest]int)
		}
		t.kept[minute][f.digest] = keep
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

func minuteOf(at time.Time) int64 { return at.Unix() / 60 }

// withdraw stops an effect of a session, if it is here.
func (t *table) withdraw(sid, name string) {
	t.mu.Lock()
	f := t.flights[sid+"."+name]
	t.mu.Unlock()
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.withdrawn = true
	if f.stop != nil {
		f.stop(errWithdrawn)
	}
}

func (f *flight) isWithdrawn() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.withdrawn
}

// startUnder gives f the context that a withdrawal ends. It reports whether f
// was withdrawn before.
func (f *flight) startUnder(stop context.CancelCauseFunc) (withdrawn bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stop = stop
	return f.withdrawn
}
