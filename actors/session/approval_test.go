package session_test

// Approvals in every order. A batch of five calls that wait for a person ends
// in one way, whatever comes first: what was decided over each call says alone
// what its result is.

import (
	"bytes"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// fate is what becomes of a call that waits.
type fate int

const (
	approve fate = iota
	deny
	edit
	expire
	fates
)

// deciding is one session whose five calls are decided over. Several of them
// that differ in order alone must end alike.
type deciding struct {
	*told
	fates    [5]fate
	restores bool           // go through a snapshot after every event
	said     map[uint64]any // what each event said, by sequence
	settled  [5]bool
}

const approvalMS = 60_000

// arguments are those of call i as the model made it, and as it was edited.
func arguments(i int, edited bool) string { return fmt.Sprintf(`{"a":%d,"edited":%v}`, i, edited) }

// say folds an event that must be taken.
func (d *deciding) say(door session.Door, typ string, data map[string]any) {
	d.t.Helper()
	d.must(d.tell(door, typ, data))
	d.said[d.seq] = data
	if d.restores {
		d.state = d.restored().state
	}
}

// decide says what a person says of call i, if anything.
func (d *deciding) decide(i int) {
	d.t.Helper()
	name := fmt.Sprintf("r1t1c%d", i)
	switch d.fates[i] {
	case approve:
		d.say(session.DoorCtl, session.TypeApprovalDecided, d.decision(name, "approve"))
	case deny:
		d.say(session.DoorCtl, session.TypeApprovalDecided, merged(d.decision(name, "deny"), map[string]any{"reason": "no"}))
	case edit:
		d.say(session.DoorCtl, session.TypeApprovalDecided, merged(d.decision(name, "approve"), map[string]any{"arguments": arguments(i, true)}))
	}
}

// settle settles the calls that are open and that pick picks. A call's output
// is the arguments that it was asked with.
func (d *deciding) settle(pick func() bool) {
	d.t.Helper()
	for _, e := range d.state.Open() {
		if e.Class != session.ClassTool || !pick() {
			continue
		}
		var call session.ToolCall
		if err := codec.Unmarshal(e.Payload, &call); err != nil {
			d.t.Fatal(err)
		}
		if d.settled[call.Call] {
			d.t.Fatalf("%s is asked twice", e.Name)
		}
		d.settled[call.Call] = true
		d.say(session.DoorTool, session.TypeToolCallSettled, result(e.Name, "succeeded", call.Arguments))
	}
}

// through takes the batch to its end: the calls are decided over in this order,
// what is asked is settled at once or later, as random says, and when nobody
// has anything more to say, time passes.
func (d *deciding) through(tools string, order []int, random *rand.Rand) {
	d.t.Helper()
	d.say(session.DoorCtl, session.TypeRunRequested, map[string]any{"input": text("go"), "config": map[string]any{
		"provider": "p", "model": "m", "deadlines_ms": map[string]any{"approval": approvalMS},
	}})
	var calls []any
	for i, name := range strings.Fields(tools) {
		calls = append(calls, map[string]any{"tool_name": name, "arguments": arguments(i, false)})
	}
	d.say(session.DoorLLM, session.TypeToolCallsObserved, map[string]any{"effect": "r1t1", "calls": calls})
	for _, i := range order {
		d.decide(i)
		d.settle(func() bool { return random.Intn(2) == 0 })
	}
	d.settleAll()
	if slices.Contains(d.fates[:], expire) {
		d.time += approvalMS
		d.say(session.DoorWake, session.TypeWakeSettled, map[string]any{"effect": "w1"})
		d.settleAll()
	}
	d.say(session.DoorLLM, session.TypeGenerationSettled, map[string]any{"effect": "r1t2", "status": "ok", "text": text("done")})
}

// settleAll settles what is open until nothing is.
func (d *deciding) settleAll() {
	d.t.Helper()
	for range d.fates { // a group each, at most
		d.settle(func() bool { return true })
	}
}

// check compares each call's result with its fate.
func (d *deciding) check() {
	d.t.Helper()
	s := d.state
	if s.Run != nil || s.Last.Lifecycle != session.Completed || len(s.Items) != 8 {
		d.t.Fatalf("%v: run 1 is %v, with %d items", d.fates, s.Last, len(s.Items))
	}
	for i, it := range s.Items[2:7] {
		said, _ := d.said[it.Seq].(map[string]any)
		edited, _ := d.said[it.Edit].(map[string]any)
		code, output, arg := "", arguments(i, d.fates[i] == edit), any(nil)
		switch d.fates[i] {
		case deny:
			code = session.CodeApprovalDenied
		case expire:
			code = session.CodeApprovalExpired
		case edit:
			arg = arguments(i, true)
		}
		if it.Role != session.RoleTool || it.Call != i || it.Code != code || edited["arguments"] != arg {
			d.t.Errorf("%v: item %d is %+v, edited %v", d.fates, i+2, it, edited)
		}
		if code == "" && said["output"].(map[string]any)["text"] != output {
			d.t.Errorf("%v: the result of call %d is %v, want %s", d.fates, i, said, output)
		}
		if code != "" && d.settled[i] {
			d.t.Errorf("%v: call %d was asked", d.fates, i)
		}
	}
}

// apartFromOrder returns a state's bytes apart from what tells one order of
// events from another, or how many there were: the head, and of each item which
// event it is of, for which the content of that event, from said, stands instead.
func apartFromOrder(t testing.TB, s *session.State, said map[uint64]any) []byte {
	t.Helper()
	var r session.Record
	if err := codec.Unmarshal(s.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	r.Seq, r.Count, r.Chain, r.Leaf = 0, 0, codec.Hash{}, codec.Hash{}
	var out bytes.Buffer
	for i := range r.Items {
		it := &r.Items[i]
		fmt.Fprintf(&out, "%s %v, %v\n", it.Role, said[it.Seq], said[it.Edit])
		it.Seq, it.Edit = 0, 0
	}
	b, err := codec.Marshal(&r)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(b)
	return out.Bytes()
}

// permutations returns every order of n things.
func permutations(n int) [][]int {
	if n == 0 {
		return [][]int{{}}
	}
	var all [][]int
	for _, p := range permutations(n - 1) {
		for at := range n {
			all = append(all, slices.Insert(slices.Clone(p), at, n-1))
		}
	}
	return all
}

// TestApprovalsInEveryOrder: all 4⁵ fates of five calls, in one group, in five,
// and in three; each in four of the 120 orders, so that every order meets many
// fates; settlements in between, at once or late; one of the four with a
// snapshot after every event. The results and the bytes are the same.
func TestApprovalsInEveryOrder(t *testing.T) {
	t.Parallel()
	install, orders := askInstall(t), permutations(5)
	for _, tools := range []string{"askp askp askp askp askp", "askn askn askn askn askn", "askp askp askn askp askp"} {
		t.Run(tools, func(t *testing.T) {
			t.Parallel()
			for n := range 1 << 10 {
				var want []byte
				for variant := range 4 {
					d := &deciding{told: toldUnder(t, install), restores: variant == 3, said: map[uint64]any{}}
					for i := range d.fates {
						d.fates[i] = fate(n >> (2 * i) & 3)
					}
					at := (n*7 + variant*31) % len(orders)
					d.through(tools, orders[at], rand.New(rand.NewSource(int64(4*n+variant))))
					d.check()
					got := apartFromOrder(t, d.state, d.said)
					if variant == 0 {
						want = got
					} else if !bytes.Equal(got, want) {
						t.Fatalf("%v in the order %v leaves other bytes than in another order:\n%q\n%q", d.fates, orders[at], got, want)
					}
				}
			}
		})
	}
}
