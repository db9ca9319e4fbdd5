package recorded

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/refold/refold/codec"
)

// Ledger returns the executions that the conversation should leave in a ledger
// when it runs in this session, in the order of the calls. Start and RetrySafe
// are empty: the recording doesn't have them.
func (c *Conversation) Ledger(session string) []Entry {
	var entries []Entry
	for at, call := range c.calls {
		effect := at.String()
		entries = append(entries, Entry{
			Session: session, Effect: effect, Tool: call.Name, Arguments: orEmptyObject([]byte(call.Arguments)),
			IdempotencyKey: session + "." + effect,
		})
	}
	return entries
}

// Account compares the executions in a ledger with the expected ones. Its lists
// hold idempotency keys, in order.
type Account struct {
	Executed []string // once, or more often where that is safe
	Again    []string // retry-safe, and executed more than once
	Missing  []string // not executed
	Repeated []string // not retry-safe, and executed more than once
	Foreign  []string // not in the recording, or with another tool or arguments
}

// Tally compares the entries of a ledger with the expected ones. Entries of
// sessions that are not in want are ignored.
func Tally(want, got []Entry) Account {
	var a Account
	sessions := map[string]bool{}
	expected := map[string]*Entry{}
	for i := range want {
		sessions[want[i].Session] = true
		expected[want[i].IdempotencyKey] = &want[i]
	}
	times := map[string]int{}
	unsafe := map[string]bool{}
	for _, e := range got {
		if !sessions[e.Session] {
			continue
		}
		w := expected[e.IdempotencyKey]
		if w == nil || w.Session != e.Session || w.Tool != e.Tool || !sameJSON(w.Arguments, e.Arguments) {
			a.Foreign = append(a.Foreign, e.IdempotencyKey)
			continue
		}
		times[e.IdempotencyKey]++
		unsafe[e.IdempotencyKey] = unsafe[e.IdempotencyKey] || !e.RetrySafe
	}
	for _, w := range want {
		switch key := w.IdempotencyKey; {
		case times[key] == 0:
			a.Missing = append(a.Missing, key)
		case times[key] > 1 && unsafe[key]:
			a.Repeated = append(a.Repeated, key)
		default:
			a.Executed = append(a.Executed, key)
			if times[key] > 1 {
				a.Again = append(a.Again, key)
			}
		}
	}
	return a
}

// sameJSON reports whether two texts are the same JSON value: the log need not
// preserve a call's white space.
func sameJSON(a, b []byte) bool {
	x, errX := codec.FromJSON(a)
	y, errY := codec.FromJSON(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// Err returns nil if every execution is in the ledger as expected, otherwise
// what is wrong. A caller that knows of calls settled outcome_unknown checks
// Missing itself.
func (a Account) Err() error {
	var faults []error
	for _, f := range []struct {
		what string
		keys []string
	}{
		{"not executed", a.Missing}, {"executed more than once", a.Repeated}, {"not in the recording", a.Foreign},
	} {
		if len(f.keys) > 0 {
			faults = append(faults, fmt.Errorf("%d %s: %s", len(f.keys), f.what, strings.Join(f.keys, ", ")))
		}
	}
	return errors.Join(faults...)
}
