package engine

// What a history owes, by the fold alone, and what of it a world in memory has.

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/refold/refold/actors/session"
)

// said returns the numbers of a session's notices in the order of their first
// storing; 0 for one of a quarantine.
func (d *depot) said(sid string) (numbers []uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	seen := map[uint64]bool{}
	for _, have := range d.notices[sid] {
		if have.n == 0 && bytes.Contains(have.data, []byte(session.NoticeSessionQuarantined)) || have.n > 0 && !seen[have.n] {
			numbers = append(numbers, have.n)
		}
		seen[have.n] = true
	}
	return numbers
}

// asked returns the names of the effects that are stored for a session.
func (d *depot) asked(sid string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	for name := range d.effects {
		if of, effect, _ := strings.Cut(name, " "); of == sid {
			names = append(names, effect)
		}
	}
	slices.Sort(names)
	return names
}

// history returns a session's events up to a sequence.
func (d *depot) history(sid string, to uint64) []session.Event {
	d.mu.Lock()
	defer d.mu.Unlock()
	var events []session.Event
	for _, e := range d.log {
		if e.Session == sid && e.Seq <= to {
			events = append(events, e)
		}
	}
	return events
}

// owed is what the fold of one event wants stored.
type owed struct {
	seq       uint64
	effects   []session.Effect
	withdrawn []session.Withdrawal
	notices   []uint64
	change    string // the notice without a number; empty: none
}

// oracle folds a history and keeps what every event owes.
type oracle struct {
	state *session.State
	owed  []owed
}

func newOracle(sid string) *oracle { return &oracle{state: session.New(builtin(), sid)} }

// fold folds the next event.
func (o *oracle) fold(e session.Event) {
	before := uint64(o.state.NoticeN)
	was := map[string]bool{}
	for _, effect := range o.state.Open() {
		was[effect.Name] = true
	}
	notices, _ := o.state.Evolve(e)
	one := owed{seq: e.Seq, effects: o.state.OpenExcept(func(p session.Place) bool { return was[p.String()] })}
	one.withdrawn = slices.Clone(o.state.Withdrawals())
	if len(notices) == 1 && notices[0].N == 0 {
		one.change = string(notices[0].JSON())
	}
	for n := before + 1; n <= uint64(o.state.NoticeN); n++ {
		one.notices = append(one.notices, n)
	}
	o.owed = append(o.owed, one)
}

// judge folds a session's events up to a sequence.
func (d *depot) judge(sid string, to uint64) *oracle {
	o := newOracle(sid)
	for _, e := range d.history(sid, to) {
		o.fold(e)
	}
	return o
}

// missing returns what of a session's outputs up to a sequence isn't stored.
func (d *depot) missing(sid string, to uint64) []string {
	return d.unstored(sid, d.judge(sid, to).owed)
}

// unstored returns what of these outputs isn't stored.
func (d *depot) unstored(sid string, all []owed) (missing []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	said, changes := map[uint64]bool{}, map[string]bool{}
	for _, have := range d.notices[sid] {
		if said[have.n] = true; have.n == 0 {
			changes[string(have.data)] = true
		}
	}
	for _, one := range all {
		for _, effect := range one.effects {
			stored, found := d.effects[sid+" "+effect.Name]
			if !found {
				stored, found = d.forgotten[sid+" "+effect.Name]
			}
			if !found {
				missing = append(missing, effect.Name)
			} else if !bytes.Equal(stored, effect.Payload) {
				missing = append(missing, effect.Name+" has other bytes")
			}
		}
		for _, w := range one.withdrawn {
			if w.Claimed && !d.withdrawn[sid+" "+w.Name] {
				missing = append(missing, "withdrawal of "+w.Name)
			}
			if !d.cancelled[sid+" "+w.Name] {
				missing = append(missing, "cancel of "+w.Name)
			}
		}
		for _, n := range one.notices {
			if !said[n] {
				missing = append(missing, fmt.Sprintf("notice %d", n))
			}
		}
		if one.change != "" && !changes[one.change] {
			missing = append(missing, "notice "+one.change)
		}
	}
	return missing
}

// checkSnapshots fails the test if a snapshot is of a state that isn't stored,
// or isn't what its events fold to.
func (d *depot) checkSnapshots(t *testing.T) {
	t.Helper()
	d.mu.Lock()
	all := maps.Clone(d.snapshots)
	d.mu.Unlock()
	for sid, data := range all {
		snap, err := session.ParseSnapshot(data)
		if err != nil {
			t.Fatal(err)
		}
		if missing := d.missing(sid, snap.Seq); len(missing) > 0 {
			t.Errorf("the snapshot of %s at %d is of a state that is not stored: %v", sid, snap.Seq, missing)
		}
		if got := d.judge(sid, snap.Seq).state.Hash(); got != snap.Hash {
			t.Errorf("the snapshot of %s at %d has the hash %s, its events fold to %s", sid, snap.Seq, snap.Hash, got)
		}
	}
}

// builtin returns the built-in install record, parsed once for all tests.
var builtin = sync.OnceValue(func() *session.Install {
	install, err := session.ParseInstall(session.BuiltinInstall())
	if err != nil {
		panic(err)
	}
	return install
})
